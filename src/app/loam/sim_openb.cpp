// loam sim: placement traces in the openb format, and in the plain CSV.
#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"
#include "base/quantity.hpp"
#include "sim/plot.hpp"
#include "sim/trace/fairness.hpp"
#include "sim/trace/placement_run.hpp"

namespace loam::cli {
namespace {

// "1.3" is 130 %.
Result<schedule::PolicyOptions> policy_of(const Arguments& arguments) {
  schedule::PolicyOptions options;
  LOAM_TRY(policy, schedule::parse_placement_policy(arguments.text("policy", "packing_value")));
  options.policy = policy;
  const std::string tie = arguments.text("tie-break", "least_remaining");
  options.tie_break = tie == "random"  ? schedule::TieBreak::random
                      : tie == "by_id" ? schedule::TieBreak::by_id
                                       : schedule::TieBreak::least_remaining;
  const std::string quantise = arguments.text("quantisation", "automatic");
  options.quantisation = quantise == "fine"        ? schedule::Quantisation::fine
                         : quantise == "published" ? schedule::Quantisation::published
                                                   : schedule::Quantisation::automatic;
  return options;
}

Result<sim::PlacementRun> run_of(const Arguments& arguments) {
  sim::PlacementRun run;
  LOAM_TRY(policy, policy_of(arguments));
  run.pool.placement = policy;
  run.pool.mix = mix_of(arguments);
  LOAM_TRY(moves, parse_decimal(arguments.text("moves", "0"), 0, 1'000'000, "moves"));
  run.moves_max = moves;
  LOAM_TRY(arrivals, percent_of(arguments, "arrivals", "1.3"));
  run.arrivals_percent = arrivals;
  LOAM_TRY(cpu, percent_of(arguments, "scale-cpu", "1"));
  run.cpu_percent = cpu;
  return run;
}

std::vector<double> allocations(const std::vector<sim::PlacementOutcome>& outcomes) {
  std::vector<double> values;
  for (const auto& outcome : outcomes) values.push_back(outcome.allocated_percent);
  return values;
}

double mean_of(const std::vector<sim::PlacementOutcome>& outcomes,
               double (*figure)(const sim::PlacementOutcome&)) {
  std::vector<double> values;
  for (const auto& outcome : outcomes) values.push_back(figure(outcome));
  return sim::spread_of(values).mean;
}

// The mean over seeds after each percent of arrivals that all of them reached.
std::vector<double> mean_curve(const std::vector<sim::PlacementOutcome>& outcomes) {
  std::size_t shortest = outcomes.front().curve.size();
  for (const auto& outcome : outcomes) shortest = std::min(shortest, outcome.curve.size());
  std::vector<double> curve(shortest, 0.0);
  for (const auto& outcome : outcomes) {
    for (std::size_t i = 0; i < shortest; ++i) {
      curve[i] += outcome.curve[i] / static_cast<double>(outcomes.size());
    }
  }
  return curve;
}

double cpu_of(const sim::PlacementOutcome& outcome) {
  return outcome.cpu_s;
}
double wall_of(const sim::PlacementOutcome& outcome) {
  return outcome.wall_s;
}
double moves_of(const sim::PlacementOutcome& outcome) {
  return static_cast<double>(outcome.moves);
}
double jain_devices_of(const sim::PlacementOutcome& outcome) {
  return sim::jain_index(outcome.device_use);
}
double jain_of(const sim::PlacementOutcome& outcome) {
  return outcome.jain;
}

std::string json_of(const Arguments& arguments,
                    const std::vector<sim::PlacementOutcome>& outcomes) {
  const sim::Spread spread = sim::spread_of(allocations(outcomes));
  std::string json =
      "{\"policy\":\"" + arguments.text("policy", "packing_value") + "\",\"mix\":\"" +
      arguments.text("mix", "online") + "\",\"allocation_mean\":" + fixed(spread.mean, 4) +
      ",\"allocation_sd\":" + fixed(spread.deviation, 4) +
      ",\"moves\":" + fixed(mean_of(outcomes, moves_of), 1) +
      ",\"wall_s\":" + fixed(mean_of(outcomes, wall_of), 4) +
      ",\"cpu_s\":" + fixed(mean_of(outcomes, cpu_of), 4) +
      ",\"jain\":" + fixed(mean_of(outcomes, jain_of), 4) +
      ",\"jain_devices\":" + fixed(mean_of(outcomes, jain_devices_of), 4) + ",\"seeds\":[";
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto& o = outcomes[i];
    json += (i == 0 ? "" : ",");
    json +=
        "{\"seed\":" + std::to_string(o.seed) + ",\"allocation\":" + fixed(o.allocated_percent, 4) +
        ",\"arrived\":" + std::to_string(o.arrived) + ",\"placed\":" + std::to_string(o.placed) +
        ",\"moves\":" + std::to_string(o.moves) + ",\"wall_s\":" + fixed(o.wall_s, 4) + "}";
  }
  json += "],\"curve\":[";
  const std::vector<double> curve = mean_curve(outcomes);
  for (std::size_t i = 0; i < curve.size(); ++i) json += (i == 0 ? "" : ",") + fixed(curve[i], 3);
  return json + "]}\n";
}

std::string csv_of(const std::vector<sim::PlacementOutcome>& outcomes) {
  std::string csv = "seed,arrived_percent,allocated_percent\n";
  for (const auto& outcome : outcomes) {
    for (std::size_t i = 0; i < outcome.curve.size(); ++i) {
      csv += std::to_string(outcome.seed) + "," + std::to_string(i) + "," +
             fixed(outcome.curve[i], 4) + "\n";
    }
  }
  return csv;
}

Result<void> write_plots(const Arguments& arguments,
                         const std::vector<sim::PlacementOutcome>& outcomes) {
  sim::Series series{arguments.text("policy", "packing_value"), {}};
  const std::vector<double> curve = mean_curve(outcomes);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    series.points.emplace_back(static_cast<double>(i), curve[i]);
  }
  LOAM_CHECK(write_plot(
      arguments, "allocation.svg",
      sim::line_chart({"Allocation over arrivals", "arrived, % of the pool", "allocated, %"},
                      {series})));
  return write_plot(arguments, "devices.svg",
                    sim::heat_map({"Use of each device at the end of seed " +
                                       std::to_string(outcomes.front().seed),
                                   "devices in the order of the trace", ""},
                                  96, outcomes.front().device_use));
}

