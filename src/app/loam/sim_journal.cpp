// loam sim --from-journal FILE: a pool's own history against another pool, discipline, placement,
// pace or price.
#include <boost/json.hpp>
#include <filesystem>

#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"
#include "app/loam/table.hpp"
#include "base/quantity.hpp"
#include "sim/plot.hpp"
#include "sim/trace/history.hpp"
#include "store/journal_reader.hpp"

namespace loam::cli {
namespace {

std::string to_json(const sim::ReplayOutcome& outcome, const sim::ReplaySetting& setting) {
  boost::json::object json;
  json["discipline"] = setting.discipline.empty() ? "as it was" : setting.discipline;
  json["policy"] = setting.placement.empty() ? "as it was" : setting.placement;
  json["tasks"] = outcome.tasks;
  json["finished"] = outcome.finished;
  json["refused"] = outcome.refused;
  json["devices"] = outcome.devices;
  json["preemptions"] = outcome.preemptions;
  json["completion_mean_s"] = outcome.completion_mean_s;
  json["wait_mean_s"] = outcome.wait_mean_s;
  json["wait_p99_s"] = outcome.wait_p99_s;
  json["makespan_s"] = outcome.makespan_s;
  json["utilisation"] = outcome.utilisation;
  json["jain"] = outcome.jain;
  boost::json::object charged;
  for (const Money& amount : outcome.charged)
    charged[std::string(amount.currency().code())] = amount_text(amount);
  json["charged"] = charged;
  return boost::json::serialize(json) + "\n";
}

std::string to_table(Session& session, const sim::ReplayOutcome& outcome) {
  std::vector<std::pair<std::string, Cell>> facts{
      {"tasks", std::to_string(outcome.tasks)},
      {"finished", std::to_string(outcome.finished)},
      {"refused", std::to_string(outcome.refused)},
      {"devices", std::to_string(outcome.devices)},
      {"preemptions", std::to_string(outcome.preemptions)},
      {"completion, mean", fixed(outcome.completion_mean_s, 1) + " s"},
      {"wait, mean", fixed(outcome.wait_mean_s, 1) + " s"},
      {"wait, p99", fixed(outcome.wait_p99_s, 1) + " s"},
      {"makespan", fixed(outcome.makespan_s, 1) + " s"},
      {"in use", fixed(100 * outcome.utilisation, 1) + " %"},
      {"Jain's index over tenants", fixed(outcome.jain, 3)}};
  for (const Money& amount : outcome.charged) {
    const Currency currency = amount.currency();
    facts.emplace_back(
        "charged", display_text(amount, currency.exponent()) + " " + std::string(currency.code()));
  }
  return facts_text(facts, session.console().colour);
}

Result<sim::ReplaySetting> setting_of(const Arguments& arguments) {
  sim::ReplaySetting setting;
  const std::vector<std::string> disciplines = arguments.list("discipline");
  if (disciplines.size() > 1) {
    return invalid("--discipline is given " + std::to_string(disciplines.size()) + " times",
                   "give one, and put runs side by side with: loam sim compare A.json B.json");
  }
  setting.discipline = arguments.text("discipline");
  setting.placement = arguments.text("policy");
  if (arguments.has("devices-percent")) {
    LOAM_TRY(percent, parse_decimal(arguments.text("devices-percent"), 0, sim::devices_percent_max,
                                    "percent"));
    setting.devices_percent = percent;
  }
  LOAM_TRY(pace, pace_percent(arguments));
  setting.arrivals_percent = pace;
  if (arguments.has("nodes")) {
    setting.nodes_file = arguments.text("nodes");
    LOAM_TRY(nodes, sim::read_trace_nodes(setting.nodes_file));
    setting.nodes = std::move(nodes);
  }
  return setting;
}

double hours_between(Instant from, Instant to) {
  return static_cast<double>((to - from).ms) / 3'600'000;
}

Result<void> write_plots(const Arguments& arguments, const sim::History& history,
                         const sim::ReplayOutcome& outcome) {
  sim::Sample waits{"", {}};
  for (const sim::ReplayedTask& fate : outcome.fates) {
    if (fate.finished != Instant::never())
      waits.values.push_back(static_cast<double>(fate.wait().ms) / 3'600'000);
  }
  sim::Series busy{"", {}};
  double before = 0;
  for (const auto& [at, milli] : outcome.busy_milli) {
    const double hours = hours_between(history.first, at);
    busy.points.emplace_back(hours, before);
    before = static_cast<double>(milli) / 1000;
    busy.points.emplace_back(hours, before);
  }
  LOAM_CHECK(write_plot(arguments, "journal_waiting.svg",
                        sim::cumulative_chart({"Waiting time", "wait, h", "tasks, %"}, {waits})));
  return write_plot(arguments, "journal_devices.svg",
                    sim::line_chart({"Devices in use", "time, h", "devices"}, {busy}));
}

}  // namespace

Result<int> sim_journal(Session& session, const Arguments& arguments) {
  std::string path = arguments.text("from-journal");
  if (std::filesystem::is_directory(path)) path += "/journal.db";
  LOAM_TRY(setting, setting_of(arguments));
  sim::HistoryReader reader;
  LOAM_CHECK(store::read_journal(path, [&](const Record& record) { reader.hear(record); }));
  const sim::History history = std::move(reader).done();
  if (arguments.has("price")) {
    const Currency currency =
        history.cards.empty() ? Currency("USD") : history.cards.back().currency;
    LOAM_TRY(price, Money::parse(arguments.text("price"), currency));
    setting.on_demand = price;
  }
  LOAM_TRY(outcome, sim::replay(history, setting));
  LOAM_CHECK(write_json(arguments, session, to_json(outcome, setting)));
  LOAM_CHECK(write_result(arguments, "csv", session, sim::to_csv(history, outcome)));
  if (arguments.has("plot")) LOAM_CHECK(write_plots(arguments, history, outcome));
  if (shows_table(arguments, session)) session.out() << to_table(session, outcome);
  return 0;
}

OptionGroup sim_journal_options() {
  return {
      "A journal of one's own",
      {{"--from-journal", "FILE", "replay what this pool was asked before; or its data folder",
        Option::Kind::value, "@path"},
       {"--devices-percent", "N", "with so much of each node's devices, 1 to 10000; default: 100"},
       {"--price", "P", "at this on-demand price a CE-hour"}}};
}

}  // namespace loam::cli
