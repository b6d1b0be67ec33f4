#include "schedule/order/shares.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

// What is held counts as if it were held so much longer: enough that starts at one instant are
// shared out, too little to outweigh a share that somebody missed.
constexpr double held_ahead_ms = 10'000;

}  // namespace

Shares Shares::on_top_of(const Shares& base) {
  Shares scratch;
  scratch.base_ = &base;
  scratch.capacity_ = base.capacity_;
  scratch.half_life_ms_ = base.half_life_ms_;
  return scratch;
}

const Shares::Usage* Shares::find(TenantId tenant) const {
  const auto found = tenants_.find(tenant);
  if (found != tenants_.end()) return &found->second;
  return base_ == nullptr ? nullptr : base_->find(tenant);
}

const Shares::Usage* Shares::find(TenantId tenant, const std::string& project) const {
  const auto found = projects_.find({tenant, project});
  if (found != projects_.end()) return &found->second;
  return base_ == nullptr ? nullptr : base_->find(tenant, project);
}

// To be changed: copied from the base the first time.
Shares::Usage& Shares::usage(TenantId tenant) {
  const auto [at, fresh] = tenants_.try_emplace(tenant);
  if (!fresh || base_ == nullptr) return at->second;
  if (const Usage* known = base_->find(tenant)) at->second = *known;
  return at->second;
}

Shares::Usage& Shares::usage(TenantId tenant, const std::string& project) {
  const auto [at, fresh] = projects_.try_emplace({tenant, project});
  if (!fresh || base_ == nullptr) return at->second;
  if (const Usage* known = base_->find(tenant, project)) at->second = *known;
  return at->second;
}

void Shares::set_half_life(Duration half_life) {
  LOAM_ASSERT(half_life.ms > 0);
  half_life_ms_ = static_cast<double>(half_life.ms);
}

void Shares::set_weight(TenantId tenant, double weight) {
  LOAM_ASSERT(weight > 0);
  tenants_[tenant].weight = weight;
}

void Shares::set_weight(TenantId tenant, const std::string& project, double weight) {
  LOAM_ASSERT(weight > 0);
  projects_[{tenant, project}].weight = weight;
}

// Held amounts drift towards the average: after one half-life, half the way.
std::array<double, dimensions> Shares::average_at(const Usage& usage, Instant now) const {
  const double kept = std::exp2(-static_cast<double>((now - usage.since).ms) / half_life_ms_);
  std::array<double, dimensions> average{};
  for (std::size_t d = 0; d < dimensions; ++d) {
    average[d] = usage.average[d] * kept + static_cast<double>(usage.held.values[d]) * (1 - kept);
  }
  return average;
}

void Shares::hold(Usage& usage, const Amounts& amounts, bool more, Instant now) const {
  LOAM_ASSERT(now >= usage.since);
  usage.average = average_at(usage, now);
  usage.since = now;
  if (more) {
    usage.held += amounts;
  } else {
    usage.held -= amounts;
  }
}

void Shares::charge(TenantId tenant, const std::string& project, const Amounts& amounts,
                    Instant now) {
  hold(usage(tenant), amounts, true, now);
  hold(usage(tenant, project), amounts, true, now);
}

void Shares::release(TenantId tenant, const std::string& project, const Amounts& amounts,
                     Instant now) {
  hold(usage(tenant), amounts, false, now);
  hold(usage(tenant, project), amounts, false, now);
}

double Shares::share(const Usage& usage, Instant now) const {
  const std::array<double, dimensions> average = average_at(usage, now);
  double dominant = 0;
  // A constant amount enters the average at this rate a millisecond.
  const double ahead = held_ahead_ms * std::numbers::ln2 / half_life_ms_;
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (capacity_.values[d] == 0) continue;
    const double had = average[d] + static_cast<double>(usage.held.values[d]) * ahead;
    dominant = std::max(dominant, had / static_cast<double>(capacity_.values[d]));
  }
  return dominant / usage.weight;
}

std::vector<UsageImage> Shares::image() const {
  std::vector<UsageImage> images;
  const auto note = [&](TenantId tenant, const std::string& project, bool whole,
                        const Usage& usage) {
    if (usage.since == Instant{}) return;  // has a weight and nothing else
    UsageImage image{tenant, project, whole, usage.held, {}, usage.since};
    for (std::size_t d = 0; d < dimensions; ++d)
      image.average[d] = std::bit_cast<std::int64_t>(usage.average[d]);
    images.push_back(std::move(image));
  };
  for (const auto& [tenant, usage] : tenants_) note(tenant, {}, true, usage);
  for (const auto& [key, usage] : projects_) note(key.first, key.second, false, usage);
  return images;
}

void Shares::restore(const UsageImage& image) {
  Usage& known = image.whole ? usage(image.tenant) : usage(image.tenant, image.project);
  known.held = image.held;
  known.since = image.since;
  for (std::size_t d = 0; d < dimensions; ++d)
    known.average[d] = std::bit_cast<double>(image.average[d]);
}

double Shares::of(TenantId tenant, Instant now) const {
  const Usage* known = find(tenant);
  return known == nullptr ? 0 : share(*known, now);
}

double Shares::of(TenantId tenant, const std::string& project, Instant now) const {
  const Usage* known = find(tenant, project);
  return known == nullptr ? 0 : share(*known, now);
}

}  // namespace loam::schedule
