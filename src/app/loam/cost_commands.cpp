// advise, cost validate: what needs no daemon of the money, but for our own history.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "app/loam/advice_text.hpp"
#include "app/loam/commands.hpp"
#include "app/loam/session.hpp"
#include "base/currency_codes.hpp"
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

// "30d", "1y", "3y": years are not a duration elsewhere.
Result<Duration> parse_term(std::string_view text) {
  constexpr std::int64_t years_max = 10;
  if (!text.ends_with('y')) return parse_duration(text);
  LOAM_TRY(years, parse_decimal(text.substr(0, text.size() - 1), 0, years_max, "number of years"));
  return Duration::hours(years * 365 * 24);
}

// "reserved=1.30,used=0.10,hidden=0.05,upfront=100,term=1y,interest=4": the first is the name and
// price.
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
    const Error fault =
        invalid("--option: '" + std::string(one) + "' is not understood",
                "write NAME=PRICE[,used=P][,hidden=P][,upfront=P][,term=1y][,interest=%]");
    if (mark == std::string_view::npos || mark == 0) return fault;
    const std::string_view name = one.substr(0, mark), value = one.substr(mark + 1);
    if (!first && name == "interest") {
      const auto share = parse_decimal(value, 2, 1'000'000, "interest in %");
      if (!share) return fault;
      option.interest = {*share};
      continue;
    }
    if (!first && name == "term") {
      const auto term = parse_term(value);
      if (!term || term->ms <= 0) return fault;
      option.term = *term;
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

// Hidden costs by name, and what they are added to.
struct HiddenOption {
  const char* option;
  const char* words;
  bool committed;  // else: on demand
};
constexpr HiddenOption hidden_options[] = {
    {"committed-hidden", "other", true},  {"setup", "set-up time", true},
    {"idle-waste", "idle waste", true},   {"operators", "operators", true},
    {"on-demand-hidden", "other", false}, {"recovery", "recovery", false},
};

// What the daemon's card in force asks, where the command does not say: of the tenant's currency.
struct CardPrices {
  std::string card;
  std::string currency;
  std::string on_demand;
  std::string committed;  // empty: it sells no commitments
};

Result<CardPrices> card_prices(Session& session, const std::string& tenant) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(health, client->health());
  LOAM_TRY(bill, client->bill(tenant, health.now, ""));
  LOAM_TRY(list, client->rates());
  LOAM_TRY(now, parse_instant(health.now));
  CardPrices prices;
  Instant from;
  for (const api::RateView& rate : list.rates) {
    LOAM_TRY(at, parse_instant(rate.effective_from));
    // Of two at one instant the later one holds.
    if (rate.currency != bill.currency || at > now || at < from) continue;
    from = at;
    prices = {rate.id, rate.currency, rate.on_demand, ""};
    for (const Price& price : rate.terms.prices) {
      if (price.purchase_model == PurchaseModel::commitment && price.tariff == Tariff::flat &&
          price.service_class.empty() && !price.work_class && !price.isolation)
        prices.committed = amount_text(price.tiers.front().price);
    }
  }
  if (prices.card.empty())
    return Error{ErrorKind::not_found, "there is no rate card in " + bill.currency + " in force",
                 "give the prices with --on-demand and --committed"};
  return prices;
}

struct AdviceTerms {
  billing::AdviceRequest request;
  std::vector<std::pair<std::string, Money>> hidden;  // by name, those that are not zero
};

Result<void> add_hidden(const Arguments& arguments, Currency currency, AdviceTerms& terms) {
  billing::AdviceRequest& request = terms.request;
  request.on_demand_hidden = Money::zero(currency);
  Money committed = Money::zero(currency);
  for (const HiddenOption& each : hidden_options) {
    LOAM_TRY(amount, amount_of(arguments, each.option, currency));
    if (amount.is_zero()) continue;
    (each.committed ? committed : request.on_demand_hidden) += amount;
    terms.hidden.emplace_back(std::string(each.words) + (each.committed ? " of a committed hour"
                                                                        : " of an hour on demand"),
                              amount);
  }
  for (billing::CommitOption& option : request.options) option.hidden += committed;
  return {};
}

