#include "node/keeper/keeper_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace loam::node {

namespace {

constexpr int start_tries = 500;  // of 10 ms each

Error failed(const std::string& what) {
  return Error{ErrorKind::unavailable, "cannot " + what + ": " + std::strerror(errno), ""};
}

// Runs `program --root ROOT OPTIONS` as a grandchild in a session of its own, so that nobody waits
// for it and no signal meant for the starter reaches it.
Result<void> start_detached(const std::string& root, const std::string& program,
                            const std::vector<std::string>& options, int log) {
  // Everything that allocates happens before fork.
  std::vector<const char*> arguments{program.c_str(), "--root", root.c_str()};
  for (const std::string& option : options) arguments.push_back(option.c_str());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return failed("fork for " + program);
  if (child == 0) {
    ::setsid();
    if (const pid_t grandchild = ::fork(); grandchild != 0) ::_exit(grandchild < 0 ? 1 : 0);
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, 0);
    ::dup2(log, 1);
    ::dup2(log, 2);
    ::close_range(3, ~0u, 0);
    (void)!::chdir("/");
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execv(program.c_str(), const_cast<char* const*>(arguments.data()));
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return failed("fork for " + program);
  return {};
}

}  // namespace

Result<pid_t> keeper_running(const std::string& root) {
  const std::string path = root + "/keeper.lock";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return pid_t{0};
    return failed("open " + path);
  }
  const bool is_free = ::flock(fd, LOCK_SH | LOCK_NB) == 0;
  std::array<char, 32> text{};
  const ssize_t length = is_free ? 0 : ::pread(fd, text.data(), text.size() - 1, 0);
  ::close(fd);
  if (is_free) return pid_t{0};
  // Locked, but its pid not yet written: it serves in a moment.
  if (length <= 0) return pid_t{-1};
  return static_cast<pid_t>(std::strtol(text.data(), nullptr, 10));
}

Result<pid_t> ensure_keeper(const std::string& root, const std::string& program,
                            const std::vector<std::string>& options) {
  LOAM_TRY(running, keeper_running(root));
  if (running > 0) return running;
  if (::access(program.c_str(), X_OK) != 0)
    return Error{ErrorKind::not_found,
                 "the keeper's program " + program + " cannot be run: " + std::strerror(errno),
                 "install loam-keeper beside the daemon"};
  if (::mkdir(root.c_str(), 0755) != 0 && errno != EEXIST) return failed("make " + root);
  // The keeper runs from "/", so that it holds no mount.
  char* const resolved = ::realpath(root.c_str(), nullptr);
  if (!resolved) return failed("resolve " + root);
  const std::string absolute_root = resolved;
  std::free(resolved);
  char* const resolved_program = ::realpath(program.c_str(), nullptr);
  if (!resolved_program) return failed("resolve " + program);
  const std::string absolute_program = resolved_program;
  std::free(resolved_program);
  const std::string log_path = root + "/keeper.log";
  const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return failed("open " + log_path);
  const Result<void> started = start_detached(absolute_root, absolute_program, options, log);
  ::close(log);
  if (!started.ok()) return started.error();
  for (int i = 0; i < start_tries; ++i) {
    LOAM_TRY(pid, keeper_running(root));
    if (pid > 0) return pid;
    const timespec pause{0, 10'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return Error{ErrorKind::unavailable, "the keeper did not start within 5 s", "see " + log_path};
}

}  // namespace loam::node
