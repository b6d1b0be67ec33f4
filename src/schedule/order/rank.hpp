// Rank: where a task stands in its queue's order. Pure.
#pragma once

#include "schedule/scheduler.hpp"

namespace loam::schedule {

// Of a task, waiting or running, given the shares as they are in a pass.
Rank rank_of(const Scheduler& scheduler, const Shares& shares, const Standing& standing,
             Instant now);

// Whether a waiting task's rank changes with facts alone, not with time.
bool is_still(const Discipline& discipline);

// The logarithm of how urgent it is to run the task (blind, semi_blind).
double urgency(const Scheduler& scheduler, const Standing& standing, Instant now);

}  // namespace loam::schedule
