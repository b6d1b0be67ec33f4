// Decisions on leases: placement, what nodes report of attempts, what the clock brings.
#include <algorithm>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "engine/decisions.hpp"
#include "engine/expiry.hpp"
#include "engine/moves.hpp"
#include "engine/queries.hpp"
#include "engine/reservation_terms.hpp"
#include "engine/service_books.hpp"
#include "engine/start_times.hpp"
#include "schedule/segments.hpp"

namespace loam::engine {
namespace {

constexpr std::size_t requests_forgotten_at_once = 1000;  // keeps the command below 2 ms
constexpr std::size_t requests_max = 1'000'000;           // keys remembered even within their day

// The lease that a report speaks of; nullptr when it is over or of another epoch.
const Lease* fenced(const State& state, LeaseId id, Epoch epoch) {
  const Lease* lease = state.find_lease(id);
  return lease != nullptr && lease->epoch == epoch ? lease : nullptr;
}

Decision stale(LeaseId id) {
  return Draft::rejected({RejectCode::stale_epoch, "the lease " + id.text() + " is over", {}});
}

Instant run_limit_at(const Task& task, Instant started_at) {
  return started_at + (task.spec->limit - task.run_time);
}

// When the piece is done that it stands in; its limit ends the last.
Instant segment_ends_at(const Task& task, Instant started_at) {
  const TaskSpec& spec = *task.spec;
  if (spec.segments == 1 || task.run_time >= spec.limit) return run_limit_at(task, started_at);
  const Duration longest{(spec.limit.ms + spec.segments - 1) / spec.segments};
  const schedule::Piece piece =
      schedule::piece_at(schedule::cut(spec.limit, longest), task.run_time);
  return started_at + (piece.end - task.run_time);
}

// `until`: it has to have ended by then, whatever its limit.
AttemptStarted started_event(const Lease& lease, const Task& task, Instant started_at,
                             bool advisory, Instant until) {
  AttemptStarted event;
  event.lease = lease.id;
  event.started_at = started_at;
  event.stop_at = std::min(segment_ends_at(task, started_at), until);
  event.isolation = advisory ? Isolation::advisory : lease.isolation;
  return event;
}

constexpr const char* limit_words = "reached its time limit";

AttemptVerdict verdict_on(const State& state, const Lease& lease, const Ending& ending) {
  // What ended before its segment did was not ended by that, though it was told later.
  const bool by_itself = lease.stopping == StopReason::segment && ending.ended_at < lease.stop_at;
  const StopReason stopping = by_itself ? StopReason::none : lease.stopping;
  const auto verdict = [&](TaskOutcome outcome, std::string reason) {
    return AttemptVerdict{outcome, stopping, ending.exit_code, std::move(reason)};
  };
  // What was asked to stop before a node tried it is stopped, whatever the node says.
  if (ending.end == AttemptEnd::refused && stopping == StopReason::none)
    return verdict(TaskOutcome::refused, ending.reason);
  if (ending.end == AttemptEnd::unable && stopping == StopReason::none)
    return verdict(TaskOutcome::unable, ending.reason);
  switch (stopping) {
    case StopReason::by_tenant:
      return verdict(TaskOutcome::stopped, "stopped by its tenant");
    case StopReason::limit:
      return verdict(TaskOutcome::limit_reached, limit_words);
    case StopReason::funds:
      return verdict(TaskOutcome::stopped, "the wallet was used up");
    case StopReason::preempted:
      return verdict(TaskOutcome::stopped, "preempted");
    case StopReason::moved:
      return verdict(TaskOutcome::stopped, move_words(state, lease.task));
    case StopReason::segment:
      return verdict(TaskOutcome::stopped, "a segment of it is done");
    case StopReason::resold:
      return verdict(TaskOutcome::stopped, "it goes on by another purchase model");
    case StopReason::gang:
      return verdict(TaskOutcome::stopped, "another member of its gang ended");
    case StopReason::budget:
      return verdict(TaskOutcome::stopped, "its budget was used up");
    case StopReason::none:
    case StopReason::paused:
    case StopReason::device_lost:
      break;
  }
  if (ending.end == AttemptEnd::lost) return verdict(TaskOutcome::device_lost, ending.reason);
  if (ending.end == AttemptEnd::limit) return verdict(TaskOutcome::limit_reached, limit_words);
  if (ending.exit_code == 0) return verdict(TaskOutcome::succeeded, {});
  return verdict(TaskOutcome::failed, ending.reason);
}

// Whether what ran of a member is lost with a device: its own, or that of another of its gang.
bool ends_by_loss(const Task& task, const AttemptVerdict& verdict) {
  const auto lost = [](const AttemptVerdict& of) { return of.outcome == TaskOutcome::device_lost; };
  return lost(verdict) || (verdict.stopping == StopReason::gang && lost(task.verdict));
}

// A start that a node is not able to make is tried so often, further and further apart, before the
// task is given up: with waits of 5 s to 10 minutes that is a good hour.
constexpr std::int64_t failures_max = 12;

// Why a task comes back after an end of this kind; nothing: it does not.
std::optional<RequeueCause> comes_back(const Task& task, const AttemptVerdict& verdict) {
  if (verdict.stopping == StopReason::preempted) return RequeueCause::preempted;
  if (verdict.stopping == StopReason::moved) return RequeueCause::moved;
  if (verdict.stopping == StopReason::segment) return RequeueCause::segment;
  if (verdict.stopping == StopReason::resold) return RequeueCause::resold;
  if (verdict.stopping != StopReason::none) return std::nullopt;
  if (verdict.outcome == TaskOutcome::unable && task.failures < failures_max)
    return RequeueCause::unable;
  if (verdict.outcome == TaskOutcome::device_lost && task.losses < task.spec->restarts_max)
    return RequeueCause::lost;
  return std::nullopt;
}

// What becomes of a task whose last live attempt has ended: `run_time` is that of all its rounds,
// `held` what is still set aside, `use` what the attempt used of its compute.
void settle_task(Draft& draft, const Task& task, AttemptVerdict verdict, Duration run_time,
                 Money held, const std::optional<RunUse>& use) {
  // With its limit used up a task has no run time left to come back for.
  const bool used_up = run_time >= task.spec->limit;
  const std::optional<RequeueCause> cause = comes_back(task, verdict);
  if (!used_up && cause) {
    std::optional<PurchaseModel> other;
    if (*cause == RequeueCause::resold) other = turned(*task.spec);
    draft.add(TaskRequeued{task.id, *cause, std::move(verdict.reason), other});
    return;
  }
  if (!held.is_zero()) {
    draft.add(TransactionPosted{
        billing::release(TransactionId{draft.next().transaction++}, task.tenant, task.id, held)});
  }
  const bool paused = verdict.stopping == StopReason::paused;
  if (paused && !used_up) {
    draft.add(TaskPaused{task.id});
    return;
  }
  const bool lost =
      verdict.outcome == TaskOutcome::device_lost && verdict.stopping == StopReason::none;
  if (used_up && (lost || paused || (cause && *cause != RequeueCause::unable))) {
    verdict.outcome = TaskOutcome::limit_reached;
    verdict.reason = limit_words;
  }
  const bool by_itself =
      verdict.outcome != TaskOutcome::stopped && verdict.outcome != TaskOutcome::refused;
  if (const std::string none = by_itself ? accept_next(draft, task, held, use) : ""; !none.empty())
    verdict.reason += (verdict.reason.empty() ? "recurs no more: " : "; recurs no more: ") + none;
  draft.add(TaskFinished{task.id, verdict.outcome, verdict.exit_code, std::move(verdict.reason)});
}

}  // namespace

namespace {

// Adds usage records, which the lease has moved past, to the draft and posts what they come to,
// with tax.
Money book(Draft& draft, const Lease& lease, Money& held, std::vector<UsageRecord> records) {
  const Currency currency = draft.state().tenant(lease.tenant).spec.currency;
  Money charged = Money::zero(currency);
  Money tax = Money::zero(currency);
  for (UsageRecord& record : records) {
    record.id = UsageId{draft.next().usage++};
    charged += record.net;
    tax += billing::tax_on(draft.state().card(record.card).terms(), record.net);
    draft.add(UsageRated{std::move(record)});
  }
  const Money whole = charged + tax;
  if (whole.is_zero()) return whole;
  const TransactionId id{draft.next().transaction++};
  if (whole.is_negative()) {
    draft.add(TransactionPosted{billing::refund(id, lease.tenant, lease.task, -charged, -tax)});
    return Money::zero(currency);
  }
  draft.add(TransactionPosted{billing::charge(id, lease.tenant, lease.task, charged, tax, held)});
  const Money covered = std::min(whole, held);
  held -= covered;
  return whole - covered;
}

// A node that was not able to make so many starts in a row is left alone for 5 minutes, and twice
// as long each time it then fails again, up to 40.
constexpr std::int64_t node_failures_max = 3;
constexpr Duration mark_first = Duration::minutes(5);
constexpr std::int64_t mark_doublings_max = 3;

void mark_node(Draft& draft, const Lease& lease, const std::string& reason) {
  const State& state = draft.state();
  const Node& node = state.node(state.device(lease.slices.front().device).node);
  const std::int64_t beyond = node.failures + 1 - node_failures_max;
  if (beyond < 0 || node.marked()) return;
  const std::int64_t times = std::int64_t{1} << std::min(beyond, mark_doublings_max);
  draft.add(NodeMarked{node.id, draft.now() + mark_first * times, reason});
}

}  // namespace

Money meter(Draft& draft, Lease& lease, Money& held, Instant to) {
  const State& state = draft.state();
  const Tenant& tenant = state.tenant(lease.tenant);
  const billing::Payer payer = payer_of(tenant);
  const billing::Terms terms = billing::terms_of(*state.tasks.at(lease.task).spec, lease);
  const bool back = to < lease.billed_until;
  std::vector<UsageRecord> records;
  std::optional<billing::TierCounters> moved;  // where a month was passed
  // Piece by piece: a record lies in one month.
  while (true) {
    const Instant begin = back ? month_before(state, tenant.id, lease.billed_until) : Instant{};
    const Instant end = month_end(state, tenant.id, back ? begin : lease.billed_until);
    const Instant until = back ? std::max(to, begin) : std::min(to, end);
    const billing::TierCounters& tiers = moved ? *moved : state.tiers_of(tenant.id);
    std::vector<UsageRecord> piece =
        back ? billing::rate_back(lease, terms, payer, state.rates, tiers, until)
             : billing::rate_until(lease, terms, payer, state.rates, tiers, until);
    if (until != to && !moved) moved = tiers;
    for (UsageRecord& record : piece) {
      record.month_end = end;
      billing::advance(lease, record);
      if (moved) billing::count(*moved, record);
      records.push_back(std::move(record));
    }
    if (until == to) return book(draft, lease, held, std::move(records));
  }
}

namespace {

// What an interrupted piece of spot costs is the card's rule.
void give_back_interrupted(Draft& draft, Lease& lease, Money& held) {
  const State& state = draft.state();
  const billing::Terms terms = billing::terms_of(*state.tasks.at(lease.task).spec, lease);
  std::vector<UsageRecord> records = billing::give_back_interrupted(
      lease, terms, payer_of(state.tenant(lease.tenant)), state.rates);
  for (UsageRecord& record : records) {
    record.month_end = month_end(state, lease.tenant, lease.billed_until - Duration{1});
    billing::advance(lease, record);
  }
  book(draft, lease, held, std::move(records));
}

// Prices published since the hold was made may have outgrown it: sets more aside while there is
// some, else has the attempt stopped while its stopping is still covered for the most part.
void keep_covered(Draft& draft, const Lease& lease, Money held, Money paid_from_wallet) {
  if (lease.stopping != StopReason::none) return;
  const State& state = draft.state();
  const Tenant& tenant = state.tenant(lease.tenant);
  const Task& task = state.tasks.at(lease.task);
  if (paid_by_reservation(state, task)) return;  // which keeps itself covered
  Money needed = Money::zero(tenant.spec.currency);
  for (const LeaseId id : task.leases) {
    const Lease& member = id == lease.id ? lease : state.leases.at(id);
    needed += most_left_of(state, draft.now(), task, member);
  }
  // The hold was rounded once and the charges once each: they differ by some 10^-12.
  const Money rounding(1000, tenant.spec.currency);
  const Money more = needed - held;
  if (more <= rounding) return;
  if (more > available(state, tenant.id) - paid_from_wallet) {
    draft.add(StopRequested{lease.id, StopReason::funds});
    return;
  }
  draft.add(TransactionPosted{
      billing::hold(TransactionId{draft.next().transaction++}, tenant.id, lease.task, more)});
}

}  // namespace

void end_lease(Draft& draft, const Lease& ended, const Ending& ending) {
  const State& state = draft.state();
  const Task& task = state.tasks.at(ended.task);
  Lease lease = ended;
  Money held = held_for(state, task);
  if (!lease.started() && ending.started_at != Instant::never()) {
    const Instant started_at = std::clamp(ending.started_at, lease.granted_at, draft.now());
    draft.add(
        started_event(lease, task, started_at, ending.advisory, reserved_until(state, *task.spec)));
    lease.started_at = lease.billed_until = started_at;
  }
  Instant ended_at = std::min(ending.ended_at, draft.now());
  if (lease.started()) {
    // A report may come after its time was rated: then the rating goes back.
    ended_at = std::max(ended_at, lease.started_at);
    meter(draft, lease, held, ended_at);
    // What it used of its devices is told by its end itself.
    settle_services(draft, lease, lease.started_at, ending.services, std::nullopt, ended_at);
    const bool displaced =
        lease.stopping == StopReason::preempted || lease.stopping == StopReason::moved;
    if (displaced && lease.purchase_model == PurchaseModel::spot) {
      give_back_interrupted(draft, lease, held);
    } else if (displaced) {
      credit_lost_work(draft, lease, LostWorkCause::displaced);
    }
  }
  const AttemptVerdict verdict = verdict_on(state, lease, ending);
  if (lease.started() && ends_by_loss(task, verdict))
    credit_lost_work(draft, lease, LostWorkCause::device_lost);
  const LeaseEnded end{lease.id,           ended_at, ending.device_time,
                       ending.memory_peak, verdict,  ending.output};
  const std::optional<RunUse> use = use_of(task, lease, end);
  draft.add(end);
  if (verdict.outcome == TaskOutcome::unable) mark_node(draft, lease, verdict.reason);

  const bool failed = verdict.outcome != TaskOutcome::succeeded;
  if (task.leases.size() > 1) {
    // A gang runs whole or not at all: one that ends badly takes the others along.
    for (const LeaseId other : task.leases) {
      if (failed && other != lease.id && state.leases.at(other).stopping == StopReason::none)
        draft.add(StopRequested{other, StopReason::gang});
    }
    return;
  }
  const Duration ran = lease.started() ? ended_at - lease.started_at : Duration{0};
  const bool first_to_fail = task.verdict.outcome == TaskOutcome::none;
  settle_task(draft, task, first_to_fail ? verdict : task.verdict,
              task.run_time + std::max(task.round_run, ran),
              paid_by_reservation(state, task) ? task.held : held, use);
}

Decision decide_on(const State& state, Instant now, const ReportStarted& asked) {
  const Lease* lease = fenced(state, asked.lease, asked.epoch);
  if (lease == nullptr) return stale(asked.lease);
  Draft draft(state, now);
  draft.subject(lease->task.text());
  if (lease->started()) return draft.done();  // told twice
  const Instant started_at = std::clamp(asked.started_at, lease->granted_at, now);
  const Task& task = state.tasks.at(lease->task);
  draft.add(
      started_event(*lease, task, started_at, asked.advisory, reserved_until(state, *task.spec)));
  return draft.done();
}

namespace {

// What no attempt can have done. Both its times are by one stopwatch; against the daemon's clock,
// which steps, they may lie anywhere, and are moved into the lease by end_lease().
std::optional<Reject> fault_of(const ReportEnded& asked) {
  if (asked.started_at != Instant::never() && asked.ended_at < asked.started_at) {
    return Reject{RejectCode::invalid_argument,
                  "the attempt of " + asked.lease.text() + " ended at " + to_text(asked.ended_at) +
                      ", before its start at " + to_text(asked.started_at),
                  "report both by the clock that timed it"};
  }
  if (asked.memory_peak.value < 0) {
    return Reject{RejectCode::invalid_argument,
                  std::to_string(asked.memory_peak.value) + " MiB of memory are below zero",
                  "report what was counted, 0 or more"};
  }
  return fault_in_counts(asked.services, asked.device_time);
}

}  // namespace

Decision decide_on(const State& state, Instant now, const ReportEnded& asked) {
  const Lease* lease = fenced(state, asked.lease, asked.epoch);
  if (lease == nullptr) return stale(asked.lease);
  if (auto reject = fault_of(asked)) return Draft::rejected(std::move(*reject));
  Draft draft(state, now);
  draft.subject(lease->task.text());
  end_lease(draft, *lease,
            {asked.end, asked.started_at, asked.ended_at, asked.exit_code, asked.reason,
             asked.device_time, asked.memory_peak, asked.advisory, asked.output, asked.services});
  return draft.done();
}

// Its time is billed to the device's last sign of life.
Decision decide_on(const State& state, Instant now, const EndLost&) {
  Draft draft(state, now);
  if (state.lost_in_use.empty()) return draft.done();
  const Device& device = state.device(*state.lost_in_use.begin());
  const Lease& lease = state.leases.at(*state.leases_by_device.at(device.id).begin());
  draft.subject(lease.task.text());
  if (lease.stopping != StopReason::device_lost)
    draft.add(StopRequested{lease.id, StopReason::device_lost});
  Ending ending;
  ending.end = AttemptEnd::lost;
  ending.ended_at = device.seen_at;
  ending.reason = "the device " + device_name(state.node(device.node), device) + " was lost";
  end_lease(draft, lease, ending);
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const TimePassed&) {
  Draft draft(state, now);
  if (!state.requests_by_age.empty()) {
    const bool too_many = state.requests_by_age.size() > requests_max;
    const Instant forget_before = too_many ? now : now - request_memory;
    Instant before{};
    std::size_t count = 0;
    for (const auto& [at, key] : state.requests_by_age) {
      if (at > forget_before || ++count > requests_forgotten_at_once) break;
      before = at;
    }
    if (count > 0) draft.add(RequestsForgotten{before});
  }
  if (!state.marked.empty() && state.marked.begin()->first <= now)
    draft.add(NodeMarked{state.marked.begin()->second, Instant{}, "tried again"});
  if (state.timers.empty() || state.timers.begin()->first > now) {
    if (draft.empty() && !expire_waiting(draft) && !follow_spot(draft) && !tell_late(draft) &&
        !settle_reservations(draft) && !settle_commitments(draft) && !close_month(draft) &&
        !settle_kept_hours(draft) && !review_holds(draft) && !move_spot(draft) &&
        !tell_budget(draft))
      end_by_budget(draft);
    return draft.done();
  }
  Lease lease = state.leases.at(state.timers.begin()->second);
  if (lease.stopping == StopReason::none && lease.stop_at <= now) {
    const Task& task = state.tasks.at(lease.task);
    const bool goes_on = lease.stop_at < run_limit_at(task, lease.started_at) &&
                         lease.stop_at < reserved_until(state, *task.spec);
    draft.add(StopRequested{lease.id, goes_on ? StopReason::segment : StopReason::limit});
    return draft.done();
  }
  Money held = held_for(state, state.tasks.at(lease.task));
  const Money beyond = meter(draft, lease, held, next_due(lease) - metering_slack);
  keep_covered(draft, lease, held, beyond);
  return draft.done();
}

}  // namespace loam::engine
