// Starting loam-launch and holding on to launchers that run. Shell.
#pragma once

#include <string>

#include "node/launch/file.hpp"
#include "node/launch/status.hpp"

namespace loam::node {

struct LauncherStart {
  int exit_code = 0;  // a LaunchExit
  Fd process;         // pidfd of the launcher; invalid unless it was started
  std::string words;  // what it said on standard error
};

// Runs `program attempt_path` and waits until the launcher stands alone or refuses (milliseconds).
// Requires that nobody else reaps the calling process's children.
Result<LauncherStart> start_launcher(const std::string& program, const std::string& attempt_path);

// The running launcher that wrote the status; invalid where it is gone (its pid may be another
// process's by now).
Fd open_launcher(const AttemptStatus& status);

// Waits until the process behind the pidfd is gone; false if that took longer.
bool wait_gone(const Fd& process, int timeout_ms);

}  // namespace loam::node
