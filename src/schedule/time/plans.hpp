// Plans: starts in the future that what starts now must not delay. Each has the room as it will be
// then, as far as stated limits tell. EASY plans one task a kind of device: Lifka, "The ANL/IBM SP
// scheduling system", 1995; conservative plans all: Mu'alem & Feitelson, "Utilization,
// predictability, workloads, and user runtime estimates", 2001. Pure.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "domain/ids.hpp"
#include "schedule/order/job.hpp"
#include "schedule/room.hpp"

namespace loam::schedule {

class Plans {
 public:
  using Ends = std::set<std::pair<Instant, TaskId>>;

  // `ends`: when running tasks end, those of which it is known; `standings`: where they are. Both
  // must outlive it. `ends_max`: how many ends a plan looks ahead.
  Plans(const Ends& ends, const Standings& standings, std::size_t ends_max)
      : ends_(ends), standings_(standings), ends_max_(ends_max) {}

  // It is a victim: its place is free already.
  void leaves(TaskId task);
  // What will be taken: by a reservation, or by a task with a fixed place.
  void claim(TaskId task, ReservationId reservation, Instant from, Instant to, Place place,
             bool yields_to_preemptible);
  void unclaim(TaskId task);
  // A reservation in force keeps all of its place until then: what runs on it leaves nothing to
  // others before.
  void keeps(ReservationId reservation, Instant until, const Place& place);

  struct Conflict {
    TaskId task;
    ReservationId reservation;
    Kinds kinds = 0;       // where the other one will be
    bool claimed = false;  // its place is fixed: beside it there may be room
  };
  // Whether the plan of that task is to be kept by the one that asks: its own is not, nor that of
  // one that comes after it.
  using Binds = std::function<bool(TaskId)>;
  // Whether a task at `place` from `now` until `ends` would delay a plan or sit on a claim.
  // `preemptible`: it may use what is reserved, until then. `away`: running tasks that are not in
  // `room`, though they have not ended.
  std::optional<Conflict> conflict(const Place& place, const Room& room, Instant ends,
                                   bool preemptible, const Binds& binds,
                                   const std::set<TaskId>& away = {});
  // The same of the first tasks' plans alone.
  std::optional<Conflict> delays(const Place& place, Instant ends, const Binds& binds);
  // Another place, beside all claims that bind and begin before `ends`.
  std::optional<Place> beside_claims(const Ask& ask, Kinds barred, const Room& room, Instant ends,
                                     bool preemptible, const Binds& binds) const;
  // It starts: plans keep that in mind.
  void starts(TaskId task, const Place& place, Instant ends);

  struct Start {
    Instant at;
    Place place;
  };
  enum class Foresight {
    planned,  // it fits then
    later,    // not before the last end that was looked at: what ends by then delays nothing
    unknown,  // nobody knows when
  };
  // When the task, which does not fit now, fits at the earliest; unless that is unknown, keeps it
  // as a plan (EASY: its place may still change). `start` is set where it is planned.
  Foresight plan_first(TaskId task, const Ask& ask, Kinds kinds, Instant now, const Room& room,
                       std::optional<Start>& start);
  // The same beside what is reserved: its place is fixed then. Where there is none within the
  // bound, `later` or `unknown`.
  Foresight plan_beside(TaskId task, const Ask& ask, Kinds kinds, std::optional<Duration> lasts,
                        Instant now, const Room& room, const Binds& binds,
                        std::optional<Start>& start);
  // Keeps a start with its place, which is fixed.
  void plan_at(TaskId task, const Ask& ask, Kinds kinds, std::optional<Duration> lasts,
               const Start& start);
  // Whether a start that was promised before may still be: by the limits of what runs and by the
  // claims that bind, its place is free for all of its time.
  bool can_keep(const Start& promised, std::optional<Duration> lasts, const Room& room,
                const Binds& binds) const;
  bool any_reserved() const { return any_reserved_; }
  bool any_claims() const { return !claims_.empty(); }
  // When a task would start by its plan; nothing: it has none, or nobody looked so far ahead.
  std::optional<Instant> planned_at(TaskId task) const;

  // A task that would lie elsewhere from now on: it leaves `from` (nullptr: it waits), and is at
  // `to` (empty: nowhere) until `ends`.
  struct Shift {
    TaskId task;
    const Place* from = nullptr;
    const Place* to = nullptr;
    Instant ends;
  };
  // Whether every plan and every claim that binds can still be kept when all these shift at once;
  // what is reserved is then nobody's, preemptible or not. `room`: what is free now. Where nobody
  // looked far enough ahead to tell: false.
  bool allows(const std::vector<Shift>& shifts, const Room& room, const Binds& binds) const;
  // The earliest start that is beside all claims that bind, for a task of length `lasts` (none:
  // unknown). Keeps nothing; claim() does.
  std::optional<Start> earliest(const Ask& ask, Kinds barred, std::optional<Duration> lasts,
                                Instant now, const Room& room, const Binds& binds) const;
  // The kinds for which first tasks that bind have been planned.
  Kinds planned(const Binds& binds) const;
  bool is_planned(TaskId task) const;
  // It is planned no more.
  void forget(TaskId task);

 private:
  struct Running {
    TaskId task;
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
    Place place;
    std::unique_ptr<Room> then;  // none: nobody looked further than `at`
  };

  // What becomes free at one instant.
  struct Freed {
    Instant at;
    std::vector<const Place*> places;
  };
  // From now on, in order, within the bound; `all`: the bound left nothing out.
  std::vector<Freed> freed_from(Instant now, bool& all) const;
  static std::optional<Start> first_fit(const Ask& ask, const std::vector<Freed>& groups,
                                        Room& then);
  static std::optional<Start> first_fit_of_many(const Ask& ask, const std::vector<Freed>& groups,
                                                std::unique_ptr<Room>& then);
  // Calls `each` with the known ends up to `until`, in order, until it gives false.
  void walk_ends(Instant until,
                 const std::function<bool(TaskId, Instant, const Place&)>& each) const;
  bool is_kept(const First& first, const std::vector<Shift>& shifts) const;
  bool is_kept(const Claim& claim, const std::vector<Shift>& shifts, const Room& room,
               const Binds& binds) const;
  // Takes from `room` what is claimed in [from, to).
  void take_claims(Room& room, Instant from, Instant to, bool preemptible,
                   const Binds& binds) const;

  const Ends& ends_;
  const Standings& standings_;
  std::size_t ends_max_;
  std::set<TaskId> gone_;
  std::multimap<Instant, Running> started_;  // in this pass, by end
  std::vector<Claim> claims_;
  bool any_reserved_ = false;
  std::set<ReservationId> in_force_;
  std::vector<First> first_;
};

}  // namespace loam::schedule
