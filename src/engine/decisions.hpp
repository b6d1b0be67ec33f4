// The pieces of decide(), one function a command. Internal to this folder. Pure.
#pragma once

#include "engine/decide.hpp"
#include "engine/terms.hpp"

namespace loam::engine {

// Collects a decision's events and gives out ids for it.
class Draft {
 public:
  Draft(const State& state, Instant now) : state_(state), now_(now), next_(state.next) {}

  const State& state() const { return state_; }
  Instant now() const { return now_; }
  NextIds& next() { return next_; }
  template <class Fact>
  void add(Fact fact) {
    constexpr std::size_t most_commands_give = 4;
    if (decision_.events.empty()) decision_.events.reserve(most_commands_give);
    decision_.events.emplace_back(std::move(fact));
  }
  void subject(std::string text) { decision_.subject = std::move(text); }
  bool empty() const { return decision_.events.empty(); }
  void beyond(std::vector<PassMark> marks) { decision_.beyond = std::move(marks); }

  Decision done() { return std::move(decision_); }
  static Decision rejected(Reject reject) { return {{}, {}, std::move(reject), {}}; }

 private:
  const State& state_;
  Instant now_;
  NextIds next_;
  Decision decision_;
};

// By an operator.
Decision decide_on(const State&, Instant, const AttachNode&);
Decision decide_on(const State&, Instant, const AttachDevice&);
Decision decide_on(const State&, Instant, const ReportDeviceHealth&);
Decision decide_on(const State&, Instant, const DrainDevice&);
Decision decide_on(const State&, Instant, const CreateTenant&);
Decision decide_on(const State&, Instant, const ChangeTenant&);
Decision decide_on(const State&, Instant, const PublishRateCard&);
Decision decide_on(const State&, Instant, const SetScheduling&);
Decision decide_on(const State&, Instant, const TopUp&);
Decision decide_on(const State&, Instant, const PayOut&);
Decision decide_on(const State&, Instant, const ReverseTransaction&);
Decision decide_on(const State&, Instant, const IssueInvoice&);
Decision decide_on(const State&, Instant, const CreditInvoice&);
Decision decide_on(const State&, Instant, const SetBudget&);
Decision decide_on(const State&, Instant, const RemoveBudget&);
Decision decide_on(const State&, Instant, const AnswerBudget&);
Decision decide_on(const State&, Instant, const BuyCommitment&);
Decision decide_on(const State&, Instant, const CancelCommitment&);
Decision decide_on(const State&, Instant, const SetSeller&);
Decision decide_on(const State&, Instant, const MakeReservation&);
Decision decide_on(const State&, Instant, const CancelReservation&);
// By a tenant.
Decision decide_on(const State&, Instant, const SubmitTask&);
Decision decide_on(const State&, Instant, const StopTask&);
Decision decide_on(const State&, Instant, const PauseTask&);
Decision decide_on(const State&, Instant, const ResumeTask&);
// By a node, or the loop itself.
Decision decide_on(const State&, Instant, const ReportStarted&);
Decision decide_on(const State&, Instant, const ReportEnded&);
Decision decide_on(const State&, Instant, const ReportShortfall&);
Decision decide_on(const State&, Instant, const ReportServices&);
Decision decide_on(const State&, Instant, const RecordTokens&);
Decision decide_on(const State&, Instant, const SchedulePass&);
Decision decide_on(const State&, Instant, const TimePassed&);
Decision decide_on(const State&, Instant, const EndLost&);

// How an attempt ended, for end_lease().
struct Ending {
  AttemptEnd end = AttemptEnd::exited;
  Instant started_at = Instant::never();
  Instant ended_at;
  std::int64_t exit_code = 0;
  std::string reason;
  Duration device_time;
  Mebibytes memory_peak;
  bool advisory = false;
  std::optional<std::int64_t> output{};
  ServiceReport services;
};

// Rates what is left, ends the lease, settles the money and says what becomes of the task.
void end_lease(Draft& draft, const Lease& lease, const Ending& ending);

// Rates a started lease up to `to`, forwards or back, and posts the charge or the refund; moves
// `lease` (a copy) and the draft's idea of what is held along. Returns what the hold did not cover,
// which the wallet paid.
Money meter(Draft& draft, Lease& lease, Money& held, Instant to);

// Gives back what a run cost that was cut short, by the rule of its card. Requires that it was
// rated to its end.
void credit_lost_work(Draft& draft, const Lease& lease, LostWorkCause cause);

// What is set aside for a task is free again; nothing where nothing is.
void release_hold(Draft& draft, const Task& task);

// Asks every live attempt that was not asked for this reason already.
void stop_members(Draft& draft, const Task& task, StopReason reason);

// The next step for a task that waits longer than its class promises; true where there is one.
bool tell_late(Draft& draft);
// What time brings to money, one step each; true where the draft has events now.
// Holds of some tasks are raised to what a new card may cost, or their tasks are stopped.
bool review_holds(Draft& draft);
// The price of spot follows supply and demand.
bool move_spot(Draft& draft);
// The next notice of a budget.
bool tell_budget(Draft& draft);
// The next task that a budget ends.
bool end_by_budget(Draft& draft);

}  // namespace loam::engine
