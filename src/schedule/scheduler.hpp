// Scheduler: who runs next. Facts keep its tables up to date as they happen; pass() reads them and
// gives decisions as data, which come back as facts once they were carried out. The daemon and the
// simulator drive this same code. It knows capacity only through a Room. Pure.
//
// Tasks that differ in nothing but their arrival stand in one line, and a line is tried once a
// pass: the cost of a pass grows with the number of lines, not of tasks.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/admission/quotas.hpp"
#include "schedule/decision.hpp"
#include "schedule/order/discipline.hpp"
#include "schedule/order/job.hpp"
#include "schedule/order/lengths.hpp"
#include "schedule/order/shares.hpp"
#include "schedule/room.hpp"
#include "schedule/scheduler_image.hpp"

namespace loam::schedule {

struct QueueSpec {
  std::string name;
  Discipline discipline;
  // Queues of a higher rank are tried first; those of one rank in the order of what their running
  // tasks hold, over the weight.
  std::int64_t rank = 0;
  std::int64_t weight = 1;
  std::set<std::string> barred_environments;  // whose tasks never start from this queue
};

// How many running tasks may be moved to make room for waiting ones of a higher level.
struct DefragRules {
  std::int64_t moves_per_hour = 0;                 // 0: nobody is moved
  std::size_t moves_at_once = 2;                   // for one start
  Duration lost_work_max = Duration::minutes(10);  // of one task, by one move
};

struct Reservation {
  ReservationId id;
  TenantId tenant;
  Instant from;
  Instant to;
  Place place;
  // Before `from`, so that whoever is on it may save.
  Duration notice = spot_notice;
};

// Where equal tasks stand: everything that decides about one but its arrival and id.
struct Line {
  std::uint32_t queue = 0;
  std::int64_t level = 0;
  TenantId tenant;
  std::string project;
  std::string environment;
  std::size_t ask = 0;  // number of the request, as interned
  Amounts takes;
  std::int64_t milli = 0;
  std::optional<Duration> limit;
  std::optional<Duration> length;
  Duration served;
  Duration on_devices;
  bool preemptible = false;
  ReservationId reservation;
  Instant not_before;
  TaskId alone;  // a task that has a plan stands by itself

  friend auto operator<=>(const Line&, const Line&) = default;
};
using LineTasks = std::set<std::pair<Instant, TaskId>>;  // by arrival
using Lines = std::map<Line, LineTasks>;

// What a task is tried after: smaller is first. Doubles are preferences here; ties are broken by
// arrival, then by id.
enum class Tier : std::uint8_t {
  place_cleared,  // victims left, or are leaving, for it
  promised,       // it has a planned start
  overdue,        // it has waited too long
  in_order,
};
struct Rank {
  Tier tier = Tier::in_order;
  double key = 0;
  double second_key = 0;
  Instant arrival;
  TaskId id;

  friend auto operator<=>(const Rank&, const Rank&) = default;
};

struct Pass {
  std::vector<Action> actions;  // in order; each takes the ones before for granted
  // Promises that are off, before all actions: another that goes before has the plan now.
  std::vector<TaskId> dropped;
  // By queue, where the bounded pass went no further: PassLimits::beyond of the next one.
  std::map<std::uint32_t, Rank> next;
  // Why the lines that were tried wait: one entry a line, for its first task and those behind it.
  std::vector<std::pair<const Line*, Wait>> waits;  // live until the next fact
};

class Scheduler {
 public:
  Scheduler() = default;
  // Not copied: indexes point into the tables beside them.
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  Scheduler(Scheduler&&) = default;
  Scheduler& operator=(Scheduler&&) = default;

  // --- Settings ---------------------------------------------------------------------------------

  // Queues are numbered from 0 as they come; a number that exists has its spec replaced, its tasks
  // stay. Requires a number of at most the count.
  void set_queue(std::uint32_t number, QueueSpec spec);
  // Bit b of the a-th: queues a and b have devices or nodes in common. Empty: all have.
  void set_sharing(std::vector<std::uint64_t> sharing) { sharing_ = std::move(sharing); }
  bool share_devices(std::uint32_t a, std::uint32_t b) const {
    return a >= sharing_.size() || (sharing_[a] >> b & 1) != 0;
  }
  void set_defrag(const DefragRules& rules) { defrag_ = rules; }
  const DefragRules& defrag() const { return defrag_; }
  Quotas& quotas() { return quotas_; }
  const Quotas& quotas() const { return quotas_; }
  Shares& shares() { return shares_; }
  const Shares& shares() const { return shares_; }
  // Requires a place whose devices no other reservation holds in that time: see reservable().
  void reserve(Reservation reservation);
  void unreserve(ReservationId id);

  // --- Facts, in the order of time
  // ----------------------------------------------------------------

