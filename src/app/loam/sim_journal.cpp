// loam sim --from-journal FILE: a pool's own history against another pool, discipline or price.
#include <boost/json.hpp>
#include <filesystem>

#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"
#include "app/loam/table.hpp"
#include "sim/trace/history.hpp"
#include "store/journal_reader.hpp"

namespace loam::cli {
namespace {

std::string to_json(const sim::ReplayOutcome& outcome, const std::string& discipline) {
  boost::json::object json;
  json["discipline"] = discipline.empty() ? "as it was" : discipline;
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
      {"in use", fixed(100 * outcome.utilisation, 1) + " %"}};
  for (const Money& amount : outcome.charged) {
    const Currency currency = amount.currency();
    facts.emplace_back(
        "charged", display_text(amount, currency.exponent()) + " " + std::string(currency.code()));
  }
  return facts_text(facts, session.console().colour);
}

}  // namespace

Result<int> sim_journal(Session& session, const Arguments& arguments) {
  std::string path = arguments.text("from-journal");
  if (std::filesystem::is_directory(path)) path += "/journal.db";
  sim::ReplaySetting setting;
  setting.discipline = arguments.text("discipline");
  if (arguments.has("devices-percent")) {
    LOAM_TRY(percent, parse_decimal(arguments.text("devices-percent"), 0, 100, "percent"));
    setting.devices_percent = percent;
  }
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
  LOAM_CHECK(write_json(arguments, session, to_json(outcome, setting.discipline)));
  if (!session.json()) session.out() << to_table(session, outcome);
  return 0;
}

OptionGroup sim_journal_options() {
  return {"A journal of one's own",
          {{"--from-journal", "FILE", "replay what this pool was asked before; or its data folder",
            Option::Kind::value, "@path"},
           {"--devices-percent", "N", "with so much of each node's devices; default: 100"},
           {"--price", "P", "at this on-demand price a CE-hour"}}};
}

}  // namespace loam::cli
