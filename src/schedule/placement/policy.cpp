#include "schedule/placement/policy.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "schedule/placement/packing_value.hpp"
#include "schedule/placement/request_table.hpp"

namespace loam::schedule {
namespace {

// The node that the published formulas are scaled by: 128 CPUs, 8 devices.
constexpr double cpu_scale = 128'000;
constexpr double device_scale = 8'000;

constexpr std::array<std::pair<PlacementPolicy, const char*>, 8> names = {{
    {PlacementPolicy::packing_value, "packing_value"},
    {PlacementPolicy::fragmentation, "fragmentation"},
    {PlacementPolicy::best_fit, "best_fit"},
    {PlacementPolicy::dot_prod, "dot_prod"},
    {PlacementPolicy::packing, "packing"},
    {PlacementPolicy::clustering, "clustering"},
    {PlacementPolicy::spread, "spread"},
    {PlacementPolicy::random, "random"},
}};

double left_over(const NodeView& after) {
  return 0.5 * static_cast<double>(after.cpu_milli) / cpu_scale +
         0.5 * static_cast<double>(after.free_milli()) / device_scale;
}

// Published scores rise with goodness from 0 to 100 and are cut to integers; ours fall.
std::int64_t falling(double score) {
  return -static_cast<std::int64_t>(score);
}

class Fragmentation final : public Scorer {
 public:
  Fragmentation(const Mix& mix, const std::vector<DeviceKind>& kinds)
      : kinds_(kinds), table_(mix, kinds) {}

  double value(const NodeView& view) const override {
    std::vector<std::int32_t> free;
    free.reserve(view.slots.size());
    for (const DeviceSlot& slot : view.slots) {
      free.push_back(effective_free(slot, kinds_[slot.kind]));
    }
    return table_.fit(view, free.data()).fragment;
  }
  bool needs_value() const override { return true; }
  DeviceChoice choice() const override { return DeviceChoice::every_level; }
  double cost(const NodeView&, const NodeView&, const NodeNeed&, double before,
              double after) const override {
    return (after - before) / 1000;
  }
  std::int64_t published(double cost) const override { return falling(100 / (1 + std::exp(cost))); }

 private:
  const std::vector<DeviceKind>& kinds_;
  RequestTable table_;
};

// The published form is scaled to 0 … 100 over the nodes that fit, which keeps the order of
// integers within that range; so it is left out.
class BestFit final : public Scorer {
 public:
  double cost(const NodeView&, const NodeView& after, const NodeNeed&, double,
              double) const override {
    return left_over(after);
  }
  std::int64_t published(double cost) const override { return falling(100 * (1 - cost)); }
};

class DotProd final : public Scorer {
 public:
  double cost(const NodeView& before, const NodeView&, const NodeNeed& need, double,
              double) const override {
    const auto asked = static_cast<double>(need.devices * need.milli);
    return 0.5 * static_cast<double>(before.cpu_milli * need.cpu_milli) / (cpu_scale * cpu_scale) +
           0.5 * static_cast<double>(before.free_milli()) * asked / (device_scale * device_scale);
  }
  std::int64_t published(double cost) const override { return falling(100 * (1 - cost)); }
};

bool is_touched(const NodeView& before, const NodeView& after) {
  // A device in part taken before and fuller now: fewer idle devices are not lost.
  const auto idle = [](const NodeView& view) {
    std::int64_t count = 0;
    for (const DeviceSlot& slot : view.slots) count += slot.free_milli >= 1000 ? 1 : 0;
    return count;
  };
  return idle(before) == idle(after);
}

bool is_used(const NodeView& view) {
  for (const DeviceSlot& slot : view.slots) {
    if (slot.free_milli < 1000) return true;
  }
  return false;
}

class Packing final : public Scorer {
 public:
  double cost(const NodeView& before, const NodeView& after, const NodeNeed&, double,
              double) const override {
    const double tier = is_touched(before, after) ? 0 : (is_used(before) ? 1 : 2);
    return tier + left_over(after) / 4;
  }
  std::int64_t published(double cost) const override {
    return static_cast<std::int64_t>(cost * 100);
  }
};

// Beside requests of the same size: devices whose lent part is a multiple of it.
class Clustering final : public Scorer {
 public:
  double cost(const NodeView& before, const NodeView& after, const NodeNeed& need, double,
              double) const override {
    std::int64_t alike = 0;
    for (const DeviceSlot& slot : before.slots) {
      const std::int64_t taken = 1000 - slot.free_milli;
      if (need.milli > 0 && taken > 0 && taken % need.milli == 0) ++alike;
    }
    return (is_used(before) ? 0 : 1) - static_cast<double>(alike) / 64 + left_over(after) / 1024;
  }
  std::int64_t published(double cost) const override {
    return static_cast<std::int64_t>(std::floor(cost * 100'000));
  }
};

class Spread final : public Scorer {
 public:
  DeviceChoice choice() const override { return DeviceChoice::emptiest; }
  double cost(const NodeView&, const NodeView& after, const NodeNeed&, double,
              double) const override {
    return -left_over(after);
  }
  std::int64_t published(double cost) const override {
    return static_cast<std::int64_t>(std::floor(cost * 100));
  }
};

}  // namespace

const char* name_of(PlacementPolicy policy) noexcept {
  for (const auto& [known, name] : names) {
    if (known == policy) return name;
  }
  return "unknown";
}

Result<PlacementPolicy> parse_placement_policy(std::string_view text) {
  std::string all;
  for (const auto& [policy, name] : names) {
    if (text == name) return policy;
    all += all.empty() ? "" : ", ";
    all += name;
  }
  return invalid("no placement policy is called '" + std::string(text) + "'", "use one of " + all);
}

std::unique_ptr<Scorer> make_scorer(PlacementPolicy policy, const Mix& mix,
                                    const std::vector<DeviceKind>& kinds,
                                    const PoolTotals& totals) {
  switch (policy) {
    case PlacementPolicy::packing_value:
      return std::make_unique<PackingValue>(mix, kinds, totals);
    case PlacementPolicy::fragmentation:
      return std::make_unique<Fragmentation>(mix, kinds);
    case PlacementPolicy::dot_prod:
      return std::make_unique<DotProd>();
    case PlacementPolicy::packing:
      return std::make_unique<Packing>();
    case PlacementPolicy::clustering:
      return std::make_unique<Clustering>();
    case PlacementPolicy::spread:
      return std::make_unique<Spread>();
    case PlacementPolicy::best_fit:
    case PlacementPolicy::random:
      return std::make_unique<BestFit>();
  }
  return std::make_unique<BestFit>();
}

}  // namespace loam::schedule
