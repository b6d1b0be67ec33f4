// loam-keeper --root DIR [--idle-after S] [--promise-window S] [--notice S] [--lend-after S]
//             [--stay S] [--watched]: arbitrates this node's devices among the leases in DIR/pages
// until SIGTERM. Exit status: 0 ended by a signal, 1 failed, 2 wrong arguments, 3 another one
// serves DIR.
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "node/keeper/keeper.hpp"

namespace {

constexpr const char* usage =
    "usage: loam-keeper --root DIR [--idle-after S] [--promise-window S] [--notice S]\n"
    "                   [--lend-after S] [--stay S] [--watched]\n"
    "Grants turns on this node's devices to the leases in DIR/pages, until SIGTERM.\n"
    "  --idle-after S      a lease that uses its device hardly at all for so long idles (300)\n"
    "  --promise-window S  over which shares are compared with what was promised (60)\n"
    "  --notice S          for giving lent memory back before its borrower is ended (10)\n"
    "  --lend-after S      that a lease is watched before its idle memory is lent (5)\n"
    "  --stay S            that memory stays on a device which came back from the host (2)\n"
    "  --watched           a second process stays beside the one that serves and starts another\n"
    "                      when that one is killed or crashes, also where no daemon runs\n"
    "Exit status: 0 ended by a signal, 1 failed, 2 wrong arguments, 3 another keeper serves DIR.\n";

// Whole seconds, 0 to a day; false otherwise.
bool read_seconds(const char* text, loam::node::Nanoseconds& value) {
  const std::string_view digits = text;
  std::int64_t seconds = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  if (fault != std::errc{} || end != digits.data() + digits.size()) return false;
  if (seconds < 0 || seconds > 86'400) return false;
  value = seconds * 1'000'000'000;
  return true;
}

// Where the option's value goes; null for an option there is not.
loam::node::Nanoseconds* seconds_of(loam::node::KeeperOptions& options, std::string_view name) {
  if (name == "--idle-after") return &options.idle.idle_after_ns;
  if (name == "--promise-window") return &options.promise.window_ns;
  if (name == "--notice") return &options.loans.notice_ns;
  if (name == "--lend-after") return &options.loans.lend_after_ns;
  if (name == "--stay") return &options.residence.stay_ns;
  return nullptr;
}

int serve(const loam::node::KeeperOptions& options) {
  const loam::Result<void> done = loam::node::run_keeper(options);
  if (done.ok()) return 0;
  std::fprintf(stderr, "loam-keeper: %s\n", loam::to_text(done.error()).c_str());
  return done.error().kind == loam::ErrorKind::conflict ? 3 : 1;
}

// The status of a child that ended. SIGTERM and SIGINT, which are blocked, are passed on to it.
int wait_passing_signals_on(pid_t child, const sigset_t& signals) {
  int status = 0;
  for (;;) {
    const int signal = ::sigwaitinfo(&signals, nullptr);
    if (signal == SIGTERM || signal == SIGINT) ::kill(child, signal);
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno == ECHILD)) return status;
  }
}

// Serves in a child, and in another one when that was ended by a signal that it does not heed. One
// that ends by itself had its reason: another keeper serves, its folder is gone, it was told to.
int serve_watched(const loam::node::KeeperOptions& options) {
  constexpr time_t too_short_s = 1;  // one that lived no longer is followed after a pause
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  for (;;) {
    timespec start{};
    ::clock_gettime(CLOCK_MONOTONIC, &start);
    const pid_t child = ::fork();
    if (child < 0) {
      std::perror("loam-keeper: fork");
      return 1;
    }
    if (child == 0) {
      ::sigprocmask(SIG_SETMASK, &before, nullptr);
      ::_exit(serve(options));
    }
    const int status = wait_passing_signals_on(child, signals);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    std::fprintf(stderr, "loam-keeper: process %d was ended by signal %d; another takes over\n",
                 static_cast<int>(child), WTERMSIG(status));
    timespec end{};
    ::clock_gettime(CLOCK_MONOTONIC, &end);
    if (end.tv_sec - start.tv_sec < too_short_s) ::sleep(1);
  }
}

}  // namespace

int main(int count, char** arguments) {
  loam::node::KeeperOptions options;
  bool watched = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      std::fputs(usage, stdout);
      return 0;
    }
    if (argument == "--root" && i + 1 < count) {
      options.root = arguments[++i];
    } else if (argument == "--watched") {
      watched = true;
    } else if (auto* value = seconds_of(options, argument); value != nullptr && i + 1 < count) {
      if (!read_seconds(arguments[++i], *value)) {
        std::fprintf(stderr, "loam-keeper: %s '%s': give whole seconds, 0 to 86400\n",
                     arguments[i - 1], arguments[i]);
        return 2;
      }
    } else {
      std::fprintf(stderr, "loam-keeper: unexpected argument '%s'\n%s", arguments[i], usage);
      return 2;
    }
  }
  if (options.idle.idle_after_ns == 0 || options.promise.window_ns == 0) {
    std::fputs("loam-keeper: --idle-after and --promise-window are at least 1\n", stderr);
    return 2;
  }
  if (options.root.empty()) {
    std::fprintf(stderr, "loam-keeper: --root is missing\n%s", usage);
    return 2;
  }
  options.report = [](const std::string& line) {
    std::fprintf(stderr, "loam-keeper: %s\n", line.c_str());
  };
  return watched ? serve_watched(options) : serve(options);
}
