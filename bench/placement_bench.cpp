// Placement against published results on the openb lists, and its speed on a made-up pool of a
// hundred thousand devices. One core.
//
// Published: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
// Descent", USENIX ATC 2023: allocation at 130 % arrivals, mean of ten seeds.
#include <algorithm>
#include <cstdio>

#include "base/random.hpp"
#include "bench/bench.hpp"
#include "sim/trace/placement_run.hpp"
#include "sim/trace/synthetic.hpp"

namespace loam::bench {
namespace {

using schedule::MixSource;
using schedule::PlacementPolicy;

constexpr std::uint64_t first_seed = 42;
constexpr std::uint64_t seeds = 10;

std::string fixed(double value, int decimals) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

struct Outcome {
  sim::Spread allocation;
  double moves = 0;
  double cpu_s_min = 0;
};

Outcome run(const sim::PlacementTrace& trace, PlacementPolicy policy, MixSource mix,
            std::int64_t moves = 0) {
  sim::PlacementRun options;
  options.pool.placement.policy = policy;
  options.pool.mix = mix;
  options.moves_max = moves;
  std::vector<double> allocated;
  Outcome outcome;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    const auto one = sim::run_placement(trace, options, seed);
    allocated.push_back(one.allocated_percent);
    outcome.moves += static_cast<double>(one.moves) / static_cast<double>(seeds);
    outcome.cpu_s_min = seed == first_seed ? one.cpu_s : std::min(outcome.cpu_s_min, one.cpu_s);
  }
  outcome.allocation = sim::spread_of(allocated);
  return outcome;
}

Result<sim::PlacementTrace> trace_of(const std::string& list) {
  return sim::read_placement_trace(data_folder() + "/openb/nodes.csv",
                                   data_folder() + "/openb/pods_" + list + ".csv");
}

// Lists of this family that are short of CPU have more tasks without a device: 25 % of all, where
// `default` has 13 %. These are drawn, with repeats, from those that the list has.
constexpr std::size_t cpu_only_percent = 25;
void make_cpu_heavy(sim::PlacementTrace& trace) {
  std::vector<sim::TraceTask> without;
  for (const sim::TraceTask& task : trace.tasks)
    if (task.devices == 0) without.push_back(task);
  Random random(first_seed);
  std::size_t count = without.size();
  while (!without.empty() && count * 100 < trace.tasks.size() * cpu_only_percent) {
    trace.tasks.push_back(without[random.below(without.size())]);
    ++count;
  }
}

struct Published {
  const char* policy;
  double figures[3];
};
constexpr const char* lists[] = {"default", "gpushare40", "multigpu50"};
constexpr Published published[] = {{"random", {87.47, 86.00, 90.27}},
                                   {"dot_prod", {90.85, 89.56, 94.85}},
                                   {"best_fit", {93.08, 91.69, 95.74}},
                                   {"fragmentation", {95.39, 94.15, 97.18}}};

}  // namespace

LOAM_DATA_BENCHMARK(openb, {{"openb.default.random_gap", "points", at_most(0.7)},
                            {"openb.default.dot_prod_gap", "points", at_most(0.7)},
                            {"openb.default.best_fit_gap", "points", at_most(0.7)},
                            {"openb.default.fragmentation_gap", "points", at_most(0.7)},
                            {"openb.default.allocation", "%", at_least(96.3)},
                            {"openb.default.online_loss", "points", at_most(0.2)},
                            {"openb.gpushare40.random_gap", "points", at_most(0.7)},
                            {"openb.gpushare40.dot_prod_gap", "points", at_most(0.7)},
                            {"openb.gpushare40.best_fit_gap", "points", at_most(0.7)},
                            {"openb.gpushare40.fragmentation_gap", "points", at_most(0.7)},
                            {"openb.gpushare40.allocation", "%", at_least(94.8)},
                            {"openb.gpushare40.online_loss", "points", at_most(0.2)},
                            {"openb.multigpu50.random_gap", "points", at_most(0.7)},
                            {"openb.multigpu50.dot_prod_gap", "points", at_most(0.7)},
                            {"openb.multigpu50.best_fit_gap", "points", at_most(0.7)},
                            {"openb.multigpu50.fragmentation_gap", "points", at_most(0.7)},
                            {"openb.multigpu50.allocation", "%", at_least(97.6)},
                            {"openb.multigpu50.online_loss", "points", at_most(0.2)},
                            {"openb.seed_s", "s", at_most(0.3)}}) {
  double seed_s = 0;
  for (std::size_t i = 0; i < std::size(lists); ++i) {
    const std::string list = lists[i];
    LOAM_TRY(trace, trace_of(list));
    for (const Published& known : published) {
      report.progress("openb " + list + " " + known.policy);
      LOAM_TRY(policy, schedule::parse_placement_policy(known.policy));
      const Outcome ours = run(trace, policy, MixSource::known);
      const double gap = ours.allocation.mean - known.figures[i];
      report.set("openb." + list + "." + known.policy + "_gap", std::abs(gap),
                 "ours " + fixed(ours.allocation.mean, 2) + " % (sd " +
                     fixed(ours.allocation.deviation, 2) + "), published " +
                     fixed(known.figures[i], 2));
    }
    report.progress("openb " + list + " packing_value");
    const Outcome known = run(trace, PlacementPolicy::packing_value, MixSource::known);
    const Outcome online = run(trace, PlacementPolicy::packing_value, MixSource::online);
    report.set("openb." + list + ".allocation", known.allocation.mean,
               "packing value, mix known, ten seeds, sd " + fixed(known.allocation.deviation, 2) +
                   "; published best (FGD) " + fixed(published[3].figures[i], 2));
    report.set("openb." + list + ".online_loss",
               std::max(0.0, known.allocation.mean - online.allocation.mean),
               "mix learnt on the way: " + fixed(online.allocation.mean, 2) + " %");
    seed_s = std::max(seed_s, online.cpu_s_min);
  }
  report.set("openb.seed_s", seed_s,
             "building the pool and all decisions of one seed, mix learnt, in seconds of one core; "
             "the fastest of ten, on the slowest list");
  return {};
}

