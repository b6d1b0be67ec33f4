// loam sim: job traces under a queue discipline.
#include <algorithm>

#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"
#include "base/quantity.hpp"
#include "sim/plot.hpp"
#include "sim/trace/jobs_run.hpp"

namespace loam::cli {
namespace {

// Factors of a stated limit over the length, in thousandths: people state limits well above.
struct Factors {
  std::int64_t low = 1'000;
  std::int64_t high = 10'000;
};

Result<std::int64_t> factor_of(const std::string& text) {
  LOAM_TRY(permille, parse_decimal(text, 3, 1'000'000, "limit factor"));
  if (permille < 1000) return invalid("a limit factor of " + text, "give one of at least 1");
  return permille;
}

Result<Factors> factors_of(const std::string& text) {
  if (text.empty()) return Factors{};
  const std::size_t dots = text.find("..");
  Factors factors;
  LOAM_TRY(low, factor_of(text.substr(0, dots)));
  factors.low = factors.high = low;
  if (dots != std::string::npos) {
    LOAM_TRY(high, factor_of(text.substr(dots + 2)));
    factors.high = high;
  }
  if (factors.high < factors.low)
    return invalid("'" + text + "' holds no limit factor", "write it as 1..10");
  return factors;
}

// What is run: every discipline with every seed.
struct Asked {
  std::vector<sim::TraceJob> jobs;
  std::vector<std::string> disciplines;
  std::vector<std::uint64_t> seeds;
  Factors factors;
  bool states_limits = true;  // the trace has none of its own, or they are replaced
  sim::JobsSetting setting;
};

Result<Asked> asked_by(const Arguments& arguments) {
  Asked asked;
  if (!arguments.has("tasks"))
    return invalid("'loam sim --trace jobs' needs --tasks", "name the file with the tasks");
  if (!arguments.has("devices"))
    return invalid("'loam sim --trace jobs' needs --devices", "say how many, as in --devices 32");
  LOAM_TRY(devices, parse_decimal(arguments.text("devices"), 0, 1'000'000, "number of devices"));
  asked.setting.devices = devices;
  if (arguments.has("preemption-cost")) {
    LOAM_TRY(cost, parse_duration(arguments.text("preemption-cost")));
    asked.setting.preemption_cost = cost;
  }
  asked.disciplines = arguments.list("discipline");
  if (asked.disciplines.empty()) asked.disciplines = {"blind"};
  for (const std::string& name : asked.disciplines) LOAM_CHECK(schedule::discipline_named(name));
  for (const std::string& text : arguments.list("seeds")) LOAM_CHECK(add_seeds(text, asked.seeds));
  if (asked.seeds.empty()) asked.seeds = {1};
  LOAM_TRY(factors, factors_of(arguments.text("limit-factor")));
  asked.factors = factors;
  asked.setting.trace = arguments.text("tasks");
  LOAM_TRY(jobs, sim::read_jobs(asked.setting.trace));
  asked.jobs = std::move(jobs);
  LOAM_TRY(pace, pace_percent(arguments));
  for (sim::TraceJob& job : asked.jobs) job.arrival.ms = job.arrival.ms * 100 / pace;
  asked.states_limits =
      arguments.has("limit-factor") ||
      std::none_of(asked.jobs.begin(), asked.jobs.end(),
                   [](const sim::TraceJob& job) { return job.limit.has_value(); });
  return asked;
}

// One discipline: the means over the seeds, and the last seed's run.
struct Mean {
  std::string name;
  std::size_t seeds = 0;
  sim::JobsOutcome sum;
  sim::JobsOutcome last;
  std::vector<sim::TraceJob> jobs;  // with the last seed's limits