  // A task came. Requires a queue that exists, a new id, and a valid request. O(log tasks).
  void arrives(Job job, Instant now);
  // It starts; `owed`: until it does useful work.
  void starts(TaskId task, Instant now, Place place, Duration owed = {});
  // A running task is sold as spot, though it may not have asked for it: others may displace it. Or
  // it is so no more.
  void is_sold_as_spot(TaskId task, bool spot);
  // It does useful work since `at`: what it owed is known now.
  void is_up(TaskId task, Instant at);
  // Members of a gang ended before the others: it holds no more than `left`.
  void shrinks(TaskId task, Place left);
  // It wrote a checkpoint.
  void saves(TaskId task, Instant now);
  // It was asked to stop and will have left by then.
  void is_stopping(TaskId task, Instant by);
  // It saved, stopped for others and waits again. `kept`: its useful time, where it is known better
  // than by the clock. O(log tasks).
  void is_preempted(TaskId task, Instant now, std::optional<Duration> kept = std::nullopt);
  // A running task is to make room for `asker` and to go on at `to`, which is locked from now on;
  // it is asked to leave, too. Counts as a move.
  void is_moving(TaskId task, Instant now, TaskId asker, Place to);
  // Such a one saved and stopped, and goes on at its new place once that is clear; as any other
  // that waits where forget_move() came before. No preemption. `kept` as above.
  void is_moved(TaskId task, Instant now, std::optional<Duration> kept = std::nullopt);
  // The place that it was to have is lost.
  void forget_move(TaskId task) { moves_.erase(task); }
  // Its attempt ended without its doing: device lost, paused and resumed. `kept`: what it keeps of
  // the useful time.
  void comes_back(TaskId task, Instant now, Duration kept);
  // A start failed: it waits again and is not tried for 2^failures × 5 s, at most 10 minutes.
  void fails_to_start(TaskId task, Instant now);
  // It leaves for good; `completed`: its length is learned from. Waiting or running.
  void leaves(TaskId task, Instant now, bool completed);
  // It was promised this start. Keeps it before all others without one. `leaving`: its place is
  // locked from now on, since victims are leaving it.
  void is_promised(TaskId task, Instant now, Promise promise, bool leaving);
  // The promise is off: its place was lost, or those who were to leave did not.
  void forget_promise(TaskId task);
  // Lets priorities follow the time; at least before each pass. O(started tasks) every 5 minutes.
  void tick(Instant now);

  // --- Decisions
  // ----------------------------------------------------------------------------------

  // Bounds on the work of one pass: none by default. What a bound leaves out waits for a later
  // pass; a plan is never delayed for that.
  struct PassLimits {
    static constexpr std::size_t no_bound = static_cast<std::size_t>(-1);

    std::size_t actions_max = no_bound;
    bool reasons = true;   // fill Pass::waits
    bool promises = true;  // give a Promise where a plan is new or earlier
    // Lines of a queue, from the first in order, that are looked at without anything coming of it.
    std::size_t turns_max = no_bound;
    // By queue, further ones from this rank on, so that in later passes those behind have their
    // turn too: Pass::next says where to go on. Only where the order does not change with time
    // alone.
    std::size_t turns_beyond = 0;
    std::map<std::uint32_t, Rank> beyond;
    // Ends of running tasks that a plan looks ahead, and running tasks that are looked at as
    // victims, over all who ask.
    std::size_t ends_max = no_bound;
    std::size_t victims_max = 100'000;
    std::size_t victim_tries_max = 1'000;  // sets of victims that are tried for one
    // Waiting tasks for which others might be moved, running tasks that are looked at for that, and
    // sets of them that are tried, over all who ask. Without tries nobody is moved.
    std::size_t move_askers_max = 16;
    std::size_t movers_max = 100'000;
    std::size_t move_tries_max = 1'000;
    // Tasks that are left out, such as one whose tenant cannot pay now.
    const std::set<TaskId>* left_out = nullptr;
    // And those for which nobody is moved.
    const std::set<TaskId>* nobody_moves_for = nullptr;
  };
  // What to do at `now`, given what is free. Requires `now` not before the last fact.
  // O(lines looked at · (log lines + Room::find)).
  Pass pass(Instant now, const Room& room, const PassLimits& limits) const;
  Pass pass(Instant now, const Room& room) const { return pass(now, room, PassLimits{}); }

  // Why a task waits, from a pass with reasons; nothing where it does not wait or was decided upon.
  std::optional<Wait> explain(const Pass& pass, TaskId task) const;
  // When to pass again should nothing happen before; never() where time alone changes nothing.
  Instant look_again(Instant last_event) const;
  // A place that is free from `from` to `to`, given the limits of what runs, what was promised and
  // the other reservations; nothing where there is none, or something without limit may still be
  // there. `but`: a reservation that is to move, and keeps nothing. O(running).
  std::optional<Place> reservable(const Ask& ask, Instant now, Instant from, Instant to,
                                  const Room& room, ReservationId but = {}) const;

