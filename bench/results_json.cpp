// JSON of results, both ways; the format is docs/formats/bench.md. Pure.
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>

#include "bench/results.hpp"

namespace loam::bench {
namespace {

namespace json = boost::json;

constexpr const char* format_name = "loam-bench/1";

json::object json_of(const Figure& figure) {
  json::object out;
  out["name"] = figure.promise.name;
  out["value"] = figure.value ? json::value(*figure.value) : json::value(nullptr);
  out["unit"] = figure.promise.unit;
  if (figure.promise.mark) {
    const bool most = figure.promise.mark->side == Mark::Side::at_most;
    out["mark"] = {{"side", most ? "at_most" : "at_least"}, {"value", figure.promise.mark->value}};
  }
  if (figure.interval) {
    out["interval"] = {{"low", figure.interval->low}, {"high", figure.interval->high}};
  }
  out["verdict"] = name_of(figure.verdict());
  if (!figure.note.empty()) out["note"] = figure.note;
  return out;
}

json::object json_of(const Machine& machine) {
  return {{"cpu", machine.cpu},       {"cores", machine.cores}, {"memory_mib", machine.memory_mib},
          {"kernel", machine.kernel}, {"date", machine.date},   {"revision", machine.revision}};
}

Error off(std::string_view what) {
  return invalid("benchmark figures: " + std::string(what), "the format is docs/formats/bench.md");
}

Result<json::object> parse_object(std::string_view text) {
  json::error_code fault;
  json::value value = json::parse(text, fault);
  if (fault) return off("not JSON: " + fault.message());
  if (!value.is_object()) return off("not a JSON object");
  return std::move(value.as_object());
}

Result<double> number_in(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  if (found == nullptr || !found->is_number())
    return off("'" + std::string(key) + "' is not a number");
  const double number = found->to_number<double>();
  if (!std::isfinite(number)) return off("'" + std::string(key) + "' is not finite");
  return number;
}

Result<std::string> text_in(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  if (found == nullptr || !found->is_string())
    return off("'" + std::string(key) + "' is not a string");
  return std::string(found->as_string());
}

Result<std::string> text_or_nothing(const json::object& object, std::string_view key) {
  if (!object.contains(key)) return std::string();
  return text_in(object, key);
}

Result<json::object> object_in(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  if (found == nullptr || !found->is_object())
    return off("'" + std::string(key) + "' is not an object");
  return found->as_object();
}

Result<json::array> array_in(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  if (found == nullptr || !found->is_array())
    return off("'" + std::string(key) + "' is not an array");
  return found->as_array();
}

Result<Interval> interval_in(const json::object& object) {
  LOAM_TRY(interval, object_in(object, "interval"));
  LOAM_TRY(low, number_in(interval, "low"));
  LOAM_TRY(high, number_in(interval, "high"));
  if (low > high) return off("an interval that ends before it starts");
  return Interval{low, high};
}

Result<Figure> figure_of(const json::value& value) {
  if (!value.is_object()) return off("a figure that is not an object");
  const json::object& object = value.as_object();
  Figure figure;
  LOAM_TRY(name, text_in(object, "name"));
  LOAM_TRY(unit, text_or_nothing(object, "unit"));
  LOAM_TRY(note, text_or_nothing(object, "note"));
  figure.promise.name = std::move(name);
  figure.promise.unit = std::move(unit);
  figure.note = std::move(note);
  if (const json::value* given = object.if_contains("value");
      given == nullptr || !given->is_null()) {
    LOAM_TRY(number, number_in(object, "value"));
    figure.value = number;
  }
  if (object.contains("interval")) {
    LOAM_TRY(interval, interval_in(object));
    figure.interval = interval;
  }
  if (object.contains("mark")) {
    LOAM_TRY(mark, object_in(object, "mark"));
    LOAM_TRY(side, text_in(mark, "side"));
    LOAM_TRY(bound, number_in(mark, "value"));
    if (side != "at_most" && side != "at_least") return off("no mark has the side '" + side + "'");
    figure.promise.mark = side == "at_most" ? at_most(bound) : at_least(bound);
  }
  return figure;
}

Result<Machine> machine_of(const json::object& object) {
  LOAM_TRY(cpu, text_in(object, "cpu"));
  LOAM_TRY(cores, number_in(object, "cores"));
  LOAM_TRY(memory_mib, number_in(object, "memory_mib"));
  LOAM_TRY(kernel, text_in(object, "kernel"));
  LOAM_TRY(date, text_in(object, "date"));
  LOAM_TRY(revision, text_in(object, "revision"));
  return Machine{
      cpu, static_cast<int>(cores), static_cast<std::int64_t>(memory_mib), kernel, date, revision};
}

Result<Outcome> outcome_of(const json::value& value) {
  if (!value.is_object()) return off("a benchmark that is not an object");
  const json::object& object = value.as_object();
  Outcome outcome;
  LOAM_TRY(name, text_in(object, "name"));
  LOAM_TRY(figures, array_in(object, "figures"));
  outcome.benchmark = std::move(name);
  for (const json::value& one : figures) {
    LOAM_TRY(figure, figure_of(one));
    outcome.figures.push_back(std::move(figure));
  }
  if (object.contains("error")) {
    LOAM_TRY(message, text_in(object, "error"));
    outcome.error = Error{ErrorKind::internal, std::move(message), {}};
  }
  return outcome;
}

// One object for each cap that a figure "...caps.DEVICE.KERNEL" was measured at; its note holds
// "cap 30: mean 29.98, worst window 31.2; cap ...".
void add_caps(const Figure& figure, std::string_view shapes, json::array& caps) {
  const std::size_t dot = shapes.find('.');
  if (dot == std::string_view::npos) return;
  for (std::size_t at = 0; at != std::string::npos && at < figure.note.size();) {
    int cap = 0;
    double mean = 0;
    double window = 0;
    const char* const text = figure.note.c_str() + at;
    if (std::sscanf(text, "cap %d: mean %lf, worst window %lf", &cap, &mean, &window) == 3) {
      caps.push_back({{"device", json::string(shapes.substr(0, dot))},
                      {"kernel", json::string(shapes.substr(dot + 1))},
                      {"cap", cap},
                      {"mean", mean},
                      {"worst_window", window}});
    }
    at = figure.note.find("cap ", at + 1);
  }
}

// Each figure by its name without the benchmark's, for scripts that want one number.
void add_short_names(const Results& results, json::object& all) {
  json::array caps;
  for (const Outcome& outcome : results.outcomes) {
    for (const Figure& figure : outcome.figures) {
      const std::string& name = figure.promise.name;
      const std::string_view rest = std::string_view(name).substr(name.find('.') + 1);
      constexpr std::string_view of_caps = "caps.";
      if (rest.starts_with(of_caps)) {
        add_caps(figure, rest.substr(of_caps.size()), caps);
      } else if (figure.value && !all.contains(rest)) {
        all[rest] = *figure.value;
      }
    }
  }
  if (!caps.empty()) all["caps"] = std::move(caps);
}

}  // namespace

std::string to_json(const Results& results) {
  json::array benchmarks;
  for (const Outcome& outcome : results.outcomes) {
    json::array figures;
    for (const Figure& figure : outcome.figures) figures.push_back(json_of(figure));
    json::object one{{"name", outcome.benchmark}, {"figures", std::move(figures)}};
    if (outcome.error) one["error"] = to_text(*outcome.error);
    benchmarks.push_back(std::move(one));
  }
  json::object all{{"format", format_name},
                   {"machine", json_of(results.machine)},
                   {"passed", complaints(results).empty()},
                   {"benchmarks", std::move(benchmarks)}};
  add_short_names(results, all);
  return json::serialize(all) + "\n";
}

Result<Results> parse_results(std::string_view text) {
  LOAM_TRY(object, parse_object(text));
  LOAM_TRY(format, text_in(object, "format"));
  if (format != format_name) return off("the format is '" + format + "', not " + format_name);
  Results results;
  LOAM_TRY(machine_object, object_in(object, "machine"));
  LOAM_TRY(machine, machine_of(machine_object));
  LOAM_TRY(benchmarks, array_in(object, "benchmarks"));
  results.machine = std::move(machine);
  for (const json::value& one : benchmarks) {
    LOAM_TRY(outcome, outcome_of(one));
    results.outcomes.push_back(std::move(outcome));
  }
  return results;
}

Result<void> take_figures(std::string_view text, Report& report) {
  LOAM_TRY(object, parse_object(text));
  LOAM_TRY(figures, array_in(object, "figures"));
  for (const json::value& one : figures) {
    LOAM_TRY(figure, figure_of(one));
    const std::string& name = figure.promise.name;
    if (!report.promises(name)) return off("'" + name + "' was not promised");
    if (report.has(name)) return off("'" + name + "' comes twice");
    if (!figure.value) {
      report.explain(name, figure.note);
    } else if (figure.interval) {
      report.set(name, *figure.value, *figure.interval, figure.note);
    } else {
      report.set(name, *figure.value, figure.note);
    }
  }
  return {};
}

}  // namespace loam::bench
