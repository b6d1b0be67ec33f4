#include "node/launch/launcher.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "node/launch/attempt_files.hpp"
#include "node/launch/attempt_run.hpp"
#include "node/launch/control.hpp"
#include "node/launch/file.hpp"
#include "node/launch/inside.hpp"
#include "node/launch/status.hpp"

namespace loam::node {

namespace {

constexpr const char* usage =
    "usage: loam-launch [--foreground] ATTEMPT_DIR\n"
    "\n"
    "Runs the attempt that ATTEMPT_DIR/order.json describes and supervises it to its end, in a\n"
    "process of its own that outlives the caller (with --foreground: here). The attempt's logs,\n"
    "status and control socket lie in ATTEMPT_DIR.\n"
    "\n"
    "Exit status: 0 started, 1 fault, 2 usage, 3 another launcher runs it, 4 it is over already,\n"
    "5 an earlier launcher died on it (let loamd clear it).\n";

int fault(const Error& error) {
  std::fprintf(stderr, "loam-launch: %s\n", to_text(error).c_str());
  return launch_exit_fault;
}

// Whether the attempt may start, as an exit code.
int look_at_status(int directory) {
  const auto text = read_file_at(directory, attempt_files::status);
  if (!text) {
    return text.error().kind == ErrorKind::not_found ? launch_exit_started : fault(text.error());
  }
  const auto status = parse_attempt_status(*text);
  if (!status) return fault(status.error());
  if (is_final(status->phase)) {
    std::fprintf(stderr, "loam-launch: the attempt %s is over already (%s)\n",
                 status->attempt.c_str(), name_of(status->outcome));
    return launch_exit_ended;
  }
  std::fprintf(stderr, "loam-launch: an earlier launcher of %s died while it was %s\n",
               status->attempt.c_str(), name_of(status->phase));
  return launch_exit_lost;
}

// Lets go of everything that ties this process to its starter.
void stand_alone(int directory) {
  ::setsid();
  const int null = ::open("/dev/null", O_RDONLY);
  const int words =
      ::openat(directory, attempt_files::launcher_log, O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::dup2(null, STDIN_FILENO);
  ::dup2(words >= 0 ? words : null, STDOUT_FILENO);
  ::dup2(words >= 0 ? words : null, STDERR_FILENO);
  if (null > STDERR_FILENO) ::close(null);
  if (words > STDERR_FILENO) ::close(words);
}

// The starter's descriptors are none of ours; 0, 1 and 2 are made to exist.
void close_inherited() {
  ::close_range(3, ~0U, 0);
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

void protect_from_oom_killer() {
  // The launcher is small and must tell of its program's end. Without the right to do so, the
  // program is still the larger one.
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!::write(fd, "-500", 4);
  ::close(fd);
}

int run_attempt(std::string path, Fd directory, ControlServer control) {
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(022);
  (void)!::chdir("/");
  AttemptRun attempt(std::move(path), std::move(directory), std::move(control));
  return attempt.run() ? launch_exit_started : launch_exit_fault;
}

int launch(const char* given_path, bool foreground) {
  char resolved[PATH_MAX];
  if (::realpath(given_path, resolved) == nullptr) {
    return fault(os_error(std::string("opening the attempt's directory ") + given_path, errno));
  }
  auto directory = open_directory(resolved);
  if (!directory) return fault(directory.error());
  // The lock belongs to the open file, so it passes to the child and ends with it.
  const Fd lock(
      ::openat(directory->get(), attempt_files::lock, O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.valid()) return fault(os_error("opening the attempt's lock", errno));
  if (!try_lock_file(lock)) {
    if (errno != EAGAIN && errno != EACCES) {
      return fault(os_error("taking the attempt's lock", errno));
    }
    std::fprintf(stderr, "loam-launch: another launcher runs the attempt in %s\n", resolved);
    return launch_exit_running;
  }
  if (const int verdict = look_at_status(directory->get()); verdict != launch_exit_started) {
    return verdict;
  }
  // Listening before the starter hears of us: a stop sent at once is not lost.
  auto control = ControlServer::listen(directory->get(), attempt_files::control);
  if (!control) return fault(control.error());
  if (foreground) return run_attempt(resolved, std::move(*directory), std::move(*control));

  const pid_t child = ::fork();
  if (child < 0) return fault(os_error("making a process", errno));
  if (child > 0) {
    std::printf("%d\n", static_cast<int>(child));
    std::fflush(stdout);
    ::_exit(launch_exit_started);
  }
  stand_alone(directory->get());
  protect_from_oom_killer();
  ::_exit(run_attempt(resolved, std::move(*directory), std::move(*control)));
}

}  // namespace

int launch_main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--inside") main_inside(std::atoi(argv[2]));
  close_inherited();
  bool foreground = false;
  const char* path = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--foreground") {
      foreground = true;
    } else if (word == "--help" || word == "-h") {
      std::fputs(usage, stdout);
      return launch_exit_started;
    } else if (path == nullptr && !word.starts_with("-")) {
      path = argv[i];
    } else {
      std::fprintf(stderr, "loam-launch: unexpected argument `%s`\n%s", argv[i], usage);
      return launch_exit_usage;
    }
  }
  if (path == nullptr) {
    std::fputs(usage, stderr);
    return launch_exit_usage;
  }
  return launch(path, foreground);
}

}  // namespace loam::node