  // What it knows besides its settings, and the same again in a scheduler that has the same
  // settings and no tasks yet.
  SchedulerImage image() const;
  void restore(SchedulerImage image);

  // --- Views
  // --------------------------------------------------------------------------------------

  const Standings& standings() const { return standings_; }
  const Standing& standing(TaskId task) const { return standings_.at(task); }
  const Lines& lines() const { return lines_; }
  const std::vector<QueueSpec>& queues() const { return queues_; }
  const std::map<ReservationId, Reservation>& reservations() const { return reservations_; }
  const Lengths& lengths(std::uint32_t queue) const { return learned_.at(queue).lengths; }
  std::size_t waiting() const { return standings_.size() - running_.size(); }
  const std::set<TaskId>& running() const { return running_; }
  // Running tasks with a known end, by that; by level and by tenant; and those asked to leave.
  const std::set<std::pair<Instant, TaskId>>& ends() const { return ends_; }
  const std::map<std::int64_t, std::set<TaskId>>& running_by_level() const { return by_level_; }
  const std::map<TenantId, std::set<TaskId>>& running_by_tenant() const { return by_tenant_; }
  const std::set<TaskId>& stopping() const { return stopping_; }
  // Those that others may displace at any time.
  const std::set<TaskId>& running_preemptible() const { return preemptible_; }
  // Milli-device that a queue's running tasks hold.
  std::int64_t held_milli(std::uint32_t queue) const { return held_milli_.at(queue); }
  // The lines of a queue whose order time alone does not change; nullptr: it does.
  using InOrder = std::map<Rank, const Lines::value_type*>;
  const InOrder* in_order(std::uint32_t queue) const;
  const Ask& ask(std::size_t number) const { return *asks_.at(number); }
  struct Plan {
    Promise promise;
    bool leaving = false;
    TaskId moved_for;  // it made room for that one, and goes on there
  };
  const std::map<TaskId, Plan>& plans() const { return plans_; }
  // Running tasks that leave for another and have a new place.
  struct Moving {
    TaskId asker;
    Place to;
  };
  const std::map<TaskId, Moving>& moves() const { return moves_; }
  // How many more tasks may be moved now, and whether this one was within the last hour: once is
  // enough.
  std::int64_t moves_left(Instant now) const;
  bool was_moved(TaskId task, Instant now) const;
  // Where a waiting task stands; nullptr for another.
  const Line* line(TaskId task) const;
  std::int64_t preemptions(std::uint32_t queue) const { return learned_.at(queue).preemptions; }
  std::int64_t arrivals(std::uint32_t queue) const { return learned_.at(queue).arrivals; }

  // Waiting so long that all others come after it.
  bool is_overdue(const Standing& standing, Instant now) const;

 private:
  struct Learned {
    Lengths lengths{Lengths::trust_blind};
    Instant learned_at{std::numeric_limits<std::int64_t>::min() / 2};
    bool stale = false;  // a task ended since
    std::int64_t arrivals = 0;
    std::int64_t preemptions = 0;
  };

  void note_order(const Lines::value_type& line);
  void forget_order(const Lines::value_type& line);
  void note_running(const Standing& standing);
  void forget_running(const Standing& standing);
  Line line_of(const Standing& standing);
  void enqueue(Standing& standing);
  void dequeue(const Standing& standing);
  void stop_running(Standing& standing, Instant now, Duration served);
  void learn(std::uint32_t queue, Instant now);
  std::size_t intern(const Ask& ask);

  std::vector<QueueSpec> queues_;
  std::vector<std::uint64_t> sharing_;  // by queue
  std::vector<Learned> learned_;        // by queue
  Quotas quotas_;
  Shares shares_;
  Standings standings_;
  std::map<TaskId, const Line*> line_of_task_;  // of waiting tasks
  Lines lines_;
  std::vector<InOrder> in_order_;  // by queue
  std::set<TaskId> running_;
  std::set<std::pair<Instant, TaskId>> ends_;
  std::map<std::int64_t, std::set<TaskId>> by_level_;
  std::map<TenantId, std::set<TaskId>> by_tenant_;
  std::set<TaskId> stopping_;
  std::set<TaskId> preemptible_;
  std::vector<std::int64_t> held_milli_;              // by queue
  std::set<std::pair<Instant, TaskId>> backing_off_;  // waiting tasks that are not tried until then
  std::set<TaskId> served_;  // tasks that have run, waiting or running: what is learned from
  std::map<Ask, std::size_t> ask_numbers_;
  std::vector<const Ask*> asks_;
  std::map<TaskId, Plan> plans_;
  DefragRules defrag_;
  std::map<TaskId, Moving> moves_;
  std::vector<std::pair<Instant, TaskId>> moved_;  // within an hour, in order
  std::map<ReservationId, Reservation> reservations_;
};

}  // namespace loam::schedule
