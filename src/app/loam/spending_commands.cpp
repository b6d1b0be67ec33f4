// cost and cost export: what was spent, from the daemon's bills.
#include <fstream>
#include <iterator>

#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "app/loam/spending.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

constexpr std::size_t buckets_max = 1000;  // each is a question to the daemon

Result<billing::CostQuery> query_of(const Arguments& arguments, const char* bucket) {
  billing::CostQuery query;
  std::string_view names;
  const std::string by = arguments.text("by");
  for (names = by; !names.empty();) {
    const std::size_t end = std::min(names.find(','), names.size());
    query.group_by.emplace_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  for (const std::string& filter : arguments.list("where")) {
    const std::size_t mark = filter.find('=');
    if (mark == std::string::npos)
      return invalid("--where: '" + filter + "' is no filter", "write it as project=vision");
    query.where[filter.substr(0, mark)] = filter.substr(mark + 1);
  }
  LOAM_TRY(read, billing::parse_bucket(arguments.text("bucket", bucket)));
  query.bucket = read;
  LOAM_TRY(zone, billing::Zone::open(arguments.text("zone", "UTC")));
  query.zone = zone;
  // What a filter or group cannot be is told before the daemon is asked.
  LOAM_CHECK(billing::group_costs({}, query));
  return query;
}

// An instant, or a day, which begins at midnight of the zone.
Result<std::string> instant_of(const Arguments& arguments, const char* option,
                               const billing::Zone& zone) {
  if (!arguments.has(option)) return std::string();
  const std::string text = arguments.text(option);
  if (const auto date = billing::parse_date(text); date.ok())
    return to_text(zone.first_instant({*date, {}}));
  const auto instant = parse_instant(text);
  if (!instant)
    return invalid("--" + std::string(option) + ": " + instant.error().message,
                   "write it as 2026-03-02 or 2026-03-02T00:00:00Z");
  return text;
}

// The bills of every bucket of the time asked for.
Result<std::vector<BucketBill>> bills_of(Session& session, const Arguments& arguments,
                                         const billing::CostQuery& query) {
  LOAM_TRY(from, instant_of(arguments, "from", query.zone));
  LOAM_TRY(to, instant_of(arguments, "to", query.zone));
  const std::string named = arguments.operand(0);
  const std::string tenant = named.empty() ? session.tenant() : named;
  LOAM_TRY(client, session.client());
  LOAM_TRY(whole, client->bill(tenant, from, to));
  LOAM_TRY(begin, parse_instant(whole.from));
  LOAM_TRY(end, parse_instant(whole.to));
  const auto periods = billing::cut_into({begin, end}, query.bucket, query.zone);
  std::vector<BucketBill> bills;
  if (periods.size() <= 1) {
    bills.push_back({{begin, end}, whole});
    return bills;
  }
  if (periods.size() > buckets_max)
    return invalid(std::to_string(periods.size()) + " buckets of time are too many",
                   "take a larger --bucket, or a shorter time");
  for (const billing::Period& period : periods) {
    LOAM_TRY(bill, client->bill(whole.tenant, to_text(period.from), to_text(period.to)));
    bills.push_back({period, std::move(bill)});
  }
  return bills;
}

Result<int> run_cost(Session& session, const Arguments& arguments) {
  LOAM_TRY(query, query_of(arguments, "none"));
  LOAM_TRY(bills, bills_of(session, arguments, query));
  LOAM_TRY(rows, cost_rows(bills));
  LOAM_TRY(lines, billing::group_costs(rows, query));
  LOAM_TRY(currency, Currency::parse(bills.front().bill.currency));
  if (session.json()) {
    session.out() << cost_json(lines, query, currency) << "\n";
  } else {
    session.out() << cost_text(lines, query, currency, session.console().colour, session.width());
  }
  return 0;
}

Result<int> run_cost_export(Session& session, const Arguments& arguments) {
  LOAM_TRY(query, query_of(arguments, "day"));
  LOAM_TRY(bills, bills_of(session, arguments, query));
  LOAM_TRY(rows, focus_rows(bills, arguments.text("issuer", "loam")));
  LOAM_TRY(client, session.client());
  LOAM_TRY(commitments, client->commitments());
  LOAM_TRY(besides,
           focus_adjustments(bills, commitments.commitments, arguments.text("issuer", "loam")));
  rows.insert(rows.end(), std::make_move_iterator(besides.begin()),
              std::make_move_iterator(besides.end()));
  const bool lines = session.json() || arguments.text("format") == "jsonl";
  std::string text = lines ? "" : billing::focus_csv_head();
  for (const billing::FocusRow& row : rows)
    text += lines ? billing::to_focus_json(row) : billing::to_focus_csv(row);
  if (!arguments.has("output")) {
    session.out() << text;
    return 0;
  }
  const std::string path = arguments.text("output");
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    return Error{ErrorKind::unavailable, "the file '" + path + "' cannot be written",
                 "check the folder"};
  session.say(std::to_string(rows.size()) + " rows are in " + printable(path));
  return 0;
}

OptionGroup when_options() {
  return {"When",
          {{"--from", "INSTANT", "from then on; default: the beginning"},
           {"--to", "INSTANT", "before then; default: now"},
           {"--bucket", "SPAN", "cut the time", Kind::value, "none hour day week month"},
           {"--zone", "ZONE", "whose days, weeks and months; default: UTC"}}};
}

}  // namespace

std::vector<Command> spending_commands() {
  const Operand maybe_tenant{"TENANT", "default: LOAM_TENANT, else the caller's own",
                             Operand::Kind::maybe, "@tenant"};
  return {
      {"cost",
       "What was spent, by group and time",
       "Groups are project, environment, model, purchase_model, meter, tenant and tag:KEY. Usage\n"
       "counts in the bucket in which its hour begins. Beside it: cost export, cost validate.",
       "loam cost acme --by project,tag:team --from 2026-03-01 --bucket day",
       {maybe_tenant},
       {{"What",
         {{"--by", "NAMES", "group by these, with commas between"},
          {"--where", "NAME=VALUE", "only what is equal to it", Kind::list}}},
        when_options()},
       run_cost},
      {"cost export",
       "Costs as FOCUS 1.4: CSV or JSON lines",
       "A row is what one task used under one price in a bucket of time; default: a day.",
       "loam cost export acme --from 2026-03-01 --to 2026-04-01 --output costs.csv",
       {maybe_tenant},
       {when_options(),
        {"Output",
         {{"--format", "FORMAT", "default: csv", Kind::value, "csv jsonl"},
          {"--issuer", "NAME", "who sells, as the rows name it; default: loam"},
          {"--output", "FILE", "write it there", Kind::value, "@path"}}}},
       run_cost_export},
  };
}

}  // namespace loam::cli
