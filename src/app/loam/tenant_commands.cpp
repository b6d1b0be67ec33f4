// tenant create, list, show, set, topup, refund.
#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "base/currency_codes.hpp"
#include "base/money.hpp"
#include "base/quantity.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

// The parsers name the part that is off; `text` is what was typed.
Error of_option(const char* option, const std::string& text, const Error& error) {
  const bool named = error.message.find(text) != std::string::npos;
  return {error.kind,
          "--" + std::string(option) + (named ? ": " : " '" + text + "': ") + error.message,
          error.next_step};
}

void take(const Arguments& arguments, const char* option, std::optional<std::string>& out) {
  if (arguments.has(option)) out = arguments.text(option);
}

// Quantities of the options that create and set share, told here where they are none.
Result<void> check_quantities(const Arguments& arguments) {
  const auto check = [&](const char* option, auto parse) -> Result<void> {
    if (!arguments.has(option) || arguments.text(option) == "none") return {};
    if (const auto value = parse(arguments.text(option)); !value)
      return of_option(option, arguments.text(option), value.error());
    return {};
  };
  constexpr std::int64_t count_max = 2'147'483'647;
  const auto count = [](const std::string& text) {
    return parse_decimal(text, 0, count_max, "whole number");
  };
  const auto amount = [](const std::string& text) { return Money::parse(text, Currency()); };
  LOAM_CHECK(check("quota-ce", [](const std::string& text) {
    return parse_decimal(text, 3, milli_ce_max.value, "number of CE");
  }));
  LOAM_CHECK(check("quota-memory", [](const std::string& text) -> Result<Mebibytes> {
    if (text == "0") return Mebibytes{0};
    return parse_memory(text);
  }));
  LOAM_CHECK(check("quota-tasks", count));
  LOAM_CHECK(check("quota-queued", count));
  LOAM_CHECK(check("credit", amount));
  LOAM_CHECK(check("discount", [](const std::string& text) {
    return parse_decimal(text, 2, 10'000, "percentage");
  }));
  LOAM_CHECK(check("topup", amount));
  return {};
}

template <class Request>
void take_shared(const Arguments& arguments, Request& request) {
  take(arguments, "quota-devices", request.quota_devices);
  take(arguments, "quota-time", request.quota_longest);
  take(arguments, "quota-ce-hours", request.quota_ce_hours);
  take(arguments, "cohort", request.cohort);
  take(arguments, "borrow", request.borrow_percent);
  take(arguments, "lend", request.lend_percent);
  take(arguments, "billing-zone", request.billing_zone);
  take(arguments, "invoicing", request.invoicing);
}

Result<std::optional<std::int64_t>> count_of_option(const Arguments& arguments,
                                                    const char* option) {
  if (!arguments.has(option) || arguments.text(option) == "none")
    return std::optional<std::int64_t>();
  constexpr std::int64_t count_max = 2'147'483'647;
  LOAM_TRY(value, parse_decimal(arguments.text(option), 0, count_max, "whole number"));
  return std::optional(value);
}

std::string quota_text(const api::TenantView& tenant) {
  std::string text;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  if (tenant.quota_ce) add(*tenant.quota_ce + " CE");
  if (tenant.quota_memory) add(*tenant.quota_memory + " of device memory");
  if (tenant.quota_tasks) add(count_of(*tenant.quota_tasks, "task") + " at once");
  if (tenant.quota_queued) add(std::to_string(*tenant.quota_queued) + " waiting");
  if (tenant.quota_devices) add(*tenant.quota_devices + " devices");
  if (tenant.quota_longest) add("at most " + *tenant.quota_longest + " a task");
  if (tenant.quota_ce_hours) add(*tenant.quota_ce_hours + " CE-hours a month");
  if (tenant.cohort) add("in cohort " + *tenant.cohort);
  if (tenant.borrow_percent) add("borrows at most " + *tenant.borrow_percent + " %");
  if (tenant.lend_percent) add("lends at most " + *tenant.lend_percent + " %");
  return text.empty() ? "no limit" : text;
}

int print_tenant(Session& session, const api::TenantView& tenant) {
  if (session.json()) return session.print_json(tenant);
  const auto money = [&](const std::string& amount) {
    return money_exact(amount, tenant.currency) + " " + tenant.currency;
  };
  const bool postpaid = tenant.payment == "postpaid";
  session.out() << facts_text(
      {{"tenant", tenant.name + " (" + tenant.id + ")"},
       {"payment",
        tenant.payment + (postpaid ? ", up to " + money(tenant.credit_limit) : std::string())},
       {"wallet", money(tenant.wallet)},
       {"held", money(tenant.held)},
       {"available", money(tenant.available)},
       {"discount", tenant.discount_percent + " %"},
       {"invoices", (tenant.invoicing == "monthly" ? "by the month of " : "on demand, months of ") +
                        tenant.billing_zone},
       {"quota", quota_text(tenant)},
       {"in use", tenant.ce_used + " CE in " + count_of(tenant.tasks_running, "running task") +
                      ", " + std::to_string(tenant.tasks_waiting) + " waiting"}},
      session.console().colour);
  return 0;
}

Result<int> run_create(Session& session, const Arguments& arguments) {
  LOAM_CHECK(check_quantities(arguments));
  api::TenantRequest request;
  request.name = arguments.operand(0);
  request.payment = arguments.text("payment", request.payment);
  request.currency = arguments.text("currency", request.currency);
  if (const auto currency = listed_currency(request.currency); !currency)
    return of_option("currency", request.currency, currency.error());
  // What cannot be paid in is told before there is a tenant.
  if (arguments.has("topup")) {
    LOAM_TRY(currency, listed_currency(request.currency));
    LOAM_TRY(amount, Money::parse(arguments.text("topup"), currency));
    if (const auto paid = payable(amount); !paid)
      return of_option("topup", arguments.text("topup"), paid.error());
  }
  take(arguments, "credit", request.credit_limit);
  take(arguments, "discount", request.discount_percent);
  take(arguments, "quota-ce", request.quota_ce);
  take(arguments, "quota-memory", request.quota_memory);
  LOAM_TRY(tasks, count_of_option(arguments, "quota-tasks"));
  LOAM_TRY(queued, count_of_option(arguments, "quota-queued"));
  request.quota_tasks = tasks;
  request.quota_queued = queued;
  take_shared(arguments, request);
  LOAM_TRY(client, session.client());
  LOAM_TRY(tenant, client->create_tenant(request));
  if (arguments.has("topup")) {
    LOAM_TRY(topped, client->top_up(request.name, {arguments.text("topup"), "at the start"}));
    tenant = std::move(topped);
  }
  return print_tenant(session, tenant);
}

Result<int> run_list(Session& session, const Arguments&) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->tenants());
  if (session.json()) return session.print_json(list);
  if (list.tenants.empty()) {
    session.say("no tenants; make one with: loam tenant create NAME --topup 100");
    return 0;
  }
  Table table({{"TENANT"},
               {"PAYMENT"},
               {"AVAILABLE", Align::right},
               {"HELD", Align::right},
               {""},
               {"CE USED", Align::right},
               {"RUNNING", Align::right},
               {"WAITING", Align::right},
               {"QUOTA", Align::left, true}});
  for (const api::TenantView& tenant : list.tenants) {
    table.add({tenant.name, tenant.payment, money_short(tenant.available, tenant.currency),
               money_short(tenant.held, tenant.currency), tenant.currency, tenant.ce_used,
               std::to_string(tenant.tasks_running), std::to_string(tenant.tasks_waiting),
               quota_text(tenant)});
  }
  session.out() << session.text_of(table);
  return 0;
}

