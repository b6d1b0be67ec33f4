// cost efficiency: what was used of what was asked and paid for, and what to change.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>

#include "app/loam/capacity.hpp"
#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "app/loam/spending.hpp"
#include "billing/csv.hpp"
#include "billing/efficiency.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

constexpr std::int64_t page = 500;
constexpr Duration default_span = Duration::hours(24 * 7);

struct Measured {
  std::vector<billing::RunMeasure> runs;
  std::int64_t unmeasured = 0;  // ran, and nobody measured what they used
  Currency currency;
};

// A lease as one run: what it asked, and of it the share of the devices' time that was measured.
Result<std::optional<billing::RunMeasure>> run_of(const api::LeaseView& lease, Instant now) {
  billing::RunMeasure run;
  if (!lease.started_at || lease.share <= 0) return std::optional<billing::RunMeasure>();
  LOAM_TRY(currency, Currency::parse(lease.currency));
  LOAM_TRY(cost, Money::parse(lease.cost, currency));
  LOAM_TRY(asked, parse_ce(lease.ce));
  LOAM_TRY(from, parse_instant(*lease.started_at));
  LOAM_TRY(queued, parse_instant(lease.queued_at));
  run.to = now;
  if (lease.ended_at) {
    LOAM_TRY(ended, parse_instant(*lease.ended_at));
    run.to = ended;
  }
  if (run.to <= from) return std::optional<billing::RunMeasure>();
  run.task = TaskId::parse(lease.task).value_or(TaskId{});
  run.name = lease.name.empty() ? lease.task : lease.name;
  for (const api::LeaseSliceView& slice : lease.slices)
    run.slices.push_back({slice.device, MilliDevice{std::llround(slice.share * 1000)}});
  run.submitted = std::min(queued, from);
  run.from = from;
  run.asked = asked;
  // Shares are measurements for reports, never a charge.
  run.measured = lease.share_measured.has_value();
  const double used = std::min(1.0, lease.share_measured.value_or(0) / lease.share);
  run.used = MilliCe{std::llround(static_cast<double>(asked.value) * used)};
  run.cost = cost;
  if (lease.output) {
    constexpr std::int64_t output_max = 1'000'000'000'000'000;
    LOAM_TRY(output, parse_decimal(*lease.output, 3, output_max, "output"));
    run.output = output;
  }
  return std::optional(run);
}

// Of leases that ran in the period, with what was measured of them in it.
Result<Measured> runs_in(api::Client& client, const std::string& tenant,
                         const billing::Period& period, Instant now) {
  Measured measured;
  api::LeaseQuery query;
  query.tenant = tenant;
  query.from = to_text(period.from);
  query.to = to_text(period.to);
  query.limit = page;
  bool first = true;
  while (first || !query.after.empty()) {
    first = false;
    LOAM_TRY(leases, client.leases(query));
    for (const api::LeaseView& lease : leases.leases) {
      LOAM_TRY(run, run_of(lease, now));
      if (!run) continue;
      if (!run->measured) ++measured.unmeasured;
      measured.currency = run->cost.currency();
      measured.runs.push_back(std::move(*run));
    }
    query.after = leases.next;
  }
  // One report is of one currency; a caller who sees tenants of several names one.
  const bool mixed = std::any_of(
      measured.runs.begin(), measured.runs.end(),
      [&](const billing::RunMeasure& run) { return run.cost.currency() != measured.currency; });
  if (mixed)
    return invalid("the tasks were paid in several currencies", "name a tenant of one of them");
  return measured;
}

std::string percent(BasisPoints share) {
  return decimal_text(share.value, 2) + " %";
}

std::string slices_text(const billing::EfficiencyReport& report, const Session& session) {
  Table slices({{"SLICE OF"},
                {"SHARE", Align::right},
                {"RUNS", Align::right},
                {"HELD FOR", Align::right},
                {"USE", Align::right}});
  for (const billing::SliceEfficiency& slice : report.slices)
    slices.add({slice.device, to_text(slice.share), std::to_string(slice.runs),
                to_text(Duration{slice.time.ms / 1000 * 1000}), percent(slice.used)});
  return slices.empty() ? std::string() : "\n" + session.text_of(slices);
}

