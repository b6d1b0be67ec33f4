#include "schedule/gang_search.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

// Nodes that the exact search looks at; with more to choose from, the greedy one finds a place.
constexpr std::size_t exact_nodes_max = 48;
// Nodes, link groups, or NUMA nodes, on which all members together are tried.
constexpr std::size_t single_nodes_max = 128;

}  // namespace

GangSearch::GangSearch(const Trial& trial, const std::vector<Demand>& members,
                       const GangOptions& options)
    : trial_(trial), in_(*trial.pool().inside_), members_(members), options_(options) {
  in_.make_scorer_ready();
  shapes_.reserve(members.size());
  std::map<std::string, std::size_t> by_key;
  std::vector<std::size_t> shape_of(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto [at, fresh] = by_key.try_emplace(key_of(members[i]), shapes_.size());
    if (fresh) {
      shapes_.emplace_back();
      shapes_.back().demand = members[i];
    }
    shape_of[i] = at->second;
  }
  for (std::size_t i = 0; i < members.size(); ++i) order_.push_back({i, nullptr, false});
  const auto size = [&](std::size_t i) {
    const Demand& d = members[i];
    const std::int64_t each = d.share ? d.share->value : (d.ce ? d.ce->value : 0);
    return std::tuple(d.devices, each, d.cpu.value, d.host_memory.value);
  };
  std::stable_sort(order_.begin(), order_.end(), [&](const Member& a, const Member& b) {
    if (shape_of[a.at] == shape_of[b.at]) return false;
    const auto sizes = std::pair(size(a.at), size(b.at));
    return sizes.first != sizes.second ? sizes.first > sizes.second
                                       : shape_of[a.at] < shape_of[b.at];
  });
  for (std::size_t i = 0; i < order_.size(); ++i) {
    order_[i].shape = &shapes_[shape_of[order_[i].at]];
    order_[i].as_before = i > 0 && order_[i].shape == order_[i - 1].shape;
  }
}

std::int64_t GangSearch::fewest_pieces(const Pool& pool, const Demand& demand) {
  std::int64_t fewest = 0;
  for (const DeviceKind& kind : pool.inside_->kinds) {
    if (!admits(demand, kind.facts.type)) continue;
    const std::int64_t worth = kind.facts.factors.of(demand.work_class).value;
    std::int64_t pieces = (demand.ce->value + worth - 1) / worth;
    if (demand.memory && kind.memory_max_mib > 0) {
      const std::int64_t memory = kind.memory_max_mib;
      pieces = std::max(pieces, (demand.memory->value + memory - 1) / memory);
    }
    if (fewest == 0 || pieces < fewest) fewest = pieces;
  }
  return fewest;
}

GangSearch::Node GangSearch::node_of(std::uint64_t id, const Trial::Host& host,
                                     const std::vector<OpenSlot>& slots) {
  Node node;
  node.id = id;
  node.site = host.site;
  node.cpu_milli = host.cpu_milli;
  node.memory_mib = host.memory_mib;
  for (const OpenSlot& open : slots) {
    node.slots.push_back(open.slot);
    node.devices.push_back(open.device);
  }
  return node;
}

void GangSearch::add_node(Node node) {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (!order_[i].as_before) node.room = std::max(node.room, room_for(node, i));
  }
  if (node.room > 0) nodes_.push_back(std::move(node));
}

// Every touched node, and of each state as many nodes as there are members.
void GangSearch::gather() {
  std::vector<OpenSlot> slots;
  const std::vector<std::uint64_t> touched = trial_.touched();
  for (const std::uint64_t id : touched) {
    const Trial::Host host = trial_.figures_of(id, slots);
    add_node(node_of(id, host, slots));
  }
  for (const StateRef ref : in_.states.live()) {
    const NodeState& state = in_.states.at(ref);
    std::size_t wanted = members_.size();
    for (const std::uint64_t id : state.nodes) {
      if (wanted == 0) break;
      if (std::binary_search(touched.begin(), touched.end(), id)) continue;
      const Trial::Host host = trial_.figures_of(id, slots);
      const std::size_t before = nodes_.size();
      add_node(node_of(id, host, slots));
      if (nodes_.size() == before) break;  // nobody fits here, nor on its likes
      --wanted;
    }
  }
  // The order of states is an accident; that of ids is not.
  std::sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) { return a.id < b.id; });
}

