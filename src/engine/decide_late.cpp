// Decisions on tasks that wait longer than their service class promises: the alarm, then what the
// class lists. A step that cannot help, or that its tenant cannot pay, is an alarm like the first.
#include <algorithm>
#include <boost/describe/enum_to_string.hpp>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "billing/csv.hpp"
#include "engine/decisions.hpp"
#include "engine/queries.hpp"
#include "engine/scheduling.hpp"

namespace loam::engine {
namespace {

constexpr std::int64_t parts_max = 16;  // that a gang is proposed to be split into

// The fewest equal parts of a gang of which one fits now; 0: there are none.
std::int64_t parts_that_fit(const State& state, const TaskSpec& spec) {
  const DemandAnswer wanted = demand_of(state, spec);
  if (wanted.reject) return 0;
  for (std::int64_t parts = 2; parts <= std::min(spec.gang, parts_max); ++parts) {
    if (spec.gang % parts == 0 && find_places(state, wanted, spec.gang / parts)) return parts;
  }
  return 0;
}

// Whether the task may wait as `changed` says; sets more aside where that costs more.
bool afford(Draft& draft, const Task& task, const TaskSpec& changed) {
  const State& state = draft.state();
  if (validate_queue(state, changed)) return false;
  const Tenant& tenant = state.tenant(task.tenant);
  const HoldAnswer needed = hold_for(state, draft.now(), tenant, changed, task.run_time);
  if (needed.reject) return false;
  if (needed.amount <= task.held) return true;
  const Money more = needed.amount - task.held;
  if (more > available(state, tenant.id)) return false;
  draft.add(TransactionPosted{
      billing::hold(TransactionId{draft.next().transaction++}, tenant.id, task.id, more)});
  return true;
}

void take_step(Draft& draft, const Task& task, const LateStep& step, TaskLate& event) {
  TaskSpec changed = *task.spec;
  switch (step.kind) {
    case LateStepKind::alarm:
      return;
    case LateStepKind::split:
      event.parts = parts_that_fit(draft.state(), changed);
      if (event.parts > 0) event.kind = step.kind;
      return;
    case LateStepKind::larger_queue:
      if (changed.queue == step.queue) return;
      changed.queue = event.queue = step.queue;
      break;
    case LateStepKind::on_demand:
      if (changed.purchase_model != PurchaseModel::spot) return;
      changed.purchase_model = event.purchase_model = PurchaseModel::on_demand;
      break;
  }
  if (afford(draft, task, changed)) {
    event.kind = step.kind;
    return;
  }
  event.queue = task.spec->queue;
  event.purchase_model = task.spec->purchase_model;
}

}  // namespace

bool tell_late(Draft& draft) {
  const State& state = draft.state();
  if (state.late_due.empty() || state.late_due.begin()->first > draft.now()) return false;
  const Task& task = state.tasks.at(state.late_due.begin()->second);
  const ServiceClass* promised = class_named(state.settings, task.spec->service_class);
  LOAM_ASSERT(promised != nullptr && promised->wait);
  const schedule::Standing& standing = state.scheduler.standing(task.id);
  TaskLate event;
  event.task = task.id;
  event.step = task.late_steps;
  event.waited = standing.waited_at(draft.now());
  event.promised = *promised->wait;
  event.queue = task.spec->queue;
  event.purchase_model = task.spec->purchase_model;
  if (event.step > 0)
    take_step(draft, task, promised->late.at(static_cast<std::size_t>(event.step - 1)), event);
  draft.add(std::move(event));
  return true;
}

std::string words_of(const TaskLate& late) {
  const std::string words = late.task.text() + " has waited " + to_text(late.waited) +
                            ", and its class promises " + to_text(late.promised);
  switch (late.kind) {
    case LateStepKind::alarm:
      break;
    case LateStepKind::larger_queue:
      return words + "; it waits in the queue " + late.queue + " now";
    case LateStepKind::on_demand:
      return words + "; it is bought on demand now";
    case LateStepKind::split:
      return words + "; of " + std::to_string(late.parts) + " equal parts one could start now";
  }
  return words;
}

std::string to_json(const TaskLate& late, Instant at) {
  return "{\"task\":\"" + late.task.text() + "\",\"kind\":\"" +
         boost::describe::enum_to_string(late.kind, "?") + "\",\"at\":\"" + to_text(at) +
         "\",\"waited_ms\":" + std::to_string(late.waited.ms) +
         ",\"promised_ms\":" + std::to_string(late.promised.ms) +
         ",\"words\":" + billing::json_string(words_of(late)) + "}";
}

}  // namespace loam::engine
