// Escalation: what is done about a task that waits longer than its class promises: an alarm, then
// steps that each may be left out. It decides nothing by itself: the engine carries a step out, or
// passes it on to the tenant. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schedule/scheduler.hpp"

namespace loam::schedule {

enum class EscalationKind : std::uint8_t {
  alarm,        // say it
  larger_pool,  // try it in another queue too: `queue`
  on_demand,    // a spot task is offered on-demand capacity
  split,        // propose to run it as `parts` smaller tasks
};
const char* name_of(EscalationKind kind) noexcept;

struct EscalationStep {
  EscalationKind kind = EscalationKind::alarm;
  Duration after;           // of waiting beyond what is promised
  std::uint32_t queue = 0;  // larger_pool
};

// By level of service class; a level that is not listed promises nothing.
struct WaitingPromise {
  Duration wait;
  std::vector<EscalationStep> steps;  // in the order of `after`
};
using WaitingPromises = std::map<std::int64_t, WaitingPromise>;

struct Escalation {
  TaskId task;
  EscalationStep step;
  std::size_t number = 0;  // of the step, from 0
  Duration waited;
  Duration promised;
  std::int64_t parts = 0;  // split: the fewest that each could start now, side by side or in turn
};
// "t7 has waited 2h, its class promises 1h": for people.
std::string to_text(const Escalation& escalation);

// The steps that are due at `now` and not among `taken` (steps done so far, by task), at most one a
// task. Steps that cannot help are passed over: on_demand for what is not spot, larger_pool where
// it would not fit either, split for what has one device. O(lines + tasks that are due).
std::vector<Escalation> due_escalations(const Scheduler& scheduler, const WaitingPromises& promises,
                                        const std::map<TaskId, std::size_t>& taken, Instant now,
                                        const Room& room);

}  // namespace loam::schedule
