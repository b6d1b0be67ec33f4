#include "engine/budget_books.hpp"

#include "base/assert.hpp"
#include "engine/state.hpp"

namespace loam::engine {

void apply_to_budgets(State& state, const BudgetSet& event, Instant at) {
  const Budget& budget = event.budget;
  if (state.budgets.knows(budget.name)) {
    const Result<void> changed = state.budgets.change(budget);
    LOAM_ASSERT(changed.ok());
    return;
  }
  const Result<void> added = state.budgets.add(budget);
  LOAM_ASSERT(added.ok());
  if (!event.spent.is_zero()) state.budgets.begin(budget.name, event.spent, at);
  for (const auto& [id, task] : state.tasks) {
    if (budget.scope.covers(task.tenant, task.spec->attribution) && !task.held.is_zero())
      state.budgets.set_aside(id.text(), task.tenant, task.spec->attribution, task.held, at);
  }
  for (const auto& [id, book] : state.reservations) {
    const Reservation& of = book.reservation;
    if (budget.scope.covers(of.tenant, of.order.attribution) && !of.held.is_zero())
      state.budgets.set_aside(id.text(), of.tenant, of.order.attribution, of.held, at);
  }
}

void apply_to_budgets(State& state, const BudgetRemoved& event, Instant) {
  const Result<void> removed = state.budgets.remove(event.name);
  LOAM_ASSERT(removed.ok());
  std::erase_if(state.ending, [&](const auto& entry) { return entry.first == event.name; });
}

void apply_to_budgets(State& state, const BudgetNoticed& event, Instant) {
  const BudgetNotice& notice = event.notice;
  const bool denied_before = notice.kind == BudgetNoticeKind::approval_expired ||
                             notice.kind == BudgetNoticeKind::approval_refused ||
                             notice.kind == BudgetNoticeKind::stop_running;
  state.budgets.told(notice);
  if (!denied_before) return;
  for (const std::string& key : state.budgets.ending_keys(notice.budget)) {
    const auto id = TaskId::parse(key);
    if (!id) continue;  // a reservation is charged to its end
    const Task& task = state.tasks.at(*id);
    if (!task.leases.empty() && task.state != TaskState::stopping &&
        state.budgets.ends(task.tenant, task.spec->attribution, notice.at))
      state.ending.insert({notice.budget, *id});
  }
}

void apply_to_budgets(State& state, const BudgetApproved& event, Instant) {
  state.budgets.apply(event.name, event.approval);
  std::erase_if(state.ending, [&](const auto& entry) { return entry.first == event.name; });
}

}  // namespace loam::engine
