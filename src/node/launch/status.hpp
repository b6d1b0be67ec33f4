// What is known of an attempt: status.json, written by loam-launch and read by the daemon, and
// heartbeat.json, the proof of life between changes. The formats are described in
// docs/formats/attempt.md. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::node {

enum class Phase {
  ordered,   // an order without a launcher: never started (told by the supervisor, never on disk)
  starting,  // the launcher prepares; nothing runs and nothing is billed
  running,
  stopping,  // the notice is given; the grace runs
  exited,    // final: the program ran and is gone
  refused,   // final: the program never ran
  lost,      // final: the launcher died; written by the supervisor that found it
};

inline bool is_final(Phase phase) {
  return phase == Phase::exited || phase == Phase::refused || phase == Phase::lost;
}

// Why it is over.
enum class Outcome {
  none,                // not over
  exited,              // by itself, with exit_code
  signalled,           // by a signal that loam did not send
  stopped,             // after a stop, within the grace
  killed_after_grace,  // after a stop, by SIGKILL
  killed,              // at once, on request
  out_of_memory,       // by the kernel, over the host memory limit
  refused,             // never ran, and would nowhere; `detail` says why
  unable,              // never ran, for this node lacked something: it may be tried again
  launcher_lost,       // the end is the last heartbeat
};

// What a limit is kept by.
enum class LimitBy { not_asked, cgroup_v2, cgroup_v1, rlimit, nothing };

enum class Isolation {
  none,       // a plain process, unguarded
  advisory,   // guarded by LD_PRELOAD, which a program can shed
  sandboxed,  // in bubblewrap; the guard enters by the sandbox's own /etc/ld.so.preload
};

struct Usage {
  std::int64_t user_cpu_ms = 0;
  std::int64_t system_cpu_ms = 0;
  std::int64_t max_rss_bytes = 0;                 // of the largest process
  std::optional<std::int64_t> memory_peak_bytes;  // of all together; where a cgroup tells
  std::optional<std::int64_t> io_read_bytes;      // from and to disks
  std::optional<std::int64_t> io_write_bytes;
  // On disk in the working and checkpoint directories and the logs; nothing until measured.
  std::optional<std::int64_t> work_bytes;
  std::optional<std::int64_t> checkpoint_bytes;
  std::optional<std::int64_t> log_bytes;
  std::optional<std::int64_t> backup_bytes;  // of its backup directory when it began
  // MiB held × ms since the start: of working directory and logs, and of the checkpoints.
  std::optional<std::int64_t> storage_mib_ms;
  std::optional<std::int64_t> checkpoint_mib_ms;
  // IP packets of its own interfaces, without what stays on the node; nothing where the program
  // shares the node's network and the kernel lets this node count nothing.
  std::optional<std::int64_t> network_rx_bytes;
  std::optional<std::int64_t> network_tx_bytes;

  friend bool operator==(const Usage&, const Usage&) = default;
};

// Who began it: somebody asked, or the launcher itself at the order's run limit.
inline constexpr const char* notice_stop = "stop";
inline constexpr const char* notice_kill = "kill";
inline constexpr const char* notice_limit = "limit";

struct StopNotice {
  std::string action;  // one of the three above
  std::string reason;
  std::int64_t given_boottime_ns = 0;
  std::int64_t deadline_boottime_ns = 0;  // SIGKILL comes then

  friend bool operator==(const StopNotice&, const StopNotice&) = default;
};

struct AttemptStatus {
  static constexpr std::int64_t version = 1;  // of the format this code writes

  std::string attempt;
  std::string task;
  std::string lease;
  std::uint64_t epoch = 0;

  Phase phase = Phase::starting;
  Outcome outcome = Outcome::none;
  std::string detail;  // in words, for people; empty where the outcome says all

  std::string boot_id;                 // the boot that the times below belong to
  std::int64_t start_boottime_ns = 0;  // just before the program's first instruction; 0: never ran
  std::int64_t end_boottime_ns = 0;    // when all its processes were gone; 0: not over
  std::int64_t start_wall_ms = 0;      // UTC, for people
  std::int64_t end_wall_ms = 0;
  std::int64_t paused_ns = 0;                 // frozen so far, up to `paused_since`
  std::int64_t paused_since_boottime_ns = 0;  // 0: not frozen now

  std::int64_t launcher_pid = 0;
  std::uint64_t launcher_start_ticks = 0;  // tells a reused pid
  std::int64_t program_pid = 0;            // as the node sees it; 0: not running yet

  // One of the two once the program ran; 127 (not found) and 126 (not executable) where refused.
  std::optional<int> exit_code;
  std::optional<int> signal;

  Isolation isolation = Isolation::none;
  std::string isolation_detail;  // why not better
  LimitBy cpu_limit = LimitBy::not_asked;
  LimitBy memory_limit = LimitBy::not_asked;
  LimitBy pids_limit = LimitBy::not_asked;
  std::vector<std::string> cgroups;  // directories, for cleaning up after a lost launcher

  std::vector<StopNotice> notices;
  Usage usage;

  std::int64_t log_segment_bytes = 0;
  std::int64_t stdout_bytes = 0;  // written by the program so far, kept or not
  std::int64_t stderr_bytes = 0;
  std::int64_t log_dropped_bytes = 0;  // never kept, because the disk refused them

  friend bool operator==(const AttemptStatus&, const AttemptStatus&) = default;
};

struct Heartbeat {
  std::string boot_id;
  std::int64_t boottime_ns = 0;
  Usage usage;

  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

// The stable names in JSON: "running", "killed_after_grace", "cgroup_v1", "sandboxed", ...
const char* name_of(Phase phase) noexcept;
const char* name_of(Outcome outcome) noexcept;
const char* name_of(LimitBy limit) noexcept;
const char* name_of(Isolation isolation) noexcept;

std::string to_json(const AttemptStatus& status);
// Strict, as parse_launch_order.
Result<AttemptStatus> parse_attempt_status(std::string_view json);

std::string to_json(const Heartbeat& heartbeat);
Result<Heartbeat> parse_heartbeat(std::string_view json);

}  // namespace loam::node
