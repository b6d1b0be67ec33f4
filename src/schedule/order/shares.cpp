#include "schedule/order/shares.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

// What is held counts as if it were held so much longer: enough that starts at one instant are
// shared out, too little to outweigh a share that somebody missed.
constexpr double held_ahead_ms = 10'000;

}  // namespace

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
  hold(tenants_[tenant], amounts, true, now);
  hold(projects_[{tenant, project}], amounts, true, now);
}

void Shares::release(TenantId tenant, const std::string& project, const Amounts& amounts,
                     Instant now) {
  hold(tenants_[tenant], amounts, false, now);
  hold(projects_[{tenant, project}], amounts, false, now);
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

double Shares::of(TenantId tenant, Instant now) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : share(found->second, now);
}

double Shares::of(TenantId tenant, const std::string& project, Instant now) const {
  const auto found = projects_.find({tenant, project});
  return found == projects_.end() ? 0 : share(found->second, now);
}

}  // namespace loam::schedule