Result<AdviceTerms> advice_terms(const Arguments& arguments,
                                 const std::optional<CardPrices>& card) {
  LOAM_TRY(currency,
           listed_currency(arguments.text("currency", card ? card->currency.c_str() : "USD")));
  AdviceTerms terms;
  billing::AdviceRequest& request = terms.request;
  const std::string on_demand_text =
      arguments.text("on-demand", card ? card->on_demand.c_str() : "");
  if (on_demand_text.empty())
    return invalid("the price on demand is missing", "give it with --on-demand 2.00");
  const auto on_demand = Money::parse(on_demand_text, currency);
  if (!on_demand)
    return invalid("--on-demand: " + on_demand.error().message, on_demand.error().next_step);
  request.on_demand = *on_demand;
  std::string committed_text = arguments.text("committed");
  if (committed_text.empty() && card && arguments.list("option").empty())
    committed_text = card->committed;
  if (!committed_text.empty()) {
    billing::CommitOption option;
    option.name = "committed";
    const auto price = Money::parse(committed_text, currency);
    if (!price) return invalid("--committed: " + price.error().message, price.error().next_step);
    option.price = *price;
    option.used = option.hidden = option.upfront = Money::zero(currency);
    request.options.push_back(option);
  }
  for (const std::string& text : arguments.list("option")) {
    LOAM_TRY(option, option_of(text, currency));
    request.options.push_back(option);
  }
  if (request.options.empty())
    return invalid("there is no committed price to compare with",
                   "give one with --committed 1.30, or several with --option NAME=PRICE");
  LOAM_CHECK(add_hidden(arguments, currency, terms));
  if (arguments.has("spot")) {
    LOAM_TRY(spot, amount_of(arguments, "spot", currency));
    LOAM_TRY(lost, share_of(arguments, "spot-lost", "0"));
    LOAM_TRY(interruptible, share_of(arguments, "interruptible", "100"));
    request.spot = spot;
    request.spot_lost = lost;
    request.interruptible = interruptible;
  }
  return terms;
}

constexpr std::int64_t history_hours_max = 24 * 400;  // a year and a month
constexpr std::int64_t hours_a_question = 24 * 31;

// What a tenant used on demand in each of the full hours up to now, in CE: its mean over the hour.
Result<std::vector<billing::UsageStep>> history_of(Session& session, const Arguments& arguments) {
  constexpr std::int64_t hour_ms = 3'600'000;
  LOAM_TRY(length, parse_duration(arguments.text("history")));
  const std::int64_t hours = length.ms / hour_ms;
  if (hours < 1 || hours > history_hours_max)
    return invalid("--history: " + to_text(length) + " is out of range", "use 1h to 9600h (400d)");
  LOAM_TRY(client, session.client());
  LOAM_TRY(health, client->health());
  LOAM_TRY(now, parse_instant(health.now));
  const std::string tenant = arguments.text("tenant", session.tenant());
  const Instant end{now.ms / hour_ms * hour_ms};
  const Instant begin = end - Duration::hours(hours);
  std::vector<Int128> milli_ce_ms(static_cast<std::size_t>(hours), 0);
  bool any = false;
  for (Instant from = begin; from < end;) {
    const Instant to = std::min(end, from + Duration::hours(hours_a_question));
    LOAM_TRY(list, client->bills(tenant, to_text(from), to_text(to), "hour", "UTC"));
    for (const api::BillView& bill : list.bills) {
      LOAM_TRY(at, parse_instant(bill.from));
      const auto slot = static_cast<std::size_t>((at - begin).ms / hour_ms);
      for (const api::BillLine& line : bill.lines) {
        if (line.purchase_model != "on_demand") continue;
        LOAM_TRY(ce, parse_ce(line.ce));
        milli_ce_ms.at(slot) += static_cast<Int128>(ce.value) * line.billed_ms;
        any = true;
      }
    }
    from = to;
  }
  if (!any)
    return Error{ErrorKind::not_found,
                 "there is no use on demand in the " + std::to_string(hours) + " hours up to " +
                     to_text(end),
                 "take a longer --history, or a file with --usage"};
  std::vector<billing::UsageStep> usage;
  for (std::size_t i = 0; i < milli_ce_ms.size(); ++i) {
    const auto mean = static_cast<std::int64_t>((milli_ce_ms[i] + hour_ms / 2) / hour_ms);
    usage.push_back({begin + Duration::hours(static_cast<std::int64_t>(i)), Duration::hours(1),
                     std::max<std::int64_t>(0, mean)});
  }
  return usage;
}

