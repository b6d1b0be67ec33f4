// Defrag: a few moves of low-class tasks that let a larger one start which waits, never without
// one; and only where what it gains is more than what the moves lose. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "schedule/scheduler.hpp"

namespace loam::schedule {

struct DefragLimits {
  std::size_t moves_max = 2;         // 1 or 2 for one task
  std::size_t tasks_tried_max = 64;  // running tasks that are considered, cheapest first
  // What starting now instead of later gains where nobody knows how long it would wait else.
  Duration gain_if_unknown = Duration::hours(1);
};

// The moves that lose least of those that make room for `task`, or nothing: it fits as it is, no
// moves help, or they would lose more milli-device × time than it gains. Only tasks of a lower
// level move, none that is protected by its minimum run time, on a reservation or stopping.
// Requires a waiting task. O(tasks_tried_max^moves_max) looks at the room.
std::optional<Defrag> find_moves(const Scheduler& scheduler, TaskId task, Instant now,
                                 const Room& room, const DefragLimits& limits = {});

}  // namespace loam::schedule
