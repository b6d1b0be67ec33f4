// cost and cost export: what was spent, from the daemon's bills.
#include <fstream>
#include <iterator>
#include <map>

#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "app/loam/spending.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

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

// The bills of every bucket of the time asked for: of the tenant named, or of all that there are.
Result<BucketBills> bills_of(Session& session, const Arguments& arguments,
                             const billing::CostQuery& query, const std::string& bucket) {
  LOAM_TRY(from, instant_of(arguments, "from", query.zone));
  LOAM_TRY(to, instant_of(arguments, "to", query.zone));
  const std::string named = arguments.operand(0);
  if (!named.empty() && arguments.has("all"))
    return invalid("both a tenant, " + named + ", and --all are given", "give one of them");
  const std::string tenant = arguments.has("all") ? std::string()
                             : named.empty()      ? session.tenant()
                                                  : named;
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->bills(tenant, from, to, bucket, query.zone.name()));
  LOAM_TRY(bills, buckets_of(std::move(list)));
  bills.tenant = tenant;
  return bills;
}

// By currency: amounts of two are never added.
std::map<Currency, std::vector<BucketBill>> by_currency(std::vector<BucketBill> bills) {
  std::map<Currency, std::vector<BucketBill>> apart;
  for (BucketBill& each : bills) {
    const auto currency = Currency::parse(each.bill.currency);
    apart[currency ? *currency : Currency()].push_back(std::move(each));
  }
  return apart;
}

// Every line for each currency there is.
struct Costs {
  Currency currency;
  std::vector<billing::CostLine> lines;
};

Result<int> run_cost(Session& session, const Arguments& arguments) {
  LOAM_TRY(query, query_of(arguments, "none"));
  LOAM_TRY(bills, bills_of(session, arguments, query, arguments.text("bucket", "none")));
  std::vector<Costs> costs;
  for (const auto& [currency, some] : by_currency(std::move(bills.bills))) {
    LOAM_TRY(rows, cost_rows(some));
    LOAM_TRY(lines, billing::group_costs(rows, query));
    costs.push_back({currency, std::move(lines)});
  }
  if (session.json()) {
    // One currency, the common case, is an object of its own.
    const bool one = costs.size() == 1;
    session.out() << (one ? "" : "{\"currencies\":[");
    for (std::size_t i = 0; i < costs.size(); ++i)
      session.out() << (i == 0 ? "" : ",") << cost_json(costs[i].lines, query, costs[i].currency);
    session.out() << (one ? "\n" : "]}\n");
    return 0;
  }
  if (costs.empty()) session.say("nothing was spent in this time");
  for (std::size_t i = 0; i < costs.size(); ++i) {
    session.out() << (i == 0 ? "" : "\n")
                  << cost_text(costs[i].lines, query, costs[i].currency, session.console().colour,
                               session.width());
  }
  return 0;
}

// Who sells, as the rows name it: as asked, else as the daemon's settings say.
std::string issuer_of(const Arguments& arguments, const std::vector<BucketBill>& bills) {
  if (arguments.has("issuer")) return arguments.text("issuer");
  for (const BucketBill& each : bills) {
    if (!each.bill.seller.empty()) return each.bill.seller;
  }
  return "loam";
}

Result<int> run_cost_export(Session& session, const Arguments& arguments) {
  LOAM_TRY(query, query_of(arguments, "day"));
  LOAM_TRY(idle, billing::parse_idle_method(arguments.text("idle", "kept")));
  LOAM_TRY(found, bills_of(session, arguments, query, arguments.text("bucket", "day")));
  const std::string issuer = issuer_of(arguments, found.bills);
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->commitments());
  // Of whom was asked for.
  const std::string tenant = found.tenant;
  std::erase_if(list.commitments, [&](const api::CommitmentView& commitment) {
    return !tenant.empty() && commitment.tenant != tenant;
  });
  std::vector<BucketBill>& bills = found.bills;
  add_empty_bills(list.commitments, billing::cut_into(found.period, query.bucket, query.zone),
                  bills);
  LOAM_TRY(rows, focus_rows(bills, issuer));
  LOAM_TRY(besides, focus_adjustments(bills, list.commitments, issuer));
  rows.insert(rows.end(), std::make_move_iterator(besides.begin()),
              std::make_move_iterator(besides.end()));
  LOAM_CHECK(split_idle(bills, idle, rows));
  LOAM_CHECK(add_focus_documents(bills, issuer, rows));
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
  const Operand maybe_tenant{"TENANT", "default: LOAM_TENANT, else all that the caller may see",
                             Operand::Kind::maybe, "@tenant"};
  const Option all{"--all", "", "of all tenants, whatever LOAM_TENANT says", Kind::flag};
  return {
      {"cost",
       "What was spent, by group and time",
       "Groups are project, environment, model, model_version, group, task, purchase_model,\n"
       "meter, tenant and tag:KEY. Before tax. Usage across a bucket's bound is cut there.\n"
       "Beside it: cost export, cost validate.",
       "loam cost acme --by project,tag:team --from 2026-03-01 --bucket day\n"
       "loam cost --by tenant",
       {maybe_tenant},
       {{"What",
         {{"--by", "NAMES", "group by these, with commas between"},
          {"--where", "NAME=VALUE", "only what is equal to it", Kind::list},
          all}},
        when_options()},
       run_cost},
      {"cost export",
       "Costs as FOCUS 1.4: CSV or JSON lines",
       "A row is what one task used under one price in a bucket of time; default: a day. Fees,\n"
       "credits, taxes of invoices and credit notes are rows too. What was committed or reserved\n"
       "and not used is a row of its own (kept), or goes to the tasks that ran in that bucket, by\n"
       "what they used (weighted), or to each alike (even).",
       "loam cost export acme --from 2026-03-01 --to 2026-04-01 --output costs.csv\n"
       "loam cost export acme --from 2026-03-01 --idle weighted",
       {maybe_tenant},
       {{"What",
         {all,
          {"--idle", "METHOD", "who bears what was paid for and not used; default: kept",
           Kind::value, "kept weighted even"}}},
        when_options(),
        {"Output",
         {{"--format", "FORMAT", "default: csv", Kind::value, "csv jsonl"},
          {"--issuer", "NAME", "who sells; default: as loamd's settings say, else loam"},
          {"--output", "FILE", "write it there", Kind::value, "@path"}}}},
       run_cost_export},
  };
}

}  // namespace loam::cli
