#include "node/launch/launcher_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "node/launch/clock.hpp"
#include "node/launch/launcher.hpp"

namespace loam::node {

namespace {

// Debian 12's <sys/pidfd.h> has no C linkage for C++, hence the call itself.
int open_pidfd(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

std::string read_to_end(const Fd& pipe) {
  std::string text;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = ::read(pipe.get(), buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

// posix_spawn with both outputs in pipes and the signals as a fresh process has them.
Result<pid_t> spawn(const std::string& program, const std::string& attempt_path, const Fd& output,
                    const Fd& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.get(), STDERR_FILENO);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string program_word = program;
  std::string path_word = attempt_path;
  char* argv[] = {program_word.data(), path_word.data(), nullptr};
  pid_t child = 0;
  const int fault = ::posix_spawn(&child, program.c_str(), &actions, &attributes, argv, ::environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) {
    return os_error("running " + program, fault, "install loam-launch next to loamd");
  }
  return child;
}

}  // namespace

Result<LauncherStart> start_launcher(const std::string& program, const std::string& attempt_path) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return os_error("making a pipe", errno);
  Fd out_read(out[0]), out_write(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return os_error("making a pipe", errno);
  Fd err_read(err[0]), err_write(err[1]);
  LOAM_TRY(child, spawn(program, attempt_path, out_write, err_write));
  out_write.close();
  err_write.close();
  const std::string output = read_to_end(out_read);
  LauncherStart start;
  start.words = read_to_end(err_read);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  start.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : launch_exit_fault;
  if (start.exit_code == launch_exit_started) {
    const pid_t launcher = std::atoi(output.c_str());
    if (launcher > 0) start.process = Fd(open_pidfd(launcher));
  }
  return start;
}

Fd open_launcher(const AttemptStatus& status) {
  if (status.boot_id != boot_id() || status.launcher_pid <= 0) return Fd();
  const auto pid = static_cast<pid_t>(status.launcher_pid);
  Fd process(open_pidfd(pid));
  // The start time is looked at after the pid was pinned, so that it is the pinned one's.
  if (process.valid() && process_start_ticks(pid) != status.launcher_start_ticks) process.close();
  return process;
}

bool wait_gone(const Fd& process, int timeout_ms) {
  pollfd wait{process.get(), POLLIN, 0};
  return ::poll(&wait, 1, timeout_ms) > 0;
}

}  // namespace loam::node
