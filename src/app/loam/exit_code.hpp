// Exit codes: what scripts branch on. `loam help exit-codes` shows this table. Pure.
#pragma once

#include <string>

#include "base/result.hpp"

namespace loam::cli {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1;       // and a task's own code, from `loam run`
inline constexpr int exit_usage = 2;        // the words typed are off
inline constexpr int exit_not_found = 3;    // no such thing, or not yours
inline constexpr int exit_rejected = 4;     // policy, quota, funds, or the present state forbid it
inline constexpr int exit_unreachable = 5;  // no daemon, or it cannot work now
inline constexpr int exit_not_allowed = 6;  // not known, or may not
inline constexpr int exit_corrupt = 7;      // stored data is not what was written
// Of `loam run` alone, out of the way of what programs use.
inline constexpr int exit_expired = 121;
inline constexpr int exit_device_lost = 122;
inline constexpr int exit_detached = 123;
inline constexpr int exit_limit = 124;  // as timeout(1) says it
inline constexpr int exit_refused = 125;
inline constexpr int exit_stopped = 130;  // as a shell says it of Ctrl-C

int exit_code_of(ErrorKind kind);
// How `loam run` ends: `outcome` and `code` as the API gives them.
int exit_code_of(const std::string& outcome, std::int64_t code);
std::string exit_codes_text();

}  // namespace loam::cli
