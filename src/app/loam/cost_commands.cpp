// advise, cost validate: what needs no daemon of the money, but for our own history.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "app/loam/advice_text.hpp"
#include "app/loam/commands.hpp"
#include "app/loam/session.hpp"
#include "billing/advice.hpp"
#include "billing/csv.hpp"
#include "billing/focus.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

Result<std::string> file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad())
    return Error{ErrorKind::not_found, "the file '" + path + "' cannot be read",
                 "check its name and who may read it"};
  return text;
}

Result<Money> amount_of(const Arguments& arguments, const char* option, Currency currency) {
  const auto amount = Money::parse(arguments.text(option, "0"), currency);
  if (!amount)
    return invalid("--" + std::string(option) + ": " + amount.error().message,
                   amount.error().next_step);
  return *amount;
}

// "20", "20%", "12.5%".
Result<BasisPoints> share_of(const Arguments& arguments, const char* option,
                             const char* otherwise) {
  std::string text = arguments.text(option, otherwise);
  if (text.ends_with('%')) text.pop_back();
  const auto share = parse_decimal(text, 2, 10'000, "share in %");
  if (!share)
    return invalid("--" + std::string(option) + ": " + share.error().message,
                   "write a number from 0 to 100");
  return BasisPoints{*share};
}

// "reserved=1.30,used=0.10,hidden=0.05,upfront=100,interest=4": the first is the name and price.
Result<billing::CommitOption> option_of(const std::string& text, Currency currency) {
  billing::CommitOption option;
  const Money zero = Money::zero(currency);
  option.price = option.used = option.hidden = option.upfront = zero;
  std::string_view rest = text;
  for (bool first = true; !rest.empty(); first = false) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t mark = one.find('=');
    const Error fault = invalid("--option: '" + std::string(one) + "' is not understood",
                                "write NAME=PRICE[,used=P][,hidden=P][,upfront=P][,interest=%]");
    if (mark == std::string_view::npos || mark == 0) return fault;
    const std::string_view name = one.substr(0, mark), value = one.substr(mark + 1);
    if (!first && name == "interest") {
      const auto share = parse_decimal(value, 2, 1'000'000, "interest in %");
      if (!share) return fault;
      option.interest = {*share};
      continue;
    }
    const auto amount = Money::parse(value, currency);
    if (!amount) return fault;
    if (first) {
      option.name = std::string(name);
      option.price = *amount;
    } else if (name == "used") {
      option.used = *amount;
    } else if (name == "hidden") {
      option.hidden = *amount;
    } else if (name == "upfront") {
      option.upfront = *amount;
    } else {
      return fault;
    }
  }
  if (option.name.empty()) return invalid("--option: no name and price", "write NAME=PRICE");
  return option;
}

Result<billing::AdviceRequest> advice_request(const Arguments& arguments) {
  LOAM_TRY(currency, Currency::parse(arguments.text("currency", "USD")));
  billing::AdviceRequest request;
  if (!arguments.has("on-demand"))
    return invalid("the price on demand is missing", "give it with --on-demand 2.00");
  LOAM_TRY(on_demand, amount_of(arguments, "on-demand", currency));
  LOAM_TRY(on_demand_hidden, amount_of(arguments, "on-demand-hidden", currency));
  request.on_demand = on_demand;
  request.on_demand_hidden = on_demand_hidden;
  if (arguments.has("committed")) {
    billing::CommitOption option;
    option.name = "committed";
    LOAM_TRY(price, amount_of(arguments, "committed", currency));
    LOAM_TRY(hidden, amount_of(arguments, "committed-hidden", currency));
    option.price = price;
    option.hidden = hidden;
    option.used = option.upfront = Money::zero(currency);
    request.options.push_back(option);
  }
  for (const std::string& text : arguments.list("option")) {
    LOAM_TRY(option, option_of(text, currency));
    request.options.push_back(option);
  }
  if (request.options.empty())
    return invalid("there is no committed price to compare with",
                   "give one with --committed 1.30, or several with --option NAME=PRICE");
  if (arguments.has("spot")) {
    LOAM_TRY(spot, amount_of(arguments, "spot", currency));
    LOAM_TRY(lost, share_of(arguments, "spot-lost", "0"));
    LOAM_TRY(interruptible, share_of(arguments, "interruptible", "100"));
    request.spot = spot;
    request.spot_lost = lost;
    request.interruptible = interruptible;
  }
  return request;
}

constexpr std::int64_t history_hours_max = 1000;  // each is a question to the daemon

// What a tenant used on demand in each of the full hours up to now, in CE: its mean over the hour.
Result<std::vector<billing::UsageStep>> history_of(Session& session, const Arguments& arguments) {
  constexpr std::int64_t hour_ms = 3'600'000;
  LOAM_TRY(length, parse_duration(arguments.text("history")));
  const std::int64_t hours = length.ms / hour_ms;
  if (hours < 1 || hours > history_hours_max)
    return invalid("--history: " + to_text(length) + " is out of range", "use 1h to 1000h (41d)");
  LOAM_TRY(client, session.client());
  LOAM_TRY(health, client->health());
  LOAM_TRY(now, parse_instant(health.now));
  const std::string tenant = arguments.text("tenant", session.tenant());
  const Instant end{now.ms / hour_ms * hour_ms};
  std::vector<billing::UsageStep> usage;
  for (std::int64_t i = hours; i > 0; --i) {
    const Instant from = end - Duration::hours(i);
    const Duration length_of_step = Duration::hours(1);
    LOAM_TRY(bill, client->bill(tenant, to_text(from), to_text(from + length_of_step)));
    Int128 milli_ce_ms = 0;
    for (const api::BillLine& line : bill.lines) {
      if (line.purchase_model != "on_demand") continue;
      LOAM_TRY(ce, parse_ce(line.ce));
      milli_ce_ms += static_cast<Int128>(ce.value) * line.billed_ms;
    }
    const auto mean = static_cast<std::int64_t>(milli_ce_ms / hour_ms);
    usage.push_back({from, length_of_step, std::max<std::int64_t>(0, mean)});
  }
  return usage;
}

