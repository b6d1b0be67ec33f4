// Order of tasks: the reference orders against their published figures, the orders for unknown
// lengths and stated limits against two-queue LAS, and the cost of a pass over a long queue.
#include <algorithm>
#include <cmath>
#include <map>

#include "bench/bench.hpp"
#include "schedule/scheduler.hpp"
#include "sim/trace/jobs_run.hpp"

namespace loam::bench {
namespace {

struct Trace {
  const char* name;
  const char* file;
  std::int64_t devices;
};
constexpr Trace traces[] = {{"120", "/shockwave/jobs_120.tsv", 32},
                            {"220", "/shockwave/jobs_220.tsv", 64}};

struct Reference {
  const char* discipline;
  double completion_mean_s[2];  // by trace
  double wait_p99_s[2];
};
// Rigid gangs, stated durations, no overhead; from the exact reference simulation.
constexpr Reference references[] = {
    {"fifo", {10'559, 8'945}, {14'417, 13'783}}, {"easy", {10'555, 8'928}, {14'388, 13'777}},
    {"any", {8'471, 7'935}, {16'070, 11'678}},   {"sjf", {7'471, 6'599}, {16'301, 11'735}},
    {"srtf", {7'150, 6'616}, {11'824, 12'536}},  {"srsf", {6'707, 6'179}, {12'809, 10'935}},
    {"las2", {9'803, 8'420}, {12'118, 10'868}},
};

Result<sim::JobsOutcome> run(const Trace& trace, const char* name, Duration cost,
                             std::uint64_t seed) {
  LOAM_TRY(jobs, sim::read_jobs(data_folder() + trace.file));
  sim::state_limits(jobs, seed, 1'000, 10'000);
  sim::JobsSetting setting;
  setting.devices = trace.devices;
  LOAM_TRY(discipline, schedule::discipline_named(name));
  setting.discipline = std::move(discipline);
  setting.knowledge = sim::knowledge_of(setting.discipline);
  setting.preemption_cost = cost;
  return sim::run_jobs(jobs, setting);
}

// The largest deviation in percent, the half second of rounding in the published figures apart.
double deviation(double ours, double published) {
  return 100 * std::max(0.0, std::abs(ours - published) - 0.5) / published;
}

Result<void> measure_references(Report& report) {
  double worst = 0;
  std::string where;
  for (const Reference& reference : references) {
    for (std::size_t t = 0; t < 2; ++t) {
      LOAM_TRY(outcome, run(traces[t], reference.discipline, Duration{}, 1));
      const double off =
          std::max(deviation(outcome.completion_mean_s, reference.completion_mean_s[t]),
                   deviation(outcome.wait_p99_s, reference.wait_p99_s[t]));
      if (off < worst) continue;
      worst = off;
      where = std::string(reference.discipline) + " on " + traces[t].name + " jobs";
    }
  }
  report.set("order.reference_deviation", worst, "worst of 7 orders on 2 traces: " + where);
  return {};
}

// Seeds draw the stated limits; a blind order is told none, so it has one run.
Result<void> measure_unknown(Report& report, const char* name, int seeds) {
  const Duration cost = Duration::seconds(60);
  for (const Trace& trace : traces) {
    LOAM_TRY(las, run(trace, "las2", cost, 1));
    double mean = 0;
    double worst = 0;
    double p99 = 0;
    double preemptions = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      LOAM_TRY(outcome, run(trace, name, cost, static_cast<std::uint64_t>(seed)));
      mean += outcome.completion_mean_s / seeds;
      worst = std::max(worst, outcome.completion_mean_s);
      p99 += outcome.wait_p99_s / seeds;
      preemptions += static_cast<double>(outcome.preemptions) /
                     static_cast<double>(outcome.fates.size()) / seeds;
    }
    const std::string prefix = std::string("order.") + name + "_" + trace.name;
    const std::string note = seeds == 1
                                 ? "60 s a preemption; no limits known"
                                 : "60 s a preemption; limits 1 to 10 times the length, mean of " +
                                       std::to_string(seeds) + " draws, worst " +
                                       std::to_string(std::llround(worst)) + " s";
    report.set(prefix + "_completion", mean, note);
    report.set(prefix + "_wait_p99_ratio", p99 / las.wait_p99_s, "over that of two-queue LAS");
    report.set(prefix + "_preemptions", preemptions, "a task");
  }
  return {};
}

LOAM_DATA_BENCHMARK(order, {{"order.reference_deviation", "%", at_most(0.1)},
                            {"order.blind_120_completion", "s", at_most(8'500)},
                            {"order.blind_120_wait_p99_ratio", "ratio", at_most(1)},
                            {"order.blind_120_preemptions", "ratio", at_most(1)},
                            {"order.blind_220_completion", "s", at_most(8'000)},
                            {"order.blind_220_wait_p99_ratio", "ratio", at_most(1)},
                            {"order.blind_220_preemptions", "ratio", at_most(1)},
                            {"order.semi_blind_120_completion", "s", at_most(7'800)},
                            {"order.semi_blind_120_wait_p99_ratio", "ratio", at_most(1)},
                            {"order.semi_blind_120_preemptions", "ratio", at_most(1)},
                            {"order.semi_blind_220_completion", "s", at_most(7'100)},
                            {"order.semi_blind_220_wait_p99_ratio", "ratio", at_most(1)},
                            {"order.semi_blind_220_preemptions", "ratio", at_most(1)}}) {
  LOAM_CHECK(measure_references(report));
  LOAM_CHECK(measure_unknown(report, "blind", 1));
  return measure_unknown(report, "semi_blind", 10);
}

// A full pool and a queue of which nothing fits: tenants, projects, levels and sizes as they come.
schedule::Scheduler long_queue(const char* name, schedule::CountingRoom& room) {
  constexpr std::uint64_t waiting = 100'000;
  constexpr std::uint64_t running = 1'000;
  schedule::Scheduler scheduler;
  scheduler.set_queue(0, {"long", *schedule::discipline_named(name), 0, 1, {}});
  const auto job = [&](std::uint64_t id, std::int64_t devices) {
    schedule::Job made;
    made.id = TaskId{id};
    made.tenant = TenantId{id % 50 + 1};
    made.project = "project" + std::to_string(id % 3);
    made.level = static_cast<std::int64_t>(id % 2);
    made.ask.demand.share = whole_device;
    made.ask.count = devices;
    made.milli = devices * whole_device.value;
    made.takes[schedule::Dimension::devices] = made.milli;
    // Every second limit is one of its own: tasks that differ in nothing share a line.
    made.limit = Duration::hours(1 + static_cast<std::int64_t>(id % 4)) +
                 Duration{static_cast<std::int64_t>(id % 2 * id)};
    made.arrival = Instant{static_cast<std::int64_t>(id)};
    return made;
  };
  for (std::uint64_t id = 1; id <= running; ++id) {
    scheduler.arrives(job(id, 1), Instant{0});
    const auto place = room.find(scheduler.standing(TaskId{id}).job.ask, 0);
    room.take(*place);
    scheduler.starts(TaskId{id}, Instant{1'000'000}, *place);
  }
  for (std::uint64_t id = running + 1; id <= running + waiting; ++id)
    scheduler.arrives(job(id, std::int64_t{1} << id % 5), Instant{1'000'000});
  scheduler.tick(Instant{1'060'000});
  return scheduler;
}

LOAM_BENCHMARK(pass, {{"pass.fifo_100k", "ms", at_most(50)},
                      {"pass.easy_100k", "ms", at_most(50)},
                      {"pass.priority_100k", "ms", at_most(50)},
                      {"pass.drf_100k", "ms", at_most(50)},
                      {"pass.blind_100k", "ms", at_most(50)},
                      {"pass.sjf_100k", "ms", at_most(50)},
                      {"pass.semi_blind_100k", "ms", at_most(50)}}) {
  for (const char* name : {"fifo", "easy", "priority", "drf", "blind", "sjf", "semi_blind"}) {
    report.progress(name);
    schedule::CountingRoom room(1'000);
    const schedule::Scheduler scheduler = long_queue(name, room);
    std::vector<double> passes;
    std::size_t actions = 0;
    for (int i = 0; i < 11; ++i) {
      passes.push_back(1000 * core_seconds_of([&] {
                         const schedule::Pass pass = scheduler.pass(Instant{1'060'000}, room);
                         actions = static_cast<std::size_t>(std::count_if(
                             pass.actions.begin(), pass.actions.end(), [](const auto& action) {
                               return std::holds_alternative<schedule::Start>(action);
                             }));
                       }));
    }
    if (actions != 0) return invalid("a task started in a full pool");
    const Median pass = median_of(std::move(passes));
    report.set(std::string("pass.") + name + "_100k", pass.value, pass.interval,
               "100,000 waiting tasks that do not fit, " +
                   std::to_string(scheduler.lines().size()) + " lines, 1,000 running");
  }
  return {};
}

}  // namespace
}  // namespace loam::bench
