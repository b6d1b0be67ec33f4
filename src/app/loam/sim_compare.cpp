// loam sim compare A B: results of runs side by side, figure by figure, with what changed between
// the first and the last.
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"
#include "app/loam/table.hpp"

namespace loam::cli {
namespace {

namespace bj = boost::json;

struct RunResult {
  std::string name;
  std::vector<std::pair<std::string, bj::value>> figures;  // in the file's order

  const bj::value* find(std::string_view key) const {
    for (const auto& [known, value] : figures) {
      if (known == key) return &value;
    }
    return nullptr;
  }
};

// Figures of nested objects are named by their path; lists are series, and left to plots.
void collect(const bj::object& object, const std::string& prefix, RunResult& result) {
  for (const auto& entry : object) {
    const std::string key = prefix + std::string(entry.key());
    if (entry.value().is_object()) {
      collect(entry.value().get_object(), key + ".", result);
    } else if (!entry.value().is_array()) {
      result.figures.emplace_back(key, entry.value());
    }
  }
}

Error no_result(const std::string& file, const std::string& why) {
  return invalid("'" + file + "' is no result of a run: " + why,
                 "name a result that was written with: loam sim … --json FILE");
}

// Adds the runs of a file: one, or one for each discipline.
Result<void> read_results(const std::string& file, std::vector<RunResult>& runs) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    return Error{ErrorKind::not_found, "'" + file + "' cannot be read",
                 "name a result that was written with: loam sim … --json FILE"};
  }
  std::stringstream text;
  text << in.rdbuf();
  boost::system::error_code fault;
  const bj::value json = bj::parse(text.str(), fault);
  if (fault) return no_result(file, fault.message());
  if (!json.is_object()) return no_result(file, "it is no JSON object");
  const bj::value* several = json.get_object().if_contains("runs");
  if (several == nullptr || !several->is_array()) {
    collect(json.get_object(), {}, runs.emplace_back(RunResult{file, {}}));
    return {};
  }
  for (const bj::value& run : several->get_array()) {
    if (!run.is_object()) return no_result(file, "a run in it is no JSON object");
    const std::string number = std::to_string(&run - several->get_array().data() + 1);
    collect(run.get_object(), {}, runs.emplace_back(RunResult{file + "#" + number, {}}));
  }
  return {};
}

std::string figure_text(const bj::value* value) {
  if (value == nullptr || value->is_null()) return "-";
  if (value->is_string()) return std::string(value->get_string());
  if (value->is_bool()) return value->get_bool() ? "yes" : "no";
  if (value->is_int64()) return std::to_string(value->get_int64());
  if (value->is_uint64()) return std::to_string(value->get_uint64());
  const double number = value->to_number<double>();
  return fixed(number, std::abs(number) < 10 ? 4 : 2);
}

// Of the last against the first, in percent; nothing where that says nothing.
std::optional<double> change_percent(const bj::value* first, const bj::value* last) {
  if (first == nullptr || last == nullptr || !first->is_number() || !last->is_number()) return {};
  const double from = first->to_number<double>();
  const double to = last->to_number<double>();
  if (from == to) return 0;
  if (from == 0) return {};
  return 100 * (to - from) / std::abs(from);
}

// "+3.2 %"
std::string change_text(std::optional<double> percent) {
  if (!percent) return {};
  if (*percent == 0) return "=";
  return (*percent > 0 ? "+" : "") + fixed(*percent, 1) + " %";
}

// Every figure of any run, in the order of the first that has it.
std::vector<std::string> figures_of(const std::vector<RunResult>& runs) {
  std::vector<std::string> keys;
  for (const RunResult& run : runs) {
    for (const auto& [key, value] : run.figures) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

std::string to_json(const std::vector<RunResult>& runs) {
  bj::object json;
  bj::array names;
  for (const RunResult& run : runs) names.emplace_back(run.name);
  json["compared"] = std::move(names);
  bj::array figures;
  for (const std::string& key : figures_of(runs)) {
    bj::object figure;
    figure["figure"] = key;
    bj::array values;
    for (const RunResult& run : runs) {
      const bj::value* value = run.find(key);
      values.push_back(value == nullptr ? bj::value(nullptr) : *value);
    }
    figure["values"] = std::move(values);
    const auto percent = change_percent(runs.front().find(key), runs.back().find(key));
    figure["change_percent"] = percent ? bj::value(*percent) : bj::value(nullptr);
    figures.push_back(std::move(figure));
  }
  json["figures"] = std::move(figures);
  return bj::serialize(json) + "\n";
}

Table to_table(const std::vector<RunResult>& runs) {
  std::vector<Column> columns{{"figure", Align::left, false}};
  for (const RunResult& run : runs) columns.push_back({run.name, Align::right, false});
  columns.push_back({"change", Align::right, false});
  Table table(std::move(columns));
  for (const std::string& key : figures_of(runs)) {
    std::vector<Cell> row{key};
    for (const RunResult& run : runs) row.emplace_back(figure_text(run.find(key)));
    row.emplace_back(change_text(change_percent(runs.front().find(key), runs.back().find(key))));
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

Result<int> sim_compare(Session& session, const Arguments& arguments) {
  std::vector<RunResult> runs;
  for (const std::string& file : arguments.operands) LOAM_CHECK(read_results(file, runs));
  if (runs.size() < 2) {
    return invalid("'loam sim compare' needs two results or more",
                   "try: loam sim compare fifo.json easy.json");
  }
  LOAM_CHECK(write_json(arguments, session, to_json(runs)));
  if (shows_table(arguments, session)) session.out() << session.text_of(to_table(runs));
  return 0;
}

}  // namespace loam::cli
