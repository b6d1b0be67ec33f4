#include "schedule/moves.hpp"

#include <algorithm>
#include <set>

#include "base/assert.hpp"
#include "schedule/pool_inside.hpp"

namespace loam::schedule {
namespace {

constexpr std::int64_t half_device = 500;

using ByNode = std::map<std::uint64_t, std::vector<const Resident*>>;
using Leavers = std::vector<const Resident*>;

std::int64_t share_on(const Leavers& leavers, std::uint64_t device, std::int64_t& mib) {
  std::int64_t milli = 0;
  for (const Resident* resident : leavers) {
    for (const Placement& slice : resident->place.slices) {
      if (slice.device.value != device) continue;
      milli += slice.promised().value;
      mib += slice.memory_promised().value;
    }
  }
  return milli;
}

}  // namespace

// Weighs plans for one demand.
class MoveSearch {
 public:
  MoveSearch(const Pool& pool, const Demand& demand, const MoveOptions& options)
      : pool_(pool), in_(*pool.inside_), demand_(demand), tries_left_(options.tries_max) {
    in_.make_scorer_ready();
    shape_.demand = demand;
  }

  void consider(std::uint64_t node, const Leavers& leavers) {
    if (!makes_room(node, leavers)) return;
    Candidate candidate{0, node, leavers};
    for (const Resident* resident : leavers) {
      for (const Placement& slice : resident->place.slices) candidate.moved += slice.share.value;
      candidate.moved += resident->place.hosts.front().cpu.value / 16;  // as nodes are compared
    }
    candidates_.push_back(std::move(candidate));
  }

  // Those that move least are weighed first: they find another place most easily.
  std::optional<MovePlan> best() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.moved < b.moved; });
    const auto looked_at_max = static_cast<std::size_t>(8 * tries_left_);  // equal ones included
    if (candidates_.size() > looked_at_max) candidates_.resize(looked_at_max);
    for (const Candidate& candidate : candidates_) {
      if (tries_left_ <= 0) break;
      if (!seen_.insert(key_of_plan(candidate)).second) continue;
      --tries_left_;
      weigh(candidate.node, candidate.leavers);
    }
    return std::move(best_);
  }

 private:
  struct Candidate {
    std::int64_t moved = 0;
    std::uint64_t node = 0;
    Leavers leavers;
  };

  // Equal residents of equal nodes make equal plans.
  std::string key_of_plan(const Candidate& candidate) const {
    std::string key = std::to_string(in_.nodes[candidate.node - 1].state.index);
    for (const Resident* resident : candidate.leavers) {
      key += '#' + key_of(resident->demand);
      std::vector<std::int64_t> levels;
      for (const Placement& slice : resident->place.slices)
        levels.push_back(pool_.free_of(slice.device).value);
      std::sort(levels.begin(), levels.end());
      for (const std::int64_t level : levels) key += '@' + std::to_string(level);
    }
    return key;
  }

  // By figures alone: would the demand fit on the node without them?
  bool makes_room(std::uint64_t node, const Leavers& leavers) {
    const NodeEntry& entry = in_.nodes[node - 1];
    if (!in_.site_allowed(shape_, entry.site)) return false;
    std::int64_t cpu = entry.cpu_milli;
    std::int64_t memory = entry.memory_mib;
    for (const Resident* resident : leavers) {
      cpu += resident->place.hosts.front().cpu.value;
      memory += resident->place.hosts.front().memory.value;
    }
    if (cpu < demand_.cpu.value || memory < demand_.host_memory.value) return false;
    std::int64_t room = 0;
    for (const std::uint64_t id : entry.devices) {
      const DeviceEntry& device = in_.devices[id - 1];
      if (!device.placeable) continue;
      const DeviceKind& kind = in_.kinds[device.kind];
      DeviceSlot slot = device.slot(kind);
      std::int64_t mib = 0;
      slot.free_milli += static_cast<std::int32_t>(share_on(leavers, id, mib));
      slot.free_mib += mib;
      room += in_.has_room(shape_, slot, in_.need(shape_, device.kind)) ? 1 : 0;
    }
    return room >= demand_.devices;
  }

  void weigh(std::uint64_t node, const Leavers& leavers) {
    Trial trial(pool_);
    std::set<std::uint64_t> touched{node};
    for (const Resident* resident : leavers) trial.give_back(resident->place);
    auto place = trial.find_on(NodeId{node}, demand_);
    if (!place) return;
    trial.take(*place);
    MovePlan plan;
    for (const Resident* resident : leavers) {
      auto to = trial.find(resident->demand);
      if (!to) return;
      trial.take(*to);
      touched.insert(to->hosts.front().node.value);
      plan.moves.push_back({resident->id, resident->place, *to});
    }
    for (const std::uint64_t id : touched) {
      plan.loss += Trial(pool_).value_of(NodeId{id}) - trial.value_of(NodeId{id});
    }
    if (best_ && best_->loss <= plan.loss) return;
    // A move within the node would not have been needed, or frees what the demand takes only
    // after it: it is let be.
    for (const UnitMove& move : plan.moves) {
      if (move.to.hosts.front().node.value == node) return;
    }
    plan.place = std::move(*place);
    best_ = std::move(plan);
  }

  const Pool& pool_;
  Pool::Inside& in_;
  const Demand& demand_;
  Shape shape_;
  std::int64_t tries_left_;
  std::vector<Candidate> candidates_;
  std::set<std::string> seen_;
  std::optional<MovePlan> best_;
};

