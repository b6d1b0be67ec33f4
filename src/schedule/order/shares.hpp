// Shares: how much of a pool each tenant, and each project within a tenant, has had lately and has
// now, for weighted dominant resource fairness (Ghodsi et al., "Dominant Resource Fairness", NSDI
// 2011), with usage that decays with a half-life as in SLURM's fair tree. Doubles are preferences
// here, never amounts. Pure.
#pragma once

#include <array>
#include <boost/describe/class.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "domain/ids.hpp"
#include "schedule/admission/amounts.hpp"

namespace loam::schedule {

// What a tenant (project: empty) or one of its projects has had and has; averages as bits.
struct UsageImage {
  TenantId tenant;
  std::string project;
  bool whole = true;
  Amounts held;
  std::array<std::int64_t, dimensions> average{};
  Instant since;
};
BOOST_DESCRIBE_STRUCT(UsageImage, (), (tenant, project, whole, held, average, since))

class Shares {
 public:
  Shares() = default;
  // A scratch copy on top of `base`, which it must not outlive nor see change: only what is charged
  // or released in it is copied.
  static Shares on_top_of(const Shares& base);

  // All of the pool; dimensions with 0 do not count.
  void set_capacity(const Amounts& capacity) { capacity_ = capacity; }
  // Requires a half-life above zero. Before any usage.
  void set_half_life(Duration half_life);
  // Default 1; requires above zero.
  void set_weight(TenantId tenant, double weight);
  void set_weight(TenantId tenant, const std::string& project, double weight);

  // From `now` on the project holds that much more, or less. Times must not go back.
  void charge(TenantId tenant, const std::string& project, const Amounts& amounts, Instant now);
  void release(TenantId tenant, const std::string& project, const Amounts& amounts, Instant now);

  // All that was ever used; weights and capacity are settings.
  std::vector<UsageImage> image() const;
  void restore(const UsageImage& image);

  // The dominant share: the largest, over the dimensions, of what was held on average lately, with
  // what is held now counted a little ahead, over the capacity and the weight. The least is served
  // first.
  double of(TenantId tenant, Instant now) const;
  double of(TenantId tenant, const std::string& project, Instant now) const;

 private:
  struct Usage {
    double weight = 1;
    Amounts held;
    std::array<double, dimensions> average{};  // at `since`, decayed
    Instant since;
  };

  const Usage* find(TenantId tenant) const;
  const Usage* find(TenantId tenant, const std::string& project) const;
  Usage& usage(TenantId tenant);
  Usage& usage(TenantId tenant, const std::string& project);
  void hold(Usage& usage, const Amounts& amounts, bool more, Instant now) const;
  std::array<double, dimensions> average_at(const Usage& usage, Instant now) const;
  double share(const Usage& usage, Instant now) const;

  const Shares* base_ = nullptr;  // what is not in these tables; nullptr: there is no more
  Amounts capacity_;
  double half_life_ms_ = 3'600'000;
  std::map<TenantId, Usage> tenants_;
  std::map<std::pair<TenantId, std::string>, Usage> projects_;
};

}  // namespace loam::schedule
