// Moves: running tasks that make room for a waiting one of a higher level and go on elsewhere. Who
// is moved is the scheduler's to say. Pure.
#pragma once

#include <optional>
#include <string>

#include "engine/state.hpp"
#include "engine/terms.hpp"

namespace loam::engine {

std::optional<Reject> validate(const DefragSettings& settings);
schedule::DefragRules rules_of(const DefragSettings& settings);

// "moved to make room for t7": of one that runs and was asked to stop for that.
std::string move_words(const State& state, TaskId task);

// For evolve().
void apply_to_books(State& state, const MoveBegun& event, Instant at);
// The device takes no leases any more: what was promised there, and what moves there, goes nowhere.
void forget_promises_on(State& state, DeviceId device);

}  // namespace loam::engine
