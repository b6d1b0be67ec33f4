// Looking for devices in child processes: what a driver does to a process, it does to those.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "node/device/discovery.hpp"

namespace loam::node {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t answer_bytes_max = 4U << 20U;  // thousands of devices; a runaway stops here

// Writes the finding and leaves without running the process's exit handlers, which belong to the
// parent. Standard output goes to standard error: drivers print there.
[[noreturn]] void look_and_leave(DeviceSource& source, int answer) {
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  const std::string json = to_json(source.find());
  std::string_view rest = json;
  while (!rest.empty()) {
    const ssize_t written = ::write(answer, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  ::_exit(0);
}

// Everything the child writes until it closes, or nothing once `deadline` passes.
std::optional<std::string> read_until(int answer, Clock::time_point deadline) {
  std::string text;
  while (text.size() < answer_bytes_max) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd ready{answer, POLLIN, 0};
    const int events = ::poll(&ready, 1, static_cast<int>(left.count()) + 1);
    if (events < 0 && errno != EINTR) return text;
    if (events <= 0) continue;
    char block[4096];
    const ssize_t got = ::read(answer, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(block, static_cast<std::size_t>(got));
  }
  return text;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Finding failed_child(const DeviceSource& source, const std::string& text) {
  Finding finding;
  finding.warn(source.name(), text + "; its devices are not used");
  return finding;
}

Finding look_apart(DeviceSource& source, Duration patience) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return failed_child(source, std::string("no pipe for the look: ") + std::strerror(errno));
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    look_and_leave(source, ends[1]);
  }
  ::close(ends[1]);
  if (child < 0) {
    const std::string why = std::strerror(errno);
    ::close(ends[0]);
    return failed_child(source, "no process for the look: " + why);
  }
  const auto answer = read_until(ends[0], Clock::now() + std::chrono::milliseconds(patience.ms));
  ::close(ends[0]);
  if (!answer || answer->size() >= answer_bytes_max) ::kill(child, SIGKILL);
  const int status = wait_for(child);
  if (!answer) {
    return failed_child(source, "the driver did not answer within " + to_text(patience));
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return failed_child(source, "the driver crashed with signal " + std::to_string(signal) + " (" +
                                    strsignal(signal) + ")");
  }
  auto finding = parse_finding(*answer);
  if (!finding) {
    return failed_child(source, "the look ended with status " +
                                    std::to_string(WEXITSTATUS(status)) + " and no whole answer");
  }
  return std::move(finding).value();
}

}  // namespace

Finding discover_apart(const std::vector<std::unique_ptr<DeviceSource>>& sources,
                       Duration patience) {
  std::vector<Finding> findings;
  findings.reserve(sources.size());
  for (const auto& source : sources) findings.push_back(look_apart(*source, patience));
  return join(findings);
}

}  // namespace loam::node
