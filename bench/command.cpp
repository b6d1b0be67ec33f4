// Benchmarks that are programs of their own: run without a shell, their standard output read as
// figures. Standard error passes through.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "bench/bench.hpp"
#include "bench/results.hpp"

namespace loam::bench {
namespace {

constexpr std::chrono::minutes run_time_max{15};
constexpr std::size_t output_bytes_max = 4 << 20;  // figures are a few kilobytes

Error system_error(const std::string& what, int code) {
  return {ErrorKind::unavailable, what + ": " + std::strerror(code), {}};
}

std::string resolved(const std::string& argument) {
  const auto with = [&](std::string_view mark, const std::string& folder) {
    return folder + argument.substr(mark.size());
  };
  if (argument.starts_with("{bin}")) {
    std::error_code fault;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", fault);
    return with("{bin}", self.parent_path().string());
  }
  if (argument.starts_with("{source}")) return with("{source}", LOAM_SOURCE_DIR);
  return argument;
}

// A started program and the reading end of its standard output.
struct Child {
  pid_t pid = 0;
  int output = -1;
};

Result<Child> start(const std::vector<std::string>& argv) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("no pipe", errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  Child child{0, ends[0]};
  const int fault = posix_spawnp(&child.pid, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (fault != 0) {
    close(ends[0]);
    return system_error("'" + argv.front() + "' does not start", fault);
  }
  return child;
}

// Everything the child writes, until it closes its output.
Result<std::string> read_all(const Child& child) {
  const auto deadline = std::chrono::steady_clock::now() + run_time_max;
  std::string text;
  char block[4096];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd readable{child.output, POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : poll(&readable, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Error{ErrorKind::unavailable, "took longer than 15 minutes", {}};
    const ssize_t count = read(child.output, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("its output cannot be read", errno);
    if (count == 0) return text;
    text.append(block, static_cast<std::size_t>(count));
    if (text.size() > output_bytes_max)
      return Error{ErrorKind::invalid_argument, "wrote more than 4 MiB to standard output", {}};
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

Body command(std::vector<std::string> argv) {
  LOAM_ASSERT(!argv.empty());
  return [argv = std::move(argv)](Report& report) -> Result<void> {
    std::vector<std::string> words;
    for (const std::string& word : argv) words.push_back(resolved(word));
    LOAM_TRY(child, start(words));
    const Result<std::string> output = read_all(child);
    close(child.output);
    if (!output.ok()) kill(child.pid, SIGKILL);
    const int status = wait_for(child.pid);
    if (!output.ok()) {
      return Error{output.error().kind, "'" + words.front() + "' " + output.error().message, {}};
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      const std::string how = WIFEXITED(status)
                                  ? "exit status " + std::to_string(WEXITSTATUS(status))
                                  : "signal " + std::to_string(WTERMSIG(status));
      return Error{ErrorKind::unavailable, "'" + words.front() + "' ended with " + how,
                   "its own message is above"};
    }
    return take_figures(*output, report);
  };
}

}  // namespace loam::bench
