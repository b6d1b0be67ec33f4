#include "app/loamd/notifier.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "app/loamd/webhook.hpp"

extern char** environ;

namespace loam::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view command_prefix = "command:";
constexpr std::size_t queue_max = 10'000;  // deliveries that wait; beyond it the oldest is dropped

Instant wall_now() {
  using namespace std::chrono;
  return Instant{duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

Error os_fault(const std::string& what) {
  return {ErrorKind::unavailable, what + ": " + std::strerror(errno), {}};
}

// Writes all of `text`, not longer than until `deadline`; a reader that has closed is no fault.
void feed(int fd, std::string_view text, Clock::time_point deadline) {
  while (!text.empty() && Clock::now() < deadline) {
    pollfd ready{fd, POLLOUT, 0};
    if (::poll(&ready, 1, 100) <= 0) continue;
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EAGAIN && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Waits for the program, which leads a process group; ends it, with all that it began, where it is
// still there at the deadline.
Result<void> reap(pid_t child, const std::string& path, Clock::time_point deadline) {
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return os_fault("waiting for " + path);
    if (Clock::now() >= deadline) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      return Error{ErrorKind::unavailable, path + " did not end in time and was killed", {}};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error{
      ErrorKind::unavailable,
      path + (WIFEXITED(status) ? " ended with " + std::to_string(WEXITSTATUS(status))
                                : " was ended by signal " + std::to_string(WTERMSIG(status))),
      {}};
}

}  // namespace

Result<void> check_channel(const std::string& channel, const std::vector<std::string>& commands) {
  if (!channel.starts_with(command_prefix)) return check_webhook(channel);
  const std::string path = channel.substr(command_prefix.size());
  if (std::find(commands.begin(), commands.end(), path) != commands.end()) return {};
  return Error{ErrorKind::permission_denied,
               "the program '" + path + "' may not be run for notices",
               "have the operator list it under 'notify' in loamd's settings"};
}

Notifier::Notifier(Options options, Log log, NoticeBox box)
    : options_(std::move(options)), log_(std::move(log)), told_(box.told) {
  // Clocks may have been set meanwhile: nothing waits longer than between two tries.
  const Duration longest = options_.waits.empty() ? Duration{} : options_.waits.back();
  for (PendingNotice& notice : box.pending) {
    const Duration wait = std::clamp(notice.due - wall_now(), Duration{}, longest);
    log_(false, notice.name + " to " + notice.channel + " waits since the last start");
    queue_.push_back({std::move(notice), Clock::now() + std::chrono::milliseconds(wait.ms)});
  }
  thread_ = std::thread([this] { run(); });
}

Notifier::~Notifier() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  const std::lock_guard lock(mutex_);
  save();
}

void Notifier::send(const std::string& name, const std::string& json,
                    const std::vector<std::string>& channels, std::int64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& channel : channels) {
      if (queue_.size() >= queue_max) {
        log_(true, queue_.front().notice.name + " was dropped: too many notices wait");
        queue_.pop_front();
      }
      queue_.push_back({{sequence, name, json, channel, 0, wall_now()}, Clock::now()});
    }
    if (sequence > told_.value_or(0)) told_ = sequence;
    unsaved_ = true;
  }
  wake_.notify_all();
}

void Notifier::told(std::int64_t sequence) {
  const std::lock_guard lock(mutex_);
  if (sequence <= told_.value_or(-1)) return;
  told_ = sequence;
  unsaved_ = true;
}

void Notifier::save() {
  if (options_.outbox.empty() || !std::exchange(unsaved_, false)) return;
  NoticeBox box{told_, {}};
  if (trying_) box.pending.push_back(trying_->notice);
  for (const Delivery& delivery : queue_) box.pending.push_back(delivery.notice);
  if (const auto saved = write_notice_box(options_.outbox, box); !saved.ok()) {
    unsaved_ = true;  // with the next change
    log_(true, "notices that wait are not kept: " + saved.error().message);
  }
}

void Notifier::run() {
  // A program that leaves without reading ends nobody: the write fails instead.
  sigset_t no_reader;
  sigemptyset(&no_reader);
  sigaddset(&no_reader, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &no_reader, nullptr);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    save();
    const auto next =
        std::min_element(queue_.begin(), queue_.end(),
                         [](const Delivery& a, const Delivery& b) { return a.due < b.due; });
    if (next == queue_.end()) {
      wake_.wait(lock);
      continue;
    }
    if (next->due > Clock::now()) {
      wake_.wait_until(lock, next->due);
      continue;
    }
    trying_ = std::move(*next);
    queue_.erase(next);
    const PendingNotice notice = trying_->notice;
    lock.unlock();
    const Result<void> done = deliver(notice);
    lock.lock();
    settle(*std::exchange(trying_, std::nullopt), done);
  }
}

void Notifier::settle(Delivery delivery, const Result<void>& done) {
  PendingNotice& notice = delivery.notice;
  const auto tries = static_cast<std::size_t>(++notice.tries);
  const std::string what = notice.name + " to " + notice.channel;
  unsaved_ = true;
  if (done.ok()) return log_(false, what + " delivered");
  if (tries > options_.waits.size()) {
    return log_(true, what + " given up after " + std::to_string(tries) +
                          " tries: " + done.error().message);
  }
  const Duration wait = options_.waits[tries - 1];
  log_(true, what + " failed: " + done.error().message + "; again in " + to_text(wait));
  notice.due = wall_now() + wait;
  delivery.due = Clock::now() + std::chrono::milliseconds(wait.ms);
  queue_.push_back(std::move(delivery));
}

Result<void> Notifier::deliver(const PendingNotice& notice) {
  LOAM_CHECK(check_channel(notice.channel, options_.commands));
  if (notice.channel.starts_with(command_prefix))
    return run_program(notice.channel.substr(command_prefix.size()), notice.json);
  const std::string id = notice.sequence > 0 ? std::to_string(notice.sequence) : std::string();
  return post_webhook(notice.channel, {notice.json, id, options_.ca_file, options_.patience});
}

Result<void> Notifier::run_program(const std::string& path, const std::string& json) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_fault("a pipe for " + path);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string program = path;
  char* const arguments[] = {program.data(), nullptr};
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, path.c_str(), &actions, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  ::close(ends[0]);
  if (failed != 0) {
    ::close(ends[1]);
    errno = failed;
    return os_fault("running " + path);
  }
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(options_.patience.ms);
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  feed(ends[1], json + "\n", deadline);
  ::close(ends[1]);
  return reap(child, path, deadline);
}

}  // namespace loam::daemon
