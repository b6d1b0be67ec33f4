// The environment that a program starts with: the order's, what loam promises (LOAM_*), and a few
// plain defaults; nothing of the daemon's own. Pure.
#pragma once

#include <string>
#include <vector>

#include "node/launch/order.hpp"

namespace loam::node {

struct TaskPlaces {
  std::string working_directory;
  std::string checkpoint_directory;
  std::string backup_directory;  // empty: none
  std::string cache_directory;
  std::string temporary_directory;
  std::string notice_file;
  std::string output_file;
  std::string metadata_url;  // empty: none
  std::string slice_page;    // as the program sees it; empty: none
  std::string preload;       // the guard for LD_PRELOAD; empty inside a sandbox and without a guard
};

// "NAME=value", sorted by name. LOAM_* always win over the order's own; the defaults (PATH, HOME,
// TMPDIR, LANG and the caches of OpenCL compilers) never do.
std::vector<std::string> task_environment(const LaunchOrder& order, const TaskPlaces& places);

}  // namespace loam::node
