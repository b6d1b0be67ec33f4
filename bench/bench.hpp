// The benchmark harness: named benchmarks that report figures, some with a mark to meet; the same
// figures go to a table, to JSON and into docs/benchmarks.md. Shell (clocks, processes).
//
//   LOAM_BENCHMARK(engine, {{"engine.lives_per_second", "1/s", at_least(50'000)}}) {
//     report.set("engine.lives_per_second", measured);
//     return {};
//   }
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::bench {

// What a figure must be to pass.
struct Mark {
  enum class Side { at_most, at_least };
  Side side = Side::at_most;
  double value = 0;

  bool met_by(double figure) const {
    return side == Side::at_most ? figure <= value : figure >= value;
  }
};
Mark at_most(double value);
Mark at_least(double value);

// A figure that a benchmark promises to report. One that it does not report is missing, and
// `--check` fails on it.
struct Promise {
  std::string name;  // "engine.lives_per_second": the benchmark's name, a dot, what it counts
  std::string unit;  // "1/s", "ms", "ratio", "MiB"
  std::optional<Mark> mark = std::nullopt;
};

struct Interval {
  double low = 0;
  double high = 0;
};

enum class Verdict { met, missed, no_mark, missing };
const char* name_of(Verdict verdict) noexcept;

struct Figure {
  Promise promise;
  std::optional<double> value;       // nothing: missing
  std::optional<Interval> interval;  // 95 %, where it was estimated
  std::string note;                  // how it was measured, or why it is missing

  Verdict verdict() const;
};

// Collects what one benchmark reports.
class Report {
 public:
  explicit Report(const std::vector<Promise>& promises);

  // Require a promised name that was not set before, and a finite value.
  void set(std::string_view name, double value, std::string note = {});
  void set(std::string_view name, double value, Interval interval, std::string note = {});
  // Why a promised figure cannot be had here; it stays missing.
  void explain(std::string_view name, std::string why);
  // A line that replaces the last one on a terminal; nothing elsewhere.
  void progress(std::string_view text) const;

  bool promises(std::string_view name) const;
  bool has(std::string_view name) const;  // promised and set
  const std::vector<Figure>& figures() const { return figures_; }

 private:
  Figure& unset(std::string_view name);
  std::vector<Figure> figures_;
};

using Body = std::function<Result<void>(Report&)>;

// data: it replays public traces, so it is left out where no data folder was given.
enum class Needs { nothing, data };

struct Benchmark {
  std::string name;
  std::vector<Promise> promises;
  Body body;
  Needs needs = Needs::nothing;
};

// All registered benchmarks, by name.
std::vector<Benchmark> registered();

// For static registration. Requires a name that is not taken.
bool enroll(std::string name, std::vector<Promise> promises, Body body,
            Needs needs = Needs::nothing);

// A benchmark that is a program of its own: `argv` is run without a shell and writes
// {"figures":[{"name":..., "value":..., "note":...}, ...]} to standard output; a figure is written
// as in docs/formats/bench.md, unit and mark being the promise's own. "{bin}" at the start of an
// argument becomes the programs' folder and "{source}" the tree's. Exit status other than 0 fails
// the benchmark.
Body command(std::vector<std::string> argv);

// Where public traces lie (`./dev bench --data FOLDER`), for figures against published results;
// docs/benchmarks.md says where they can be downloaded. Requires a benchmark that needs data.
const std::string& data_folder();
void set_data_folder(std::string folder);

// --- Measuring ----------------------------------------------------------------------------------

// Wall seconds that `work` took.
double seconds_of(const std::function<void()>& work);

// Seconds of a core that this thread spent on `work`, which neither waits nor starts threads: the
// same on an idle machine, and what others do on a busy one is not counted as ours.
double core_seconds_of(const std::function<void()>& work);

// The p-th percentile (0 to 100) by the nearest-rank method. Requires values.
double percentile(std::vector<double> values, double p);

struct Median {
  double value = 0;
  Interval interval;  // 95 %, distribution-free: order statistics and the binomial distribution
};
// Requires at least 6 values: with fewer no such interval exists.
Median median_of(std::vector<double> values);

// How many times as long (or large) `a` is as `b`: each pair measures both, the first to go
// alternates, so that drift of the machine cancels. `a` and `b` return a positive cost such as
// seconds. Requires at least 20 pairs.
inline constexpr int pairs_min = 20;
Median compare_alternating(const std::function<double()>& a, const std::function<double()>& b,
                           int pairs = pairs_min,
                           const std::function<void(int pair)>& after_pair = {});

}  // namespace loam::bench

#define LOAM_BENCHMARK(name, ...) LOAM_BENCHMARK_NEEDING(name, nothing, __VA_ARGS__)
// The same for one that reads data_folder().
#define LOAM_DATA_BENCHMARK(name, ...) LOAM_BENCHMARK_NEEDING(name, data, __VA_ARGS__)
#define LOAM_BENCHMARK_NEEDING(name, needs, ...)                                    \
  static ::loam::Result<void> benchmark_##name(::loam::bench::Report& report);      \
  static const bool enrolled_##name =                                               \
      ::loam::bench::enroll(#name, std::vector<::loam::bench::Promise> __VA_ARGS__, \
                            benchmark_##name, ::loam::bench::Needs::needs);         \
  static ::loam::Result<void> benchmark_##name([[maybe_unused]] ::loam::bench::Report& report)

// LOAM_BENCHMARK_COMMAND(shares, ({"{bin}/bench_shares", "--json"}), {{"shares.error", "points",
// ...}});
#define LOAM_BENCHMARK_COMMAND(name, argv, ...)               \
  static const bool enrolled_##name = ::loam::bench::enroll(  \
      #name, std::vector<::loam::bench::Promise> __VA_ARGS__, \
      ::loam::bench::command(std::vector<std::string> LOAM_BENCH_UNWRAP argv))
#define LOAM_BENCH_UNWRAP(...) __VA_ARGS__