namespace {

std::optional<MovePlan> plan(const Pool& pool, const ByNode& by_node, const Demand& demand,
                             const MoveOptions& options) {
  if (options.moves_max < 1) return std::nullopt;
  MoveSearch search(pool, demand, options);
  for (const auto& [node, residents] : by_node) {
    for (const Resident* resident : residents) search.consider(node, {resident});
  }
  auto best = search.best();
  if (best || options.moves_max < 2) return best;
  MoveSearch pairs(pool, demand, options);
  for (const auto& [node, residents] : by_node) {
    for (std::size_t i = 0; i < residents.size(); ++i) {
      for (std::size_t j = i + 1; j < residents.size(); ++j) {
        pairs.consider(node, {residents[i], residents[j]});
      }
    }
  }
  return pairs.best();
}

}  // namespace

std::optional<MovePlan> plan_moves(const Pool& pool, const std::vector<Resident>& residents,
                                   const Demand& demand, const MoveOptions& options) {
  ByNode by_node;
  for (const Resident& resident : residents) {
    if (resident.place.hosts.size() != 1) continue;
    by_node[resident.place.hosts.front().node.value].push_back(&resident);
  }
  return plan(pool, by_node, demand, options);
}

void Mover::add(const Demand& demand, const UnitPlacement& place) {
  if (place.hosts.size() != 1) return;
  by_node_[place.hosts.front().node.value].push_back({++last_id_, demand, place});
}

std::optional<UnitPlacement> Mover::make_room(const Demand& demand, std::int64_t moves_max,
                                              std::int64_t& moves) {
  const std::int64_t milli = demand.share ? demand.share->value : whole_device.value;
  if (demand.devices == 0 || milli * demand.devices < half_device) return std::nullopt;
  // What found nothing a moment ago is not searched for again.
  constexpr std::uint64_t placements_between = 48;
  const auto [failed, fresh] = failed_at_.try_emplace(key_of(demand), 0);
  if (!fresh && last_id_ < failed->second + placements_between) return std::nullopt;
  ByNode by_node;
  for (const auto& [node, residents] : by_node_) {
    std::vector<const Resident*>& list = by_node[node];
    for (const Resident& resident : residents) list.push_back(&resident);
  }
  MoveOptions options;
  options.moves_max = std::min<std::int64_t>(2, moves_max);
  const auto found = plan(pool_, by_node, demand, options);
  if (!found) {
    failed->second = last_id_;
    return std::nullopt;
  }
  failed_at_.erase(failed);
  for (const UnitMove& move : found->moves) {
    std::vector<Resident>& from = by_node_[move.from.hosts.front().node.value];
    const auto at = std::find_if(from.begin(), from.end(), [&](const Resident& resident) {
      return resident.id == move.resident;
    });
    LOAM_ASSERT(at != from.end());
    pool_.give_back(move.from);
    pool_.take(move.to);
    Resident moved = std::move(*at);
    from.erase(at);
    moved.place = move.to;
    by_node_[move.to.hosts.front().node.value].push_back(std::move(moved));
    ++moves;
  }
  return found->place;
}

}  // namespace loam::schedule