Result<std::vector<billing::UsageStep>> usage_of(Session& session, const Arguments& arguments) {
  if (arguments.has("history")) return history_of(session, arguments);
  LOAM_TRY(text, file_text(arguments.text("usage")));
  return billing::read_usage_csv(text, arguments.text("usage"));
}

Result<std::vector<billing::UsageStep>> expected_of(Session& session, const Arguments& arguments,
                                                    const std::vector<billing::UsageStep>& usage) {
  LOAM_TRY(ahead, parse_duration(arguments.text("forecast")));
  if (ahead.ms == 0) return invalid("--forecast: 0s is no time", "write it as 30d");
  LOAM_TRY(zone, billing::Zone::open(arguments.text("zone", "UTC")));
  const Duration seen = usage.back().from + usage.back().length - usage.front().from;
  if (seen < Duration::hours(14 * 24))
    session.say("note: a forecast from less than two weeks; what a week looks like is a guess");
  return billing::forecast(usage, ahead, zone);
}

Result<int> run_advise(Session& session, const Arguments& arguments) {
  if (!arguments.has("history") && !arguments.has("usage"))
    return invalid("there is no usage to look at",
                   "give a file with --usage FILE.csv, or your own with --history 30d");
  const bool priced = arguments.has("on-demand") &&
                      (arguments.has("committed") || !arguments.list("option").empty());
  std::optional<CardPrices> card;
  if (arguments.has("history") && !priced) {
    LOAM_TRY(read, card_prices(session, arguments.text("tenant", session.tenant())));
    session.say("note: prices of the rate card " + read.card + " where none are given");
    card = std::move(read);
  }
  LOAM_TRY(terms, advice_terms(arguments, card));
  const billing::AdviceRequest& request = terms.request;
  LOAM_TRY(usage, usage_of(session, arguments));
  if (arguments.has("forecast")) {
    LOAM_TRY(coming, expected_of(session, arguments, usage));
    usage = std::move(coming);
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
    session.out() << advice_json(advice, request, terms.hidden) << "\n";
  } else {
    session.out() << advice_text(advice, request, terms.hidden, session.console().colour,
                                 session.width());
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
         "advise on what the hours of the week let expect for so long, not on the past"},
        {"--zone", "ZONE", "whose hours and days; default: UTC"}}},
      {"Prices, per unit and hour",
       {{"--on-demand", "PRICE",
         "what an hour costs where nothing is committed; with --history: the rate card's"},
        {"--committed", "PRICE", "what a committed hour costs, used or not; likewise"},
        {"--option", "NAME=PRICE",
         "another commitment; also used=, hidden=, upfront=, term=, interest= after commas",
         Kind::list},
        {"--spot", "PRICE", "what an hour of spot costs"},
        {"--spot-lost", "PERCENT", "of spot work that is lost and done again; default: 0"},
        {"--interruptible", "PERCENT", "of the work that may run on spot; default: 100"},
        {"--currency", "CODE", "default: USD"}}},
      {"Hidden costs, per unit and hour; they add up",
       {{"--setup", "PRICE", "of a committed hour: set-up time"},
        {"--idle-waste", "PRICE", "of a committed hour: what idles and still costs"},
        {"--operators", "PRICE", "of a committed hour: who looks after it"},
        {"--committed-hidden", "PRICE", "of a committed hour: what else"},
        {"--recovery", "PRICE", "of an hour on demand: start-up, lost work done again"},
        {"--on-demand-hidden", "PRICE", "of an hour on demand: what else"}}},
      {"Output", {{"--plot", "FILE", "write a picture (SVG)", Kind::value, "@path"}}}};
}

}  // namespace

std::vector<Command> cost_commands() {
  return {
      {"advise",
       "What to buy: how much to commit to, for a curve of use",
       "Compares all on demand, all committed, and the cheapest mix of both. An upfront fee is "
       "for\n"
       "its term (term=1y), or for the time looked at.",
       "loam advise --usage use.csv --on-demand 2.00 --committed 1.30\n"
       "loam advise --history 30d --tenant acme",
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
