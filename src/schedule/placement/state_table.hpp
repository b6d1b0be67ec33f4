// The distinct states that a pool's nodes are in. Nodes in equal states are interchangeable, so a
// decision looks at states; each keeps its nodes by id. Every birth of a state is logged, so that
// what a request shape knows can be brought up to date by what is new. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "schedule/placement/node_view.hpp"

namespace loam::schedule {

// Names a state; the generation tells a state from a later one in the same place.
struct StateRef {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;

  friend bool operator==(StateRef, StateRef) = default;
};

struct NodeState {
  std::uint32_t site = 0;  // region and labels
  std::uint32_t generation = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::vector<DeviceSlot> slots;
  std::uint64_t hash = 0;
  std::set<std::uint64_t> nodes;  // ids; none: nobody is in this state now
  double value = 0;               // the scorer's
  std::uint32_t value_epoch = 0;  // of the scorer that `value` is by; 0: unknown
  std::uint32_t live_at = 0;      // its place in live(), while it has nodes
  bool used = false;

  NodeView view() const { return {cpu_milli, memory_mib, slots}; }
};

// Equal views on equal sites have equal hashes. O(slots).
std::uint64_t hash_of(const NodeView& view, std::uint64_t site);

class StateTable {
 public:
  // Puts the node into the state with these figures; it must be in none. O(slots + log nodes).
  StateRef add(std::uint64_t node, std::uint32_t site, const NodeView& view);
  void remove(std::uint64_t node, StateRef state);

  const NodeState& at(StateRef ref) const { return states_[ref.index]; }
  NodeState& at(StateRef ref) { return states_[ref.index]; }
  bool is_live(StateRef ref) const {
    const NodeState& state = states_[ref.index];
    return state.generation == ref.generation && !state.nodes.empty();
  }
  const std::vector<StateRef>& live() const { return live_; }

  // Births so far; those before births_kept_from() are forgotten.
  std::uint64_t births_end() const { return births_base_ + births_.size(); }
  std::uint64_t births_kept_from() const { return births_base_; }
  StateRef birth(std::uint64_t at) const {
    return births_[static_cast<std::size_t>(at - births_base_)];
  }

 private:
  std::uint32_t fresh_index();
  std::size_t slot_of(std::uint32_t site, const NodeView& view, std::uint64_t hash) const;
  void grow_index();
  void drop_dead();
  void trim_births();

  std::vector<NodeState> states_;
  std::vector<std::uint32_t> unused_;
  std::vector<std::uint32_t> index_;  // open addressing; 0: empty, else place in states_ + 1
  std::vector<StateRef> live_;
  std::size_t known_ = 0;  // states in index_, dead ones included
  std::vector<StateRef> births_;
  std::uint64_t births_base_ = 0;
};

}  // namespace loam::schedule
