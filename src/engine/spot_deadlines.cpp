#include "engine/spot_deadlines.hpp"

#include <algorithm>
#include <vector>

#include "base/assert.hpp"
#include "billing/csv.hpp"
#include "engine/decisions.hpp"
#include "engine/queries.hpp"
#include "engine/scheduling.hpp"

namespace loam::engine {
namespace {

namespace spot = schedule::spot;
using spot::Ticks;

constexpr Duration changeover_default = Duration::minutes(1);
// Between two looks for spot of a task that runs on demand: all look at the same instants, in one
// event of so many at most.
constexpr Duration look_every = Duration::minutes(5);
constexpr std::size_t looks_max = 64;
constexpr std::int64_t ticks_max = 9'000'000;  // of a second; longer ones beyond
constexpr std::int64_t whole_ppm = 1'000'000;

spot::Policy policy_of(SpotPolicy policy) {
  switch (policy) {
    case SpotPolicy::uniform_progress:
      return spot::Policy::uniform_progress;
    case SpotPolicy::greedy:
      return spot::Policy::greedy;
    case SpotPolicy::reserve:
      break;
  }
  return spot::Policy::reserve;
}

spot::Terms terms_in(const SpotPlanned& plan) {
  spot::Terms terms;
  terms.work = plan.work;
  terms.deadline = plan.deadline;
  terms.changeover = plan.changeover;
  terms.tick = plan.tick;
  terms.spot_price_ppm = plan.spot_price_ppm;
  return terms;
}

// What spot costs now, of the price on demand: in (0, 1), as the policies want it.
std::int64_t price_ratio(const State& state, Instant now, Currency currency) {
  const billing::PriceTable* table = state.rates.at(currency, now);
  const billing::SpotSeries* series = state.rates.spot(currency);
  const bool free = table == nullptr || table->card().on_demand.is_zero();
  if (free || series == nullptr) return whole_ppm - 1;
  const Int128 ratio = series->at(now).units() * whole_ppm / table->card().on_demand.units();
  return static_cast<std::int64_t>(std::clamp<Int128>(ratio, 1, whole_ppm - 1));
}

// From the decision that it changes until it works again: others have to leave, who may be safe for
// a while and then have their notice, and it saves and loads.
Duration changeover_of(const State& state, const TaskSpec& spec) {
  const auto queue = queue_named(state, spec.queue);
  const Duration safe =
      queue ? state.scheduler.queues().at(*queue).discipline.safe_min : Duration{};
  return safe + schedule::spot_notice + spec.changeover.value_or(changeover_default);
}

Duration tick_of(Duration longest) {
  return Duration::seconds(1 + longest.ms / (1000 * ticks_max));
}

Ticks begun(Duration length, Duration tick) {
  return (length.ms + tick.ms - 1) / tick.ms;
}

Instant at_tick(const SpotPlan& plan, Ticks tick) {
  return plan.from + plan.terms.tick * tick;
}

// The first tick in [from, end] for which `holds`, which does from there on; `end` where none does
// before.
template <class Holds>
Ticks first_tick(Ticks from, Ticks end, Holds holds) {
  while (from < end) {
    const Ticks middle = from + (end - from) / 2;
    if (holds(middle)) {
      end = middle;
    } else {
      from = middle + 1;
    }
  }
  return from;
}

// When a task that waits is turned if nothing happens before: by what the policy would do with
// spot, and without.
Ticks turning_tick(spot::Policy policy, const spot::Terms& terms, const spot::State& idle) {
  return first_tick(idle.now, std::max(idle.now, terms.deadline), [&](Ticks tick) {
    spot::State then = idle;
    then.now = tick;
    return spot::choose(policy, terms, then, false) == spot::Mode::on_demand ||
           spot::choose(policy, terms, then, true) == spot::Mode::on_demand;
  });
}

// Of the present round, from when all its members were up; of a member that ended, all of it.
Duration round_of(const State& state, const Task& task, Instant now) {
  Instant up{};
  for (const LeaseId id : task.leases) {
    const Lease& lease = state.leases.at(id);
    if (!lease.started()) return task.round_run;
    up = std::max(up, lease.started_at);
  }
  return task.leases.empty() ? Duration{} : std::max(task.round_run, now - std::min(up, now));
}

Duration left_of(const Task& task) {
  return Duration{std::max<std::int64_t>(0, (task.spec->limit - task.run_time).ms)};
}

bool sold_as_spot(const State& state, const Task& task) {
  return task.leases.empty()
             ? task.spec->purchase_model == PurchaseModel::spot
             : state.leases.at(task.leases.front()).purchase_model == PurchaseModel::spot;
}

// How the task stands, in the policy's words. Rounded so that nothing is promised too much.
spot::State standing_of(const State& state, const Task& task, const SpotPlan& plan, Instant now) {
  const spot::Terms& terms = plan.terms;
  const Duration ran = task.run_time + round_of(state, task, now);
  const Duration on_spot = plan.on_spot + (plan.on_spot_now ? ran - plan.counted : Duration{});
  spot::State standing;
  const bool on_device = !task.leases.empty();
  if (!sold_as_spot(state, task)) {
    standing.mode = spot::Mode::on_demand;
  } else if (on_device) {
    standing.mode = spot::Mode::spot;
  }
  standing.now = begun(std::max(Duration{}, now - plan.from), terms.tick);
  standing.done = std::min(ran.ms / terms.tick.ms, terms.work - 1);
  if (standing.mode != spot::Mode::idle && task.state != TaskState::running)
    standing.pending = terms.changeover;
  if (plan.seen_since <= now) standing.spell = 1 + (now - plan.seen_since).ms / terms.tick.ms;
  standing.paid = begun(on_spot, terms.tick) * terms.spot_price_ppm +
                  begun(ran - on_spot, terms.tick) * spot::cost_scale;
  return standing;
}

// Going back for less than a changeover would cost more than it saves.
bool goes_back(const SpotPlan& plan, const spot::State& standing) {
  return plan.terms.work - standing.done > plan.terms.changeover &&
         spot::choose(policy_of(plan.policy), plan.terms, standing, true) == spot::Mode::spot;
}

// When a task that runs on demand looks for spot next; never() where it would not go back however
// long spot had been there.
Instant next_look(const SpotPlan& plan, spot::State standing) {
  standing.spell = plan.terms.deadline + 8 * plan.terms.changeover;
  const auto then = [&](Ticks tick) {
    spot::State later = standing;
    const Ticks more = tick - standing.now;
    later.now = tick;
    later.done = std::min(standing.done + more, plan.terms.work - 1);
    later.paid += more * spot::cost_scale;
    return goes_back(plan, later);
  };
  const Ticks last = standing.now + (plan.terms.work - standing.done) - plan.terms.changeover - 1;
  if (last < standing.now || !then(last)) return Instant::never();
  const Instant first =
      std::max(at_tick(plan, first_tick(standing.now, last, then)), plan.looked_at + look_every);
  const Instant at{(first.ms + look_every.ms - 1) / look_every.ms * look_every.ms};
  return at <= at_tick(plan, last) ? at : Instant::never();
}

Instant due_of(const State& state, const Task& task, const SpotPlan& plan, Instant now) {
  const spot::State standing = standing_of(state, task, plan, now);
  const Instant at_risk = plan.told ? Instant::never() : *task.spec->deadline - left_of(task);
  switch (task.state) {
    case TaskState::waiting:
      if (standing.mode == spot::Mode::on_demand) return at_risk;
      return std::max(at_tick(plan, turning_tick(policy_of(plan.policy), plan.terms, standing)),
                      plan.waits_until);
    case TaskState::starting:
      if (standing.mode == spot::Mode::on_demand) return at_risk;
      // No slack is left for a start that takes longer.
      return at_tick(plan, standing.now + spot::slack(plan.terms, standing));
    case TaskState::running:
      return standing.mode == spot::Mode::on_demand ? next_look(plan, standing) : Instant::never();
    case TaskState::stopping:
    case TaskState::paused:
    case TaskState::finished:
      break;
  }
  return Instant::never();
}

void set_due(State& state, SpotPlan& plan, Instant due) {
  if (plan.due != Instant::never()) state.spot_dues.erase({plan.due, plan.task});
  plan.due = due;
  if (due != Instant::never()) state.spot_dues.insert({due, plan.task});
}

void forget_plan(State& state, SpotPlan& plan) {
  set_due(state, plan, Instant::never());
  state.spot_plans.erase(TaskId{plan.task});
}

// What of it is free now, and not reserved, beside where it is.
bool is_spot_there(const State& state, Instant now, const Task& task) {
  const auto spec = resold(*task.spec, PurchaseModel::spot);
  const DemandAnswer wanted = demand_of(state, *spec);
  return !wanted.reject && find_places(state, wanted, spec->gang) &&
         !on_reserved(state, now, wanted, *spec);
}

// All that run on demand and are due for it; those for whom it has been there long enough go back.
void look_for_spot(Draft& draft) {
  const State& state = draft.state();
  SpotSighted seen;
  std::vector<const Task*> back;
  for (const auto& [due, id] : state.spot_dues) {
    if (due > draft.now() || seen.there.size() + seen.gone.size() == looks_max) break;
    const Task& task = state.tasks.at(id);
    if (task.state != TaskState::running) continue;
    SpotPlan plan = state.spot_plans.at(id);
    const bool there = is_spot_there(state, draft.now(), task);
    (there ? seen.there : seen.gone).push_back(id);
    plan.seen_since = std::min(plan.seen_since, draft.now());
    if (there && goes_back(plan, standing_of(state, task, plan, draft.now())))
      back.push_back(&task);
  }
  draft.add(std::move(seen));
  for (const Task* task : back) stop_members(draft, *task, StopReason::resold);
}

// Whose plan an event may move.
template <class Other>
TaskId task_in(const State&, const Other&) {
  return {};
}
template <class OfTask>
requires requires(const OfTask& event) {
  TaskId{event.task};
}
TaskId task_in(const State&, const OfTask& event) {
  return event.task;
}
TaskId task_of_lease(const State& state, LeaseId id) {
  const Lease* lease = state.find_lease(id);
  return lease == nullptr ? TaskId{} : lease->task;
}
TaskId task_in(const State& state, const AttemptStarted& event) {
  return task_of_lease(state, event.lease);
}
TaskId task_in(const State& state, const StopRequested& event) {
  return task_of_lease(state, event.lease);
}

// Who is bought on demand for another reason, or otherwise by its tenant, has no plan any more.
bool ends_plan(const Event& event) {
  if (const auto* late = std::get_if<TaskLate>(&event))
    return late->kind == LateStepKind::on_demand;
  const auto* requeued = std::get_if<TaskRequeued>(&event);
  return requeued != nullptr && requeued->cause == RequeueCause::resumed &&
         requeued->purchase_model && *requeued->purchase_model != PurchaseModel::spot;
}

// A task waits for spot from now on: a place that is there is given to it in the pass that follows.
// One that gave up its place on demand for spot may wait for it as long as a changeover takes.
Instant waits_until(const State& state, const Task& task, const SpotPlan& plan, Instant at,
                    bool went_back) {
  const Ticks slack = spot::slack(plan.terms, standing_of(state, task, plan, at));
  const Ticks most = went_back ? plan.terms.changeover : 1;
  return at + plan.terms.tick * std::clamp<Ticks>(slack, 0, most);
}

}  // namespace

bool runs_by_plan(const TaskSpec& spec) {
  return spec.purchase_model == PurchaseModel::spot && spec.deadline.has_value();
}

PurchaseModel turned(const TaskSpec& spec) {
  return spec.purchase_model == PurchaseModel::spot ? PurchaseModel::on_demand
                                                    : PurchaseModel::spot;
}

SpotPlanAnswer plan_spot(const State& state, Instant now, const Tenant& tenant,
                         const TaskSpec& spec) {
  LOAM_ASSERT(runs_by_plan(spec));
  const Duration changeover = changeover_of(state, spec);
  const Duration ahead = std::max(Duration{}, *spec.deadline - now);
  SpotPlanAnswer answer;
  SpotPlanned& plan = answer.plan;
  plan.policy = spec.spot_policy;
  plan.tick = tick_of(std::max(ahead, spec.limit));
  plan.work = begun(spec.limit, plan.tick);
  plan.deadline = ahead.ms / plan.tick.ms;
  plan.changeover = std::max<Ticks>(1, begun(changeover, plan.tick));
  plan.spot_price_ppm = price_ratio(state, now, tenant.spec.currency);
  if (!terms_in(plan).feasible()) {
    const Instant earliest = now + plan.tick * (plan.work + plan.changeover);
    answer.reject = Reject{
        RejectCode::invalid_argument,
        "a task of at most " + to_text(spec.limit) + " on spot, with " +
            to_text(plan.tick * plan.changeover) + " for a change to on demand, ends by " +
            to_text(earliest) + " at the earliest, and its deadline is " + to_text(*spec.deadline),
        "give a later deadline or a shorter time with --time, or buy it on demand"};
  }
  return answer;
}

Instant turns_at(const SpotPlanned& planned, Instant from) {
  const spot::Terms terms = terms_in(planned);
  return from + terms.tick * turning_tick(policy_of(planned.policy), terms, spot::State{});
}

std::optional<Instant> turns_at(const State& state, const Task& task) {
  const auto plan = state.spot_plans.find(task.id);
  if (plan == state.spot_plans.end() || task.state != TaskState::waiting) return std::nullopt;
  if (!sold_as_spot(state, task)) return std::nullopt;
  return plan->second.due;
}

bool follow_spot(Draft& draft) {
  const State& state = draft.state();
  if (state.spot_dues.empty() || state.spot_dues.begin()->first > draft.now()) return false;
  const Task& task = state.tasks.at(state.spot_dues.begin()->second);
  if (task.state == TaskState::running) {
    look_for_spot(draft);
  } else if (task.state == TaskState::starting && sold_as_spot(state, task)) {
    stop_members(draft, task, StopReason::resold);
  } else {
    const bool for_spot = sold_as_spot(state, task);
    draft.add(DeadlineNoticed{
        task.id, for_spot ? DeadlineNoticeKind::on_demand : DeadlineNoticeKind::at_risk,
        *task.spec->deadline, left_of(task)});
  }
  return true;
}

void apply_to_books(State& state, const SpotPlanned& event, Instant at) {
  const Task& task = state.tasks.at(event.task);
  SpotPlan& plan = state.spot_plans[event.task];
  plan.task = event.task;
  plan.policy = event.policy;
  plan.terms = terms_in(event);
  plan.from = at;
  plan.waits_until = waits_until(state, task, plan, at, false);
  set_due(state, plan, due_of(state, task, plan, at));
}

void apply_to_books(State& state, const SpotSighted& event, Instant at) {
  const auto look = [&](TaskId id, bool there) {
    SpotPlan& plan = state.spot_plans.at(id);
    plan.looked_at = at;
    plan.seen_since = there ? std::min(plan.seen_since, at) : Instant::never();
    set_due(state, plan, due_of(state, state.tasks.at(id), plan, at));
  };
  for (const TaskId id : event.there) look(id, true);
  for (const TaskId id : event.gone) look(id, false);
}

void apply_to_books(State& state, const DeadlineNoticed& event, Instant at) {
  Task& task = state.tasks.at(event.task);
  SpotPlan& plan = state.spot_plans.at(event.task);
  if (event.kind == DeadlineNoticeKind::at_risk) {
    plan.told = true;
  } else {
    wait_as(state, task, resold(*task.spec, PurchaseModel::on_demand), at);
    note_late(state, task);
  }
  set_due(state, plan, due_of(state, task, plan, at));
}

void note_spot(State& state, const Record& record) {
  const TaskId id =
      std::visit([&](const auto& event) { return task_in(state, event); }, record.event);
  const auto found = state.spot_plans.find(id);
  if (found == state.spot_plans.end()) return;
  SpotPlan& plan = found->second;
  const Task* task = state.find_task(id);
  if (task == nullptr || ends_plan(record.event)) return forget_plan(state, plan);
  if (task->leases.empty()) {
    if (plan.on_spot_now) plan.on_spot += task->run_time - plan.counted;
    plan.counted = task->run_time;
    plan.seen_since = Instant::never();
  }
  plan.on_spot_now = !task->leases.empty() && sold_as_spot(state, *task);
  if (const auto* requeued = std::get_if<TaskRequeued>(&record.event)) {
    const bool went_back = requeued->cause == RequeueCause::resold;
    plan.waits_until = waits_until(state, *task, plan, record.at, went_back);
  }
  set_due(state, plan, due_of(state, *task, plan, record.at));
}

void index_spot(State& state) {
  for (auto& [id, plan] : state.spot_plans)
    set_due(state, plan, due_of(state, state.tasks.at(id), plan, state.now));
}

std::string words_of(const DeadlineNoticed& notice) {
  if (notice.kind == DeadlineNoticeKind::on_demand) {
    return notice.task.text() + " found no spot in time and is bought on demand now, to end by " +
           to_text(notice.deadline);
  }
  return notice.task.text() + " has no place on demand: it may need " + to_text(notice.left) +
         " and then misses its deadline " + to_text(notice.deadline);
}

std::string to_json(const DeadlineNoticed& notice, Instant at) {
  return "{\"task\":\"" + notice.task.text() + "\",\"kind\":\"" +
         (notice.kind == DeadlineNoticeKind::on_demand ? "on_demand" : "at_risk") + "\",\"at\":\"" +
         to_text(at) + "\",\"deadline\":\"" + to_text(notice.deadline) +
         "\",\"left_ms\":" + std::to_string(notice.left.ms) +
         ",\"words\":" + billing::json_string(words_of(notice)) + "}";
}

}  // namespace loam::engine
