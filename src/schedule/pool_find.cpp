// Pool's decisions: which state, which node, which devices.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "schedule/gang.hpp"
#include "schedule/pool_inside.hpp"

namespace loam::schedule {
namespace {

// Demands remembered with their scores; beyond it the half not asked longest is forgotten.
constexpr std::size_t shapes_max = 512;
// Values of states that are only considered are kept here, newest wins. 32 bytes each.
constexpr std::size_t scored_slots = 1U << 17;

bool ranks_after(const Candidate& a, const Candidate& b) {
  if (a.rank != b.rank) return a.rank > b.rank;
  return a.state.index > b.state.index;
}

std::uint64_t draw(std::uint64_t seed, std::uint64_t change, std::uint64_t thing) {
  return Random(seed * 0x9e3779b97f4a7c15ULL ^ (change << 24) ^ thing).next();
}

}  // namespace

// --- Demands and their shapes -----------------------------------------------------------------

Shape& Pool::Inside::shape_of(const Demand& demand) {
  const auto [at, fresh] = asked.try_emplace(key_of(demand));
  if (fresh) {
    at->second.demand = demand;
    if (asked.size() > shapes_max) {
      std::vector<std::uint64_t> ages;
      for (const auto& [key, shape] : asked) ages.push_back(shape.asked_at);
      std::nth_element(ages.begin(), ages.begin() + shapes_max / 2, ages.end());
      const std::uint64_t limit = ages[shapes_max / 2];
      for (auto old = asked.begin(); old != asked.end();) {
        old = old != at && old->second.asked_at < limit ? asked.erase(old) : std::next(old);
      }
    }
  }
  at->second.asked_at = ++asks;
  return at->second;
}

bool Pool::Inside::site_allowed(Shape& shape, std::uint32_t site) {
  while (shape.sites.size() <= site) {
    const Site& next = sites[shape.sites.size()];
    const Demand& demand = shape.demand;
    bool allowed = demand.region.empty() || demand.region == next.region;
    for (const std::string& label : demand.labels) {
      allowed = allowed && std::binary_search(next.labels.begin(), next.labels.end(), label);
    }
    shape.sites.push_back(allowed ? 1 : 0);
  }
  return shape.sites[site] != 0;
}

const KindNeed& Pool::Inside::need(Shape& shape, KindIndex kind) {
  while (shape.needs.size() <= kind) {
    shape.needs.push_back(need_of(shape.demand, kinds[shape.needs.size()]));
  }
  return shape.needs[kind];
}

void Pool::Inside::make_scorer_ready() {
  if (scorer != nullptr && !scorer_is_stale) return;
  scorer = make_scorer(options.placement.policy, mix, kinds, totals_for_scores);
  scorer_is_stale = false;
  ++epoch;
  if (scorer->needs_value()) scored_.resize(scored_slots);
}

double Pool::Inside::value_of(const NodeView& view) {
  Scored& slot = scored_[hash_of(view, 0) & (scored_slots - 1)];
  const std::uint64_t hash = hash_of(view, 0);
  // A collision of 64 bits would cost a preference, never a wrong place.
  if (slot.hash == hash && slot.epoch == epoch) return slot.value;
  slot = {hash, epoch, scorer->value(view)};
  return slot.value;
}

// --- Devices within a node --------------------------------------------------------------------

bool Pool::Inside::has_room(const Shape& shape, const DeviceSlot& slot,
                            const KindNeed& want) const {
  if (!want.possible || slot.free_milli < want.milli || slot.free_mib < want.mib) return false;
  const DeviceKind& kind = kinds[slot.kind];
  return !shape.demand.exclusive ||
         (slot.free_milli == kind.milli_max && slot.free_mib == kind.memory_max_mib);
}

double Pool::Inside::cost_of(const Shape& shape, const NodeView& view, double before,
                             std::int64_t milli) {
  const NodeView after{view.cpu_milli - shape.demand.cpu.value,
                       view.memory_mib - shape.demand.host_memory.value, after_};
  const NodeNeed taken{shape.demand.cpu.value, shape.demand.host_memory.value, shape.demand.devices,
                       milli};
  const double value = scorer->needs_value() ? value_of(after) : 0;
  return scorer->cost(view, after, taken, before, value);
}

PlaceRank Pool::Inside::rank_of(const NodeView& view, std::int64_t worth, double cost) const {
  constexpr double fine = 1e6;
  PlaceRank rank;
  rank.worth = worth;
  rank.score =
      coarse ? scorer->published(cost) : static_cast<std::int64_t>(std::llround(cost * fine));
  if (options.placement.tie_break == TieBreak::least_remaining) {
    // ½·cpu/128000 + ½·Σ free/8000, times 256000.
    rank.remaining = view.cpu_milli + 16 * view.free_milli();
  }
  return rank;
}

namespace {

// Takes `milli` and `mib` of the slot at `place` and keeps the order.
void take_slot(std::vector<DeviceSlot>& slots, std::size_t place, std::int32_t milli,
               std::int64_t mib) {
  DeviceSlot slot = slots[place];
  slot.free_milli -= milli;
  slot.free_mib -= mib;
  while (place > 0 && slot < slots[place - 1]) {
    slots[place] = slots[place - 1];
    --place;
  }
  slots[place] = slot;
}

}  // namespace

std::optional<PlaceRank> Pool::Inside::choose_one(Shape& shape, const NodeView& view, double before,
                                                  std::vector<std::uint32_t>& chosen) {
  const DeviceChoice way = scorer->choice();
  std::optional<Option> best;
  std::uint32_t best_at = 0;
  const std::size_t count = view.slots.size();
  for (std::size_t step = 0; step < count; ++step) {
    const std::size_t i = way == DeviceChoice::emptiest ? count - 1 - step : step;
    const DeviceSlot& slot = view.slots[i];
    // Equal slots: the first of them stands for all.
    if (i > 0 && slot == view.slots[i - 1]) continue;
    const KindNeed& want = need(shape, slot.kind);
    if (!has_room(shape, slot, want)) continue;
    if (best && (want.worth > best->worth ||
                 (want.worth == best->worth && way != DeviceChoice::every_level)))
      continue;
    after_.assign(view.slots.begin(), view.slots.end());
    const bool whole = shape.demand.exclusive;
    take_slot(after_, i, whole ? slot.free_milli : want.milli, whole ? slot.free_mib : want.mib);
    const double cost = cost_of(shape, view, before, want.milli);
    if (best && want.worth == best->worth && cost >= best->cost - 1e-12) continue;
    best = Option{want.worth, cost};
    best_at = static_cast<std::uint32_t>(i);
  }
  if (!best) return std::nullopt;
  chosen.assign(1, best_at);
  return rank_of(view, best->worth, best->cost);
}

// Several slices go onto devices of one kind, the fullest that hold them.
std::optional<PlaceRank> Pool::Inside::choose_several(Shape& shape, const NodeView& view,
                                                      double before,
                                                      std::vector<std::uint32_t>& chosen) {
  const auto wanted = static_cast<std::size_t>(shape.demand.devices);
  const bool emptiest = scorer->choice() == DeviceChoice::emptiest;
  std::optional<Option> best;
  std::vector<std::uint32_t> room;
  for (std::size_t begin = 0; begin < view.slots.size();) {
    const KindIndex kind = view.slots[begin].kind;
    std::size_t end = begin;
    while (end < view.slots.size() && view.slots[end].kind == kind) ++end;
    const KindNeed& want = need(shape, kind);
    room.clear();
    for (std::size_t i = begin; i < end; ++i) {
      if (has_room(shape, view.slots[i], want)) room.push_back(static_cast<std::uint32_t>(i));
    }
    begin = end;
    if (room.size() < wanted) continue;
    if (emptiest) {
      room.erase(room.begin(), room.end() - static_cast<std::ptrdiff_t>(wanted));
    } else {
      room.resize(wanted);
    }
    after_.assign(view.slots.begin(), view.slots.end());
    const bool whole = shape.demand.exclusive;
    for (const std::uint32_t i : room) {
      const DeviceSlot& slot = view.slots[i];
      take_slot(after_, i, whole ? slot.free_milli : want.milli, whole ? slot.free_mib : want.mib);
    }
    const Option option{want.worth * shape.demand.devices,
                        cost_of(shape, view, before, want.milli)};
    if (best && (option.worth > best->worth ||
                 (option.worth == best->worth && option.cost >= best->cost - 1e-12)))
      continue;
    best = option;
    chosen = room;
  }
  if (!best) return std::nullopt;
  return rank_of(view, best->worth, best->cost);
}

std::optional<PlaceRank> Pool::Inside::choose(Shape& shape, std::uint32_t site,
                                              const NodeView& view, double value_before,
                                              std::vector<std::uint32_t>& chosen) {
  const Demand& demand = shape.demand;
  if (demand.cpu.value > view.cpu_milli || demand.host_memory.value > view.memory_mib)
    return std::nullopt;
  if (!site_allowed(shape, site)) return std::nullopt;
  if (static_cast<std::size_t>(demand.devices) > view.slots.size()) return std::nullopt;
  chosen.clear();
  if (demand.devices == 0) {
    after_.assign(view.slots.begin(), view.slots.end());
    return rank_of(view, 0, cost_of(shape, view, value_before, 0));
  }
  return demand.devices == 1 ? choose_one(shape, view, value_before, chosen)
                             : choose_several(shape, view, value_before, chosen);
}

// --- States -----------------------------------------------------------------------------------

bool Pool::Inside::push(Shape& shape, StateRef ref) {
  NodeState& state = states.at(ref);
  const Demand& demand = shape.demand;
  if (demand.cpu.value > state.cpu_milli || demand.host_memory.value > state.memory_mib)
    return false;
  if (scorer->needs_value() && state.value_epoch != epoch) {
    state.value = value_of(state.view());
    state.value_epoch = epoch;
  }
  const auto rank = choose(shape, state.site, state.view(), state.value, chosen_);
  if (!rank) return false;
  shape.heap.push_back({*rank, ref});
  std::push_heap(shape.heap.begin(), shape.heap.end(), ranks_after);
  return true;
}

void Pool::Inside::take_all(Shape& shape) {
  shape.heap.clear();
  for (const StateRef ref : states.live()) push(shape, ref);
  shape.cursor = states.births_end();
  shape.skipped = false;
}

void Pool::Inside::bring_up_to_date(Shape& shape) {
  const std::uint64_t end = states.births_end();
  const std::int64_t bound = options.scored_max;
  const bool fresh = shape.epoch != epoch;
  if (fresh || shape.cursor < states.births_kept_from()) {
    shape.heap.clear();
    shape.epoch = epoch;
    const std::vector<StateRef>& live = states.live();
    if (bound == 0 || static_cast<std::int64_t>(live.size()) <= bound) {
      take_all(shape);
      return;
    }
    // An even sample of the states.
    const std::size_t stride = live.size() / static_cast<std::size_t>(bound) + 1;
    for (std::size_t i = static_cast<std::size_t>(asks) % stride; i < live.size(); i += stride) {
      push(shape, live[i]);
    }
    shape.cursor = end;
    shape.skipped = true;
    return;
  }
  std::int64_t scored = 0;
  for (std::uint64_t at = end; at > shape.cursor; --at) {
    const StateRef ref = states.birth(at - 1);
    if (!states.is_live(ref) || !push(shape, ref)) continue;
    if (++scored == bound) {
      shape.skipped = shape.skipped || at - 1 > shape.cursor;
      break;
    }
  }
  shape.cursor = end;
  // Dead and doubled entries that never reach the top are cleared out now and then.
  if (shape.heap.size() > 4 * states.live().size() + 256) {
    std::erase_if(shape.heap, [&](const Candidate& c) { return !states.is_live(c.state); });
    std::sort(shape.heap.begin(), shape.heap.end(),
              [](const Candidate& a, const Candidate& b) { return ranks_after(b, a); });
    const auto same = [](const Candidate& a, const Candidate& b) { return a.state == b.state; };
    shape.heap.erase(std::unique(shape.heap.begin(), shape.heap.end(), same), shape.heap.end());
  }
}

std::optional<Pool::Inside::Best> Pool::Inside::top(Shape& shape, const Touched& touched) {
  std::vector<Candidate> aside;  // live, but all their nodes are touched; or equal to the best
  std::optional<Best> best;
  std::uint64_t best_draw = 0;
  const bool random = options.placement.tie_break == TieBreak::random;
  while (!shape.heap.empty()) {
    const Candidate candidate = shape.heap.front();
    if (best && best->near == Nearness::one_link_group && candidate.rank > best->rank) break;
    std::pop_heap(shape.heap.begin(), shape.heap.end(), ranks_after);
    shape.heap.pop_back();
    if (!states.is_live(candidate.state)) continue;
    if (!aside.empty() && aside.back().state == candidate.state) continue;  // in there twice
    aside.push_back(candidate);
    for (const std::uint64_t id : states.at(candidate.state).nodes) {
      if (touched.contains(id)) continue;
      const std::uint64_t drawn_now = random ? draw(options.placement.seed, changes, id) : id;
      const Nearness near = nearness_on(shape, id);
      if (!best || std::tuple(near, candidate.rank, drawn_now) <
                       std::tuple(best->near, best->rank, best_draw)) {
        best = Best{candidate.rank, id, near};
        best_draw = drawn_now;
      }
      if (!random && near == Nearness::one_link_group) break;
    }
  }
  for (const Candidate& candidate : aside) {
    shape.heap.push_back(candidate);
    std::push_heap(shape.heap.begin(), shape.heap.end(), ranks_after);
  }
  return best;
}

bool Pool::Inside::same_worth(Shape& shape) {
  std::int64_t worth = 0;
  for (KindIndex kind = 0; kind < kinds.size(); ++kind) {
    const KindNeed& want = need(shape, kind);
    if (!want.possible) continue;
    if (worth != 0 && want.worth != worth) return false;
    worth = want.worth;
  }
  return true;
}

// A node drawn from all that fit. Where few do, it is the least of their draws, which needs no
// order of states.
std::optional<Pool::Inside::Best> Pool::Inside::drawn(Shape& shape, const Touched& touched) {
  std::optional<Best> best;
  // Where every kind costs the pool the same, nodes are drawn until one fits.
  constexpr std::uint64_t draws_max = 256;
  const bool any_will_do =
      !tells_nearness(shape.demand) && (kinds.size() == 1 || same_worth(shape));
  const std::uint64_t draws = any_will_do ? draws_max : 0;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const std::uint64_t at = draw(options.placement.seed, changes, i) % nodes.size();
    if (!nodes[at].known || touched.contains(at + 1)) continue;
    const NodeState& state = states.at(nodes[at].state);
    if (choose(shape, state.site, state.view(), 0, chosen_)) return Best{{}, at + 1};
  }
  for (const StateRef ref : states.live()) {
    const NodeState& state = states.at(ref);
    const auto rank = choose(shape, state.site, state.view(), 0, chosen_);
    if (!rank) continue;
    for (const std::uint64_t id : state.nodes) {
      if (touched.contains(id)) continue;
      // Nearness, worth, then the draw.
      const auto luck = static_cast<std::int64_t>(draw(options.placement.seed, changes, id) >> 1);
      const Best drawn_now{{rank->worth, luck, 0}, id, nearness_on(shape, id)};
      if (!best || std::pair(drawn_now.near, drawn_now.rank) < std::pair(best->near, best->rank))
        best = drawn_now;
    }
  }
  return best;
}