std::string report_text(const billing::EfficiencyReport& report, const Measured& measured,
                        const Session& session) {
  const std::string code(measured.currency.code());
  const auto money = [&](Money amount) { return money_short(amount_text(amount), code); };
  std::string text =
      "from " + to_text(report.period.from) + " to " + to_text(report.period.to) + ": " +
      (report.devices.empty() ? std::string() : percent(report.used) + " of all capacity used, ") +
      "mean wait " + to_text(Duration{report.queue_mean.ms / 1000 * 1000}) + "\n";
  if (measured.unmeasured > 0)
    text += count_of(measured.unmeasured, "run") +
            " without a measurement: only what they held counts\n";
  Table devices(
      {{"DEVICE"}, {"HELD", Align::right}, {"USED", Align::right}, {"IDLE", Align::right}});
  for (const billing::DeviceEfficiency& device : report.devices)
    devices.add({device.device, percent(device.asked), percent(device.used), percent(device.idle)});
  if (!devices.empty()) text += "\n" + session.text_of(devices);
  text += slices_text(report, session);
  Table works({{"WORK", Align::left, true},
               {"RUNS", Align::right},
               {"ASKED CE", Align::right},
               {"USED CE", Align::right},
               {"USE", Align::right},
               {"MEAN WAIT", Align::right},
               {"COST " + code, Align::right},
               {"UNUSED " + code, Align::right},
               {"MADE", Align::right},
               {"A UNIT " + code, Align::right}});
  for (const billing::WorkEfficiency& work : report.works)
    works.add({work.name, std::to_string(work.runs), to_text(work.asked),
               work.measured ? to_text(work.used) : "", work.measured ? percent(work.use) : "",
               to_text(Duration{work.queue_mean.ms / 1000 * 1000}), money(work.cost),
               work.measured ? money(work.wasted) : "",
               work.output > 0 ? decimal_text(work.output, 3) : "",
               work.per_output ? money_exact(amount_text(*work.per_output), code) : ""});
  if (!works.empty()) text += "\n" + session.text_of(works);
  if (!report.proposals.empty()) text += "\n";
  for (const billing::Proposal& proposal : report.proposals)
    text += printable(proposal.words) + " (saves " + money(proposal.saving) + " " + code + ")\n";
  return text;
}

std::string report_json(const billing::EfficiencyReport& report, const Measured& measured) {
  const auto text = [](const std::string& words) { return billing::json_string(words); };
  const auto share = [](BasisPoints of) { return decimal_text(of.value, 4); };
  std::string json = "{\"from\":" + text(to_text(report.period.from)) +
                     ",\"to\":" + text(to_text(report.period.to)) +
                     ",\"used\":" + share(report.used) +
                     ",\"wait_ms\":" + std::to_string(report.queue_mean.ms) +
                     ",\"unmeasured\":" + std::to_string(measured.unmeasured) + ",\"devices\":[";
  for (const billing::DeviceEfficiency& device : report.devices)
    json += (&device == &report.devices.front() ? "" : ",") + std::string("{\"device\":") +
            text(device.device) + ",\"held\":" + share(device.asked) +
            ",\"used\":" + share(device.used) + ",\"idle\":" + share(device.idle) + "}";
  json += "],\"slices\":[";
  for (const billing::SliceEfficiency& slice : report.slices)
    json += (&slice == &report.slices.front() ? "" : ",") + std::string("{\"device\":") +
            text(slice.device) + ",\"share\":" + to_text(slice.share) +
            ",\"runs\":" + std::to_string(slice.runs) +
            ",\"held_ms\":" + std::to_string(slice.time.ms) + ",\"used\":" + share(slice.used) +
            "}";
  json += "],\"works\":[";
  for (const billing::WorkEfficiency& work : report.works)
    json += (&work == &report.works.front() ? "" : ",") + std::string("{\"name\":") +
            text(work.name) + ",\"runs\":" + std::to_string(work.runs) +
            ",\"asked\":" + text(to_text(work.asked)) + ",\"used\":" + text(to_text(work.used)) +
            ",\"wait_ms\":" + std::to_string(work.queue_mean.ms) +
            ",\"cost\":" + text(amount_text(work.cost)) +
            ",\"unused\":" + text(amount_text(work.wasted)) +
            ",\"output\":" + decimal_text(work.output, 3) +
            ",\"per_output\":" + (work.per_output ? text(amount_text(*work.per_output)) : "null") +
            "}";
  json += "],\"proposals\":[";
  for (const billing::Proposal& proposal : report.proposals)
    json += (&proposal == &report.proposals.front() ? "" : ",") + std::string("{\"name\":") +
            text(proposal.name) + ",\"asked\":" + text(to_text(proposal.asked)) +
            ",\"suggested\":" + text(to_text(proposal.suggested)) +
            ",\"saving\":" + text(amount_text(proposal.saving)) +
            ",\"words\":" + text(proposal.words) + "}";
  return json + "]}";
}

