// Decisions on what tenants ask of their tasks.
#include <algorithm>

#include "billing/accounts.hpp"
#include "engine/decisions.hpp"
#include "engine/queries.hpp"
#include "engine/reservations.hpp"
#include "engine/scheduling.hpp"
#include "engine/service_books.hpp"
#include "engine/start_times.hpp"

namespace loam::engine {
namespace {

Reject no_such_task(TaskId id) {
  return {RejectCode::not_found, "there is no live task " + id.text(),
          "see the tasks with: loam ps"};
}

Reject no_money(const State& state, const Tenant& tenant, Money needed) {
  return {RejectCode::insufficient_funds, "this task " + beyond_means_words(state, tenant, needed),
          "top up the wallet (loam tenant topup " + tenant.spec.name +
              " AMOUNT) or ask for less time with --time"};
}

void hold(Draft& draft, const Task& task, Money amount) {
  if (amount.is_zero()) return;
  draft.add(TransactionPosted{
      billing::hold(TransactionId{draft.next().transaction++}, task.tenant, task.id, amount)});
}

}  // namespace

void release_hold(Draft& draft, const Task& task) {
  if (task.held.is_zero()) return;
  draft.add(TransactionPosted{billing::release(TransactionId{draft.next().transaction++},
                                               task.tenant, task.id, task.held)});
}

void stop_members(Draft& draft, const Task& task, StopReason reason) {
  for (const LeaseId id : task.leases) {
    if (draft.state().leases.at(id).stopping != reason) draft.add(StopRequested{id, reason});
  }
}

Decision decide_on(const State& state, Instant now, const SubmitTask& asked) {
  if (!asked.tenant.valid() || asked.tenant.value > state.tenants.size()) {
    return Draft::rejected({RejectCode::no_such_tenant, "there is no " + asked.tenant.text(),
                            "see the tenants with: loam tenant list"});
  }
  if (auto reject = validate(*asked.spec)) return Draft::rejected(std::move(*reject));
  if (auto reject = validate_queue(state, *asked.spec)) return Draft::rejected(std::move(*reject));
  const Tenant& tenant = state.tenant(asked.tenant);
  if (auto reject = validate_reservation(state, now, tenant, *asked.spec))
    return Draft::rejected(std::move(*reject));
  std::shared_ptr<const TaskSpec> spec = asked.spec;
  if (spec->auto_ce)
    spec = std::make_shared<const TaskSpec>(with_ce(state, tenant.id, *asked.spec));
  const HoldAnswer needed = hold_for(state, now, tenant, *spec, Duration{0});
  if (needed.reject) return Draft::rejected(*needed.reject);
  const StartAnswer start = start_of(state, now, tenant, *spec);
  if (start.reject) return Draft::rejected(*start.reject);
  if (tenant.spec.quota.queued && tenant.tasks_waiting >= *tenant.spec.quota.queued) {
    return Draft::rejected({RejectCode::quota_exceeded,
                            "the quota of " + tenant.spec.name + " is " +
                                std::to_string(*tenant.spec.quota.queued) + " waiting tasks",
                            "wait for some to start, or stop some"});
  }
  if (needed.amount > available(state, tenant.id))
    return Draft::rejected(no_money(state, tenant, needed.amount));
  Draft draft(state, now);
  Task task;
  task.id = TaskId{draft.next().task++};
  task.tenant = tenant.id;
  draft.add(TaskAccepted{task.id, tenant.id, spec, start.not_before});
  if (runs_by_plan(*spec)) {
    SpotPlanned planned = plan_spot(state, now, tenant, *spec).plan;
    planned.task = task.id;
    draft.add(planned);
  }
  hold(draft, task, needed.amount);
  draft.subject(task.id.text());
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const StopTask& asked) {
  const Task* task = state.find_task(asked.task);
  if (task == nullptr) return Draft::rejected(no_such_task(asked.task));
  Draft draft(state, now);
  draft.subject(task->id.text());
  if (!task->leases.empty()) {
    stop_members(draft, *task, StopReason::by_tenant);
    return draft.done();
  }
  release_hold(draft, *task);
  settle_kept(draft, *task);
  draft.add(TaskFinished{
      task->id, TaskOutcome::stopped, 0,
      task->run_time.ms > 0 ? "stopped while it did not run" : "stopped before it started"});
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const PauseTask& asked) {
  const Task* task = state.find_task(asked.task);
  if (task == nullptr) return Draft::rejected(no_such_task(asked.task));
  Draft draft(state, now);
  draft.subject(task->id.text());
  switch (task->state) {
    case TaskState::waiting:
      release_hold(draft, *task);
      draft.add(TaskPaused{task->id});
      return draft.done();
    case TaskState::starting:
    case TaskState::running:
      stop_members(draft, *task, StopReason::paused);
      return draft.done();
    case TaskState::paused:
      return draft.done();
    case TaskState::stopping:
    case TaskState::finished:
      break;
  }
  const bool pausing = std::any_of(task->leases.begin(), task->leases.end(), [&](LeaseId id) {
    return state.leases.at(id).stopping == StopReason::paused;
  });
  if (pausing) return draft.done();
  return Draft::rejected({RejectCode::wrong_state, "the task " + task->id.text() + " is ending",
                          "see how it ended with: loam show " + task->id.text()});
}

Decision decide_on(const State& state, Instant now, const ResumeTask& asked) {
  const Task* task = state.find_task(asked.task);
  if (task == nullptr) return Draft::rejected(no_such_task(asked.task));
  if (task->state != TaskState::paused) {
    return Draft::rejected({RejectCode::wrong_state,
                            "the task " + task->id.text() + " is not paused",
                            "see its state with: loam show " + task->id.text()});
  }
  const Tenant& tenant = state.tenant(task->tenant);
  std::optional<PurchaseModel> other = asked.purchase_model;
  // What its plan had it bought as is not what its tenant asks for.
  if (other == task->spec->purchase_model && state.spot_plans.count(task->id) == 0) other.reset();
  const auto spec = other ? resold(*task->spec, *other) : task->spec;
  if (auto reject = validate(*spec)) return Draft::rejected(std::move(*reject));
  if (auto reject = validate_reservation(state, now, tenant, *spec))
    return Draft::rejected(std::move(*reject));
  HoldAnswer needed = hold_for(state, now, tenant, *spec, task->run_time);
  if (needed.reject) {
    // It would wait for a card that may never come.
    const bool sold_before = needed.reject->code == RejectCode::not_sold &&
                             spec->purchase_model != PurchaseModel::on_demand;
    if (sold_before) {
      needed.reject->next_step =
          "go on with it on demand: loam resume " + task->id.text() + " --purchase on_demand";
    }
    return Draft::rejected(std::move(*needed.reject));
  }
  if (needed.amount > available(state, tenant.id))
    return Draft::rejected(no_money(state, tenant, needed.amount));
  Draft draft(state, now);
  draft.subject(task->id.text());
  draft.add(TaskRequeued{task->id, RequeueCause::resumed, "resumed", other});
  hold(draft, *task, needed.amount);  // of its own, where it leaves a reservation
  return draft.done();
}

}  // namespace loam::engine
