// Commitments in force, and what of their tenants' use they cover: hour by hour, once an hour is
// over and metered, and again where use of it is told or taken back later. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "domain/event.hpp"
#include "engine/cover_hours.hpp"

namespace loam::engine {

class Draft;
class State;

// Of one tenant.
struct CommitmentBook {
  std::vector<Commitment> commitments;  // by id
  CoverHours hours;
  Instant due = Instant::never();  // as in CommitmentDues
};
using CommitmentDues = std::set<std::pair<Instant, TenantId>>;

// Whether a commitment of the tenant covers `now`.
bool committed(const State& state, TenantId tenant, Instant now);

// What time brings to commitments, one step: a fee, or an hour that is covered. True where the
// draft has events now.
bool settle_commitments(Draft& draft);

// For evolve(), each after its event.
void apply_to_books(State& state, const CommitmentBought& event, Instant at);
void apply_to_books(State& state, const CommitmentCharged& event, Instant at);
void apply_to_books(State& state, const CommitmentEnded& event, Instant at);
void apply_to_books(State& state, const UseCovered& event, Instant at);
// What costs nothing is covered no more.
void uncover(State& state, const LostWorkCredited& event);
// A usage record was rated, or taken back, at `now`.
void note_use(State& state, const UsageRecord& record, const Lease& lease, const Task& task,
              Instant now);
// After a snapshot was loaded.
void index_dues(State& state);

}  // namespace loam::engine
