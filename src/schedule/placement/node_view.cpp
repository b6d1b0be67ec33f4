#include "schedule/placement/node_view.hpp"

namespace loam::schedule {

KindNeed need_of(const Demand& demand, const DeviceKind& kind) {
  KindNeed need;
  if (demand.devices == 0 || !admits(demand, kind.facts.type)) return need;
  const Placement whole = needs_on(demand, kind.facts, kind.lent);
  need.possible = whole.share <= whole_device && whole.memory.value <= kind.memory_max_mib &&
                  whole.share.value <= kind.milli_max;
  if (!need.possible) return need;
  need.milli = static_cast<std::int32_t>(whole.promised().value);
  need.mib = whole.memory_promised().value;
  need.unpromised_milli = static_cast<std::int32_t>(whole.unpromised.value);
  need.unpromised_mib = whole.memory_unpromised.value;
  need.ce = whole.ce.value;
  need.worth = (demand.exclusive ? kind.milli_max : need.milli) * kind.facts.factors.general.value;
  return need;
}

Placement slice_of(const KindNeed& need, DeviceId device, NodeId node) {
  Placement slice;
  slice.device = device;
  slice.share = MilliDevice{need.milli + need.unpromised_milli};
  slice.memory = Mebibytes{need.mib + need.unpromised_mib};
  slice.ce = MilliCe{need.ce};
  slice.node = node;
  slice.unpromised = MilliDevice{need.unpromised_milli};
  slice.memory_unpromised = Mebibytes{need.unpromised_mib};
  return slice;
}

}  // namespace loam::schedule
