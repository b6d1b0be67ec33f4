// The small process between loam-launch and the program: process 1 of the sandbox, or a plain
// parent where there is none. It starts the program, tells precisely what became of it (an exec
// error, an exit code or a signal, and what it used), takes in orphans, and passes signals on.
// When it goes, the program goes. Shell.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace loam::node {

// What it sends up, one datagram each.
struct InsideReport {
  enum Kind : std::int32_t {
    forked = 1,   // by the program's process itself: the sender is its pid; boottime_ns is now
    started,      // exec went well; boottime_ns is just before it
    not_started,  // value is the error number, step says where
    exited,       // value is the wait status
  };
  enum Step : std::int32_t { at_directory = 1, at_lookup, at_exec, at_fork };

  Kind kind{};
  std::int32_t value = 0;
  Step step{};
  std::int32_t reserved = 0;
  std::int64_t boottime_ns = 0;
  std::int64_t user_us = 0;
  std::int64_t system_us = 0;
  std::int64_t max_rss_bytes = 0;
  std::int64_t io_read_bytes = -1;  // -1: the kernel does not tell
  std::int64_t io_write_bytes = -1;
};

// What it is sent: a signal for the program's process group.
struct InsideCommand {
  std::int32_t signal = 0;
};

struct InsideTask {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"
  std::string directory;
  int channel = -1;  // SOCK_SEQPACKET
  int output = -1;   // becomes the program's stdout
  int errors = -1;   // and stderr
};

// Runs the task to its end; only leaves by _exit. The calling process has one thread and expects
// nothing of its other descriptors.
[[noreturn]] void run_inside(const InsideTask& task);

// The task as bytes that cross the exec into the sandbox, and back.
std::string pack(const InsideTask& task);
// False on bytes that pack() did not write.
bool unpack(const std::string& bytes, InsideTask& task);

// `loam-launch --inside FD`: unpacks the task from the descriptor and runs it.
[[noreturn]] void main_inside(int task_fd);

}  // namespace loam::node
