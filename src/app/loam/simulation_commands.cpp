// scenario, sim: behaviour on the simulator, without a daemon.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "app/loam/commands.hpp"
#include "app/loam/exit_code.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"
#include "base/assert.hpp"
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

Result<std::int64_t> percent_of(const Arguments& arguments, std::string_view key,
                                std::string_view otherwise) {
  LOAM_TRY(permille, parse_decimal(arguments.text(key, otherwise), 3, 100'000, key));
  return permille / 10;
}

Result<std::int64_t> pace_percent(const Arguments& arguments) {
  LOAM_TRY(percent, percent_of(arguments, "arrivals", "1"));
  if (percent < 1) return invalid("--arrivals of less than 0.01", "give a factor such as 1.3");
  return percent;
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

Result<void> write_plot(const Arguments& arguments, const char* name, const std::string& svg) {
  const std::filesystem::path folder = arguments.text("plot");
  const std::filesystem::path file = folder / name;
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << svg;
  out.flush();
  if (out) return {};
  return Error{ErrorKind::unavailable, "'" + file.string() + "' cannot be written",
               "name a folder that can be with --plot"};
}

bool shows_table(const Arguments& arguments, Session& session) {
  return !session.json() && arguments.text("csv") != "-" && arguments.text("out") != "-";
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
  if (shows_table(arguments, session)) session.out() << sim::to_text(*summary) << "\n";
  return 0;
}

// What can be replayed, how it is asked for, and with which options besides --json and --out.
struct Replay {
  const char* asked;
  Result<int> (*run)(Session&, const Arguments&);
  OptionGroup (*group)();
  std::vector<std::string_view> also;  // of trace_options()
};

std::vector<Replay> replays() {
  return {
      {"--trace openb",
       sim_openb,
       sim_openb_options,
       {"trace", "nodes", "tasks", "policy", "seeds", "arrivals", "csv", "plot"}},
      {"--trace jobs",
       sim_jobs,
       sim_jobs_options,
       {"trace", "tasks", "seeds", "arrivals", "csv", "plot"}},
      {"--trace spot", sim_spot, sim_spot_options, {"trace", "policy", "csv", "plot"}},
      {"--synthetic", sim_synthetic, sim_synthetic_options, {"synthetic", "policy", "mix"}},
      {"--from-journal",
       sim_journal,
       sim_journal_options,
       {"discipline", "policy", "nodes", "arrivals", "csv", "plot"}},
  };
}

bool lists(const std::vector<OptionGroup>& groups, std::string_view key) {
  return std::any_of(groups.begin(), groups.end(), [&](const OptionGroup& group) {
    return std::any_of(group.options.begin(), group.options.end(),
                       [&](const Option& option) { return option.key() == key; });
  });
}

bool takes(const Replay& replay, std::string_view key) {
  return lists({replay.group()}, key) ||
         std::find(replay.also.begin(), replay.also.end(), key) != replay.also.end();
}

std::vector<OptionGroup> sim_options();

// An option that the run would pass over is an error: who gave it expects something of it.
// `replay` may be null: a run that takes none of them.
Result<void> check_options(const std::string& run, const Replay* replay,
                           const Arguments& arguments) {
  for (const auto& [key, values] : arguments.options) {
    if (key == "json" || key == "out" || !lists(sim_options(), key)) continue;
    if (replay != nullptr && takes(*replay, key)) continue;
    std::string others;
    for (const Replay& other : replays()) {
      if (takes(other, key)) others += (others.empty() ? "" : ", ") + std::string(other.asked);
    }
    return invalid(run + " does nothing with --" + key, "leave it out; it is for " + others);
  }
  return {};
}

Result<int> run_replay(Session& session, Arguments arguments, const std::string& asked) {
  const auto all = replays();
  const auto replay =
      std::find_if(all.begin(), all.end(), [&](const Replay& each) { return asked == each.asked; });
  LOAM_ASSERT(replay != all.end());
  // --json FILE, as scripts write it: the document goes there, and people get their table.
  if (session.json() && arguments.operands.size() == 1 && !arguments.has("out")) {
    arguments.options["out"] = std::move(arguments.operands);
    arguments.operands.clear();
    session.keep_json_off();
  }
  if (!arguments.operands.empty())
    return invalid(
        "'" + arguments.operands.front() + "' is more than a run with " + asked + " takes",
        "seeds are given with --seeds, a file for the result with --out");
  LOAM_CHECK(check_options("a run with " + asked, &*replay, arguments));
  return replay->run(session, arguments);
}

Result<int> run_sim(Session& session, const Arguments& arguments) {
  if (!arguments.operands.empty() && arguments.operands.front() == "compare") {
    LOAM_CHECK(check_options("'loam sim compare'", nullptr, arguments));
    Arguments files = arguments;
    files.operands.erase(files.operands.begin());
    return sim_compare(session, files);
  }
  std::vector<std::string> asked;
  if (arguments.has("trace")) asked.push_back("--trace " + arguments.text("trace"));
  for (const char* key : {"synthetic", "from-journal"}) {
    if (arguments.has(key)) asked.push_back("--" + std::string(key));
  }
  if (asked.size() > 1)
    return invalid(asked[0] + " and " + asked[1] + " exclude each other", "give one of them");
  if (!asked.empty()) return run_replay(session, arguments, asked.front());
  if (arguments.operands.empty())
    return invalid("'loam sim' needs SEED, --trace or --synthetic",
                   "try: loam sim 1..20, or see: loam sim --help");
  LOAM_CHECK(check_options("a run by SEED", nullptr, arguments));
  return run_faults(session, arguments);
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
           {"--arrivals", "X",
            "openb: what arrives, in pools (1.3); jobs, journal: they come X times as fast (1)"},
           {"--json", "", "print the result as JSON; --json FILE: write it there, print the table",
            Option::Kind::flag},
           {"--out", "FILE", "write the result as JSON, whatever is printed", Option::Kind::value,
            "@path"},
           {"--csv", "FILE", "write the series as CSV; - for standard output", Option::Kind::value,
            "@path"},
           {"--plot", "FOLDER", "write plots as SVG", Option::Kind::value, "@path"}}};
}

std::vector<OptionGroup> sim_options() {
  return {trace_options(),    sim_openb_options(),     sim_jobs_options(),
          sim_spot_options(), sim_synthetic_options(), sim_journal_options()};
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
       "that the daemon schedules with. 'compare' shows results written with --json FILE side by "
       "side.",
       "loam sim 1..200\n"
       "loam sim --trace openb --nodes nodes.csv --tasks pods.csv --policy packing_value\n"
       "loam sim --trace jobs --tasks jobs.tsv --devices 32 --discipline blind\n"
       "loam sim compare fifo.json blind.json",
       {{"SEED", "a number, or a range such as 1..200; or: compare A.json B.json",
         Operand::Kind::any}},
       sim_options(),
       run_sim},
  };
}

}  // namespace loam::cli
