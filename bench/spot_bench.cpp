// Spot under a deadline: what three policies pay on generated availability, beside the optimum of
// one who knows the future, and a million runs against adversaries.
#include <cmath>
#include <cstdio>
#include <vector>

#include "bench/bench.hpp"
#include "schedule/spot/optimum.hpp"
#include "sim/trace/spot.hpp"
#include "sim/trace/spot_adversary.hpp"

namespace loam::bench {
namespace {

using namespace schedule::spot;

constexpr Duration tick = Duration::seconds(195);  // the fitted model's step
constexpr std::int64_t price_ppm = 317'000;        // spot / on-demand
constexpr int traces = 400;
constexpr std::size_t zones = 9;
constexpr double egress_hours = 0.16;

struct Setting {
  const char* name;
  std::int64_t deadline_hours;
  std::int64_t changeover_minutes;
};
constexpr Setting settings[] = {{"48_52_3m", 52, 3},   {"48_60_3m", 60, 3},
                                {"48_70_3m", 70, 3},   {"48_52_12m", 52, 12},
                                {"48_60_12m", 60, 12}, {"48_70_12m", 70, 12}};

// Cost as a fraction of the work's on-demand price, means over the traces.
struct Costs {
  double greedy = 0;
  double uniform = 0;
  double reserve = 0;
  double optimum = 0;
  double zoned = 0;
  int missed = 0;

  // The part of the way from greedy to the optimum.
  double closed(double cost) const { return (greedy - cost) / (greedy - optimum); }
};

Result<Costs> costs_of(const Terms& terms, const sim::AvailabilityModel& model) {
  Costs mean;
  const auto ticks = static_cast<std::size_t>(terms.deadline);
  for (std::uint64_t seed = 1; seed <= traces; ++seed) {
    const auto trace = sim::generate_availability(model, ticks, seed);
    const auto pays = [&](Policy policy, double& sum) -> Result<void> {
      LOAM_TRY(outcome, sim::run_spot(policy, terms, trace, 0));
      sum += outcome.cost_fraction(terms) / traces;
      mean.missed += outcome.missed ? 1 : 0;
      return {};
    };
    LOAM_CHECK(pays(Policy::greedy, mean.greedy));
    LOAM_CHECK(pays(Policy::uniform_progress, mean.uniform));
    LOAM_CHECK(pays(Policy::reserve, mean.reserve));
    const auto best = optimal_cost(terms, trace);
    if (!best) return invalid("a trace has no plan that meets the deadline");
    mean.optimum +=
        static_cast<double>(*best) / static_cast<double>(terms.work * cost_scale) / traces;

    std::vector<std::vector<std::uint8_t>> places{trace};
    while (places.size() < zones)
      places.push_back(sim::generate_availability(model, ticks, seed + traces * places.size()));
    LOAM_TRY(zoned, sim::run_spot_zones(terms, places, 0));
    mean.zoned += zoned.task.cost_fraction(terms) / traces;
    mean.missed += zoned.task.missed ? 1 : 0;
  }
  return mean;
}

std::string note_of(const Costs& costs) {
  char text[160];
  std::snprintf(text, sizeof text,
                "greedy %.3f, uniform progress %.3f (%.0f %%), optimum %.3f, in 9 zones %.3f",
                costs.greedy, costs.uniform, 100 * costs.closed(costs.uniform), costs.optimum,
                costs.zoned);
  return text;
}

LOAM_DATA_BENCHMARK(spot, {{"spot.closed_against_uniform_48_60_3m", "ratio", at_least(1.5)},
                           {"spot.settings_won", "of 6", at_least(6)},
                           {"spot.missed", "runs", at_most(0)},
                           {"spot.reserve_48_52_3m", "of on-demand"},
                           {"spot.reserve_48_60_3m", "of on-demand"},
                           {"spot.reserve_48_70_3m", "of on-demand"},
                           {"spot.reserve_48_52_12m", "of on-demand"},
                           {"spot.reserve_48_60_12m", "of on-demand"},
                           {"spot.reserve_48_70_12m", "of on-demand"}}) {
  LOAM_TRY(model, sim::read_availability_model(data_folder() + "/spot/availability_hmm.txt"));
  double won = 0;
  int missed = 0;
  for (const Setting& setting : settings) {
    report.progress(setting.name);
    LOAM_TRY(terms, terms_of(Duration::hours(48), Duration::hours(setting.deadline_hours),
                             Duration::minutes(setting.changeover_minutes), tick, price_ppm));
    terms.egress_cost = std::llround(egress_hours * 3.6e6 / static_cast<double>(tick.ms) *
                                     static_cast<double>(cost_scale));
    LOAM_TRY(costs, costs_of(terms, model));
    const std::string name = setting.name;
    report.set("spot.reserve_" + name, costs.reserve, note_of(costs));
    won += costs.reserve < costs.uniform ? 1 : 0;
    missed += costs.missed;
    if (name == "48_60_3m")
      report.set("spot.closed_against_uniform_48_60_3m",
                 costs.closed(costs.reserve) / costs.closed(costs.uniform),
                 "400 generated traces; of the gap from greedy to the optimum");
  }
  report.set("spot.settings_won", won, "reserve pays less than uniform progress");
  report.set("spot.missed", missed, "deadlines, all policies and settings");
  return {};
}

LOAM_BENCHMARK(spot_adversary, {{"spot_adversary.missed", "runs", at_most(0)},
                                {"spot_adversary.over_cap", "runs", at_most(0)},
                                {"spot_adversary.runs_per_second", "1/s"}}) {
  constexpr std::uint64_t runs = 1'000'000;
  sim::AdversaryReport found;
  const double seconds =
      seconds_of([&] { found = sim::run_adversary(Policy::reserve, 20'260'301, runs); });
  report.set("spot_adversary.missed", static_cast<double>(found.missed), found.first_fault);
  report.set("spot_adversary.over_cap", static_cast<double>(found.over_cap), found.first_fault);
  report.set("spot_adversary.runs_per_second", static_cast<double>(runs) / seconds,
             "1,000,000 runs, " + std::to_string(found.zone_runs) + " of them in several zones");
  return {};
}

}  // namespace
}  // namespace loam::bench
