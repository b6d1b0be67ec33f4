// Spot under a deadline in several zones: the rule that chooses where to start when spot is gone
// where the task's data lies. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/spot/deadline.hpp"

namespace loam::schedule::spot {

struct ZonedState {
  State task;                 // task.spell is that of the present zone
  std::size_t zone = 0;       // where the task's checkpoint lies
  std::int64_t moves = 0;     // starts in another zone, each paid with terms.egress_cost
  std::vector<Ticks> spells;  // by zone

  explicit ZonedState(std::size_t zones) : spells(zones) {}
};

// One tick of `reserve` with `available[zone]` not 0 where spot is there. When the present zone has
// none, the task starts in the zone that has had it longest, ties by index, if it has had it for at
// least egress / (2 (1 - ratio)) on-demand ticks and the cap allows the egress. The guarantees of
// reserve hold. Requires one entry a zone. O(zones).
Mode step_zones(const Terms& terms, ZonedState& state, std::span<const std::uint8_t> available);

}  // namespace loam::schedule::spot
