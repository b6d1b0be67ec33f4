#include "schedule/placement/node_view.hpp"

namespace loam::schedule {

KindNeed need_of(const Demand& demand, const DeviceKind& kind) {
  KindNeed need;
  if (demand.devices == 0 || !admits(demand, kind.facts.type)) return need;
  const Placement whole = needs_on(demand, kind.facts);
  need.possible = whole.share <= whole_device && whole.memory.value <= kind.memory_max_mib &&
                  whole.share.value <= kind.milli_max;
  if (!need.possible) return need;
  need.milli = static_cast<std::int32_t>(whole.share.value);
  need.mib = whole.memory.value;
  need.ce = whole.ce.value;
  need.worth =
      (demand.exclusive ? kind.milli_max : whole.share.value) * kind.facts.factors.general.value;
  return need;
}

}  // namespace loam::schedule
