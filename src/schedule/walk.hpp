// Walk: one pass of the scheduler over its lines, on scratch copies of what is free, of quotas and
// of shares. Internal to this folder. Pure.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "schedule/order/rank.hpp"
#include "schedule/preempt/victims.hpp"
#include "schedule/scheduler.hpp"
#include "schedule/time/plans.hpp"

namespace loam::schedule {

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
    LineTasks::const_iterator at;
    const Standing* standing = nullptr;
  };
  struct Later {
    bool operator()(const Turn& a, const Turn& b) const { return b.rank < a.rank; }
  };
  // What became of a turn.
  enum class Outcome { decided, waits };

  bool full() const { return pass_.actions.size() >= limits_.actions_max; }
  Kinds& blocked_for(TaskId task, const Standing& standing, WaitCode code);
  void wait(const Turn& turn, Wait why);
  void decide_start(const Standing& standing, Place place);
  void decide_preempt(const Standing* standing, ReservationId reservation,
                      const std::vector<TaskId>& victims, Place place);

  // Before the queues: reservations that begin, and what is locked.
  void lock();
  void claim_plans(std::uint32_t queue);
  void clear_for(const Reservation& reservation);
  bool is_clearing(const Place& place) const;
  Place left_of(const Reservation& reservation) const;

  // A queue in order, each line until its first task that does not start.
  void walk_queue(std::uint32_t queue);
  std::vector<Turn> turns_of(std::uint32_t queue) const;
  Outcome take_turn(const Turn& turn);
  std::optional<Wait> hindrance(const Turn& turn) const;
  Outcome start_cleared(const Turn& turn);
  Outcome start_reserved(const Turn& turn);
  Outcome start_in_time(const Turn& turn);
  Outcome start_or_plan(const Turn& turn, Kinds wanted);
  void block(const Turn& turn, Kinds wanted);

  // A queue filled anew: in order, with those that run.
  void refill_queue(std::uint32_t queue);

  // Victims for one that does not fit, or whose quota is lent out.
  bool preempt_for(const Turn& turn, bool reclaim);
  std::vector<const Standing*> stoppable_for(const Standing& asker, bool reclaim) const;
  bool may_stop(const Standing& victim, const Standing& asker, bool reclaim) const;
  bool is_safe(const Standing& victim, bool for_overdue) const;

  const Scheduler& scheduler_;
  Instant now_;
  const Room& real_;
  Scheduler::PassLimits limits_;
  Pass pass_;

  std::unique_ptr<Room> room_;
  Quotas quotas_;
  Shares shares_;
  Plans plans_;
  std::set<TaskId> gone_;     // victims decided upon
  std::set<TaskId> started_;  // in this pass
  std::size_t victims_looked_at_ = 0;
  std::size_t planned_ = 0;              // conservative plans
  std::vector<std::int64_t> preempted_;  // by queue, in this pass
  Kinds blocked_ = 0;                    // in the queue being walked
  std::array<Wait, 64> blocked_by_;      // by kind
};

}  // namespace loam::schedule
