// Which devices of a node are near each other, for demands of several.
#include <algorithm>

#include "schedule/pool_inside.hpp"

namespace loam::schedule {

std::vector<NearSlots> Pool::Inside::near_slots(const std::vector<OpenSlot>& slots,
                                                Nearness by) const {
  const bool links = by == Nearness::one_link_group;
  const auto facts_of = [&](const OpenSlot& open) -> const DeviceFacts& {
    return *devices[open.device - 1].facts;
  };
  const auto same = [&](const DeviceFacts& a, const DeviceFacts& b) {
    return links ? a.link_group == b.link_group : a.numa_node == b.numa_node;
  };
  std::vector<NearSlots> parts;
  for (const OpenSlot& open : slots) {
    const DeviceFacts& facts = facts_of(open);
    if (links ? facts.link_group.empty() : !facts.numa_node.has_value()) continue;
    auto part = std::find_if(parts.begin(), parts.end(), [&](const NearSlots& known) {
      return same(facts_of(known.slots.front()), facts);
    });
    if (part == parts.end()) part = parts.insert(part, NearSlots{{}, 0, open.device});
    part->slots.push_back(open);
    part->free_milli += open.slot.free_milli;
    part->first_device = std::min(part->first_device, open.device);
  }
  std::sort(parts.begin(), parts.end(), fuller);
  return parts;
}

bool Pool::Inside::holds_slices(Shape& shape, const std::vector<OpenSlot>& slots) {
  std::int64_t room = 0;  // on devices of one kind
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const DeviceSlot& slot = slots[i].slot;
    if (i > 0 && slot.kind != slots[i - 1].slot.kind) room = 0;
    if (has_room(shape, slot, need(shape, slot.kind)) && ++room == shape.demand.devices)
      return true;
  }
  return false;
}

Pool::Inside::Nearest Pool::Inside::nearest(Shape& shape, const std::vector<OpenSlot>& slots) {
  if (!tells_nearness(shape.demand)) return {};
  for (const Nearness by : {Nearness::one_link_group, Nearness::one_numa_node}) {
    for (NearSlots& part : near_slots(slots, by)) {
      if (holds_slices(shape, part.slots)) return {by, std::move(part.slots)};
    }
  }
  return {Nearness::one_node, {}};
}

Nearness Pool::Inside::nearness_on(Shape& shape, std::uint64_t node_id) {
  if (!tells_nearness(shape.demand)) return Nearness::one_link_group;
  std::vector<OpenSlot> slots;
  slots_of(nodes[node_id - 1], slots);
  return nearest(shape, slots).near;
}

}  // namespace loam::schedule
