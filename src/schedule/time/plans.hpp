// Plans: starts in the future that what starts now must not delay. Each has the room as it will be
// then, as far as stated limits tell. EASY plans one task a kind of device: Lifka, "The ANL/IBM SP
// scheduling system", 1995; conservative plans all: Mu'alem & Feitelson, "Utilization,
// predictability, workloads, and user runtime estimates", 2001. Pure.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "domain/ids.hpp"
#include "schedule/order/job.hpp"
#include "schedule/room.hpp"

namespace loam::schedule {

class Plans {
 public:
  // What is taken from now until `ends` (never(): nobody knows), by a task that runs.
  void runs(TaskId task, Instant ends, Place place);
  // It is a victim: its place is free already.
  void leaves(TaskId task);
  // What will be taken: by a reservation, or by a task with a fixed place.
  void claim(TaskId task, ReservationId reservation, Instant from, Instant to, Place place,
             bool yields_to_preemptible);
  void unclaim(TaskId task);

  struct Conflict {
    TaskId task;
    ReservationId reservation;
    Kinds kinds = 0;  // where the other one will be
  };
  // Whether a task at `place` from `now` until `ends` would delay a plan or sit on a claim.
  // `preemptible`: it may use what is reserved, until then.
  std::optional<Conflict> conflict(const Place& place, const Room& room, Instant ends,
                                   bool preemptible);
  // Another place, beside all claims that begin before `ends`.
  std::optional<Place> beside_claims(const Ask& ask, Kinds barred, const Room& room, Instant ends,
                                     bool preemptible) const;
  // It starts: plans keep that in mind.
  void starts(TaskId task, const Place& place, Instant ends);

  struct Start {
    Instant at;
    Place place;
  };
  // When the task fits at the earliest, and keeps that as a plan (EASY: its place may still
  // change); nothing: nobody knows when.
  std::optional<Start> plan_first(TaskId task, const Ask& ask, Kinds kinds, Instant now,
                                  const Room& room);
  // The earliest start that is beside all claims, for a task of length `lasts` (negative: unknown).
  // Keeps nothing; claim() does.
  std::optional<Start> earliest(const Ask& ask, Kinds barred, std::optional<Duration> lasts,
                                Instant now, const Room& room) const;
  // The kinds for which a first task has been planned.
  Kinds planned() const;

 private:
  struct Running {
    TaskId task;
    Instant ends;
    Place place;
  };
  struct Claim {
    TaskId task;
    ReservationId reservation;
    Instant from;
    Instant to;
    Place place;
    bool yields = false;
  };
  struct First {
    TaskId task;
    Ask ask;
    Kinds kinds = 0;
    Instant at;
    std::unique_ptr<Room> then;
  };

  std::vector<Running> by_end() const;
  // Takes from `room` what is claimed in [from, to).
  void take_claims(Room& room, Instant from, Instant to, bool preemptible) const;

  std::vector<Running> running_;
  std::vector<Claim> claims_;
  std::vector<First> first_;
};

}  // namespace loam::schedule
