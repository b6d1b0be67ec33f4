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

namespace loam::engine {

class Draft;
class State;

// A stretch of a usage record within an hour, which may be covered.
struct CoverPiece {
  LeaseId lease;
  Instant since;  // when the lease began
  Instant from;
  Instant to;
  MilliCe ce;
  Money list;  // of the whole record
  Money net;
  Duration length;  // likewise
  LineKey key;      // of the line that it is given back on
  RateCardId card;
  Instant month_end;  // likewise
};
BOOST_DESCRIBE_STRUCT(CoverPiece, (),
                      (lease, since, from, to, ce, list, net, length, key, card, month_end))

struct CoverHour {
  std::vector<CoverPiece> pieces;
  std::vector<AdjustmentLine> given;  // back so far: one a key, card and month
  bool due = false;                   // its pieces changed since
};

// Of one tenant.
struct CommitmentBook {
  std::vector<Commitment> commitments;  // by id
  std::map<Instant, CoverHour> hours;   // by their start; old ones are forgotten
  Instant due = Instant::never();       // as in CommitmentDues
};
using CommitmentDues = std::set<std::pair<Instant, TenantId>>;

// What is told of an hour later than this is charged on demand.
inline constexpr Duration cover_hours_kept = Duration::hours(24 * 8);

// Whether a commitment of the tenant covers `now`.
bool committed(const State& state, TenantId tenant, Instant now);

// What time brings to commitments, one step: a fee, or an hour that is covered. True where the
// draft has events now.
bool settle_commitments(Draft& draft);

// For evolve(), each after its event.
void apply_to_books(State& state, const CommitmentBought& event);
void apply_to_books(State& state, const CommitmentCharged& event, Instant at);
void apply_to_books(State& state, const CommitmentEnded& event);
void apply_to_books(State& state, const UseCovered& event, Instant at);
void apply_to_books(State& state, const LostWorkCredited& event);
// A usage record was rated, or taken back, at `now`.
void note_use(State& state, const UsageRecord& record, const Lease& lease, const Task& task,
              Instant now);
// After a snapshot was loaded.
void index_dues(State& state);

}  // namespace loam::engine
