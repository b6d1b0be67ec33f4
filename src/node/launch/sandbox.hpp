// The bubblewrap sandbox of one attempt: whether it works here (tried, never assumed) and the
// arguments that build it. Source: bwrap(1). The argument list is a function of its inputs and of
// what exists below / on this machine.
#pragma once

#include <string>
#include <vector>

#include "node/launch/file.hpp"
#include "node/launch/order.hpp"

namespace loam::node {

struct SandboxProbe {
  std::string program;         // the bwrap that was tried; empty: none is installed
  bool works = false;          // it makes a sandbox with a process space of its own
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
  std::string working_directory;  // these four: writable at their own path
  std::string checkpoint_directory;
  std::string cache_directory;
  std::string output_directory;
};

struct SandboxCommand {
  std::vector<std::string> arguments;  // of bwrap, up to and with "--"; the command comes next
  std::vector<Fd> files;               // named in the arguments; must stay open across the exec
};

// Requires a checked order. Few mounts: each costs bwrap a look at all that are there (some
// 0.3 ms), so small files of /etc are copied.
SandboxCommand sandbox_command(const LaunchOrder& order, const SandboxPaths& paths);

}  // namespace loam::node