Result<int> run_show(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(tenant, client->tenant(arguments.operand(0)));
  return print_tenant(session, tenant);
}

Result<int> run_set(Session& session, const Arguments& arguments) {
  LOAM_CHECK(check_quantities(arguments));
  api::TenantPatch patch;
  take(arguments, "payment", patch.payment);
  take(arguments, "credit", patch.credit_limit);
  take(arguments, "discount", patch.discount_percent);
  take(arguments, "quota-ce", patch.quota_ce);
  take(arguments, "quota-memory", patch.quota_memory);
  take(arguments, "quota-tasks", patch.quota_tasks);
  take(arguments, "quota-queued", patch.quota_queued);
  take_shared(arguments, patch);
  if (api::to_json(patch) == api::to_json(api::TenantPatch{}))
    return invalid("nothing to change is named", "see: loam tenant set --help");
  LOAM_TRY(client, session.client());
  LOAM_TRY(tenant, client->change_tenant(arguments.operand(0), patch));
  return print_tenant(session, tenant);
}

Result<int> run_topup(Session& session, const Arguments& arguments) {
  const std::string amount = arguments.operand(1);
  if (const auto read = Money::parse(amount, Currency()); !read) return read.error();
  LOAM_TRY(client, session.client());
  LOAM_TRY(tenant, client->top_up(arguments.operand(0), {amount, arguments.text("note")}));
  return print_tenant(session, tenant);
}