std::optional<Pool::Inside::Best> Pool::Inside::best(const Demand& demand, const Touched& touched) {
  make_scorer_ready();
  Shape& shape = shape_of(demand);
  if (options.placement.policy == PlacementPolicy::random) return drawn(shape, touched);
  bring_up_to_date(shape);
  std::optional<Best> found = top(shape, touched);
  if (!found && shape.skipped) {
    take_all(shape);
    found = top(shape, touched);
  }
  return found;
}

// --- Places -----------------------------------------------------------------------------------

std::optional<UnitPlacement> Pool::Inside::place_on(Shape& shape, std::uint64_t node_id,
                                                    std::uint32_t site, std::int64_t cpu_milli,
                                                    std::int64_t memory_mib,
                                                    const std::vector<OpenSlot>& all) {
  const Nearest near = nearest(shape, all);
  const std::vector<OpenSlot>& slots = near.slots.empty() ? all : near.slots;
  std::vector<DeviceSlot> bare;
  bare.reserve(slots.size());
  for (const OpenSlot& open : slots) bare.push_back(open.slot);
  const NodeView view{cpu_milli, memory_mib, bare};
  const double before = scorer->needs_value() ? value_of(view) : 0;
  std::vector<std::uint32_t> chosen;
  if (!choose(shape, site, view, before, chosen)) return std::nullopt;
  const Demand& demand = shape.demand;
  if (options.placement.policy == PlacementPolicy::random && demand.devices == 1) {
    std::vector<std::uint32_t> room;
    for (std::uint32_t i = 0; i < bare.size(); ++i) {
      const KindNeed& want = need(shape, bare[i].kind);
      if (has_room(shape, bare[i], want) && want.worth == need(shape, bare[chosen[0]].kind).worth)
        room.push_back(i);
    }
    chosen[0] = room[draw(options.placement.seed + 1, changes, node_id) % room.size()];
  }
  UnitPlacement place;
  place.exclusive = demand.exclusive;
  for (const std::uint32_t i : chosen) {
    const KindNeed& want = need(shape, bare[i].kind);
    place.slices.push_back(slice_of(want, DeviceId{slots[i].device}, NodeId{node_id}));
  }
  std::sort(place.slices.begin(), place.slices.end(),
            [](const Placement& a, const Placement& b) { return a.device < b.device; });
  place.hosts.push_back({NodeId{node_id}, demand.cpu, demand.host_memory});
  return place;
}