// --- Cost per unit
// --------------------------------------------------------------------------------

Result<std::vector<billing::UnitCost>> units_of(api::Client& client, const std::string& tenant,
                                                const Arguments& arguments,
                                                const billing::Period& period) {
  const std::string path = arguments.text("figures");
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad())
    return Error{ErrorKind::not_found, "the file '" + path + "' cannot be read",
                 "check its name and who may read it"};
  LOAM_TRY(figures, billing::read_business_csv(text, path));
  billing::CostQuery query;
  query.group_by = {arguments.text("by", "project")};
  LOAM_CHECK(billing::group_costs({}, query));
  LOAM_TRY(bill, client.bill(tenant, to_text(period.from), to_text(period.to)));
  LOAM_TRY(currency, Currency::parse(bill.currency));
  LOAM_TRY(rows, cost_rows({{period, bill}}));
  LOAM_TRY(lines, billing::group_costs(rows, query));
  std::map<std::string, Money> costs;
  for (const billing::CostLine& line : lines) costs.emplace(line.groups.front(), line.net);
  return billing::unit_costs(figures, costs, period, currency);
}

std::string units_text(const std::vector<billing::UnitCost>& units, const Session& session) {
  Table table({{"GROUP", Align::left, true},
               {"FIGURE"},
               {"VALUE", Align::right},
               {"COST", Align::right},
               {"A UNIT", Align::right},
               {""}});
  for (const billing::UnitCost& unit : units) {
    const std::string code(unit.cost.currency().code());
    table.add({unit.group, unit.name.empty() ? "no figure" : unit.name,
               unit.name.empty() ? "" : decimal_text(unit.value, 3),
               money_exact(amount_text(unit.cost), code),
               unit.per_unit ? money_exact(amount_text(*unit.per_unit), code) : "", code});
  }
  return session.text_of(table);
}

std::string units_json(const std::vector<billing::UnitCost>& units) {
  std::string json = "[";
  for (const billing::UnitCost& unit : units)
    json += (&unit == &units.front() ? "" : ",") + std::string("{\"group\":") +
            billing::json_string(unit.group) + ",\"name\":" + billing::json_string(unit.name) +
            ",\"value\":" + decimal_text(unit.value, 3) +
            ",\"currency\":" + billing::json_string(unit.cost.currency().code()) +
            ",\"cost\":" + billing::json_string(amount_text(unit.cost)) + ",\"per_unit\":" +
            (unit.per_unit ? billing::json_string(amount_text(*unit.per_unit)) : "null") + "}";
  return json + "]";
}

