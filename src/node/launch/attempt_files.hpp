// The names of the files in an attempt's directory. Described in docs/formats/attempt.md. Pure.
#pragma once

namespace loam::node::attempt_files {

inline constexpr const char* order = "order.json";
inline constexpr const char* status = "status.json";
// Apart from status.json, so that who watches for that is not woken by every beat.
inline constexpr const char* pulse = "pulse";
inline constexpr const char* heartbeat = "heartbeat.json";  // in pulse
inline constexpr const char* lock = "lock";                 // locked by the launcher while it lives
inline constexpr const char* control = "control.sock";      // JSON lines
inline constexpr const char* logs = "logs";
inline constexpr const char* notice_directory = "notice";
inline constexpr const char* notice = "notice.json";          // in notice_directory
inline constexpr const char* memory_notice = "memory.json";   // the same
inline constexpr const char* output_directory = "output";     // the task's, of this attempt alone
inline constexpr const char* output = "units";                // in output_directory
inline constexpr const char* preload_list = "ld.so.preload";  // what the sandbox sees in /etc
inline constexpr const char* work = "work";
inline constexpr const char* checkpoint = "checkpoint";
inline constexpr const char* cache = "cache";
inline constexpr const char* temporary = "tmp";
inline constexpr const char* reserve = "reserve";  // given up for the last status on a full disk
inline constexpr const char* launcher_log = "launcher.log";  // the launcher's own words

// In the directory of all attempts.
inline constexpr const char* sandbox_probe = ".sandbox-probe";

}  // namespace loam::node::attempt_files
