// commit buy, cancel and list: capacity, or money an hour, by the month, the quarter or the year.
#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/request.hpp"
#include "app/loam/session.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

int print_commitments(Session& session, const std::vector<api::CommitmentView>& all) {
  Table table({{"ID"},
               {"TENANT"},
               {"SIZE", Align::right},
               {"PERIOD"},
               {"FROM (UTC)"},
               {"TO (UTC)"},
               {"A CE-HOUR", Align::right},
               {"FEES", Align::right},
               {""},
               {"STATE"}});
  for (const api::CommitmentView& commitment : all) {
    std::size_t charged = 0;
    for (const api::CommitmentFeeView& fee : commitment.fees) charged += fee.charged ? 1 : 0;
    const std::string size = commitment.spend == "0"
                                 ? commitment.ce + " CE"
                                 : money_short(commitment.spend, commitment.currency) + " an hour";
    table.add({commitment.id, commitment.tenant, size, commitment.period,
               instant_text(commitment.from), instant_text(commitment.to),
               money_short(commitment.unit_price, commitment.currency),
               std::to_string(charged) + " of " + std::to_string(commitment.fees.size()),
               commitment.currency, commitment.state});
  }
  session.out() << session.text_of(table);
  return 0;
}

Result<int> run_commit_list(Session& session, const Arguments&) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->commitments());
  if (session.json()) return session.print_json(list);
  if (list.commitments.empty()) {
    session.say("no commitments; buy one with: loam commit buy TENANT --ce 10");
    return 0;
  }
  return print_commitments(session, list.commitments);
}

Result<int> run_commit_buy(Session& session, const Arguments& arguments) {
  api::CommitmentRequest request;
  request.tenant = arguments.operand(0).empty() ? session.tenant() : arguments.operand(0);
  if (arguments.has("ce") == arguments.has("spend")) {
    return invalid(arguments.has("ce") ? "both --ce and --spend are given" : "the size is missing",
                   "give it as a capacity, --ce 10, or as money an hour, --spend 1.00");
  }
  request.ce = arguments.text("ce");
  if (arguments.has("spend")) request.spend = arguments.text("spend");
  request.period = arguments.text("period", request.period);
  for (const auto& [option, field] :
       {std::pair{"from", &request.from}, {"until", &request.until}, {"anchor", &request.anchor}}) {
    if (arguments.has(option)) *field = arguments.text(option);
  }
  request.project = arguments.text("project", request.project);
  request.environment = arguments.text("environment", request.environment);
  request.model = arguments.text("model");
  LOAM_CHECK(take_tags(arguments, request.tags));
  LOAM_TRY(client, session.client());
  LOAM_TRY(commitment, client->buy_commitment(request));
  if (session.json()) return session.print_json(commitment);
  print_commitments(session, {commitment});
  Table fees(
      {{"FEE FROM (UTC)"}, {"TO (UTC)"}, {"DAYS", Align::right}, {"NET", Align::right}, {""}});
  for (const api::CommitmentFeeView& fee : commitment.fees) {
    fees.add({instant_text(fee.from), instant_text(fee.to),
              std::to_string(fee.days) + " of " + std::to_string(fee.days_of_period),
              money_exact(fee.net, commitment.currency), fee.charged ? "charged" : ""});
  }
  session.out() << "\n" << session.text_of(fees);
  return 0;
}

Result<int> run_commit_cancel(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(commitment, client->cancel_commitment(arguments.operand(0), {arguments.text("reason")}));
  if (session.json()) return session.print_json(commitment);
  return print_commitments(session, {commitment});
}

}  // namespace

std::vector<Command> commit_commands() {
  return {
      {"commit list",
       "The commitments and where they stand",
       "",
       "loam commit list",
       {},
       {},
       run_commit_list},
      {"commit buy",
       "Buy capacity, or use worth so much an hour, by the month, the quarter or the year",
       "It covers what the tenant uses on demand at the standard class, the longest running "
       "first;\n"
       "the rest stays on demand. Fees are by the day, charged as each period begins. What of an\n"
       "hour is covered is given back when the hour is over. Money covers what it is worth at the\n"
       "price of a committed CE-hour. See docs/billing.md.",
       "loam commit buy acme --ce 10\nloam commit buy acme --spend 1.00\n"
       "loam commit buy acme --ce 40 --period year --from 2026-05-20 --until 2027-04-01 "
       "--anchor 2026-04-01",
       {{"TENANT", "default: LOAM_TENANT, else the caller's own", Operand::Kind::maybe, "@tenant"}},
       {{"How much",
         {{"--ce", "CE", "how much, at every instant"},
          {"--spend", "AMOUNT", "money an hour, instead of --ce"},
          {"--period", "PERIOD", "of the fees; default: month", Kind::value,
           "month quarter year"}}},
        {"When",
         {{"--from", "DAY", "its first day; default: today"},
          {"--until", "DAY", "the day after its last; default: one period later"},
          {"--anchor", "DAY", "periods begin on this day of the month; default: the first day's"}}},
        {"Whose cost the fee is",
         {{"--project", "NAME", "default: default"},
          {"--environment", "NAME", "default: default"},
          {"--model", "NAME", "default: none"},
          {"--tag", "KEY=VALUE", "a tag on the bill; may be given again", Kind::list}}}},
       run_commit_buy,
       true},
      {"commit cancel",
       "End a commitment",
       "Before its first day it costs nothing. Later it ends with the period that is paid: it\n"
       "covers to that day, and no further fee is charged.",
       "loam commit cancel com-3",
       {{"ID", "a commitment, such as com-3", Operand::Kind::one, "@commit"}},
       {{"How", {{"--reason", "TEXT", "what the journal says of it"}}}},
       run_commit_cancel,
       true},
  };
}

}  // namespace loam::cli
