// A serving pool that lends to training: four ways to share the same devices, and how many devices
// do the work of exclusive ones. The replay and its limits: docs/lending.md.
#include <algorithm>
#include <cstdio>

#include "bench/bench.hpp"
#include "sim/trace/jobs.hpp"
#include "sim/trace/lending.hpp"

namespace loam::bench {
namespace {

using sim::Lending;
using sim::LendingOutcome;
using sim::LendingSettings;

// Training of the finite comparison: as many devices of its own, loaded to this part.
constexpr std::int64_t training_devices = 150;
constexpr double training_load = 0.75;
constexpr double devices_mark = 0.7;  // of the exclusive ones

Result<void> add_jobs(const std::string& path, std::vector<sim::TrainingJob>& jobs) {
  LOAM_TRY(traced, sim::read_jobs(path));
  for (const sim::TraceJob& job : traced)
    jobs.push_back({job.length.ms / 1000, static_cast<int>(job.devices), job.arrival.ms / 1000});
  return {};
}

struct Replayed {
  sim::LendingWeeks weeks;
  std::vector<sim::ServiceLoad> services;
  std::vector<sim::TrainingJob> jobs;
  std::int64_t exclusive_devices = 0;  // of the services
  LendingOutcome exclusive;

  LendingOutcome run(Lending lending) const {
    LendingSettings settings;
    settings.lending = lending;
    settings.devices = lending == Lending::exclusive ? 0 : exclusive_devices;
    return sim::replay_lending(services, jobs, weeks, settings);
  }
  // The worst that any service's 99th percentile rises by.
  double added_ms(const LendingOutcome& outcome) const {
    double worst = 0;
    for (std::size_t i = 0; i < services.size(); ++i)
      worst = std::max(worst, outcome.p99_ms[i] - exclusive.p99_ms[i]);
    return worst;
  }
  std::string note(const LendingOutcome& outcome) const {
    std::string text = "p99 ";
    char part[64];
    for (std::size_t i = 0; i < services.size(); ++i) {
      std::snprintf(part, sizeof part, "%s %+.1f ms, ", services[i].name.c_str(),
                    outcome.p99_ms[i] - exclusive.p99_ms[i]);
      text += part;
    }
    std::snprintf(part, sizeof part, "%.4f preemptions a task",
                  outcome.tasks == 0 ? 0.0
                                     : static_cast<double>(outcome.preemptions) /
                                           static_cast<double>(outcome.tasks));
    return text + part;
  }
};

Result<Replayed> prepare() {
  Replayed replayed;
  LOAM_TRY(trace, sim::read_requests(data_folder() + "/azure-llm/conversation.csv"));
  LOAM_CHECK(add_jobs(data_folder() + "/shockwave/jobs_120.tsv", replayed.jobs));
  LOAM_CHECK(add_jobs(data_folder() + "/shockwave/jobs_220.tsv", replayed.jobs));
  replayed.services = sim::make_services(trace, replayed.weeks);
  for (const sim::ServiceLoad& service : replayed.services)
    replayed.exclusive_devices += service.peak;
  return replayed;
}

// With work that ends: the fewest devices, lent and taken in turns, on which training completes as
// soon as on devices of its own.
void measure_finite(const Replayed& replayed, Report& report) {
  const auto jobs =
      sim::make_training(replayed.jobs, replayed.weeks, training_devices, training_load);
  LendingSettings settings;
  settings.endless_training = false;
  settings.lending = Lending::exclusive;
  settings.devices = training_devices;
  const LendingOutcome alone =
      sim::replay_lending(replayed.services, jobs, replayed.weeks, settings);
  const std::int64_t all = replayed.exclusive_devices + training_devices;
  settings.lending = Lending::forecast_and_turns;
  std::int64_t low = all / 2;
  std::int64_t high = all;
  LendingOutcome best;
  while (high - low > 1) {
    settings.devices = low + (high - low) / 2;
    report.progress("finite work on " + std::to_string(settings.devices) + " devices");
    const LendingOutcome tried =
        sim::replay_lending(replayed.services, jobs, replayed.weeks, settings);
    if (tried.completion_mean_s <= alone.completion_mean_s && tried.finished >= alone.finished &&
        replayed.added_ms(tried) <= 5) {
      high = settings.devices;
      best = tried;
    } else {
      low = settings.devices;
    }
  }
  char note[200];
  std::snprintf(
      note, sizeof note,
      "%ld instead of %ld devices, %.0f s instead of %.0f s mean completion of %zu tasks; "
      "use %.1f instead of %.1f %%",
      static_cast<long>(high), static_cast<long>(all), best.completion_mean_s,
      alone.completion_mean_s, jobs.size(), 100 * best.use, 100 * alone.use);
  report.set("lending.finite_devices", static_cast<double>(high) / static_cast<double>(all), note);
  report.set("lending.finite_added_p99", replayed.added_ms(best), replayed.note(best));
}

LOAM_DATA_BENCHMARK(lending, {{"lending.exclusive_use", "%"},
                              {"lending.threshold_use", "%"},
                              {"lending.threshold_added_p99", "ms"},
                              {"lending.forecast_use", "%"},
                              {"lending.forecast_added_p99", "ms"},
                              {"lending.turns_use", "%", at_least(95)},
                              {"lending.turns_added_p99", "ms", at_most(5)},
                              {"lending.finite_devices", "of exclusive", at_most(devices_mark)},
                              {"lending.finite_added_p99", "ms", at_most(5)}}) {
  report.progress("making services");
  LOAM_TRY(replayed, prepare());
  replayed.exclusive = replayed.run(Lending::exclusive);
  report.set("lending.exclusive_use", 100 * replayed.exclusive.use,
             std::to_string(replayed.exclusive_devices) + " devices, 4 services, two weeks");
  const auto measure = [&](Lending lending, const std::string& name) {
    report.progress(sim::name_of(lending));
    const LendingOutcome outcome = replayed.run(lending);
    report.set("lending." + name + "_use", 100 * outcome.use);
    report.set("lending." + name + "_added_p99", replayed.added_ms(outcome),
               replayed.note(outcome));
  };
  measure(Lending::threshold, "threshold");
  measure(Lending::forecast, "forecast");
  measure(Lending::forecast_and_turns, "turns");
  measure_finite(replayed, report);
  return {};
}

}  // namespace
}  // namespace loam::bench
