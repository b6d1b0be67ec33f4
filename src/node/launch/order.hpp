// What the daemon hands to loam-launch for one attempt: order.json. The format is described in
// docs/formats/attempt.md. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::node {

struct LaunchMount {
  std::string source;  // absolute, on the node
  std::string target;  // absolute, as the program sees it
  bool read_only = true;

  friend bool operator==(const LaunchMount&, const LaunchMount&) = default;
};

enum class SandboxMode {
  automatic,   // bubblewrap where a probe finds that it works, else none
  bubblewrap,  // refused where bubblewrap does not work
  none,        // a plain process
};

struct LaunchOrder {
  static constexpr std::int64_t version = 1;  // of the format this code writes

  // Names; opaque here. The attempt's id is also the name of its directory: letters, digits, '.',
  // '_' and '-', at most 100, not starting with '.'.
  std::string attempt;
  std::string task;
  std::string lease;
  std::uint64_t epoch = 0;
  std::uint64_t restart = 0;  // 0 the first time, then counted up: LOAM_RESTART

  // Place in a gang; a lone task is 0 of 1.
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string rendezvous;  // host:port of rank 0, or empty

  std::vector<std::string> argv;  // not empty; argv[0] is looked up in the task's PATH
  std::map<std::string, std::string> environment;
  std::string working_directory;     // empty: `work` in the attempt's directory
  std::string checkpoint_directory;  // empty: `checkpoint` in the attempt's directory
  std::string cache_directory;       // compiled kernels; empty: `cache` in the attempt's directory
  // Where copies of the checkpoint directory are kept, at most so many, one made before each start;
  // the program sees them read-only. Both or neither.
  std::string backup_directory;
  std::int64_t backups = 0;

  std::vector<LaunchMount> mounts;
  std::vector<std::string> read_only;  // seen at their own path, read-only
  std::vector<std::string> visible;    // seen at their own path, writable: sockets, pages

  // Limits; 0 is none.
  std::int64_t cpu_milli = 0;
  // Where the device is the CPU: what it may use of it beside cpu_milli, in bursts as its turns
  // come.
  std::int64_t cpu_turns_milli = 0;
  std::int64_t cpu_weight_milli = 0;  // against others that want the CPU at once; 0: like any group
  std::int64_t host_memory_mib = 0;
  std::int64_t pids_max = 4096;

  // Each stream keeps at most log_segment_bytes * log_segments of its newest bytes.
  std::int64_t log_segment_bytes = 8 << 20;
  std::int64_t log_segments = 4;

  std::int64_t grace_ms = 30'000;  // between SIGTERM and SIGKILL where a stop names none
  // Longest run time; then it is stopped with that grace, whether a daemon runs or not. Frozen time
  // does not count. 0: no limit.
  std::int64_t run_limit_ms = 0;

  SandboxMode sandbox = SandboxMode::automatic;
  bool network = true;
  std::string guard_library;  // absolute; empty: the program runs unguarded
  std::string slice_page;     // absolute, without the suffixes of its two files; empty: none

  friend bool operator==(const LaunchOrder&, const LaunchOrder&) = default;
};

const char* name_of(SandboxMode mode) noexcept;

// Whether the text may name an attempt (see LaunchOrder::attempt).
bool is_attempt_name(std::string_view text);

// Every rule above; the error names the field and the value.
Result<void> check(const LaunchOrder& order);

// JSON, always in the newest version.
std::string to_json(const LaunchOrder& order);
// Strict: an unknown field, a wrong type, a value out of range and a newer version are errors.
// Older versions are lifted. A missing field has the default above, but for `version`, `attempt`
// and `argv`.
Result<LaunchOrder> parse_launch_order(std::string_view json);

}  // namespace loam::node