void print(Session& session, const std::vector<sim::PlacementOutcome>& outcomes) {
  Table table({{"seed", Align::right},
               {"arrived", Align::right},
               {"placed", Align::right},
               {"allocated %", Align::right},
               {"moves", Align::right},
               {"seconds", Align::right}});
  for (const auto& o : outcomes) {
    table.add({std::to_string(o.seed), std::to_string(o.arrived), std::to_string(o.placed),
               fixed(o.allocated_percent, 2), std::to_string(o.moves), fixed(o.wall_s, 3)});
  }
  const sim::Spread spread = sim::spread_of(allocations(outcomes));
  table.add({Cell("mean", Style::bold), "", "", Cell(fixed(spread.mean, 2), Style::bold),
             fixed(mean_of(outcomes, moves_of), 1), fixed(mean_of(outcomes, wall_of), 3)});
  session.out() << session.text_of(table);
  session.out() << "standard deviation " << fixed(spread.deviation, 2)
                << " points; Jain's index over devices "
                << fixed(mean_of(outcomes, jain_devices_of), 3) << ", over tenants "
                << fixed(mean_of(outcomes, jain_of), 3) << "\n";
}

Result<int> departures(Session& session, const Arguments& arguments,
                       const sim::PlacementTrace& trace, const sim::PlacementRun& run) {
  if (!trace.has_times)
    return invalid("the tasks have no times to depart at",
                   "use a list with creation_time and deletion_time, or arrival_s and duration_s");
  for (const char* key : {"seeds", "arrivals", "moves"}) {
    if (arguments.has(key))
      return invalid("a run with --departures does nothing with --" + std::string(key),
                     "leave it out: tasks come and go at the trace's own times");
  }
  const sim::ChurnOutcome churn = sim::run_with_departures(trace, run);
  LOAM_CHECK(
      write_json(arguments, session,
                 "{\"placed\":" + std::to_string(churn.placed) +
                     ",\"refused\":" + std::to_string(churn.refused) +
                     ",\"refused_milli_percent\":" + fixed(churn.refused_milli_percent, 4) +
                     ",\"allocated_mean_percent\":" + fixed(churn.allocated_mean_percent, 4) +
                     ",\"allocated_peak_percent\":" + fixed(churn.allocated_peak_percent, 4) +
                     ",\"jain\":" + fixed(churn.jain, 4) +
                     ",\"jain_devices\":" + fixed(sim::jain_index(churn.device_use), 4) +
                     ",\"wall_s\":" + fixed(churn.wall_s, 4) + "}\n"));
  std::string csv = "hours,allocated_percent\n";
  for (const auto& [hours, percent] : churn.curve) {
    csv += fixed(hours, 4) + "," + fixed(percent, 4) + "\n";
  }
  LOAM_CHECK(write_result(arguments, "csv", session, csv));
  if (arguments.has("plot")) {
    LOAM_CHECK(
        write_plot(arguments, "allocation_over_time.svg",
                   sim::line_chart({"Allocation over time", "hours", "allocated, %"},
                                   {{arguments.text("policy", "packing_value"), churn.curve}})));
  }
  if (shows_table(arguments, session)) {
    session.out() << facts_text(
        {{"placed", std::to_string(churn.placed)},
         {"refused", std::to_string(churn.refused)},
         {"refused, % of what was asked", fixed(churn.refused_milli_percent, 3)},
         {"allocated, mean over time, %", fixed(churn.allocated_mean_percent, 2)},
         {"allocated, at most, %", fixed(churn.allocated_peak_percent, 2)},
         {"Jain's index over devices", fixed(sim::jain_index(churn.device_use), 3)},
         {"Jain's index over tenants", fixed(churn.jain, 3)},
         {"seconds", fixed(churn.wall_s, 3)}},
        session.console().colour);
  }
  return 0;
}

