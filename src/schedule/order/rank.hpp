// Rank: where a task stands in its queue's order. Smaller is tried first. Doubles are preferences
// here; ties are broken by arrival, then by id. Pure.
#pragma once

#include <compare>

#include "schedule/scheduler.hpp"

namespace loam::schedule {

enum class Tier : std::uint8_t {
  place_cleared,  // victims left, or are leaving, for it
  promised,       // it has a planned start
  overdue,        // it has waited too long
  in_order,
};

struct Rank {
  Tier tier = Tier::in_order;
  double key = 0;
  double second_key = 0;
  Instant arrival;
  TaskId id;

  friend auto operator<=>(const Rank&, const Rank&) = default;
};

// Of a task, waiting or running, given the shares as they are in a pass.
Rank rank_of(const Scheduler& scheduler, const Shares& shares, const Standing& standing,
             Instant now);

// The logarithm of how urgent it is to run the task (blind, semi_blind).
double urgency(const Scheduler& scheduler, const Standing& standing, Instant now);

}  // namespace loam::schedule
