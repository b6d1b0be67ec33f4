// Program: what a virtual attempt does. It is written in the task's own command line
// ("simulated run_ms=500 exit=1"), so that whoever launches it, after whatever crash, finds it.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "base/time.hpp"

namespace loam::sim {

struct Program {
  Duration run = Duration::seconds(60);  // work until it exits by itself
  std::int64_t exit_code = 0;
  Duration launch;      // from the launch to the first instruction
  Duration stop;        // from the notice to its exit; beyond the grace it is killed
  bool deaf = false;    // ignores the notice: only the kill ends it
  std::string refused;  // the node cannot start it, for this reason
  // So often the node is not able to start it, then it is.
  std::int64_t unable = 0;
  Duration start_delay;  // how late its reports arrive
  Duration report_delay;
  bool reports_twice = false;
  Mebibytes storage;               // held while it runs, and kept while it does not
  std::int64_t network_bytes = 0;  // received and sent in all, evenly over its run
  // Of its devices' time, told every hour. None: all of it, told at its end.
  std::optional<BasisPoints> busy{};

  // Whether it is still there when the grace of a stop is over.
  bool outlasts(Duration grace) const { return deaf || stop > grace; }
  friend bool operator==(const Program&, const Program&) = default;
};

std::vector<std::string> command_of(const Program& program);
// The inverse. Words that are not of a program count as their defaults.
Program program_of(const std::vector<std::string>& command);

}  // namespace loam::sim