std::optional<UnitPlacement> Pool::Inside::place_on(Shape& shape, std::uint64_t node_id) {
  const NodeEntry& entry = nodes[node_id - 1];
  std::vector<OpenSlot> slots;
  slots_of(entry, slots);
  return place_on(shape, node_id, entry.site, entry.cpu_milli, entry.memory_mib, slots);
}

std::optional<UnitPlacement> Pool::Inside::certain(const Demand& demand, std::uint64_t node_id,
                                                   std::uint32_t site, std::int64_t cpu_milli,
                                                   std::int64_t memory_mib,
                                                   const std::vector<OpenSlot>& slots) {
  // A device that is named is taken for what it is.
  Demand named = demand;
  named.device = {};
  named.device_type.clear();
  named.device_types.clear();
  if (named.devices != 1) return std::nullopt;
  std::vector<OpenSlot> only;
  for (const OpenSlot& open : slots) {
    if (open.device == demand.device.value) only.push_back(open);
  }
  if (only.empty()) return std::nullopt;
  make_scorer_ready();
  return place_on(shape_of(named), node_id, site, cpu_milli, memory_mib, only);
}

bool Pool::Inside::needs_several(const Demand& demand) {
  if (!demand.ce || demand.devices != 1 || demand.device.valid()) return false;
  return std::none_of(kinds.begin(), kinds.end(),
                      [&](const DeviceKind& kind) { return need_of(demand, kind).possible; });
}

