// Waits that end: a task that was not started within the time that it would wait has expired, and
// what was set aside for it is free again. Pure.
#pragma once

#include "engine/decisions.hpp"

namespace loam::engine {

// The next task whose wait is over ends, once; false: none is.
bool expire_waiting(Draft& draft);

// For evolve(): what begins, ends and changes a wait.
void note_expiry(State& state, const Task& task);
void forget_expiry(State& state, TaskId task);
void count_expiries(State& state);

}  // namespace loam::engine
