// budget list, show, set, remove, approve and refuse.
#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "base/time.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

std::string scope_text(const api::BudgetView& budget) {
  std::string text = budget.tenant;
  const auto add = [&](const char* what, const std::optional<std::string>& name) {
    if (name) text += std::string(", ") + what + " " + *name;
  };
  add("project", budget.project);
  add("environment", budget.environment);
  add("model", budget.model);
  return text;
}

int print_budgets(Session& session, const api::BudgetList& list) {
  if (session.json()) return session.print_json(list);
  if (list.budgets.empty()) {
    session.say("no budgets; set one with: loam budget set NAME --tenant acme --monthly 100");
    return 0;
  }
  Table table({{"NAME"},
               {"OF", Align::left, true},
               {"MONTHLY", Align::right},
               {"SPENT", Align::right},
               {"RESERVED", Align::right},
               {"LEFT", Align::right},
               {""},
               {"REQUEST"}});
  for (const api::BudgetView& budget : list.budgets) {
    const auto money = [&](const std::string& amount) {
      return money_short(amount, budget.currency);
    };
    table.add({budget.name, scope_text(budget), money(budget.monthly), money(budget.spent),
               money(budget.reserved), money(budget.available), budget.currency,
               budget.request_open ? "open" : ""});
  }
  session.out() << session.text_of(table);
  return 0;
}

int print_budget(Session& session, const api::BudgetView& budget) {
  if (session.json()) return session.print_json(budget);
  print_budgets(session, {{budget}});
  session.out() << "reminds at " << budget.remind_percent << " %, limits at "
                << budget.limit_percent << " %, asks at " << budget.approve_percent
                << " %; running tasks " << (budget.running == "stop" ? "end" : "go on")
                << " at the limit; months of " << printable(budget.zone) << "\n";
  if (budget.approved_by)
    session.out() << "approved by " << printable(*budget.approved_by) << " until "
                  << instant_text(*budget.approved_until) << " up to "
                  << money_exact(budget.limit, budget.currency) << "\n";
  for (const std::string& channel : budget.channels)
    session.out() << "tells " << printable(channel) << "\n";
  if (budget.notices.empty()) return 0;
  Table table({{"AT (UTC)"}, {"NOTICE"}, {"IN WORDS", Align::left, true}});
  for (const api::BudgetNoticeView& notice : budget.notices)
    table.add({instant_text(notice.at), notice.kind, notice.words});
  session.out() << "\n" << session.text_of(table);
  return 0;
}

Result<int> run_budget_list(Session& session, const Arguments&) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->budgets());
  return print_budgets(session, list);
}

Result<int> run_budget_show(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(budget, client->budget(arguments.operand(0)));
  return print_budget(session, budget);
}

Result<int> run_budget_set(Session& session, const Arguments& arguments) {
  api::BudgetRequest request;
  request.name = arguments.operand(0);
  request.tenant = session.tenant();
  const auto take = [&](const char* option, std::string& out) {
    if (arguments.has(option)) out = arguments.text(option);
  };
  const auto take_if = [&](const char* option, std::optional<std::string>& out) {
    if (arguments.has(option)) out = arguments.text(option);
  };
  if (!arguments.has("monthly"))
    return invalid("the amount of a month is missing", "give it with --monthly 100");
  take("monthly", request.monthly);
  take_if("project", request.project);
  take_if("environment", request.environment);
  take_if("model", request.model);
  take("zone", request.zone);
  take("remind", request.remind_percent);
  take("limit", request.limit_percent);
  take("approve", request.approve_percent);
  take("running", request.running);
  take("wait", request.approval_wait);
  request.channels = arguments.list("tell");
  LOAM_TRY(client, session.client());
  LOAM_TRY(budget, client->set_budget(request));
  return print_budget(session, budget);
}

Result<int> run_budget_remove(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(budget, client->remove_budget(arguments.operand(0)));
  if (session.json()) return session.print_json(budget);
  session.say("the budget " + budget.name + " is gone");
  return 0;
}

Result<int> run_budget_approve(Session& session, const Arguments& arguments) {
  if (!arguments.has("until") || !arguments.has("up-to"))
    return invalid("an approval says until when and up to which limit",
                   "such as --until 2026-04-01 --up-to 200");
  api::BudgetAnswer answer;
  answer.approve = true;
  LOAM_TRY(until, instant_or_day(arguments, "until"));
  answer.until = until;
  answer.limit = arguments.text("up-to");
  LOAM_TRY(client, session.client());
  LOAM_TRY(budget, client->answer_budget(arguments.operand(0), answer));
  return print_budget(session, budget);
}

Result<int> run_budget_refuse(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(budget, client->answer_budget(arguments.operand(0), {}));
  return print_budget(session, budget);
}

std::vector<OptionGroup> set_options() {
  return {{"What counts",
           {{"--tenant", "NAME", "whose spending; default: LOAM_TENANT, else the caller's own",
             Kind::value, "@tenant"},
            {"--project", "NAME", "only of this project"},
            {"--environment", "NAME", "only of this environment"},
            {"--model", "NAME", "only for this AI model"}}},
          {"Terms",
           {{"--monthly", "AMOUNT", "the budget of a calendar month, in the tenant's currency"},
            {"--zone", "ZONE", "whose months; default: UTC"},
            {"--remind", "PERCENT", "tell from here on; default: 80"},
            {"--limit", "PERCENT", "start no new task from here on; default: 100"},
            {"--approve", "PERCENT", "ask somebody from here on; default: 120"},
            {"--running", "POLICY", "what becomes of running tasks at the limit; default: let_run",
             Kind::value, "let_run stop"},
            {"--wait", "LENGTH", "how long a request waits for an answer; default: 24h"},
            {"--tell", "CHANNEL",
             "https://HOST/PATH, http://HOST:PORT/PATH or command:/PATH; may be given again",
             Kind::list}}}};
}

}  // namespace

std::vector<Command> budget_commands() {
  const Operand name{"NAME", "a budget", Operand::Kind::one, "@budget"};
  return {
      {"budget list",
       "The budgets and where they stand",
       "",
       "loam budget list",
       {},
       {},
       run_budget_list},
      {"budget show",
       "One budget with its last notices",
       "",
       "loam budget show ci",
       {name},
       {},
       run_budget_show},
      {"budget set",
       "Make a budget, or give one other terms",
       "What was spent counts from the start of the month. See docs/billing.md for what each "
       "threshold "
       "does.",
       "loam budget set ci --tenant acme --project ci --monthly 100 --running stop\n"
       "loam budget set all --tenant acme --monthly 5000 --tell http://127.0.0.1:9000/budget",
       {name},
       set_options(),
       run_budget_set,
       true},
      {"budget remove",
       "Remove a budget",
       "",
       "loam budget remove ci",
       {name},
       {},
       run_budget_remove,
       true},
      {"budget approve",
       "Approve a budget's open request: its tasks go on",
       "",
       "loam budget approve ci --until 2026-04-01 --up-to 200",
       {name},
       {{"Terms",
         {{"--until", "INSTANT", "when the approval ends"},
          {"--up-to", "AMOUNT", "the limit until then"}}}},
       run_budget_approve,
       true},
      {"budget refuse",
       "Refuse a budget's open request: its running tasks end",
       "",
       "loam budget refuse ci",
       {name},
       {},
       run_budget_refuse,
       true},
  };
}

}  // namespace loam::cli
