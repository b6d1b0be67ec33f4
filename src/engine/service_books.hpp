// Storage and network in the books: what nodes counted of attempts, and what waiting tasks keep on
// disk, charged where the tenant's rate card sells it. Pure.
#pragma once

#include <optional>

#include "engine/decisions.hpp"

namespace loam::engine {

// What no node can have counted of an attempt: figures below zero, or beyond any machine.
std::optional<Reject> fault_in_counts(const ServiceReport& report, Duration device_time);

// Records and charges what `lease` held and moved since it was last told of, up to `to`, and
// records what it used of its devices. Figures below what is known change nothing: they were told
// before. Nothing is left to record up to an instant that was told of. Requires a lease that has
// started.
void settle_services(Draft& draft, const Lease& lease, Instant started_at,
                     const ServiceReport& report, std::optional<Duration> device_time, Instant to);

// What a task that does not run has kept on disk, backups too, since it was last charged.
void settle_kept(Draft& draft, const Task& task);

// One of those whose hour is over; false: none is.
bool settle_kept_hours(Draft& draft);

// When the next of them is; never() where nothing is kept.
Instant kept_due(const State& state);

// For evolve(): the event itself, and what begins and ends a time without a lease.
void apply_to_books(State& state, const ServicesUsed& event, Instant at);
void begin_keeping(State& state, Task& task, Instant at);
void end_keeping(State& state, Task& task);

}  // namespace loam::engine
