// loam sim compare A B: results of runs side by side, figure by figure, with what changed.
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <map>
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

Result<RunResult> read_result(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    return Error{ErrorKind::not_found, "'" + file + "' cannot be read",
                 "name a result that was written with: loam sim … --out FILE"};
  }
  std::stringstream text;
  text << in.rdbuf();
  boost::system::error_code fault;
  const bj::value json = bj::parse(text.str(), fault);
  if (fault || !json.is_object()) {
    return invalid("'" + file + "' is no result of a run: " +
                       (fault ? fault.message() : std::string("it is no JSON object")),
                   "name a result that was written with: loam sim … --out FILE");
  }
  RunResult result;
  result.name = file;
  collect(json.get_object(), {}, result);
  return result;
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

// "+3.2 %": the last against the first; empty where that says nothing.
std::string change_text(const bj::value* first, const bj::value* last) {
  if (first == nullptr || last == nullptr || !first->is_number() || !last->is_number()) return {};
  const double from = first->to_number<double>();
  const double to = last->to_number<double>();
  if (from == 0 || from == to) return from == to ? "=" : "";
  const double percent = 100 * (to - from) / std::abs(from);
  return (percent > 0 ? "+" : "") + fixed(percent, 1) + " %";
}

}  // namespace

Result<int> sim_compare(Session& session, const std::vector<std::string>& files) {
  if (files.size() < 2)
    return invalid("'loam sim compare' needs two results or more",
                   "try: loam sim compare fifo.json easy.json");
  std::vector<RunResult> runs;
  for (const std::string& file : files) {
    LOAM_TRY(run, read_result(file));
    runs.push_back(std::move(run));
  }
  std::vector<std::string> keys;
  for (const RunResult& run : runs) {
    for (const auto& [key, value] : run.figures) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  std::vector<Column> columns{{"figure", Align::left, false}};
  for (const RunResult& run : runs) columns.push_back({run.name, Align::right, false});
  columns.push_back({"change", Align::right, false});
  Table table(std::move(columns));
  for (const std::string& key : keys) {
    std::vector<Cell> row{key};
    for (const RunResult& run : runs) row.emplace_back(figure_text(run.find(key)));
    row.emplace_back(change_text(runs.front().find(key), runs.back().find(key)));
    table.add(std::move(row));
  }
  session.out() << session.text_of(table);
  return 0;
}

}  // namespace loam::cli
