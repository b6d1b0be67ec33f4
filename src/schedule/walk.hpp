// Walk: one pass of the scheduler over its lines, on scratch copies of what is free, of quotas and
// of shares. Internal to this folder. Pure.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "schedule/defrag/defrag.hpp"
#include "schedule/order/rank.hpp"
#include "schedule/preempt/victims.hpp"
#include "schedule/scheduler.hpp"
#include "schedule/time/plans.hpp"

namespace loam::schedule {

// When a task that starts now would end: the rest of its limit, and what it owes before it goes on.
Instant ends_if_started(const Standing& standing, Instant now);
// Likewise of one that runs and goes on elsewhere from `at` on.
Instant ends_if_moved(const Standing& standing, Instant at);
// For how long it would run; nothing: nobody knows.
std::optional<Duration> lasts_if_started(const Standing& standing, Instant now);
// Why the one that met the conflict waits: for whom the place is kept.
Wait kept_for(const Plans::Conflict& conflict);

class Walk {
 public:
  Walk(const Scheduler& scheduler, Instant now, const Room& room,
       const Scheduler::PassLimits& limits);

  Pass run();

 private:
  // The first task of a line, or a running task, and its rank when it was last looked at.
  struct Turn {
    Rank rank;
    const Line* line = nullptr;
    const LineTasks* tasks = nullptr;
    LineTasks::const_iterator at;
    const Standing* standing = nullptr;
  };
  struct Later {
    bool operator()(const Turn& a, const Turn& b) const { return b.rank < a.rank; }
  };
  // What became of a turn.
  enum class Outcome { decided, waits };

  // What is known of a request within a pass.
  struct AskFacts {
    std::optional<Kinds> kinds;
    std::optional<Kinds> no_room_beside;  // fits nowhere beside these kinds, till more is free
  };

  AskFacts& facts_of(const Turn& turn) { return asks_[turn.line->ask]; }
  Kinds kinds_for(const Turn& turn);
  std::optional<Place> find_for(const Turn& turn, Kinds barred);
  void free_up(const Place& place);
  bool full() const { return pass_.actions.size() >= limits_.actions_max; }
  void wait(const Turn& turn, Wait why);
  void drop_promise(TaskId task);
  void decide_start(const Standing& standing, Place place);
  void decide_preempt(const Standing* standing, ReservationId reservation,
                      const std::vector<TaskId>& victims, Place place);

  // Before the queues: reservations that begin, and what is locked.
  void lock();
  // What was promised, before any queue is walked.
  void keep_promises();
  void keep_claims(std::uint32_t queue);
  Turn planned_turn(TaskId task) const;
  const Promise& promise_of(TaskId task) const;
  void claim_as_promised(const Turn& turn);
  void keep_plan(const Turn& turn);
  void drop_provisional(std::uint32_t queue);
  // Whether the plan of `planned` is to be kept by the one in turn.
  bool binds(TaskId planned, const Turn& turn) const;
  Plans::Binds binding(const Turn& turn) const {
    return [this, &turn](TaskId planned) { return binds(planned, turn); };
  }
  void clear_for(const Reservation& reservation);
  bool sits_on(const Standing& standing, const Reservation& reservation, const Place& left) const;
  bool is_clearing(const Place& place) const;
  Place left_of(const Reservation& reservation) const;
  bool sits_on_reserved(const Standing& standing, const Place& place);

  // A queue in order, each line until its first task that does not start.
  void walk_queue(std::uint32_t queue);
  void walk_in_order(std::uint32_t queue, const Scheduler::InOrder& lines);
  void walk_by_rank(std::uint32_t queue);
  std::vector<Turn> turns_of(std::uint32_t queue) const;
  Turn turn_of(const Lines::value_type& line) const;
  bool advance(Turn& turn) const;
  Outcome take_turn(const Turn& turn);
  std::optional<Wait> hindrance(const Turn& turn) const;
  // Of a waiting one, whether victims left or are leaving for it.
  bool has_place_cleared(const Turn& turn) const;
  Outcome start_cleared(const Turn& turn);
  Outcome start_reserved(const Turn& turn);
  std::optional<Place> find_reserved(const Ask& ask, const Reservation& reservation,
                                     Place left) const;
  std::optional<Plans::Start> due_start(const Turn& turn) const;
  Outcome start_in_time(const Turn& turn);
  Wait why_not_now(const Turn& turn);
  Outcome start_or_plan(const Turn& turn, Kinds wanted);
  void block(const Turn& turn, Kinds wanted);
  bool plan(const Turn& turn, Kinds wanted);
  bool plans_are_fixed() const { return any_conservative_ || plans_.any_reserved(); }
  Plans::Foresight plan_first(const Turn& turn, Kinds wanted, std::optional<Plans::Start>& start);

