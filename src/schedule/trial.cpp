#include "schedule/trial.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "schedule/gang.hpp"
#include "schedule/pool_inside.hpp"

namespace loam::schedule {

// A node's figures with the trial's takes and returns. Devices that take no leases now are kept
// apart: what is given back on them is free, but not to be had.
struct Trial::TouchedNode {
  std::uint32_t site = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::map<std::uint64_t, DeviceEntry> devices;

  void slots(const std::vector<DeviceKind>& kinds, std::vector<OpenSlot>& out) const {
    out.clear();
    for (const auto& [id, entry] : devices) {
      if (entry.placeable) out.push_back({entry.slot(kinds[entry.kind]), id});
    }
    std::sort(out.begin(), out.end());
  }
};

Trial::Trial(const Pool& pool) : pool_(pool) {}
Trial::Trial(const Trial&) = default;
Trial::~Trial() = default;

Trial::Host Trial::figures_of(std::uint64_t node, std::vector<OpenSlot>& slots) const {
  const Pool::Inside& in = *pool_.inside_;
  const auto at = nodes_.find(node);
  if (at == nodes_.end()) {
    const NodeEntry& entry = in.nodes[node - 1];
    in.slots_of(entry, slots);
    return {entry.site, entry.cpu_milli, entry.memory_mib};
  }
  const TouchedNode& touched = at->second;
  touched.slots(in.kinds, slots);
  return {touched.site, touched.cpu_milli, touched.memory_mib};
}

void Trial::reset() {
  nodes_.clear();
}

std::vector<std::uint64_t> Trial::touched() const {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, node] : nodes_) ids.push_back(id);
  return ids;
}

Trial::TouchedNode& Trial::touch(NodeId node) {
  const auto at = nodes_.find(node.value);
  if (at != nodes_.end()) return at->second;
  Pool::Inside& in = *pool_.inside_;
  LOAM_ASSERT(node.valid() && node.value <= in.nodes.size());
  const NodeEntry& entry = in.nodes[node.value - 1];
  TouchedNode touched{entry.site, entry.cpu_milli, entry.memory_mib, {}};
  for (const std::uint64_t id : entry.devices) touched.devices.emplace(id, in.devices[id - 1]);
  return nodes_.emplace(node.value, std::move(touched)).first->second;
}

void Trial::book(const UnitPlacement& place, std::int64_t sign) {
  for (const Placement& slice : place.slices) {
    const DeviceEntry& known = pool_.inside_->devices[slice.device.value - 1];
    DeviceEntry& entry = touch(NodeId{known.node}).devices.at(slice.device.value);
    entry.used_milli += sign * slice.promised().value;
    entry.used_mib += sign * slice.memory_promised().value;
    if (place.exclusive) entry.locked = sign > 0;
  }
  for (const HostShare& host : place.hosts) {
    TouchedNode& node = touch(host.node);
    node.cpu_milli -= sign * host.cpu.value;
    node.memory_mib -= sign * host.memory.value;
  }
}

void Trial::take(const UnitPlacement& place) {
  book(place, 1);
}
void Trial::give_back(const UnitPlacement& place) {
  book(place, -1);
}

std::optional<UnitPlacement> Trial::find_on(NodeId node, const Demand& demand) const {
  const auto at = nodes_.find(node.value);
  if (at == nodes_.end()) return pool_.find_on(node, demand);
  Pool::Inside& in = *pool_.inside_;
  in.make_scorer_ready();
  std::vector<OpenSlot> slots;
  at->second.slots(in.kinds, slots);
  const TouchedNode& touched = at->second;
  if (demand.device.valid()) {
    return in.certain(demand, node.value, touched.site, touched.cpu_milli, touched.memory_mib,
                      slots);
  }
  return in.place_on(in.shape_of(demand), node.value, touched.site, touched.cpu_milli,
                     touched.memory_mib, slots);
}

std::optional<UnitPlacement> Trial::find_among(NodeId node,
                                               const std::vector<std::uint64_t>& devices,
                                               const Demand& demand) const {
  Pool::Inside& in = *pool_.inside_;
  in.make_scorer_ready();
  std::vector<OpenSlot> slots;
  const Host host = figures_of(node.value, slots);
  std::erase_if(slots, [&](const OpenSlot& open) {
    return std::find(devices.begin(), devices.end(), open.device) == devices.end();
  });
  if (demand.device.valid())
    return in.certain(demand, node.value, host.site, host.cpu_milli, host.memory_mib, slots);
  return in.place_on(in.shape_of(demand), node.value, host.site, host.cpu_milli, host.memory_mib,
                     slots);
}

double Trial::value_of(NodeId node) const {
  Pool::Inside& in = *pool_.inside_;
  in.make_scorer_ready();
  if (!in.scorer->needs_value()) return 0;
  std::vector<OpenSlot> slots;
  const Host host = figures_of(node.value, slots);
  std::vector<DeviceSlot> bare;
  for (const OpenSlot& open : slots) bare.push_back(open.slot);
  return in.value_of({host.cpu_milli, host.memory_mib, bare});
}

std::optional<UnitPlacement> Trial::find(const Demand& demand) const {
  Pool::Inside& in = *pool_.inside_;
  if (demand.device.valid()) {
    if (demand.device.value > in.devices.size()) return std::nullopt;
    const DeviceEntry& entry = in.devices[demand.device.value - 1];
    return entry.known ? find_on(NodeId{entry.node}, demand) : std::nullopt;
  }
  if (demand.devices > 0 && in.needs_several(demand)) return find_aggregated(*this, demand);
  Pool::Inside::Touched touched;
  for (const auto& [id, node] : nodes_) touched.insert(id);
  std::optional<Pool::Inside::Best> best = in.best(demand, touched);
  std::vector<OpenSlot> slots;
  std::vector<DeviceSlot> bare;
  std::vector<std::uint32_t> chosen;
  Shape& shape = in.shape_of(demand);
  for (const auto& [id, node] : nodes_) {
    node.slots(in.kinds, slots);
    bare.clear();
    for (const OpenSlot& open : slots) bare.push_back(open.slot);
    const NodeView view{node.cpu_milli, node.memory_mib, bare};
    const double before = in.scorer->needs_value() ? in.value_of(view) : 0;
    const auto rank = in.choose(shape, node.site, view, before, chosen);
    if (!rank) continue;
    const Nearness near = in.nearest(shape, slots).near;
    if (!best || std::tuple(near, *rank, id) < std::tuple(best->near, best->rank, best->node))
      best = Pool::Inside::Best{*rank, id, near};
  }
  return best ? find_on(NodeId{best->node}, demand) : std::nullopt;
}

}  // namespace loam::schedule
