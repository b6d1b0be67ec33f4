// The one loop of the daemon and the simulator: take a batch of commands, stamp the time, decide
// and evolve each in turn, append the batch's events, and only when they are durable release
// answers and effects. Single-threaded; the owner feeds it. Pure apart from its ports.
#pragma once

#include <functional>
#include <vector>

#include "engine/decide.hpp"
#include "engine/ports.hpp"

namespace loam::engine {

// What the sender of a command is told, once it is durable.
struct Answer {
  std::string subject;
  std::optional<Reject> reject;
  std::optional<Error> error;  // the journal could not take it: nothing happened, try again
  bool ok() const { return !reject && !error; }
};

struct Submission {
  Command command;
  Actor actor;
  RequestKey key;
  std::function<void(const Answer&)> reply;  // may be empty
};

class Loop {
 public:
  Loop(Clock& clock, Journal& journal, Executor& executor);

  // Loads snapshot and journal, then repeats the effects of everything still alive. Call once,
  // before anything else.
  Result<void> recover();

  // Handles the batch (reports, then cancels, then other commands, in order within a class), then
  // due timers and scheduling passes; appends once; releases answers and effects. On a failed
  // append: the state is reloaded, every answer of the batch carries the error, no effect
  // happens, and healthy() is false until an append succeeds.
  void run(std::vector<Submission> batch);

  // Instant at which run() must be called even without a command; never() when there is none.
  Instant next_due() const;

  // While waiting, due timers and scheduling passes are put off: after a restart, what nodes have
  // to report of the time between must come first, or time would be billed that was not run.
  void wait_for_reports(bool waiting) { waiting_for_reports_ = waiting; }

  bool healthy() const { return healthy_; }
  const State& state() const { return state_; }
  // Called for every durable record, after the append and before the answers.
  void on_record(std::function<void(const Record&)> listener) { listener_ = std::move(listener); }

 private:
  struct PendingAnswer {
    std::function<void(const Answer&)> reply;
    Answer answer;
  };

  using Effect = std::variant<LaunchEffect, StopEffect>;

  Result<void> reload();
  // Decides one command, applies its events to the state and keeps them, with their effects, for
  // release().
  Decision apply(Instant now, const Command& command, const Actor& actor, const RequestKey& key);
  void answer(Instant now, Submission& submission);
  void run_timers(Instant now);
  void run_passes(Instant now);
  void release();

  Clock& clock_;
  Journal& journal_;
  Executor& executor_;
  State state_;
  std::vector<PassMark> beyond_;  // where the last scheduling pass was cut short
  Instant passed_at_;             // the last one that came to an end
  std::vector<Record> pending_;
  std::vector<Effect> effects_;
  std::vector<PendingAnswer> answers_;
  std::function<void(const Record&)> listener_;
  bool healthy_ = true;
  bool waiting_for_reports_ = false;
};

}  // namespace loam::engine