Result<std::vector<billing::UsageStep>> usage_of(Session& session, const Arguments& arguments) {
  if (arguments.has("history")) return history_of(session, arguments);
  LOAM_TRY(text, file_text(arguments.text("usage")));
  return billing::read_usage_csv(text, arguments.text("usage"));
}

Result<int> run_advise(Session& session, const Arguments& arguments) {
  if (!arguments.has("history") && !arguments.has("usage"))
    return invalid("there is no usage to look at",
                   "give a file with --usage FILE.csv, or your own with --history 30d");
  LOAM_TRY(request, advice_request(arguments));
  LOAM_TRY(usage, usage_of(session, arguments));
  if (arguments.has("forecast")) {
    LOAM_TRY(ahead, parse_duration(arguments.text("forecast")));
    if (ahead.ms == 0) return invalid("--forecast: 0s is no time", "write it as 30d");
    usage = billing::forecast(usage, ahead);
  }
  LOAM_TRY(advice, billing::advise(usage, request));
  if (arguments.has("plot")) {
    const std::string path = arguments.text("plot");
    std::ofstream file(path, std::ios::binary);
    file << advice_svg(usage, advice);
    file.close();
    if (!file)
      return Error{ErrorKind::unavailable, "the picture '" + path + "' cannot be written",
                   "check the folder"};
    session.say("the picture is in " + printable(path));
  }
  if (session.json()) {
    session.out() << advice_json(advice, request) << "\n";
  } else {
    session.out() << advice_text(advice, request, session.console().colour, session.width());
  }
  return 0;
}

std::string fault_json(const billing::FocusFault& fault) {
  return "{\"row\":" + std::to_string(fault.row) +
         ",\"column\":" + billing::json_string(fault.column) +
         ",\"fault\":" + billing::json_string(fault.what) + "}";
}

Result<int> run_cost_validate(Session& session, const Arguments& arguments) {
  LOAM_TRY(text, file_text(arguments.operand(0)));
  const auto checked = billing::validate_focus(text);
  if (!checked) {
    return Error{checked.error().kind, arguments.operand(0) + ": " + checked.error().message,
                 checked.error().next_step};
  }
  const billing::FocusReport& report = *checked;
  if (session.json()) {
    session.out() << "{\"valid\":" << (report.faults.empty() ? "true" : "false")
                  << ",\"rows\":" << report.rows << ",\"faults\":[";
    for (std::size_t i = 0; i < report.faults.size(); ++i)
      session.out() << (i == 0 ? "" : ",") << fault_json(report.faults[i]);
    session.out() << "],\"more\":" << (report.more ? "true" : "false") << "}\n";
  } else {
    for (const billing::FocusFault& fault : report.faults) {
      session.out() << (fault.row == 0 ? "file" : "row " + std::to_string(fault.row)) << ": "
                    << printable(fault.column) << (fault.column.empty() ? "" : " ")
                    << printable(fault.what) << "\n";
    }
    if (report.more) session.out() << "and more\n";
    if (report.faults.empty()) session.out() << report.rows << " rows, valid as FOCUS 1.4\n";
  }
  return report.faults.empty() ? 0 : 1;
}

std::vector<OptionGroup> advise_options() {
  return {
      {"Usage",
       {{"--usage", "FILE", "CSV of time,amount: instants or whole hours", Kind::value, "@path"},
        {"--history", "DURATION",
         "instead: what a tenant used on demand for so long, hour by hour"},
        {"--tenant", "NAME", "whose; default: LOAM_TENANT, else the caller's own", Kind::value,
         "@tenant"},
        {"--forecast", "DURATION",
         "advise on what the hours of the week let expect for so long, not on the past"}}},
      {"Prices, per unit and hour",
       {{"--on-demand", "PRICE", "what an hour costs where nothing is committed"},
        {"--committed", "PRICE", "what a committed hour costs, used or not"},
        {"--committed-hidden", "PRICE", "on top of it: operators, idle waste, set-up"},
        {"--on-demand-hidden", "PRICE", "on top of on demand: start-up time, recovery"},
        {"--option", "NAME=PRICE",
         "another commitment; also used=, hidden=, upfront=, interest= after commas", Kind::list},
        {"--spot", "PRICE", "what an hour of spot costs"},
        {"--spot-lost", "PERCENT", "of spot work that is lost and done again; default: 0"},
        {"--interruptible", "PERCENT", "of the work that may run on spot; default: 100"},
        {"--currency", "CODE", "default: USD"}}},
      {"Output", {{"--plot", "FILE", "write a picture (SVG)", Kind::value, "@path"}}}};
}

}  // namespace

std::vector<Command> cost_commands() {
  return {
      {"advise",
       "What to buy: how much to commit to, for a curve of use",
       "Compares all on demand, all committed, and the cheapest mix of both.",
       "loam advise --usage use.csv --on-demand 2.00 --committed 1.30\n"
       "loam advise --history 30d --tenant acme --on-demand 2.00 --committed 1.30",
       {},
       advise_options(),
       run_advise},
      {"cost validate",
       "Check a FOCUS 1.4 file of costs: CSV or JSON lines",
       "Exit status 1 where there is any fault.",
       "loam cost validate costs.csv",
       {{"FILE", "the file to check", Operand::Kind::one, "@path"}},
       {},
       run_cost_validate},
  };
}

}  // namespace loam::cli
