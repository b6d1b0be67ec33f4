// Packing value: a node is worth what can still be packed into it; the least loss of that wins.
// The parts of the sum, in devices:
//   A   what its devices' free milli are worth by the cutting-stock duals of the mix
//   S   A bounded softly by the CPU and memory beside it, at the mix's own proportions
//   H   how many requests for several whole devices it could still take
//   I·P idle devices times the share of requests that fit now
//   F   FGD's fragmentation
// Where the mix asks for more CPU a device than the pool has, another sum is used, which values
// devices with CPU beside them. Pure.
#pragma once

#include "schedule/placement/policy.hpp"
#include "schedule/placement/request_table.hpp"

namespace loam::schedule {

class PackingValue final : public Scorer {
 public:
  PackingValue(const Mix& mix, const std::vector<DeviceKind>& kinds, const PoolTotals& totals);

  // The node's value. O(slots + types).
  double value(const NodeView& view) const override;
  bool needs_value() const override { return true; }
  DeviceChoice choice() const override { return DeviceChoice::every_level; }
  double cost(const NodeView&, const NodeView&, const NodeNeed&, double before,
              double after) const override {
    return before - after;
  }
  std::int64_t published(double cost) const override;

  // Whether the sum for scarce CPU is in use.
  bool cpu_is_scarce() const { return cpu_is_scarce_; }

 private:
  struct KindValues {
    std::vector<double> packed;  // v(f), f in grid steps, in devices
    std::vector<double> single;  // b(f)/b(1000)
    double cpu_milli = 0;        // the mix asks beside one device
    double memory_mib = 0;
    std::vector<ResolvedType> several;  // admitted types of more than one device
  };
  struct Sums {
    double packed = 0;   // A
    double single = 0;   // B
    double idle = 0;     // I
    double several = 0;  // H
    double partly = 0;   // devices in part taken
    double cpu = 0;      // the mix's CPU beside A
    double memory = 0;   // alike
    double cpu_single = 0;
    double memory_single = 0;
  };

  static KindValues values_of(const std::vector<ResolvedType>& all,
                              const std::vector<ResolvedType>& admitted, const DeviceKind& kind);
  Sums sums_of(const NodeView& view, const std::int32_t* free) const;
  double plain(const NodeView& view, const Sums& sums, const RequestTable::Fit& fit) const;
  double scarce(const NodeView& view, const Sums& sums, const RequestTable::Fit& fit) const;

  const std::vector<DeviceKind>& kinds_;
  RequestTable table_;
  std::vector<KindValues> values_;
  bool cpu_is_scarce_ = false;
};

}  // namespace loam::schedule
