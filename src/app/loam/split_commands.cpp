// cost split: what the pool cost, over those who held it; idle cost by a stated method.
#include "app/loam/capacity.hpp"
#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "app/loam/spending.hpp"
#include "base/currency_codes.hpp"
#include "billing/csv.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

struct Asked {
  Money cost;
  billing::IdleMethod method = billing::IdleMethod::kept;
  std::string by;
  billing::Period period;
};

struct Part {
  std::string group;  // empty: idle
  Int128 held = 0;    // milli-CE × milliseconds
  Money cost;
};

Result<Asked> asked_of(const Arguments& arguments) {
  Asked asked;
  LOAM_TRY(currency, listed_currency(arguments.text("currency", "USD")));
  if (!arguments.has("cost"))
    return invalid("what the pool cost is not named", "give it with --cost 12000");
  LOAM_TRY(cost, Money::parse(arguments.text("cost"), currency));
  if (cost.is_negative())
    return invalid("--cost: " + arguments.text("cost") + " is below zero", "give what it cost");
  asked.cost = cost;
  LOAM_TRY(method, billing::parse_idle_method(arguments.text("idle", "kept")));
  asked.method = method;
  asked.by = arguments.text("by", "tenant");
  billing::CostQuery query;
  query.group_by = {asked.by};
  LOAM_CHECK(billing::group_costs({}, query));
  LOAM_TRY(zone, billing::Zone::open(arguments.text("zone", "UTC")));
  const auto instant = [&](const char* option) -> Result<Instant> {
    const std::string text = arguments.text(option);
    if (const auto date = billing::parse_date(text); date.ok())
      return zone.first_instant({*date, {}});
    return parse_instant(text);
  };
  if (arguments.has("month")) {
    LOAM_TRY(month, billing::parse_month(zone, arguments.text("month")));
    asked.period = month;
    return asked;
  }
  if (!arguments.has("from") || !arguments.has("to"))
    return invalid("the time that the cost is for is not named",
                   "give --month 2026-03, or --from and --to");
  LOAM_TRY(from, instant("from"));
  LOAM_TRY(to, instant("to"));
  if (from >= to)
    return invalid("the time from " + to_text(from) + " to " + to_text(to) + " is empty",
                   "give a --from before --to");
  asked.period = {from, to};
  return asked;
}

// What each group held, as counts in the place of amounts.
Result<std::vector<billing::CostLine>> held_by(const std::vector<BucketBill>& bills,
                                               const std::string& by) {
  std::vector<billing::CostRow> rows;
  for (BucketBill each : bills) {
    each.bill.adjustments.clear();
    LOAM_TRY(some, cost_rows({each}));
    for (std::size_t i = 0; i < some.size(); ++i) {
      const api::BillLine& line = each.bill.lines[i];
      LOAM_TRY(ce, parse_ce(line.ce));
      some[i].net = Money(static_cast<Int128>(ce.value) * line.billed_ms, Currency());
      rows.push_back(std::move(some[i]));
    }
  }
  billing::CostQuery query;
  query.group_by = {by};
  return billing::group_costs(rows, query);
}

// The CE of the pool's devices while they were in service.
Result<Int128> parts_of(api::Client& client, const billing::Period& period) {
  LOAM_TRY(devices, capacity_of(client, period));
  const Int128 parts = billing::capacity_in(devices, period);
  if (parts == 0)
    return Error{ErrorKind::not_found, "no device of the pool was in service in that time",
                 "see them with: loam device list"};
  return parts;
}

std::string ce_hours(Int128 milli_ce_ms) {
  constexpr Int128 unit = 3'600;  // milli-CE × ms of a millionth of a CE-hour
  return decimal_text(static_cast<std::int64_t>((milli_ce_ms + unit / 2) / unit), 6);
}

std::string split_text(const std::vector<Part>& parts, const Asked& asked, Session& session) {
  const std::string code(asked.cost.currency().code());
  std::vector<std::string> amounts;
  Int128 held = 0;
  for (const Part& part : parts) {
    amounts.push_back(amount_text(part.cost));
    held += part.held;
  }
  amounts.push_back(amount_text(asked.cost));
  const auto shown = money_column(amounts, code);
  Table table(
      {{"GROUP", Align::left, true}, {"CE-HOURS", Align::right}, {"COST " + code, Align::right}});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    table.add(
        {parts[i].group.empty() ? "idle" : parts[i].group, ce_hours(parts[i].held), shown[i]});
  }
  table.add({Cell("total", Style::bold), ce_hours(held), Cell(shown.back(), Style::bold)});
  return session.text_of(table);
}