// The link groups, or NUMA nodes, that may hold all members; the fullest first. Nodes in one state
// may differ in them, so every node is looked at whose figures are enough.
std::vector<GangSearch::Node> GangSearch::parts(Nearness by) const {
  const bool on_devices = std::any_of(members_.begin(), members_.end(),
                                      [](const Demand& demand) { return demand.devices > 0; });
  if (!in_.topology_known || !on_devices) return {};
  std::vector<std::pair<NearSlots, Node>> able;
  std::vector<OpenSlot> slots;
  const auto look_at = [&](std::uint64_t id) {
    const Trial::Host host = trial_.figures_of(id, slots);
    for (NearSlots& near : in_.near_slots(slots, by)) {
      Node node = node_of(id, host, near.slots);
      node.part = true;
      if (may_hold_all(node)) able.emplace_back(std::move(near), std::move(node));
    }
  };
  const std::vector<std::uint64_t> touched = trial_.touched();
  for (const std::uint64_t id : touched) look_at(id);
  for (const StateRef ref : in_.states.live()) {
    const NodeState& state = in_.states.at(ref);
    if (!has_figures_for_all(state.view())) continue;
    for (const std::uint64_t id : state.nodes) {
      if (!std::binary_search(touched.begin(), touched.end(), id)) look_at(id);
    }
  }
  std::sort(able.begin(), able.end(),
            [](const auto& a, const auto& b) { return fuller(a.first, b.first); });
  std::vector<Node> nodes;
  for (auto& [near, node] : able) nodes.push_back(std::move(node));
  return nodes;
}

// How many copies of the demand's slice a device with room for one still holds.
std::int64_t GangSearch::copies_on(const Shape& shape, const DeviceSlot& slot,
                                   const KindNeed& want) {
  if (shape.demand.exclusive) return 1;
  const std::int64_t copies = slot.free_milli / want.milli;
  return want.mib > 0 ? std::min(copies, slot.free_mib / want.mib) : copies;
}

// How many copies of the member the node's figures allow; exact for members of one device.
std::int64_t GangSearch::room_for(const Node& node, std::size_t member) const {
  Shape& shape = *order_[member].shape;
  const Demand& demand = shape.demand;
  if (!in_.site_allowed(shape, node.site)) return 0;
  auto copies = static_cast<std::int64_t>(members_.size());
  if (demand.cpu.value > 0) copies = std::min(copies, node.cpu_milli / demand.cpu.value);
  if (demand.host_memory.value > 0)
    copies = std::min(copies, node.memory_mib / demand.host_memory.value);
  if (node.cpu_milli < 0 || node.memory_mib < 0) return 0;
  if (demand.devices == 0 || copies <= 0) return std::max<std::int64_t>(0, copies);
  std::int64_t places = 0;
  std::int64_t devices = 0;
  for (std::size_t i = 0; i < node.slots.size(); ++i) {
    const DeviceSlot& slot = node.slots[i];
    if (demand.device.valid() && demand.device.value != node.devices[i]) continue;
    const KindNeed& want = in_.need(shape, slot.kind);
    if (!in_.has_room(shape, slot, want)) continue;
    ++devices;
    places += copies_on(shape, slot, want);
  }
  if (devices < demand.devices) return 0;
  return std::min(copies, places / demand.devices);
}

bool GangSearch::has_figures_for_all(const NodeView& view) const {
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
  std::int64_t milli = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const Demand& demand = order_[i].shape->demand;
    cpu += demand.cpu.value;
    memory += demand.host_memory.value;
    std::int64_t least = 0;
    for (const DeviceSlot& slot : view.slots) {
      const KindNeed& want = in_.need(*order_[i].shape, slot.kind);
      if (want.possible && (least == 0 || want.milli < least)) least = want.milli;
    }
    milli += least * demand.devices;
  }
  return cpu <= view.cpu_milli && memory <= view.memory_mib && milli <= view.free_milli();
}

