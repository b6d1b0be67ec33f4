// The files that scenarios are kept in.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/scenario_run.hpp"

namespace loam::sim {
namespace {

namespace fs = std::filesystem;

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || !text) {
    return Error{ErrorKind::not_found, "the scenario " + path + " cannot be read",
                 "give the path of a .scn file"};
  }
  return text.str();
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.flush();
  if (!out) {
    return Error{ErrorKind::unavailable, "the scenario " + path + " cannot be written",
                 "check its permissions and the free space"};
  }
  return {};
}

Result<std::vector<std::string>> files_below(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code fault;
    if (!fs::is_directory(path, fault)) {
      files.push_back(path);
      continue;
    }
    fs::recursive_directory_iterator at(path, fault);
    for (; !fault && at != fs::end(at); at.increment(fault)) {
      if (at->path().extension() == ".scn") files.push_back(at->path().string());
    }
    if (fault) {
      return Error{ErrorKind::unavailable, path + " cannot be listed: " + fault.message(),
                   "give a folder that can be read"};
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    return Error{ErrorKind::not_found, "there is no scenario to run",
                 "give .scn files, or a folder that holds some"};
  }
  return files;
}

}  // namespace

Result<std::size_t> run_scenario_files(const std::vector<std::string>& paths, bool update,
                                       const std::function<void(const std::string&)>& say) {
  LOAM_TRY(files, files_below(paths));
  std::size_t failed = 0;
  for (const std::string& file : files) {
    LOAM_TRY(text, read_file(file));
    Result<Scenario> scenario = parse_scenario(file, text);
    if (!scenario) {
      ++failed;
      say(to_text(scenario.error()));
      continue;
    }
    const Result<ScenarioResult> result = run_scenario(*scenario, update);
    if (!result) {
      ++failed;
      say(to_text(result.error()));
      continue;
    }
    if (!result->edits.empty()) {
      LOAM_CHECK(write_file(file, edited(text, result->edits)));
      say(file + ": updated " + std::to_string(result->edits.size()) + " lines, review them");
      continue;
    }
    say(file + ": ok, " + std::to_string(result->expectations) + " expectations");
  }
  return failed;
}

}  // namespace loam::sim
