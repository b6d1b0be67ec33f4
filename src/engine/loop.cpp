#include "engine/loop.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "engine/terms.hpp"

namespace loam::engine {
namespace {

// Reports first, then cancels, then what takes room: an end frees a device before the next start.
struct OrderInBatch {
  int operator()(const ReportStarted&) const { return 0; }
  int operator()(const ReportEnded&) const { return 0; }
  int operator()(const ReportDeviceHealth&) const { return 0; }
  int operator()(const ReportShortfall&) const { return 0; }
  int operator()(const ReportServices&) const { return 0; }
  int operator()(const RecordTokens&) const { return 0; }
  int operator()(const StopTask&) const { return 1; }
  int operator()(const PauseTask&) const { return 1; }
  int operator()(const SubmitTask&) const { return 3; }
  int operator()(const ResumeTask&) const { return 3; }
  int operator()(const SchedulePass&) const { return 4; }
  template <class Other>
  int operator()(const Other&) const {
    return 2;
  }
};
constexpr int last_in_batch = 4;

int order_of(const Command& command) {
  return std::visit(OrderInBatch{}, command);
}

const Actor loop_actor{"loam", "loop"};

constexpr std::size_t passes_in_vain_max = 4;

}  // namespace

Loop::Loop(Clock& clock, Journal& journal, Executor& executor)
    : clock_(clock), journal_(journal), executor_(executor) {}

Result<void> Loop::reload() {
  LOAM_TRY(image, journal_.load_snapshot());
  LOAM_CHECK(check_cards(image));
  State fresh = state_of(std::move(image));
  LOAM_CHECK(journal_.replay(fresh.sequence, [&](const Record& record) -> Result<void> {
    if (record.sequence != fresh.sequence + 1) {
      return Error{ErrorKind::corrupt,
                   "the journal has no record " + std::to_string(fresh.sequence + 1),
                   "restore the newest backup: loam restore FILE"};
    }
    if (const auto* published = std::get_if<RateCardPublished>(&record.event))
      LOAM_CHECK(check_card(published->card));
    if (const auto* created = std::get_if<TenantCreated>(&record.event))
      LOAM_CHECK(check_zone(created->spec));
    if (const auto* changed = std::get_if<TenantChanged>(&record.event))
      LOAM_CHECK(check_zone(changed->spec));
    evolve(fresh, record);
    return {};
  }));
  state_ = std::move(fresh);
  return {};
}

Result<void> Loop::recover() {
  LOAM_CHECK(reload());
  // What was decided before the crash may not have happened: say it all again.
  for (const auto& [id, lease] : state_.leases) {
    if (lease.stopping != StopReason::none) {
      const Duration grace = grace_of(state_.tasks.at(lease.task), lease.stopping);
      executor_.stop(state_, {lease.id, lease.epoch, lease.stopping, grace});
    } else if (!lease.started()) {
      executor_.launch(state_, {lease.id, lease.epoch, lease.task});
    }
  }
  return {};
}

Decision Loop::apply(Instant now, const Command& command, const Actor& actor,
                     const RequestKey& key) {
  Decision decision = decide(state_, now, command, key);
  for (Event& event : decision.events) {
    const Record& record =
        pending_.emplace_back(Record{state_.sequence + 1, now, actor, std::move(event)});
    if (const auto* stop = std::get_if<StopRequested>(&record.event)) {
      const Lease& lease = state_.leases.at(stop->lease);
      const Duration grace = grace_of(state_.tasks.at(lease.task), stop->reason);
      effects_.push_back(StopEffect{lease.id, lease.epoch, stop->reason, grace});
    } else if (const auto* grant = std::get_if<LeaseGranted>(&record.event)) {
      effects_.push_back(LaunchEffect{grant->lease, grant->epoch, grant->task});
    }
    evolve(state_, record);
  }
  return decision;
}

void Loop::run_timers(Instant now) {
  while (!apply(now, TimePassed{}, loop_actor, {}).events.empty()) {
  }
}

// Passes that decide nothing are cut short too: a long queue is gone through in several, with
// what else there is to do between.
void Loop::run_passes(Instant now) {
  for (std::size_t in_vain = 0; in_vain < passes_in_vain_max;) {
    Decision decision = apply(now, SchedulePass{beyond_}, loop_actor, {});
    if (!decision.events.empty()) continue;
    beyond_ = std::move(decision.beyond);
    ++in_vain;
    if (beyond_.empty()) break;
  }
  passed_at_ = now;
}

void Loop::answer(Instant now, Submission& submission) {
  Decision decision = apply(now, submission.command, submission.actor, submission.key);
  // Before what comes next: the device may be back in the same batch, its attempts are not.
  while (!state_.lost_in_use.empty()) apply(now, EndLost{}, loop_actor, {});
  if (submission.reply) {
    answers_.push_back({std::move(submission.reply),
                        {std::move(decision.subject), std::move(decision.reject), std::nullopt}});
  }
}

void Loop::run(std::vector<Submission> batch) {
  const Instant now = std::max(clock_.now(), state_.now);
  pending_.reserve(pending_.size() + 4 * batch.size());
  for (int turn = 0; turn <= last_in_batch; ++turn) {
    for (Submission& submission : batch) {
      if (order_of(submission.command) == turn) answer(now, submission);
    }
  }
  if (!waiting_for_reports_) {
    run_timers(now);
    run_passes(now);
  }
  release();
}

void Loop::release() {
  std::vector<Record> records = std::move(pending_);
  std::vector<Effect> effects = std::move(effects_);
  std::vector<PendingAnswer> answers = std::move(answers_);
  pending_.clear();
  effects_.clear();
  answers_.clear();

  if (!records.empty()) {
    const Result<void> written = journal_.append(records);
    healthy_ = written.ok();
    if (!written) {
      // Nothing of this batch happened: go back to what is durable.
      const Result<void> reloaded = reload();
      LOAM_ASSERT(
          reloaded.ok());  // a journal that can be neither written nor read leaves nothing to serve
      for (PendingAnswer& pending : answers) {
        pending.answer.error = written.error();
        pending.reply(pending.answer);
      }
      return;
    }
    if (listener_) {
      for (const Record& record : records) listener_(record);
    }
  }
  for (const PendingAnswer& pending : answers) pending.reply(pending.answer);
  for (const Effect& effect : effects) {
    if (const auto* launch = std::get_if<LaunchEffect>(&effect)) {
      executor_.launch(state_, *launch);
    } else {
      executor_.stop(state_, std::get<StopEffect>(effect));
    }
  }
}

Instant Loop::next_due() const {
  if (waiting_for_reports_) return Instant::never();
  Instant due = engine::next_due(state_, std::max(clock_.now(), state_.now));
  if (!state_.marked.empty()) due = std::min(due, state_.marked.begin()->first);
  if (!beyond_.empty()) due = std::min(due, state_.now);  // more of the queue is to be looked at
  // Time alone may let something start: a longer wait, the end of a protection or of a pause.
  return std::min(due, state_.scheduler.look_again(std::max(state_.now, passed_at_)));
}

}  // namespace loam::engine
