// Trial: "what if" on top of a pool that stays as it is. Takes and returns are booked in the trial
// alone; find() answers as the pool would with them done. Gangs, preemption and backfill try their
// plans here and throw the trial away. Pure.
//
//   Trial trial(pool);
//   trial.give_back(victim);                      // if this victim went
//   if (auto place = trial.find(demand)) ...      // would it fit, and where
//
// The pool must outlive its trials and must not change while one is used.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "schedule/pool.hpp"

namespace loam::schedule {

struct OpenSlot;

class Trial {
 public:
  explicit Trial(const Pool& pool);
  Trial(const Trial&);
  Trial& operator=(const Trial&) = delete;
  ~Trial();

  // As the pool's. O(slots of the nodes named).
  void take(const UnitPlacement& place);
  void give_back(const UnitPlacement& place);

  // As the pool's find(), with what was taken and given back. The touched nodes are tried one by
  // one, the others through the pool's index: O(touched nodes + log states).
  std::optional<UnitPlacement> find(const Demand& demand) const;
  // On this node alone. O(slots).
  std::optional<UnitPlacement> find_on(NodeId node, const Demand& demand) const;
  // Whether find() would find something; no cheaper.
  bool fits(const Demand& demand) const { return find(demand).has_value(); }

  // The policy's value of a node; 0 where the policy has none. O(slots + types of the mix).
  double value_of(NodeId node) const;

  // Everything back to the pool's own figures.
  void reset();
  const Pool& pool() const { return pool_; }

 private:
  friend class GangSearch;
  struct TouchedNode;
  struct Host {
    std::uint32_t site = 0;
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
  };
  TouchedNode& touch(NodeId node);
  std::vector<std::uint64_t> touched() const;  // ids, ascending
  // Figures of a node, touched or not.
  Host figures_of(std::uint64_t node, std::vector<OpenSlot>& slots) const;
  // As find_on(), on these devices of the node.
  std::optional<UnitPlacement> find_among(NodeId node, const std::vector<std::uint64_t>& devices,
                                          const Demand& demand) const;
  void book(const UnitPlacement& place, std::int64_t sign);

  const Pool& pool_;
  std::map<std::uint64_t, TouchedNode> nodes_;
};

}  // namespace loam::schedule
