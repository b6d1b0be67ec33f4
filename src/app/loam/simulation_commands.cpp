// scenario, sim: behaviour on the simulator, without a daemon.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>

#include "app/loam/commands.hpp"
#include "app/loam/exit_code.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"
#include "base/quantity.hpp"
#include "sim/scenario_run.hpp"
#include "sim/seeds.hpp"

namespace loam::cli {
namespace {

constexpr std::size_t seeds_max = 1'000'000;

Result<std::uint64_t> seed_of(const std::string& text) {
  const auto seed = parse_decimal(text, 0, std::numeric_limits<std::int64_t>::max(), "seed");
  if (!seed)
    return invalid(seed.error().message, "give a whole number such as 42, or a range: 1..200");
  return static_cast<std::uint64_t>(*seed);
}

}  // namespace

Result<void> add_seeds(const std::string& text, std::vector<std::uint64_t>& seeds) {
  const std::size_t dots = text.find("..");
  LOAM_TRY(first, seed_of(text.substr(0, dots)));
  std::uint64_t last = first;
  if (dots != std::string::npos) {
    LOAM_TRY(end, seed_of(text.substr(dots + 2)));
    last = end;
  }
  if (last < first) return invalid("'" + text + "' holds no seed", "write it as 1..200");
  if (last - first >= seeds_max - seeds.size())
    return invalid("'" + text + "' are too many seeds", "run at most " + std::to_string(seeds_max));
  for (std::uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  return {};
}

schedule::MixSource mix_of(const Arguments& arguments) {
  return arguments.text("mix") == "known" ? schedule::MixSource::known
                                          : schedule::MixSource::online;
}

std::string fixed(double value, int decimals) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

Result<void> write_result(const Arguments& arguments, std::string_view key, Session& session,
                          const std::string& text) {
  if (!arguments.has(key)) return {};
  const std::string file = arguments.text(key);
  if (file == "-") {
    session.out() << text;
    return {};
  }
  if (file.find_first_not_of("0123456789.") == std::string::npos) {
    return invalid(
        "--" + std::string(key) + " takes '" + file + "', which looks like a seed, as its file",
        "name the file, or write ./" + file);
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.flush();
  if (!out) {
    return Error{ErrorKind::unavailable, "'" + file + "' cannot be written",
                 "name another file with --" + std::string(key)};
  }
  return {};
}

Result<void> write_json(const Arguments& arguments, Session& session, const std::string& text) {
  if (session.json()) session.out() << text;
  return write_result(arguments, "out", session, text);
}

namespace {

Result<int> run_faults(Session& session, const Arguments& arguments) {
  std::vector<std::uint64_t> seeds;
  for (const std::string& text : arguments.operands) LOAM_CHECK(add_seeds(text, seeds));
  Console& console = session.console();
  const bool live = console.err_is_terminal && !session.quiet();
  const auto summary = sim::run_seeds(seeds, [&](std::size_t done, std::size_t all) {
    if (live) console.err << "\r\x1b[K" << done << " of " << all << " seeds" << std::flush;
  });
  if (live) console.err << "\r\x1b[K" << std::flush;
  if (!summary) return summary.error();
  LOAM_CHECK(write_json(arguments, session,
                        "{\"seeds\":" + std::to_string(summary->seeds) +
                            ",\"tasks\":" + std::to_string(summary->tasks) +
                            ",\"records\":" + std::to_string(summary->records) +
                            ",\"restarts\":" + std::to_string(summary->restarts) + "}\n"));
  if (!session.json()) session.out() << sim::to_text(*summary) << "\n";
  return 0;
}

Result<int> run_sim(Session& session, const Arguments& arguments) {
  if (!arguments.operands.empty() && arguments.operands.front() == "compare")
    return sim_compare(session, {arguments.operands.begin() + 1, arguments.operands.end()});
  if (arguments.has("from-journal")) return sim_journal(session, arguments);
  const std::string trace = arguments.text("trace");
  if (trace.empty() && !arguments.has("synthetic")) {
    if (arguments.operands.empty())
      return invalid("'loam sim' needs SEED, --trace or --synthetic",
                     "try: loam sim 1..20, or see: loam sim --help");
    return run_faults(session, arguments);
  }
  if (!arguments.operands.empty())
    return invalid("'" + arguments.operands.front() + "' is more than a trace run takes",
                   "seeds of a trace run are given with --seeds");
  if (!trace.empty() && arguments.has("synthetic"))
    return invalid("--trace and --synthetic exclude each other", "give one of them");
  if (trace == "openb") return sim_openb(session, arguments);
  if (trace == "jobs") return sim_jobs(session, arguments);
  if (trace == "spot") return sim_spot(session, arguments);
  return sim_synthetic(session, arguments);
}

Result<int> run_scenario(Session& session, const Arguments& arguments) {
  std::vector<std::string> lines;
  LOAM_TRY(failed, sim::run_scenario_files(arguments.operands, arguments.has("update"),
                                           [&](const std::string& line) {
                                             if (session.json()) {
                                               lines.push_back(line);
                                             } else {
                                               session.out() << line << std::endl;
                                             }
                                           }));
  if (session.json()) {
    session.out() << "{\"files\":" << lines.size() << ",\"failed\":" << failed << "}\n";
    for (const std::string& line : lines) session.say(line);
  }
  return failed == 0 ? exit_ok : exit_failed;
}

OptionGroup trace_options() {
  return {"What to replay, and where results go",
          {{"--trace", "KIND", "openb, jobs or spot", Option::Kind::value, "openb jobs spot"},
           {"--synthetic", "SPEC", "a made-up pool: devices=100000,nodes=12500,load=0.9"},
           {"--nodes", "FILE", "the pool's nodes", Option::Kind::value, "@path"},
           {"--tasks", "FILE", "the tasks", Option::Kind::value, "@path"},
           {"--policy", "P", "how a place, or spot, is chosen"},
           {"--seeds", "A..B", "runs, one a seed; figures are their mean"},
           {"--out", "FILE", "write the result as JSON; --json: to standard output",
            Option::Kind::value, "@path"},
           {"--csv", "FILE", "write the series as CSV; - for standard output", Option::Kind::value,
            "@path"},
           {"--plot", "FOLDER", "write plots as SVG", Option::Kind::value, "@path"}}};
}

}  // namespace

std::vector<Command> simulation_commands() {
  return {
      {"scenario",
       "Run scenario files on the simulator",
       "Folders stand for the *.scn below them.",
       "loam scenario tests/scenarios\nloam scenario my.scn --update",
       {{"FILE", "scenario files or folders", Operand::Kind::many, "@path"}},
       {{"How",
         {{"--update", "", "rewrite expect lines and blocks with what happened",
           Option::Kind::flag}}}},
       run_scenario},
      {"sim",
       "Simulate: faults by seed, or a trace against the scheduler",
       "With SEED alone everything is chosen by the seed, faults included; one that fails is "
       "named\n"
       "with the command that repeats it. With --trace a public trace is replayed against the "
       "code\n"
       "that the daemon schedules with. 'compare' shows results written with --out side by side.",
       "loam sim 1..200\n"
       "loam sim --trace openb --nodes nodes.csv --tasks pods.csv --policy packing_value\n"
       "loam sim --trace jobs --tasks jobs.tsv --devices 32 --discipline blind\n"
       "loam sim compare fifo.json blind.json",
       {{"SEED", "a number, or a range such as 1..200; or: compare A.json B.json",
         Operand::Kind::any}},
       {trace_options(), sim_openb_options(), sim_jobs_options(), sim_spot_options(),
        sim_synthetic_options(), sim_journal_options()},
       run_sim},
  };
}

}  // namespace loam::cli