Result<billing::Period> period_of(const Arguments& arguments, Instant now) {
  billing::Period period{now - default_span, now};
  LOAM_TRY(from, instant_or_day(arguments, "from"));
  LOAM_TRY(to, instant_or_day(arguments, "to"));
  if (!to.empty()) {
    LOAM_TRY(end, parse_instant(to));
    period = {end - default_span, end};
  }
  if (!from.empty()) {
    LOAM_TRY(begin, parse_instant(from));
    period.from = begin;
  }
  if (period.from >= period.to)
    return invalid(
        "the time from " + to_text(period.from) + " to " + to_text(period.to) + " is empty",
        "give a --from before --to");
  return period;
}

Result<int> run_efficiency(Session& session, const Arguments& arguments) {
  const std::string tenant = arguments.operand(0).empty() ? session.tenant() : arguments.operand(0);
  LOAM_TRY(client, session.client());
  LOAM_TRY(health, client->health());
  LOAM_TRY(now, parse_instant(health.now));
  LOAM_TRY(period, period_of(arguments, now));
  if (arguments.has("figures")) {
    LOAM_TRY(units, units_of(*client, tenant, arguments, period));
    session.out() << (session.json() ? units_json(units) + "\n" : units_text(units, session));
    return 0;
  }
  // What others hold of the pool is not one tenant's to see: then there is no table of devices.
  LOAM_TRY(self, client->whoami());
  std::vector<billing::DeviceCapacity> devices;
  if (tenant.empty() && self.role != "member" && period.from < now) {
    LOAM_TRY(capacity, capacity_of(*client, period));
    devices = std::move(capacity);
  }
  const std::string cut = arguments.text("bucket", "none");
  LOAM_TRY(bucket, billing::parse_bucket(cut));
  LOAM_TRY(zone, billing::Zone::open(arguments.text("zone", "UTC")));
  bool first = true;
  if (session.json() && arguments.has("bucket")) session.out() << "{\"reports\":[";
  for (const billing::Period& each : billing::cut_into(period, bucket, zone)) {
    LOAM_TRY(in, runs_in(*client, tenant, each, now));
    const billing::EfficiencyReport report = billing::efficiency(in.runs, devices, each);
    const char* between = session.json() ? "," : "\n";
    session.out() << (std::exchange(first, false) ? "" : between)
                  << (session.json() ? report_json(report, in) : report_text(report, in, session));
  }
  if (session.json()) session.out() << (arguments.has("bucket") ? "]}\n" : "\n");
  return 0;
}

}  // namespace

std::vector<Command> efficiency_commands() {
  return {
      {"cost efficiency",
       "What was used of what was asked and paid for, and what to ask for next time",
       "By slice and by work (the tasks of one name), from what was measured of each lease, and "
       "of\n"
       "the whole pool by device where an operator names no tenant, while it was in service. The\n"
       "last seven days unless said otherwise. With the cost of each unit of what tasks say they\n"
       "made (LOAM_OUTPUT_FILE).\n"
       "--figures takes a CSV of time,group,name,value, such as requests served, and shows the\n"
       "cost of each unit by group instead.",
       "loam cost efficiency acme --from 2026-03-01 --to 2026-04-01\n"
       "loam cost efficiency --from 2026-01-01 --bucket month --zone Europe/Berlin\n"
       "loam cost efficiency acme --figures requests.csv --by project",
       {{"TENANT", "default: LOAM_TENANT, else the caller's own", Operand::Kind::maybe, "@tenant"}},
       {{"When",
         {{"--from", "INSTANT", "from then on; default: seven days before --to"},
          {"--to", "INSTANT", "before then; default: now"},
          {"--bucket", "SPAN", "a report for each", Kind::value, "none hour day week month"},
          {"--zone", "ZONE", "whose days, weeks and months; default: UTC"}}},
        {"Cost per unit",
         {{"--figures", "FILE", "CSV of time,group,name,value", Kind::value, "@path"},
          {"--by", "NAME", "what its groups are; default: project"}}}},
       run_efficiency}};
}

}  // namespace loam::cli
