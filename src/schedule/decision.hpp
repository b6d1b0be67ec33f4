// Decisions of the scheduler, as data: what to do next, and why whatever waits is waiting. Pure.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "domain/ids.hpp"
#include "schedule/admission/quotas.hpp"
#include "schedule/order/job.hpp"

namespace loam::schedule {

// The task starts there now.
struct Start {
  TaskId task;
  Place place;
};

// The victims make room; once they have left, `task` starts at `place`, or the reservation begins.
// Victims may be none: those in its way were told to leave before.
struct Preempt {
  TaskId task;
  ReservationId reservation;
  std::vector<TaskId> victims;
  Place place;
};

// A promise: the task starts at `at` at the latest, as far as stated limits hold.
struct Promise {
  TaskId task;
  Instant at;
  Place place;
};

// Tasks that move so that `task` can start at `place`: each is saved, and resumed at its new place.
struct Move {
  TaskId task;
  Place from;
  Place to;
  Duration lost;  // of its work, at most
};
struct Defrag {
  TaskId task;
  std::vector<Move> moves;
  Place place;
};

using Action = std::variant<Start, Preempt, Promise, Defrag>;

enum class WaitCode : std::uint8_t {
  no_room,              // nothing free holds it
  quota_exceeded,       // see the shortfall
  would_delay,          // starting it would delay the plan of `other`
  behind,               // `other` is before it and wants the same devices
  drains_for,           // the pool is being cleared for `other`, which has waited too long
  held_by_reservation,  // what is free is locked for a reservation
  barred_environment,   // its environment may not use this pool
  backing_off,          // its last start failed; tried again at `at`
  not_due,              // it is to start at `at`, and not before
  victims_leaving,      // its place is being cleared
  moving,               // it makes room for `other`, and its new place is being cleared
  no_reservation,       // the reservation it runs on has not begun, has ended, or is full
  never_fits,           // no device in the pool could hold it
  funds,                // its tenant cannot pay for it now
};
// "quota_exceeded", ...: stable, for scripts.
const char* name_of(WaitCode code) noexcept;

struct Wait {
  WaitCode code = WaitCode::no_room;
  TaskId other;
  ReservationId reservation;
  Instant at;
  Shortfall shortfall;
};
// "would_delay(t7)": the code and whom it concerns.
std::string code_text(const Wait& wait);
// In words, for people.
std::string to_text(const Wait& wait);

}  // namespace loam::schedule