bool GangSearch::may_hold_all(const Node& node) const {
  std::int64_t alike = 0;
  for (std::size_t i = order_.size(); i-- > 0;) {
    ++alike;
    if (order_[i].as_before) continue;
    if (room_for(node, i) < alike) return false;
    alike = 0;
  }
  return has_figures_for_all({node.cpu_milli, node.memory_mib, node.slots});
}

std::size_t GangSearch::pack(Trial& trial, const Node& node, Places& places) const {
  std::size_t packed = 0;
  bool failed = false;
  for (const Member& member : order_) {
    if (places[member.at] || (failed && member.as_before)) continue;
    const Demand& demand = members_[member.at];
    auto place = node.part ? trial.find_among(NodeId{node.id}, node.devices, demand)
                           : trial.find_on(NodeId{node.id}, demand);
    failed = !place;
    if (failed) continue;
    trial.take(*place);
    places[member.at] = std::move(place);
    ++packed;
  }
  return packed;
}

std::optional<GangSearch::Places> GangSearch::on_one_of(const std::vector<const Node*>& nodes) {
  for (std::size_t i = 0; i < std::min(nodes.size(), single_nodes_max); ++i) {
    Places places(members_.size());
    Trial trial(trial_);
    if (pack(trial, *nodes[i], places) == members_.size()) return places;
    auto exact = exactly({nodes[i]});
    if (exact) return exact;
  }
  return std::nullopt;
}

std::optional<GangSearch::Places> GangSearch::on_one_part(Nearness by) {
  const std::vector<Node> able = parts(by);
  std::vector<const Node*> nodes;
  for (const Node& node : able) nodes.push_back(&node);
  return on_one_of(nodes);
}

std::optional<GangSearch::Places> GangSearch::on_one_node() {
  std::vector<const Node*> able;
  for (const Node& node : nodes_) {
    if (may_hold_all(node)) able.push_back(&node);
  }
  // The fullest first: what is roomy stays so.
  const auto remaining = [](const Node* node) {
    return node->cpu_milli + 16 * NodeView{0, 0, node->slots}.free_milli();
  };
  std::stable_sort(able.begin(), able.end(),
                   [&](const Node* a, const Node* b) { return remaining(a) < remaining(b); });
  return on_one_of(able);
}

// Node after node, always the one that takes most of the rest; the last is the fullest that takes
// all that is left. For equal members on nodes with room for them this is the fewest nodes.
std::optional<GangSearch::Places> GangSearch::on_few_nodes(const std::vector<const Node*>& nodes) {
  Places places(members_.size());
  Trial trial(trial_);
  std::vector<const Node*> left = nodes;
  std::stable_sort(left.begin(), left.end(), [](const Node* a, const Node* b) {
    return a->room != b->room ? a->room > b->room : a->slots.size() < b->slots.size();
  });
  std::size_t missing = members_.size();
  std::size_t next = 0;
  while (missing > 0 && next < left.size()) {
    // Of the nodes with room for all that is missing, the one with the least.
    std::size_t pick = next;
    while (pick + 1 < left.size() && left[pick + 1]->room >= static_cast<std::int64_t>(missing))
      ++pick;
    const auto first = left.begin() + static_cast<std::ptrdiff_t>(next);
    const auto picked = left.begin() + static_cast<std::ptrdiff_t>(pick);
    std::rotate(first, picked, picked + 1);  // the rest keeps its order
    const Node* node = left[next++];
    missing -= pack(trial, *node, places);
  }
  if (missing > 0) return std::nullopt;
  return places;
}

// --- Exact search ------------------------------------------------------------------------------

std::optional<GangSearch::Places> GangSearch::exactly(std::vector<const Node*> nodes) {
  if (options_.steps_max == 0) return std::nullopt;
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const Node* a, const Node* b) { return a->room > b->room; });
  if (nodes.size() > exact_nodes_max) nodes.resize(exact_nodes_max);
  std::vector<Node> books;
  for (const Node* node : nodes) books.push_back(*node);
  Places places(members_.size());
  steps_left_ = options_.steps_max;
  if (!place_rest(books, 0, {0, 0}, places)) return std::nullopt;
  return places;
}