std::string split_json(const std::vector<Part>& parts, const Asked& asked) {
  const auto text = [](const std::string& words) { return billing::json_string(words); };
  std::string json = "{\"from\":" + text(to_text(asked.period.from)) +
                     ",\"to\":" + text(to_text(asked.period.to)) +
                     ",\"currency\":" + text(std::string(asked.cost.currency().code())) +
                     ",\"idle_method\":" + text(billing::name_of(asked.method)) + ",\"parts\":[";
  for (const Part& part : parts) {
    if (part.group.empty()) continue;
    json += (json.back() == '[' ? "{\"" : ",{\"") + asked.by + "\":" + text(part.group) +
            ",\"ce_hours\":" + text(ce_hours(part.held)) +
            ",\"cost\":" + text(amount_text(part.cost)) + "}";
  }
  const Part& idle = parts.back();
  return json + "],\"idle\":{\"ce_hours\":" + text(ce_hours(idle.held)) +
         ",\"cost\":" + text(amount_text(idle.cost)) +
         "},\"total\":" + text(amount_text(asked.cost)) + "}";
}

Result<int> run_split(Session& session, const Arguments& arguments) {
  LOAM_TRY(asked, asked_of(arguments));
  LOAM_TRY(client, session.client());
  LOAM_TRY(self, client->whoami());
  if (self.role == "member") {
    return Error{ErrorKind::permission_denied, "what others hold of the pool is not yours to see",
                 "ask an operator"};
  }
  LOAM_TRY(list,
           client->bills("", to_text(asked.period.from), to_text(asked.period.to), "none", "UTC"));
  LOAM_TRY(bills, buckets_of(std::move(list)));
  LOAM_TRY(held, held_by(bills.bills, asked.by));
  LOAM_TRY(whole, parts_of(*client, asked.period));
  std::vector<billing::Share> shares;
  std::vector<Part> parts;
  Int128 idle = whole;
  for (const billing::CostLine& line : held) {
    const Int128 part = std::max<Int128>(0, line.net.units());
    shares.push_back({line.groups.front(), part});
    idle -= part;
  }
  const billing::SplitCost split = billing::split_cost(asked.cost, whole, shares, asked.method);
  for (const billing::Share& share : shares)
    parts.push_back({share.who, share.part,
                     split.of.contains(share.who) ? split.of.at(share.who)
                                                  : Money::zero(asked.cost.currency())});
  parts.push_back({"", std::max<Int128>(0, idle), split.idle});
  session.out() << (session.json() ? split_json(parts, asked) + "\n"
                                   : split_text(parts, asked, session));
  return 0;
}

}  // namespace

std::vector<Command> split_commands() {
  return {{"cost split",
           "Split what the pool cost over those who held it",
           "By the CE-hours that each held, of those that the devices had while they were in\n"
           "service. What nobody held is a row of its own (kept), goes to those who held some by\n"
           "their part (weighted), or to each alike (even). The parts add up to the cost to the\n"
           "last unit.",
           "loam cost split --cost 12000 --month 2026-03\n"
           "loam cost split --cost 900 --by project --idle weighted --from 2026-03-01 --to "
           "2026-03-08",
           {},
           {{"What",
             {{"--cost", "AMOUNT", "what the pool cost in that time; required"},
              {"--currency", "CODE", "of the cost; default: USD"},
              {"--by", "NAME", "tenant, project, group, tag:KEY, …; default: tenant"},
              {"--idle", "METHOD", "who bears what nobody held; default: kept", Kind::value,
               "kept weighted even"}}},
            {"When",
             {{"--month", "MONTH", "such as 2026-03"},
              {"--from", "INSTANT", "from then on, or the day's beginning"},
              {"--to", "INSTANT", "before then"},
              {"--zone", "ZONE", "whose days and months; default: UTC"}}}},
           run_split}};
}

}  // namespace loam::cli
