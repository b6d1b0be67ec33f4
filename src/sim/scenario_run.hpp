// Runs a scenario on the simulator, and the files they are kept in. Pure, but for the functions
// that name files.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario.hpp"

namespace loam::sim {

// What --update does to a file: these lines are replaced by these (none: the line goes).
using Edits = std::map<std::size_t, std::vector<std::string>>;

struct ScenarioResult {
  std::size_t expectations = 0;  // checked, blocks included
  Edits edits;                   // only where `update` was asked
};

// Error: the first expectation that did not hold, with file, line and column and what happened
// instead. With `update`, what happened is taken for right and returned as edits.
Result<ScenarioResult> run_scenario(const Scenario& scenario, bool update);

// The text with the edits made.
std::string edited(std::string_view text, const Edits& edits);

// Runs every file; folders stand for the *.scn below them. `say` hears one line a file. Returns
// how many failed; Error where a file cannot be read or written, or there is none.
Result<std::size_t> run_scenario_files(const std::vector<std::string>& paths, bool update,
                                       const std::function<void(const std::string&)>& say);

}  // namespace loam::sim
