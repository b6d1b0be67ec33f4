// The bubblewrap sandbox of one attempt: whether it works here (tried, never assumed) and the
// arguments that build it. Source: bwrap(1). The argument list is a function of its inputs and of
// what exists below / on this machine.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "node/launch/order.hpp"

namespace loam::node {

struct SandboxProbe {
  bool works = false;          // bwrap makes a sandbox with a process space of its own
  bool network_works = false;  // and with a network of its own
  std::string trouble;         // why not, in words
};

// Runs bwrap twice, or reads what `cache_file` says where that was written in this boot for the
// same bwrap. A cache that cannot be written is no fault. Cost: some 20 ms without the cache.
SandboxProbe probe_sandbox(const std::string& cache_file);

// Where things lie inside.
inline constexpr const char* sandbox_launcher = "/run/loam/launch";
inline constexpr const char* sandbox_guard = "/run/loam/guard.so";

struct SandboxPaths {
  std::string launcher;           // this program's own file
  std::string temporary;          // becomes /tmp
  std::string preload_list;       // becomes /etc/ld.so.preload; empty: no guard
  std::string notice_directory;   // seen read-only at its own path
  std::string working_directory;  // these three: writable at their own path
  std::string checkpoint_directory;
  std::string cache_directory;
};

// Everything after "bwrap" up to and with "--": the caller appends the command.
// Requires a checked order.
std::vector<std::string> sandbox_arguments(const LaunchOrder& order, const SandboxPaths& paths);

}  // namespace loam::node