bool GangSearch::place_rest(std::vector<Node>& nodes, std::size_t depth,
                            std::pair<std::size_t, std::size_t> from, Places& places) {
  if (depth == order_.size()) return true;
  // Equal members are interchangeable: each goes no earlier than the one before it.
  const auto [first_node, first_slot] = order_[depth].as_before ? from : std::pair(0UL, 0UL);
  for (std::size_t node = first_node; node < nodes.size(); ++node) {
    if (place_here(nodes, depth, node, node == first_node ? first_slot : 0, places)) return true;
    if (steps_left_ <= 0) return false;
  }
  return false;
}

namespace {

// Ways to spread one member of several devices over a node that are tried.
constexpr std::size_t ways_max = 256;

// Devices of one kind in the same state: any of them stands for the others.
struct Alike {
  std::int64_t copies = 0;  // of the member's slice that one of them still holds
  std::vector<std::size_t> slots;
};

// Appends every choice of `wanted` devices, most from the first group before fewer.
void choose_from(const std::vector<Alike>& groups, std::size_t group, std::size_t wanted,
                 std::vector<std::size_t>& way, std::vector<std::vector<std::size_t>>& ways) {
  if (wanted == 0) return ways.push_back(way);
  if (group == groups.size()) return;
  const std::vector<std::size_t>& slots = groups[group].slots;
  for (std::size_t taken = std::min(wanted, slots.size()) + 1; taken-- > 0;) {
    if (ways.size() >= ways_max) return;
    way.insert(way.end(), slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(taken));
    choose_from(groups, group + 1, wanted - taken, way, ways);
    way.resize(way.size() - taken);
  }
}

}  // namespace

// Devices the member may take together, those that hold most copies of its slice first: for equal
// members on one node that choice alone finds a place wherever there is one (Gale 1957, Ryser 1957:
// column sums are met by filling the largest first).
std::vector<std::vector<std::size_t>> GangSearch::ways_for_several(Shape& shape, const Node& node) {
  const auto wanted = static_cast<std::size_t>(shape.demand.devices);
  std::map<KindIndex, std::vector<std::size_t>> by_kind;
  for (std::size_t i = 0; i < node.slots.size(); ++i) {
    const DeviceSlot& slot = node.slots[i];
    if (in_.has_room(shape, slot, in_.need(shape, slot.kind))) by_kind[slot.kind].push_back(i);
  }
  std::vector<std::vector<std::size_t>> ways;
  for (const auto& [kind, room] : by_kind) {
    if (room.size() < wanted) continue;
    const KindNeed& want = in_.need(shape, kind);
    std::vector<Alike> groups;
    for (const std::size_t i : room) {
      const auto alike = std::find_if(groups.begin(), groups.end(), [&](const Alike& group) {
        return node.slots[group.slots[0]] == node.slots[i];
      });
      if (alike != groups.end()) {
        alike->slots.push_back(i);
      } else {
        groups.push_back({copies_on(shape, node.slots[i], want), {i}});
      }
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Alike& a, const Alike& b) { return a.copies > b.copies; });
    std::vector<std::size_t> way;
    std::vector<std::vector<std::size_t>> of_kind;
    choose_from(groups, 0, wanted, way, of_kind);
    ways.insert(ways.end(), of_kind.begin(), of_kind.end());
  }
  return ways;
}

// One device each; equal members go no earlier than the one before them.
std::vector<std::vector<std::size_t>> GangSearch::ways_for_one(const Member& member,
                                                               const Node& node,
                                                               std::size_t first_slot) {
  const Demand& demand = member.shape->demand;
  std::vector<std::vector<std::size_t>> ways;
  for (std::size_t i = first_slot; i < node.slots.size(); ++i) {
    if (demand.device.valid() && demand.device.value != node.devices[i]) continue;
    const DeviceSlot& slot = node.slots[i];
    if (!in_.has_room(*member.shape, slot, in_.need(*member.shape, slot.kind))) continue;
    const bool seen = std::any_of(ways.begin(), ways.end(),
                                  [&](const auto& way) { return node.slots[way[0]] == slot; });
    if (!seen || member.as_before) ways.push_back({i});
  }
  return ways;
}

