#include "schedule/demand.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::schedule {

namespace {

// The part of it that is not promised: what is, is rounded up.
template <class Quantity>
Quantity unpromised_of(Quantity lent, std::int64_t permille) {
  return lent - Quantity{(lent.value * 1000 + permille - 1) / permille};
}

}  // namespace

Oversubscription lent_of(const Oversubscription& pool, const DeviceFacts& facts) {
  // OpenCL and ROCm have no call by which a lease's memory leaves the device and keeps its address.
  const bool spills = facts.backend == Backend::cuda || facts.backend == Backend::simulated;
  return {pool.ce_permille, spills ? pool.memory_permille : 1000};
}

Placement needs_on(const Demand& demand, const DeviceFacts& facts, const Oversubscription& lent) {
  LOAM_ASSERT(demand.ce.has_value() != demand.share.has_value());
  const MilliCe worth = facts.factors.of(demand.work_class);
  Placement needs;
  needs.share = demand.share ? *demand.share : share_for(*demand.ce, worth);
  needs.ce = demand.ce ? *demand.ce : ce_of(needs.share, worth);
  needs.memory = demand.memory ? *demand.memory : memory_of(needs.share, facts.memory);
  // A whole device has no neighbours.
  if (demand.oversubscribable && !demand.exclusive && needs.share < whole_device) {
    needs.unpromised = unpromised_of(needs.share, lent.ce_permille);
    needs.memory_unpromised = unpromised_of(needs.memory, lent.memory_permille);
  }
  return needs;
}

bool admits(const Demand& demand, const std::string& type) {
  if (!demand.device_type.empty() && demand.device_type != type) return false;
  const auto& types = demand.device_types;
  return types.empty() || std::find(types.begin(), types.end(), type) != types.end();
}

}  // namespace loam::schedule