  double of(double total) const { return total / static_cast<double>(seeds); }
};

void add(sim::JobsOutcome& sum, const sim::JobsOutcome& run) {
  sum.completion_mean_s += run.completion_mean_s;
  sum.wait_mean_s += run.wait_mean_s;
  sum.wait_p99_s += run.wait_p99_s;
  sum.wait_max_s += run.wait_max_s;
  sum.preemptions += run.preemptions;
  sum.makespan_s += run.makespan_s;
  sum.jain += run.jain;
  sum.utilisation += run.utilisation;
}

Result<Mean> run_discipline(Session& session, const Asked& asked, const std::string& name) {
  Mean mean;
  mean.name = name;
  sim::JobsSetting setting = asked.setting;
  LOAM_TRY(discipline, schedule::discipline_named(name));
  setting.discipline = std::move(discipline);
  setting.knowledge = sim::knowledge_of(setting.discipline);
  const bool live = session.console().err_is_terminal && !session.quiet();
  // Only what is told limits depends on the seed.
  const bool drawn = asked.states_limits && setting.knowledge == sim::Knowledge::limits;
  mean.seeds = drawn ? asked.seeds.size() : 1;
  for (std::size_t i = 0; i < mean.seeds; ++i) {
    mean.jobs = asked.jobs;
    if (drawn) sim::state_limits(mean.jobs, asked.seeds[i], asked.factors.low, asked.factors.high);
    auto run = sim::run_jobs(mean.jobs, setting, [&](std::size_t done) {
      if (live && done % 64 == 0) {
        session.console().err << "\r\x1b[K" << name << ": " << done << " of " << mean.jobs.size()
                              << " tasks" << std::flush;
      }
    });
    if (live) session.console().err << "\r\x1b[K" << std::flush;
    if (!run) return run.error();
    add(mean.sum, *run);
    mean.last = std::move(*run);
  }
  return mean;
}

std::string json_of(const Mean& mean, const Asked& asked) {
  const auto field = [&](const char* name, double total, int decimals) {
    return ",\"" + std::string(name) + "\":" + fixed(mean.of(total), decimals);
  };
  const sim::JobsOutcome& sum = mean.sum;
  return "{\"discipline\":\"" + mean.name + "\",\"tasks\":" + std::to_string(asked.jobs.size()) +
         ",\"devices\":" + std::to_string(asked.setting.devices) +
         ",\"seeds\":" + std::to_string(mean.seeds) +
         field("completion_mean_s", sum.completion_mean_s, 3) +
         field("wait_mean_s", sum.wait_mean_s, 3) + field("wait_p99_s", sum.wait_p99_s, 3) +
         field("wait_max_s", sum.wait_max_s, 3) +
         field("preemptions", static_cast<double>(sum.preemptions), 1) +
         field("makespan_s", sum.makespan_s, 3) + field("jain", sum.jain, 4) +
         field("utilisation", sum.utilisation, 4) + "}";
}

std::string json_of(const std::vector<Mean>& means, const Asked& asked) {
  if (means.size() == 1) return json_of(means.front(), asked) + "\n";
  std::string text;
  for (const Mean& mean : means) text += (text.empty() ? "" : ",") + json_of(mean, asked);
  return "{\"runs\":[" + text + "]}\n";
}

std::string table_of(Session& session, const std::vector<Mean>& means) {
  Table table({{"discipline"},
               {"completion, s", Align::right},
               {"wait p99, s", Align::right},
               {"wait max, s", Align::right},
               {"preemptions", Align::right},
               {"makespan, s", Align::right},
               {"use, %", Align::right},
               {"Jain", Align::right}});
  for (const Mean& mean : means) {
    const auto cell = [&](double total, int decimals) { return fixed(mean.of(total), decimals); };
    table.add({mean.name, cell(mean.sum.completion_mean_s, 0), cell(mean.sum.wait_p99_s, 0),
               cell(mean.sum.wait_max_s, 0), cell(static_cast<double>(mean.sum.preemptions), 0),
               cell(mean.sum.makespan_s, 0), cell(100 * mean.sum.utilisation, 1),
               cell(mean.sum.jain, 3)});
  }
  return session.text_of(table);
}

// Devices taken over time, as steps.
sim::Series busy_of(const Mean& mean) {
  sim::Series series{mean.name, {}};
  double before = 0;
  for (const auto& [at, busy] : mean.last.busy) {
    const double hours = static_cast<double>(at.ms) / 3'600'000;
    series.points.emplace_back(hours, before);
    before = static_cast<double>(busy);
    series.points.emplace_back(hours, before);
  }
  return series;
}

sim::Sample waits_of(const Mean& mean) {
  sim::Sample sample{mean.name, {}};
  for (std::size_t i = 0; i < mean.jobs.size(); ++i) {
    const Duration wait = mean.last.fates[i].finished - mean.jobs[i].arrival - mean.jobs[i].length;
    sample.values.push_back(static_cast<double>(wait.ms) / 3'600'000);
  }
  return sample;
}

Result<void> write_plots(const Arguments& arguments, const std::vector<Mean>& means) {
  std::vector<sim::Series> busy;
  std::vector<sim::Sample> waits;
  for (const Mean& mean : means) {
    busy.push_back(busy_of(mean));
    waits.push_back(waits_of(mean));
  }
  LOAM_CHECK(write_plot(arguments, "jobs_waiting.svg",
                        sim::cumulative_chart({"Waiting time", "wait, h", "tasks, %"}, waits)));
  return write_plot(arguments, "jobs_devices.svg",
                    sim::line_chart({"Devices in use", "time, h", "devices"}, busy));
}

}  // namespace

Result<int> sim_jobs(Session& session, const Arguments& arguments) {
  LOAM_TRY(asked, asked_by(arguments));
  if (asked.disciplines.size() > 1 && arguments.has("csv"))
    return invalid("--csv with " + std::to_string(asked.disciplines.size()) + " disciplines",
                   "give one discipline to get its tasks");
  std::vector<Mean> means;
  for (const std::string& name : asked.disciplines) {
    LOAM_TRY(mean, run_discipline(session, asked, name));
    means.push_back(std::move(mean));
  }
  LOAM_CHECK(write_json(arguments, session, json_of(means, asked)));
  LOAM_CHECK(
      write_result(arguments, "csv", session, sim::to_csv(means.front().jobs, means.front().last)));
  if (arguments.has("plot")) LOAM_CHECK(write_plots(arguments, means));
  if (shows_table(arguments, session)) session.out() << table_of(session, means);
  return 0;
}

OptionGroup sim_jobs_options() {
  return {"Job traces",
          {{"--devices", "N", "identical devices in the pool"},
           {"--discipline", "D",
            "the order: fifo, drf, easy, semi_blind, …; may be given again (default: blind)",
            Option::Kind::list},
           {"--preemption-cost", "TIME", "device time that a preempted task owes when it resumes"},
           {"--limit-factor", "A..B",
            "stated limits are so many times the length, drawn evenly by seed (default: 1..10)"}}};
}

}  // namespace loam::cli
