// Budgets: set, seen, answered.
#include "api/handlers.hpp"
#include "api/requests.hpp"

namespace loam::api::handlers {
namespace {

constexpr std::int64_t notices_shown = 20;

Error no_such_budget(const std::string& name) {
  return {ErrorKind::not_found, "there is no budget '" + name + "'",
          "see the budgets with: loam budget list"};
}

// The budget where the caller may see it.
Result<BudgetView> find_budget(Call& call, const std::string& name) {
  std::optional<BudgetView> found;
  call.backend().read([&](const engine::State& state, Instant now) {
    if (state.budgets.knows(name)) found = budget_view(state, std::max(now, state.now), name);
  });
  const bool hidden =
      call.caller.role == Role::member && found && found->tenant != call.caller.tenant;
  if (!found || hidden) return no_such_budget(name);
  return *found;
}

Call::SubjectView budget_answer(const CallPtr& call) {
  return [call](const std::string& subject) -> Result<std::string> {
    LOAM_TRY(view, find_budget(*call, subject));
    return to_json(view);
  };
}

}  // namespace

void list_budgets(const CallPtr& call) {
  BudgetList list;
  call->backend().read([&](const engine::State& state, Instant now) {
    for (const std::string& name : state.budgets.names()) {
      BudgetView view = budget_view(state, std::max(now, state.now), name);
      if (call->caller.role == Role::member && view.tenant != call->caller.tenant) continue;
      list.budgets.push_back(std::move(view));
    }
  });
  call->answer(to_json(list));
}

void show_budget(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(view, find_budget(*call, call->parameter("name")));
    LOAM_TRY(notices, call->backend().budget_notices(view.name, notices_shown));
    for (const BudgetNotice& notice : notices) view.notices.push_back(view_of(notice));
    return to_json(view);
  }());
}

void set_budget(const CallPtr& call) {
  const auto budget = [&]() -> Result<Budget> {
    LOAM_TRY(request, body_of<BudgetRequest>(*call));
    LOAM_TRY(tenant, call->tenant(request.tenant));
    for (const std::string& channel : request.channels)
      LOAM_CHECK(call->backend().channel_allowed(channel));
    return budget_of(request, tenant.id, tenant.currency);
  }();
  if (!budget) return call->fail(budget.error());
  const std::string location = "/v1/budgets/" + budget->name;
  call->post(SetBudget{*budget}, budget_answer(call),
             [location](const std::string&) { return location; });
}

void remove_budget(const CallPtr& call) {
  const auto view = find_budget(*call, call->parameter("name"));
  if (!view) return call->fail(view.error());
  const std::string json = to_json(*view);
  call->post(RemoveBudget{view->name},
             [json](const std::string&) -> Result<std::string> { return json; });
}

void answer_budget(const CallPtr& call) {
  const auto command = [&]() -> Result<AnswerBudget> {
    LOAM_TRY(request, body_of<BudgetAnswer>(*call));
    LOAM_TRY(view, find_budget(*call, call->parameter("name")));
    LOAM_TRY(currency, Currency::parse(view.currency));
    AnswerBudget answer{view.name, request.approve, {}};
    answer.approval.by = call->caller.actor.issuer + ":" + call->caller.actor.subject;
    answer.approval.new_limit = Money::zero(currency);
    if (!request.approve) return answer;
    if (!request.until || !request.limit) {
      return invalid("an approval says until when and up to which limit",
                     "give 'until' and 'limit'");
    }
    LOAM_TRY(until, parse_instant(*request.until));
    LOAM_TRY(limit, Money::parse(*request.limit, currency));
    answer.approval.until = until;
    answer.approval.new_limit = limit;
    return answer;
  }();
  if (!command) return call->fail(command.error());
  call->post(*command, budget_answer(call));
}

}  // namespace loam::api::handlers