LOAM_DATA_BENCHMARK(openb_cpu, {{"openb_cpu.allocation", "%"},
                                {"openb_cpu.fragmentation", "%"},
                                {"openb_cpu.moves_gain", "points", at_least(0.5)},
                                {"openb_cpu.moves", "moves", at_most(200)}}) {
  LOAM_TRY(trace, trace_of("default"));
  make_cpu_heavy(trace);
  const Outcome fgd = run(trace, PlacementPolicy::fragmentation, MixSource::known);
  const Outcome still = run(trace, PlacementPolicy::packing_value, MixSource::known);
  const Outcome moved = run(trace, PlacementPolicy::packing_value, MixSource::known, 200);
  const std::string note = "list `default` with tasks without a device drawn to " +
                           std::to_string(cpu_only_percent) + " % of it, ten seeds, mix known";
  report.set("openb_cpu.allocation", still.allocation.mean, note);
  report.set("openb_cpu.fragmentation", fgd.allocation.mean, note);
  report.set("openb_cpu.moves_gain", moved.allocation.mean - still.allocation.mean,
             note + "; with moves " + fixed(moved.allocation.mean, 2) + " %");
  report.set("openb_cpu.moves", moved.moves, "a seed, on average; at most 200 in any");
  return {};
}

LOAM_DATA_BENCHMARK(openb_churn, {{"openb_churn.refused", "%"},
                                  {"openb_churn.allocation_mean", "%"},
                                  {"openb_churn.allocation_peak", "%"}}) {
  LOAM_TRY(trace, trace_of("default"));
  sim::PlacementRun options;
  const auto churn = sim::run_with_departures(trace, options);
  report.set("openb_churn.refused", churn.refused_milli_percent,
             "of the milli-device asked for, with the list's own creation and deletion times: " +
                 std::to_string(churn.refused) + " of " +
                 std::to_string(churn.refused + churn.placed) + " pods");
  report.set("openb_churn.allocation_mean", churn.allocated_mean_percent, "over time");
  report.set("openb_churn.allocation_peak", churn.allocated_peak_percent);
  return {};
}

LOAM_BENCHMARK(placement, {{"placement.per_second", "1/s", at_least(20'000)},
                           {"placement.decision_p99", "us", at_most(1'000)},
                           {"placement.rss", "MiB", at_most(2'048)},
                           {"placement.loss_to_exhaustive", "points", at_most(0.3)},
                           {"placement.cost_of_size", "ratio", at_most(3)}}) {
  schedule::PoolOptions options;
  options.scored_max = sim::scored_max_default;
  sim::SyntheticPool big;
  const auto outcome = sim::run_synthetic(big, options, [&](int percent) {
    report.progress("100,000 devices " + std::to_string(percent) + " %");
  });
  const std::string note =
      "100,000 devices on 12,500 nodes, steady churn at 90 % load, "
      "packing value, mix learnt, at most " +
      std::to_string(sim::scored_max_default) + " states scored a decision";
  report.set("placement.per_second", outcome.placements_per_s, note);
  report.set("placement.decision_p99", outcome.decision_p99_us,
             "median " + fixed(outcome.decision_p50_us, 1) + " us, longest " +
                 fixed(outcome.decision_max_us, 0) + " us");
  report.set("placement.rss", outcome.rss_mib, "of the whole process, highest");
  sim::SyntheticPool small = big;
  small.devices = 6'000;
  small.nodes = 750;
  const auto six = sim::run_synthetic(small, options);
  report.set("placement.cost_of_size", six.placements_per_s / outcome.placements_per_s,
             "mean cost of a placement and a departure, 100,000 devices to 6,000");
  schedule::PoolOptions all = options;
  all.scored_max = 0;
  const auto exhaustive = sim::run_synthetic(big, all, [&](int percent) {
    report.progress("exhaustive " + std::to_string(percent) + " %");
  });
  report.set("placement.loss_to_exhaustive",
             std::max(0.0, exhaustive.allocated_percent - outcome.allocated_percent),
             "filled to the brim after the churn: " + fixed(outcome.allocated_percent, 2) +
                 " %, scoring every state " + fixed(exhaustive.allocated_percent, 2) + " %");
  return {};
}

}  // namespace loam::bench
