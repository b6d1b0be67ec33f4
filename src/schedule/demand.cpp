#include "schedule/demand.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::schedule {

Placement needs_on(const Demand& demand, const DeviceFacts& facts) {
  LOAM_ASSERT(demand.ce.has_value() != demand.share.has_value());
  const MilliCe worth = facts.factors.of(demand.work_class);
  Placement needs;
  needs.share = demand.share ? *demand.share : share_for(*demand.ce, worth);
  needs.ce = demand.ce ? *demand.ce : ce_of(needs.share, worth);
  needs.memory = demand.memory ? *demand.memory : memory_of(needs.share, facts.memory);
  return needs;
}

bool admits(const Demand& demand, const std::string& type) {
  if (!demand.device_type.empty() && demand.device_type != type) return false;
  const auto& types = demand.device_types;
  return types.empty() || std::find(types.begin(), types.end(), type) != types.end();
}

}  // namespace loam::schedule
