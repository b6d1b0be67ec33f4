// scenario, sim: behaviour on the simulator, without a daemon.
#include <algorithm>
#include <limits>

#include "app/loam/commands.hpp"
#include "app/loam/exit_code.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "base/quantity.hpp"
#include "sim/scenario_run.hpp"
#include "sim/seeds.hpp"

namespace loam::cli {
namespace {

constexpr std::size_t seeds_max = 1'000'000;

Result<std::uint64_t> seed_of(const std::string& text) {
  LOAM_TRY(seed, parse_decimal(text, 0, std::numeric_limits<std::int64_t>::max(), "seed"));
  return static_cast<std::uint64_t>(seed);
}

// "7", "1..200" (both ends taken).
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

Result<int> run_sim(Session& session, const Arguments& arguments) {
  std::vector<std::uint64_t> seeds;
  for (const std::string& text : arguments.operands) LOAM_CHECK(add_seeds(text, seeds));
  Console& console = session.console();
  const bool live = console.err_is_terminal && !session.quiet();
  const auto summary = sim::run_seeds(seeds, [&](std::size_t done, std::size_t all) {
    if (live) console.err << "\r\x1b[K" << done << " of " << all << " seeds" << std::flush;
  });
  if (live) console.err << "\r\x1b[K" << std::flush;
  if (!summary) return summary.error();
  if (session.json()) {
    session.out() << "{\"seeds\":" << summary->seeds << ",\"tasks\":" << summary->tasks
                  << ",\"records\":" << summary->records << ",\"restarts\":" << summary->restarts
                  << "}\n";
  } else {
    session.out() << sim::to_text(*summary) << "\n";
  }
  return 0;
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
       "Simulate with faults: each seed chooses everything",
       "A seed that fails is named with the command that repeats it.",
       "loam sim 1..200\nloam sim 4711",
       {{"SEED", "a number, or a range such as 1..200", Operand::Kind::many}},
       {},
       run_sim},
  };
}

}  // namespace loam::cli