Result<int> run_refund(Session& session, const Arguments& arguments) {
  const std::string amount = arguments.operand(1);
  if (const auto read = Money::parse(amount, Currency()); !read) return read.error();
  if (arguments.text("note").empty())
    return invalid("a refund says what it is", "give it with --note \"transfer 4711 back\"");
  LOAM_TRY(client, session.client());
  LOAM_TRY(tenant, client->pay_out(arguments.operand(0), {amount, arguments.text("note")}));
  return print_tenant(session, tenant);
}

Result<int> run_address(Session& session, const Arguments& arguments) {
  const std::string tenant = arguments.operand(0);
  LOAM_TRY(client, session.client());
  LOAM_TRY(party, client->buyer(tenant));
  const bool asked = arguments.has("name") || arguments.has("address") || arguments.has("tax-id");
  if (arguments.has("forget") && asked)
    return invalid("--forget comes with something to say", "do one after the other");
  if (asked || arguments.has("forget")) {
    api::PartyRequest request;
    if (asked) {
      request.name = arguments.text("name", party.name);
      request.address = arguments.has("address") ? std::string() : party.address;
      for (const std::string& line : arguments.list("address"))
        request.address += (request.address.empty() ? "" : "\n") + line;
      request.tax_id = arguments.text("tax-id", party.tax_id);
    }
    LOAM_TRY(changed, client->set_buyer(tenant, request));
    party = std::move(changed);
  }
  if (session.json()) return session.print_json(party);
  if (party.name.empty() && party.address.empty() && party.tax_id.empty()) {
    session.say("nothing is known of " + tenant + "; say it with: loam tenant address " + tenant +
                " --name \"ACME Ltd\" --address \"1 High Street\"");
    return 0;
  }
  for (const std::string& text : {party.name, party.address}) {
    if (!text.empty()) session.out() << printable_lines(text) << "\n";
  }
  if (!party.tax_id.empty()) session.out() << "Tax ID " << printable(party.tax_id) << "\n";
  return 0;
}