std::string bar(int percent, std::uint64_t seed) {
  constexpr int width = 30;
  std::string text = "seed " + std::to_string(seed) + " [";
  for (int i = 0; i < width; ++i) text += i * 100 < percent * width ? '#' : '.';
  return text + "] " + std::to_string(percent) + " %";
}

}  // namespace

Result<int> sim_openb(Session& session, const Arguments& arguments) {
  if (!arguments.has("nodes") || !arguments.has("tasks"))
    return invalid("a placement trace is two files: the nodes and the tasks",
                   "give --nodes FILE and --tasks FILE");
  LOAM_TRY(run, run_of(arguments));
  LOAM_TRY(trace, sim::read_placement_trace(arguments.text("nodes"), arguments.text("tasks")));
  if (arguments.has("departures")) return departures(session, arguments, trace, run);
  std::vector<std::uint64_t> seeds;
  LOAM_CHECK(add_seeds(arguments.text("seeds", "42..51"), seeds));
  Console& console = session.console();
  const bool live = console.err_is_terminal && !session.quiet();
  std::vector<sim::PlacementOutcome> outcomes;
  for (const std::uint64_t seed : seeds) {
    outcomes.push_back(sim::run_placement(trace, run, seed, [&](int percent) {
      if (live) console.err << "\r\x1b[K" << bar(percent, seed) << std::flush;
    }));
  }
  if (live) console.err << "\r\x1b[K" << std::flush;
  LOAM_CHECK(write_json(arguments, session, json_of(arguments, outcomes)));
  LOAM_CHECK(write_result(arguments, "csv", session, csv_of(outcomes)));
  if (arguments.has("plot")) {
    LOAM_CHECK(write_plots(arguments, outcomes));
  }
  if (shows_table(arguments, session)) print(session, outcomes);
  return 0;
}

OptionGroup sim_openb_options() {
  return {"Placement traces (openb)",
          {{"--mix", "HOW", "whether the mix of requests is known before or learnt on the way",
            Option::Kind::value, "known online"},
           {"--moves", "N", "residents moved at most in a run, to let larger ones in"},
           {"--scale-cpu", "X", "multiply the CPU that tasks ask for (1)"},
           {"--tie-break", "HOW", "which of equally good nodes", Option::Kind::value,
            "least_remaining by_id random"},
           {"--quantisation", "HOW", "how scores become integers", Option::Kind::value,
            "automatic published fine"},
           {"--departures", "", "replay the trace's own times instead of seeded arrivals",
            Option::Kind::flag}}};
}

}  // namespace loam::cli
