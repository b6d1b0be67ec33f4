// What a run of the benchmarks came to, and the forms it is given in: a table for the terminal,
// JSON for scripts (docs/formats/bench.md), Markdown for docs/benchmarks.md. Pure but for
// machine_here() and run().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bench/bench.hpp"

namespace loam::bench {

// Where and on what the figures were measured.
struct Machine {
  std::string cpu;
  int cores = 0;
  std::int64_t memory_mib = 0;
  std::string kernel;
  std::string date;      // UTC, ISO 8601
  std::string revision;  // of the source tree; "unknown" without git
};
Machine machine_here(std::string revision);

struct Outcome {
  std::string benchmark;
  std::vector<Figure> figures;
  std::optional<Error> error;  // the benchmark itself failed
};

struct Results {
  Machine machine;
  std::vector<Outcome> outcomes;
};

// Runs them in order; `before` hears of each before it starts. A body that throws has failed.
std::vector<Outcome> run(const std::vector<Benchmark>& benchmarks,
                         const std::function<void(std::size_t index)>& before = {});

// One line for every benchmark that failed, figure that is missing and mark that was missed;
// empty where `--check` passes. No benchmark at all is a complaint too.
std::vector<std::string> complaints(const Results& results);

// "12,400", "0.034", "3.1": about four significant digits.
std::string value_text(double value);
std::string mark_text(const std::optional<Mark>& mark);

std::string to_table(const Results& results);
std::string to_json(const Results& results);
std::string to_markdown(const Results& results);

// The inverse of to_json.
Result<Results> parse_results(std::string_view json);

// A program's figures (see command()) written into `report`. Unpromised figures are an error.
Result<void> take_figures(std::string_view json, Report& report);

}  // namespace loam::bench
