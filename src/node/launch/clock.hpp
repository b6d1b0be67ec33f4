// The node's own time: CLOCK_BOOTTIME, which no clock step moves and which goes on in suspend,
// together with the boot it belongs to. And the identity of a process: pid and start time, since
// pids come back. Shell.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace loam::node {

// Nanoseconds since this boot.
std::int64_t boottime_ns();

// The kernel's random id of this boot; "" where /proc does not tell (nothing then matches it).
const std::string& boot_id();

// Milliseconds UTC, for people only; never subtract two of them.
std::int64_t wall_ms();

// Clock ticks after boot at which the process started (/proc/PID/stat, field 22); nothing where
// there is no such process.
std::optional<std::uint64_t> process_start_ticks(pid_t pid);

}  // namespace loam::node
