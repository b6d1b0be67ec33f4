// Moves: residents that go elsewhere so that a larger demand fits. The plan is only a proposal; who
// carries it out decides whether the loss of a move is worth it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedule/pool.hpp"
#include "schedule/trial.hpp"

namespace loam::schedule {

// Something that is placed on one node and may be moved.
struct Resident {
  std::uint64_t id = 0;
  Demand demand;
  UnitPlacement place;
};

struct UnitMove {
  std::uint64_t resident = 0;
  UnitPlacement from;
  UnitPlacement to;
};

struct MovePlan {
  std::vector<UnitMove> moves;  // in the order in which they can be made
  UnitPlacement place;          // of the demand, once they are made
  double loss = 0;              // of the policy's value of the nodes touched; 0 where it has none
};

struct MoveOptions {
  std::int64_t moves_max = 2;    // of one plan; more than 2 are never tried
  std::int64_t tries_max = 128;  // plans weighed, smallest moves first; bounds the work
};

// The plan of one move, else of two from one node, after which `demand` fits, with the least loss
// of value; nothing where none is found. Asked where the demand does not fit as it is. Requires
// residents that the pool has booked; those on several nodes are let be.
// O(residents + pairs of one node + tries · (slots + log states)).
std::optional<MovePlan> plan_moves(const Pool& pool, const std::vector<Resident>& residents,
                                   const Demand& demand, const MoveOptions& options = {});

// Keeps the residents of a pool and moves them: the simulator's defrag.
class Mover {
 public:
  explicit Mover(Pool& pool) : pool_(pool) {}

  void add(const Demand& demand, const UnitPlacement& place);
  // Where a demand of at least half a device does not fit: makes the best plan's moves, at most
  // `moves_max`, adds their number to `moves`, and returns the place (not yet taken). A demand for
  // which nothing was found is searched for again only some dozens of placements later.
  std::optional<UnitPlacement> make_room(const Demand& demand, std::int64_t moves_max,
                                         std::int64_t& moves);

 private:
  Pool& pool_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::vector<Resident>> by_node_;
  std::map<std::string, std::uint64_t> failed_at_;  // by demand: last_id_ then
};

}  // namespace loam::schedule
