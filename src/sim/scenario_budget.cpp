// Budgets, credit notes and payments of scenarios. Pure.
#include "sim/scenario.hpp"
#include "sim/scenario_words.hpp"

namespace loam::sim {

// budget NAME TENANT 100USD [project=] [environment=] [model=] [running=stop] [zone=] [wait=24h]
// [remind=80%] [limit=100%] [approve=120%]
Result<Step> read_budget(Words& words) {
  MakeBudget made;
  LOAM_TRY(name, words.next("the name of the budget"));
  LOAM_TRY(tenant, words.next("the tenant"));
  LOAM_TRY(amount, words.next("the amount of a month"));
  LOAM_TRY(monthly, words.placed(*amount, parse_amount(amount->text)));
  made.tenant = tenant->text;
  Budget& budget = made.budget;
  budget.name = name->text;
  budget.monthly = monthly;
  const auto text = [](std::string_view given) -> Result<std::optional<std::string>> {
    return std::optional<std::string>(given);
  };
  LOAM_CHECK(words.take("project", budget.scope.project, text));
  LOAM_CHECK(words.take("environment", budget.scope.environment, text));
  LOAM_CHECK(words.take("model", budget.scope.model, text));
  LOAM_CHECK(words.take("running", budget.running, parse_name_of<RunningPolicy>));
  LOAM_CHECK(words.take("zone", budget.zone, [](std::string_view given) -> Result<std::string> {
    return std::string(given);
  }));
  LOAM_CHECK(words.take("wait", budget.approval_wait, parse_duration));
  LOAM_CHECK(words.take("remind", budget.remind_at, parse_percent));
  LOAM_CHECK(words.take("limit", budget.limit_at, parse_percent));
  LOAM_CHECK(words.take("approve", budget.approve_at, parse_percent));
  return Step(std::move(made));
}

// approve NAME 200USD for=24h; refuse NAME
Result<Step> read_approve(Words& words) {
  AnswerBudgetStep answer;
  LOAM_TRY(name, words.next("the name of the budget"));
  LOAM_TRY(amount, words.next("the new limit"));
  LOAM_TRY(limit, words.placed(*amount, parse_amount(amount->text)));
  answer.budget = name->text;
  answer.up_to = limit;
  answer.lasts = Duration::hours(24);
  LOAM_CHECK(words.take("for", answer.lasts, parse_duration));
  return Step(std::move(answer));
}

Result<Step> read_refuse(Words& words) {
  AnswerBudgetStep answer;
  LOAM_TRY(name, words.next("the name of the budget"));
  answer.budget = name->text;
  return Step(std::move(answer));
}

// credit TENANT [5USD]: of its last invoice
Result<Step> read_credit(Words& words) {
  CreditStep credit;
  LOAM_TRY(tenant, words.next("the tenant"));
  credit.tenant = tenant->text;
  if (const Word* amount = words.next_if_any()) {
    LOAM_TRY(money, words.placed(*amount, parse_amount(amount->text)));
    credit.amount = money;
  }
  return Step(std::move(credit));
}

// refund TENANT 5USD
Result<Step> read_refund(Words& words) {
  LOAM_TRY(tenant, words.next("the tenant"));
  LOAM_TRY(word, words.next("the amount (5USD)"));
  LOAM_TRY(amount, words.placed(*word, parse_amount(word->text)));
  return Step(Pay{tenant->text, amount, true});
}

// reverse TENANT [x3]: its last payment in or out, or that one
Result<Step> read_reverse(Words& words) {
  Reverse reverse;
  LOAM_TRY(tenant, words.next("the tenant"));
  reverse.tenant = tenant->text;
  if (const Word* word = words.next_if_any()) {
    const auto id = TransactionId::parse(word->text);
    if (!id) return words.fault(*word, "'" + word->text + "' is no transaction", "write it as x3");
    reverse.transaction = *id;
  }
  return Step(std::move(reverse));
}

}  // namespace loam::sim
