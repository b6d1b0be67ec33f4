// Reservations: capacity that is locked for an interval to come, and what is charged for it, hour
// by hour: leases on it are charged as they run, and what of it was not used is charged besides, by
// the share of the price that the rate card states. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "domain/command.hpp"
#include "engine/cover_hours.hpp"
#include "schedule/room.hpp"

namespace loam::engine {

class Draft;
class State;

struct ReservationBook {
  Reservation reservation;
  CoverHours hours;                // what used it, and what was charged besides
  std::set<TaskId> tasks;          // live ones that name it
  Instant due = Instant::never();  // as in ReservationDues
};
using ReservationDues = std::set<std::pair<Instant, ReservationId>>;

// What there would be and what it would cost, as MakeReservation would have it now.
struct ReservationQuote {
  schedule::Place place;
  MilliCe ce;
  MilliCe billable_ce;
  Isolation isolation = Isolation::software;
  Money unit_price;  // list, per CE-hour, at its begin
  Money per_hour;    // net, then
  Money used;        // net, of the whole interval, used in full
  Money unused;      // the same, not used at all
  BasisPoints unused_share;
  Money held;  // what is set aside for it, tax included
};
struct ReservationAnswer {
  std::optional<ReservationQuote> quote;
  std::optional<Reject> reject;
};
// A MakeReservation of the same order at the same instant is accepted exactly when this gives a
// quote and the tenant has the money.
ReservationAnswer quote_reservation(const State& state, Instant now, TenantId tenant,
                                    const ReservationOrder& order);

// nullptr where there is none.
const Reservation* find_reservation(const State& state, ReservationId id);
// Whether what a task runs is paid from what is set aside for its reservation, rather than for
// itself: until the last hour of that is charged.
bool paid_by_reservation(const State& state, const Task& task);
// What is set aside for a task, or else for its reservation.
Money held_for(const State& state, const Task& task);
// Whether a task may run on the reservation that it names. Of one that names none, nothing.
std::optional<Reject> validate_reservation(const State& state, Instant now, const Tenant& tenant,
                                           const TaskSpec& spec);
// When a task on a reservation has to have ended; never() for others.
Instant reserved_until(const State& state, const TaskSpec& spec);

// What time brings to reservations, one step: an hour is charged, one is over, what still waits for
// one that ended is ended. True where the draft has events now.
bool settle_reservations(Draft& draft);
// Those on a device that leaves service, or that was lost and last seen then, go elsewhere; where
// there is no room, those on a lost one end. For the decision after which it serves no more.
void leave_device(Draft& draft, DeviceId device, std::optional<Instant> lost_at);

// For evolve(), each after its event.
void apply_to_books(State& state, const ReservationMade& event, Instant at);
void apply_to_books(State& state, const ReservationMoved& event, Instant at);
void apply_to_books(State& state, const ReservationCharged& event, Instant at);
void apply_to_books(State& state, const ReservationEnded& event, Instant at);
void apply_to_books(State& state, const ReservationHeld& event, Instant at);
// A posting of a task on it moved what is set aside for it.
void count_held(State& state, ReservationId id, Money change, Instant at);
// A task on it came, or left for good.
void note_reserved(State& state, const Task& task);
void note_reserved_no_more(State& state, const Task& task);
// A usage record of a lease on it was rated, or taken back.
void note_reserved_use(State& state, const UsageRecord& record, const Lease& lease,
                       const Task& task);
// After a snapshot was loaded, with its tasks.
void index_reservations(State& state);

}  // namespace loam::engine