// Tries the member on the node in every way that it may lie there.
bool GangSearch::place_here(std::vector<Node>& nodes, std::size_t depth, std::size_t at,
                            std::size_t first_slot, Places& places) {
  const Member& member = order_[depth];
  Shape& shape = *member.shape;
  const Demand& demand = shape.demand;
  Node& node = nodes[at];
  if (demand.cpu.value > node.cpu_milli || demand.host_memory.value > node.memory_mib) return false;
  if (!in_.site_allowed(shape, node.site)) return false;
  std::vector<std::vector<std::size_t>> ways{{}};
  if (demand.devices == 1) ways = ways_for_one(member, node, first_slot);
  if (demand.devices > 1) ways = ways_for_several(shape, node);
  for (const std::vector<std::size_t>& way : ways) {
    if (--steps_left_ < 0) return false;
    const Node before = node;
    UnitPlacement place;
    place.exclusive = demand.exclusive;
    for (const std::size_t i : way) {
      DeviceSlot& slot = node.slots[i];
      const KindNeed& want = in_.need(shape, slot.kind);
      place.slices.push_back(slice_of(want, DeviceId{node.devices[i]}, NodeId{node.id}));
      slot.free_milli = demand.exclusive ? 0 : slot.free_milli - want.milli;
      slot.free_mib = demand.exclusive ? 0 : slot.free_mib - want.mib;
    }
    node.cpu_milli -= demand.cpu.value;
    node.memory_mib -= demand.host_memory.value;
    place.hosts.push_back({NodeId{node.id}, demand.cpu, demand.host_memory});
    places[member.at] = std::move(place);
    if (place_rest(nodes, depth + 1, {at, way.size() == 1 ? way[0] : 0}, places)) return true;
    node = before;
    places[member.at].reset();
  }
  return false;
}

// --- From near to far --------------------------------------------------------------------------

std::size_t GangSearch::nodes_used(const Places& places) {
  std::vector<std::uint64_t> ids;
  for (const auto& place : places) ids.push_back(place->hosts.front().node.value);
  std::sort(ids.begin(), ids.end());
  return static_cast<std::size_t>(std::unique(ids.begin(), ids.end()) - ids.begin());
}

std::optional<GangSearch::Places> GangSearch::within(const std::vector<const Node*>& nodes) {
  auto places = on_few_nodes(nodes);
  return places ? places : exactly(nodes);
}

std::optional<GangPlacement> GangSearch::run() {
  const auto answer = [](const Places& places, Nearness nearness) {
    GangPlacement found;
    found.nearness = nearness;
    for (const auto& place : places) found.members.push_back(*place);
    return found;
  };
  for (const Nearness near : {Nearness::one_link_group, Nearness::one_numa_node}) {
    if (const auto places = on_one_part(near)) return answer(*places, near);
    if (options_.farthest == near) return std::nullopt;
  }
  gather();
  if (const auto places = on_one_node()) return answer(*places, Nearness::one_node);
  if (options_.farthest == Nearness::one_node) return std::nullopt;
  std::map<std::string, std::vector<const Node*>> regions;
  for (const Node& node : nodes_) regions[in_.sites[node.site].region].push_back(&node);
  std::optional<Places> best;
  for (const auto& [region, nodes] : regions) {
    auto places = within(nodes);
    if (places && (!best || nodes_used(*places) < nodes_used(*best))) best = std::move(places);
  }
  if (best) return answer(*best, Nearness::one_region);
  if (options_.farthest == Nearness::one_region || regions.size() < 2) return std::nullopt;
  std::vector<const Node*> all;
  for (const Node& node : nodes_) all.push_back(&node);
  const auto places = within(all);
  if (!places) return std::nullopt;
  return answer(*places, Nearness::anywhere);
}

}  // namespace loam::schedule