std::optional<UnitPlacement> Pool::Inside::find(const Demand& demand) {
  if (demand.device.valid()) {
    if (demand.device.value > devices.size()) return std::nullopt;
    const DeviceEntry& entry = devices[demand.device.value - 1];
    if (!entry.known || !nodes[entry.node - 1].known) return std::nullopt;
    const NodeEntry& on = nodes[entry.node - 1];
    std::vector<OpenSlot> slots;
    slots_of(on, slots);
    return certain(demand, entry.node, on.site, on.cpu_milli, on.memory_mib, slots);
  }
  const auto found = best(demand, {});
  if (!found) return std::nullopt;
  return place_on(shape_of(demand), found->node);
}

bool Pool::may_aggregate(const Demand& demand) const {
  return demand.devices > 0 && inside_->needs_several(demand);
}

std::optional<UnitPlacement> Pool::find(const Demand& demand) const {
  if (demand.devices > 0 && inside_->needs_several(demand)) {
    return find_aggregated(*this, demand);
  }
  return inside_->find(demand);
}

std::optional<UnitPlacement> Pool::find_on(NodeId node, const Demand& demand) const {
  Inside& in = *inside_;
  if (!node.valid() || node.value > in.nodes.size() || !in.nodes[node.value - 1].known)
    return std::nullopt;
  const NodeEntry& entry = in.nodes[node.value - 1];
  in.make_scorer_ready();
  if (!demand.device.valid()) return in.place_on(in.shape_of(demand), node.value);
  std::vector<OpenSlot> slots;
  in.slots_of(entry, slots);
  return in.certain(demand, node.value, entry.site, entry.cpu_milli, entry.memory_mib, slots);
}

}  // namespace loam::schedule