std::vector<Option> terms() {
  return {{"--payment", "MODE", "prepaid from the wallet, or postpaid up to a credit limit",
           Kind::value, "prepaid postpaid"},
          {"--credit", "AMOUNT", "credit limit, of postpaid"},
          {"--discount", "PERCENT", "off list price, such as 12.5"},
          {"--quota-ce", "CE", "CE held by running tasks at once; none: no limit"},
          {"--quota-memory", "SIZE", "device memory likewise"},
          {"--quota-tasks", "N", "tasks running at once"},
          {"--quota-queued", "N", "tasks waiting at once"},
          {"--quota-devices", "N", "devices held by running tasks at once, such as 2.5"},
          {"--quota-time", "DURATION", "the longest time limit of a task"},
          {"--quota-ce-hours", "N", "CE-hours of a calendar month, UTC; none: no limit"},
          {"--cohort", "NAME", "its idle quota is for the others of it, and theirs for it"},
          {"--borrow", "PERCENT", "beyond its quota, of it; none: whatever idles in the cohort"},
          {"--lend", "PERCENT", "of its quota; none: all that idles"},
          {"--billing-zone", "ZONE", "whose months its invoices are of, such as Europe/Berlin"},
          {"--invoicing", "WHEN", "an hour after each month's end too, or only when asked",
           Kind::value, "monthly on_demand"}};
}

Command address_command(const Operand& name) {
  return {
      "tenant address",
      "Who a tenant is on its invoices: name, address, tax number",
      "On those issued from now on. Kept beside the journal, which never changes: --forget takes\n"
      "it off the invoices already issued too, which name the tenant alone then.",
      "loam tenant address acme\n"
      "loam tenant address acme --name 'ACME Ltd' --address '1 High Street' --address Oxford "
      "--tax-id GB123",
      {name},
      {{"Who",
        {{"--name", "TEXT", "in full"},
         {"--address", "TEXT", "a line of it; give it again for more", Option::Kind::list},
         {"--tax-id", "TEXT", "as its invoices must show it"},
         {"--forget", "", "all that was ever said of it", Option::Kind::flag}}}},
      run_address,
      true};
}

}  // namespace

std::vector<Command> tenant_commands() {
  const Operand name{"NAME", "a tenant", Operand::Kind::one, "@tenant"};
  std::vector<Option> at_start = terms();
  at_start.push_back({"--currency", "CODE", "of its wallet and bills; default: USD"});
  at_start.push_back({"--topup", "AMOUNT", "put this into its wallet at once"});
  return {
      {"tenant create",
       "Make a tenant",
       "",
       "loam tenant create acme --topup 100\n"
       "loam tenant create beta --payment postpaid --credit 500 --quota-ce 200\n"
       "loam tenant create gamma --invoicing monthly --billing-zone Asia/Kolkata",
       {{"NAME", "a new name: a-z, 0-9 and '-', beginning with a letter"}},
       {{"Terms", at_start}},
       run_create,
       true},
      {"tenant list",
       "The tenants, what they hold and use",
       "",
       "loam tenant list",
       {},
       {},
       run_list},
      {"tenant show",
       "One tenant's terms, money and use",
       "",
       "loam tenant show acme",
       {name},
       {},
       run_show},
      {"tenant set",
       "Change a tenant's terms; what is left out stays",
       "",
       "loam tenant set acme --discount 10 --quota-ce none",
       {name},
       {{"Terms", terms()}},
       run_set,
       true},
      address_command(name),
      {"tenant topup",
       "Put money into a tenant's wallet",
       "",
       "loam tenant topup acme 250 --note 'transfer 4711'",
       {name, {"AMOUNT", "in the tenant's currency, such as 250 or 19.90"}},
       {{"How", {{"--note", "TEXT", "what the ledger says of it"}}}},
       run_topup,
       true},
      {"tenant refund",
       "Pay money out of a tenant's wallet",
       "At most what is free of it: what is held for tasks stays. What was written down and did\n"
       "not happen is turned round with: loam ledger reverse",
       "loam tenant refund acme 50 --note 'unused, transfer 4712'",
       {name, {"AMOUNT", "in the tenant's currency, such as 50 or 19.90"}},
       {{"How", {{"--note", "TEXT", "what the ledger says of it; required"}}}},
       run_refund,
       true},
  };
}

}  // namespace loam::cli