  // A queue filled anew: in order, with those that run.
  std::optional<Place> find_in_time(const Turn& turn, const Room& room,
                                    const std::set<TaskId>& away, Wait& why);
  struct Refill {
    std::unique_ptr<Room> empty;  // without the queue's running tasks, then with those that belong
    std::unique_ptr<Room> then;   // once those have left who are leaving
    std::set<TaskId> away_from_empty;  // running, but not in it
    std::set<TaskId> away_from_then;
    Quotas quotas;  // as in `empty`
    std::vector<Turn> running;
    std::vector<Turn> chosen;              // of the waiting
    std::vector<const Standing*> victims;  // running, and no longer among those that belong
  };
  void refill_queue(std::uint32_t queue);
  void choose(std::uint32_t queue, Refill& refill);
  void replace(Refill& refill);
  bool clear_by_refill(const Turn& turn, Place place, std::vector<const Standing*>& victims);

  // For one that does not fit: victims now, or moves of others once nothing else is decided.
  bool make_room(const Turn& turn);
  struct Asker {
    Turn turn;
    Kinds barred = 0;
  };
  void note_asker(const Turn& turn);
  void lock_moves();
  void defrag();
  bool may_move(const Standing& standing) const;
  std::vector<Movable> movable_tasks() const;
  std::optional<Defrag> moves_for(const Asker& asker, const std::vector<Movable>& movable,
                                  std::size_t& tries) const;
  Duration wait_without_moves(const Asker& asker) const;

  // Victims for one that does not fit, or whose quota is lent out.
  bool preempt_for(const Turn& turn, bool reclaim);
  std::optional<Place> place_without(const Standing& asker,
                                     const std::vector<const Standing*>& victims,
                                     const std::vector<std::size_t>& chosen) const;
  bool keeps_promises(const Turn& turn, const std::vector<const Standing*>& victims,
                      const std::vector<std::size_t>& chosen, const Place& place) const;
  std::vector<const Standing*> stoppable_for(const Standing& asker, bool reclaim) const;
  void rank_by_urgency(std::vector<const Standing*>& victims) const;
  std::optional<std::vector<std::size_t>> choose_victims(
      const Standing& asker, const std::vector<const Standing*>& victims, bool reclaim,
      bool by_urgency);
  bool may_stop(const Standing& victim, const Standing& asker, bool reclaim) const;
  bool is_safe(const Standing& victim, bool for_overdue) const;
  bool spares_cohort(const Job& asker) const;

  const Scheduler& scheduler_;
  Instant now_;
  const Room& real_;
  Scheduler::PassLimits limits_;
  Pass pass_;

  std::unique_ptr<Room> room_;
  std::map<std::size_t, AskFacts> asks_;  // by number
  Quotas quotas_;
  Shares shares_;
  Plans plans_;
  std::set<TaskId> gone_;     // victims decided upon
  std::set<TaskId> started_;  // in this pass
  mutable std::size_t victims_looked_at_ = 0;
  bool any_conservative_ = false;        // a queue beside others
  std::size_t planned_ = 0;              // conservative plans
  std::set<TaskId> in_time_;             // those of before that can be kept
  std::set<TaskId> provisional_;         // kept until their own queue is walked
  std::vector<std::int64_t> preempted_;  // by queue, in this pass
  std::vector<Asker> askers_;            // that nothing else let start
  Kinds blocked_ = 0;                    // in the queue being walked
  std::array<Wait, 64> blocked_by_;      // by kind
};

}  // namespace loam::schedule
