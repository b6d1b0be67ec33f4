#include "node/launch/supervisor.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "node/launch/attempt_dir.hpp"
#include "node/launch/attempt_files.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/control.hpp"
#include "node/launch/launcher.hpp"
#include "node/launch/launcher_process.hpp"

namespace loam::node {

namespace {

// What a report tells that an earlier one did not.
struct ReportKey {
  Phase phase{};
  std::size_t notices = 0;
  std::int64_t paused_since_ns = 0;
  std::int64_t end_ns = 0;

  explicit ReportKey(const AttemptStatus& status)
      : phase(status.phase),
        notices(status.notices.size()),
        paused_since_ns(status.paused_since_boottime_ns),
        end_ns(status.end_boottime_ns) {}
  friend bool operator==(const ReportKey&, const ReportKey&) = default;
};

// The status of an attempt that has no status.json: what the order says of it.
AttemptStatus status_of_order(const std::string& path, Phase phase) {
  AttemptStatus status;
  status.attempt = path.substr(path.rfind('/') + 1);
  status.phase = phase;
  if (const auto text = read_file(path + "/" + attempt_files::order)) {
    if (const auto order = parse_launch_order(*text)) {
      status.task = order->task;
      status.lease = order->lease;
      status.epoch = order->epoch;
      status.log_segment_bytes = order->log_segment_bytes;
    }
  }
  return status;
}

Error unknown_attempt(std::string_view attempt) {
  return Error{ErrorKind::not_found, "no attempt " + std::string(attempt) + " on this node", ""};
}

}  // namespace

// The thread and all that it shares with the callers.
class Supervisor::Loop {
 public:
  Loop(std::string root, std::string launcher, Callback callback)
      : root_(std::move(root)), launcher_(std::move(launcher)), callback_(std::move(callback)) {}

  ~Loop() {
    stopping_ = true;
    if (thread_.joinable()) {
      wake();
      thread_.join();
    }
  }

  Result<void> begin() {
    LOAM_CHECK(make_directories(root_));
    char resolved[PATH_MAX];
    if (::realpath(root_.c_str(), resolved) == nullptr) return os_error("finding " + root_, errno);
    root_ = resolved;
    if (::access(launcher_.c_str(), X_OK) != 0) {
      return os_error("finding the launcher " + launcher_, errno,
                      "install loam-launch next to loamd");
    }
    epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    inotify_ = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll_.valid() || !inotify_.valid() || !wake_.valid()) {
      return os_error("starting to watch attempts", errno, "see fs.inotify.max_user_instances");
    }
    wait_for(wake_.get(), wake_key);
    wait_for(inotify_.get(), inotify_key);
    thread_ = std::thread([this] { run(); });
    return {};
  }

  std::string path_of(std::string_view attempt) const { return root_ + "/" + std::string(attempt); }
  // The attempt's directory, if there is such an attempt.
  Result<std::string> find(std::string_view attempt) const {
    if (!is_attempt_name(attempt)) return unknown_attempt(attempt);
    std::string path = path_of(attempt);
    if (::access((path + "/" + attempt_files::order).c_str(), F_OK) != 0) {
      return unknown_attempt(attempt);
    }
    return path;
  }

  Result<void> start(const LaunchOrder& order);
  Result<void> watch(const std::string& attempt, Fd launcher);
  void forget(const std::string& attempt);
  // Puts the attempt on the thread's list of what to look at.
  void look_soon(const std::string& attempt);
  Result<AttemptStatus> present(const std::string& attempt, bool settle);
  std::vector<std::string> attempts() const;
  std::uint64_t wakeups() const { return wakeups_; }

 private:
  static constexpr std::uint64_t wake_key = 0;
  static constexpr std::uint64_t inotify_key = 1;
  static constexpr std::uint64_t first_attempt_key = 2;

  struct Watched {
    std::uint64_t key = 0;
    int watch = -1;
    Fd launcher;  // pidfd
    std::optional<ReportKey> reported;
  };

  void wake() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }
  void wait_for(int fd, std::uint64_t key) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = key;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  void run();
  void hear_inotify();
  void hear_launcher_end(std::uint64_t key);
  void look(const std::string& attempt);
  void hold_launcher(const std::string& attempt, const AttemptStatus& status);

  std::string root_;
  const std::string launcher_;
  const Callback callback_;
  Fd epoll_, inotify_, wake_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> wakeups_ = 0;

  std::mutex mutex_;  // guards what follows
  std::map<std::string, Watched> watched_;
  std::map<int, std::string> by_watch_;
  std::map<std::uint64_t, std::string> by_key_;
  std::uint64_t next_key_ = first_attempt_key;
  std::deque<std::string> to_look_at_;
};

// ------------------------------------------------------------------------------- the callers' side

Result<void> Supervisor::Loop::watch(const std::string& attempt, Fd launcher) {
  const std::lock_guard lock(mutex_);
  auto [place, is_new] = watched_.try_emplace(attempt);
  Watched& entry = place->second;
  if (is_new) {
    entry.watch =
        ::inotify_add_watch(inotify_.get(), path_of(attempt).c_str(), IN_MOVED_TO | IN_ONLYDIR);
    if (entry.watch < 0) {
      const int fault = errno;
      watched_.erase(place);
      return os_error("watching the attempt " + attempt, fault, "see fs.inotify.max_user_watches");
    }
    entry.key = next_key_++;
    by_watch_[entry.watch] = attempt;
    by_key_[entry.key] = attempt;
  }
  if (launcher.valid()) {
    entry.launcher = std::move(launcher);
    wait_for(entry.launcher.get(), entry.key);
  }
  return {};
}

void Supervisor::Loop::forget(const std::string& attempt) {
  const std::lock_guard lock(mutex_);
  const auto place = watched_.find(attempt);
  if (place == watched_.end()) return;
  ::inotify_rm_watch(inotify_.get(), place->second.watch);
  by_watch_.erase(place->second.watch);
  by_key_.erase(place->second.key);
  watched_.erase(place);
}

void Supervisor::Loop::look_soon(const std::string& attempt) {
  {
    const std::lock_guard lock(mutex_);
    to_look_at_.push_back(attempt);
  }
  wake();
}

Result<void> Supervisor::Loop::start(const LaunchOrder& order) {
  LOAM_CHECK(check(order));
  const std::string path = path_of(order.attempt);
  if (::access((path + "/" + attempt_files::order).c_str(), F_OK) != 0) {
    LOAM_CHECK(make_directories(path));
    LOAM_TRY(directory, open_directory(path));
    LOAM_CHECK(
        write_atomically_at(directory.get(), attempt_files::order, to_json(order), Durable::no));
  }
  LOAM_CHECK(watch(order.attempt, Fd()));
  if (::access((path + "/" + attempt_files::status).c_str(), F_OK) == 0) {
    look_soon(order.attempt);
    return {};
  }
  LOAM_TRY(started, start_launcher(launcher_, path));
  switch (started.exit_code) {
    case launch_exit_started:
      return watch(order.attempt, std::move(started.process));
    case launch_exit_running:
    case launch_exit_ended:
    case launch_exit_lost:
      look_soon(order.attempt);
      return {};
    default:
      break;
  }
  std::string words = started.words;
  while (!words.empty() && words.back() == '\n') words.pop_back();
  return Error{ErrorKind::unavailable,
               "the attempt " + order.attempt + " could not be launched (exit code " +
                   std::to_string(started.exit_code) + "): " + words,
               "see " + path};
}

// The attempt's state now; with `settle`, one whose launcher is gone without a last word becomes
// lost.
Result<AttemptStatus> Supervisor::Loop::present(const std::string& attempt, bool settle) {
  const std::string path = path_of(attempt);
  constexpr int tries_max = 100;  // of 10 ms: between a launcher's death and its children's
  for (int tries = 0;; ++tries) {
    auto status = read_status(path);
    if (!status && status.error().kind != ErrorKind::not_found) return status.error();
    if (!status) {
      return status_of_order(path, is_locked(path) ? Phase::starting : Phase::ordered);
    }
    if (is_final(status->phase) || !settle || open_launcher(*status).valid()) return status;
    const auto lock = try_lock(path);
    if (!lock && tries < tries_max) {
      ::usleep(10'000);
      continue;
    }
    if (!lock) return status;
    // The lock is ours: whatever the launcher had to say, it has said.
    status = read_status(path);
    if (!status || is_final(status->phase)) return status;
    return settle_lost(path, std::move(*status));
  }
}

std::vector<std::string> Supervisor::Loop::attempts() const {
  std::vector<std::string> names;
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(root_, fault)) {
    const std::string name = entry.path().filename();
    if (find(name).ok()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// --------------------------------------------------------------------------------- the thread's
// side

void Supervisor::Loop::run() {
  while (!stopping_) {
    epoll_event events[16];
    const int count = ::epoll_wait(epoll_.get(), events, 16, -1);
    if (count < 0) continue;
    ++wakeups_;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t key = events[i].data.u64;
      if (key == wake_key) {
        std::uint64_t number = 0;
        (void)!::read(wake_.get(), &number, sizeof number);
      } else if (key == inotify_key) {
        hear_inotify();
      } else {
        hear_launcher_end(key);
      }
    }
    while (!stopping_) {
      std::string attempt;
      {
        const std::lock_guard lock(mutex_);
        if (to_look_at_.empty()) break;
        attempt = std::move(to_look_at_.front());
        to_look_at_.pop_front();
      }
      look(attempt);
    }
  }
}

void Supervisor::Loop::hear_inotify() {
  alignas(inotify_event) char buffer[16384];
  ssize_t size = 0;
  const std::lock_guard lock(mutex_);
  while ((size = ::read(inotify_.get(), buffer, sizeof buffer)) > 0) {
    for (const char* at = buffer; at < buffer + size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) {  // something was missed: look at all
        for (const auto& [attempt, entry] : watched_) to_look_at_.push_back(attempt);
        continue;
      }
      if (event->len == 0 || std::strcmp(event->name, attempt_files::status) != 0) continue;
      const auto place = by_watch_.find(event->wd);
      if (place != by_watch_.end()) to_look_at_.push_back(place->second);
    }
  }
}

void Supervisor::Loop::hear_launcher_end(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  const auto place = by_key_.find(key);
  if (place == by_key_.end()) return;
  Watched& entry = watched_.at(place->second);
  // Closing takes it off the epoll; it stays readable for ever otherwise.
  entry.launcher.close();
  to_look_at_.push_back(place->second);
}

void Supervisor::Loop::look(const std::string& attempt) {
  auto status = present(attempt, true);
  if (!status) return;  // gone meanwhile, or told by adopt()
  if (!is_final(status->phase)) hold_launcher(attempt, *status);
  {
    const std::lock_guard lock(mutex_);
    const auto place = watched_.find(attempt);
    if (place == watched_.end()) return;
    const ReportKey key(*status);
    if (place->second.reported == key) return;
    place->second.reported = key;
  }
  AttemptReport report;
  report.attempt = attempt;
  report.heartbeat = read_heartbeat(path_of(attempt), *status);
  report.status = std::move(*status);
  callback_(report);
}

// Makes sure that the launcher's end will be heard.
void Supervisor::Loop::hold_launcher(const std::string& attempt, const AttemptStatus& status) {
  {
    const std::lock_guard lock(mutex_);
    const auto place = watched_.find(attempt);
    if (place == watched_.end() || place->second.launcher.valid()) return;
  }
  Fd launcher = open_launcher(status);
  if (launcher.valid()) {
    (void)watch(attempt, std::move(launcher));
  } else if (status.phase != Phase::ordered && status.launcher_pid != 0) {
    look_soon(attempt);  // it went just now
  }
}

// ------------------------------------------------------------------------------------- the surface

Supervisor::Supervisor(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Supervisor::~Supervisor() = default;

Result<std::unique_ptr<Supervisor>> Supervisor::create(std::string root, std::string launcher,
                                                       Callback callback) {
  auto loop = std::make_unique<Loop>(std::move(root), std::move(launcher), std::move(callback));
  LOAM_CHECK(loop->begin());
  return std::unique_ptr<Supervisor>(new Supervisor(std::move(loop)));
}

Result<void> Supervisor::start(const LaunchOrder& order) {
  return loop_->start(order);
}

namespace {

Result<void> ask(const std::string& path, const ControlRequest& request) {
  const auto answer = ask_launcher(path, request);
  if (answer) return {};
  return answer.error();
}

// No launcher answers: over already is as good as done, anything else is told.
Result<void> accept_if_over(const Result<void>& done, const std::string& path) {
  if (done.ok() || done.error().kind != ErrorKind::not_found) return done;
  const auto status = read_status(path);
  if (status && is_final(status->phase)) return {};
  return done;
}

}  // namespace

Result<void> Supervisor::stop(std::string_view attempt, std::int64_t grace_ms,
                              std::string_view reason) {
  LOAM_TRY(path, loop_->find(attempt));
  return accept_if_over(ask(path, {ControlRequest::Action::stop, grace_ms, std::string(reason), 0}),
                        path);
}

Result<void> Supervisor::kill(std::string_view attempt, std::string_view reason) {
  LOAM_TRY(path, loop_->find(attempt));
  return accept_if_over(ask(path, {ControlRequest::Action::kill, -1, std::string(reason), 0}),
                        path);
}

Result<void> Supervisor::ask_for_memory(std::string_view attempt, std::int64_t grace_ms,
                                        std::int64_t bytes) {
  LOAM_TRY(path, loop_->find(attempt));
  return accept_if_over(ask(path, {ControlRequest::Action::memory, grace_ms, {}, bytes}), path);
}

Result<void> Supervisor::pause(std::string_view attempt) {
  LOAM_TRY(path, loop_->find(attempt));
  return ask(path, {ControlRequest::Action::pause, -1, {}, 0});
}

Result<void> Supervisor::resume(std::string_view attempt) {
  LOAM_TRY(path, loop_->find(attempt));
  return ask(path, {ControlRequest::Action::resume, -1, {}, 0});
}

Result<std::size_t> Supervisor::adopt(std::vector<Error>* trouble) {
  std::size_t count = 0;
  for (const std::string& attempt : loop_->attempts()) {
    auto watched = loop_->watch(attempt, Fd());
    if (watched.ok()) {
      // Read here for the caller's sake; the thread settles what is to be settled and reports.
      const auto status = loop_->present(attempt, false);
      if (!status) watched = status.error();
    }
    if (!watched.ok()) {
      if (trouble != nullptr) trouble->push_back(watched.error());
      continue;
    }
    ++count;
    loop_->look_soon(attempt);
  }
  return count;
}

Result<AttemptReport> Supervisor::status(std::string_view attempt) const {
  LOAM_TRY(path, loop_->find(attempt));
  LOAM_TRY(status, loop_->present(std::string(attempt), false));
  AttemptReport report;
  report.attempt = std::string(attempt);
  report.heartbeat = read_heartbeat(path, status);
  if (report.heartbeat && !is_final(status.phase)) status.usage = report.heartbeat->usage;
  report.status = std::move(status);
  return report;
}

Result<AttemptStatus> Supervisor::status_now(std::string_view attempt) const {
  LOAM_TRY(path, loop_->find(attempt));
  const auto answer = ask_launcher(path, {ControlRequest::Action::status, -1, {}, 0});
  if (answer) return parse_attempt_status(*answer);
  LOAM_TRY(report, status(attempt));
  return report.status;
}

Result<std::optional<std::int64_t>> Supervisor::output(std::string_view attempt) const {
  LOAM_TRY(path, loop_->find(attempt));
  return read_output(path);
}

std::vector<std::string> Supervisor::attempts() const {
  return loop_->attempts();
}

Result<void> Supervisor::remove(std::string_view attempt) {
  const auto path = loop_->find(attempt);
  if (!path) return {};
  const auto status = read_status(*path);
  if (status && is_final(status->phase)) {
    const Fd launcher = open_launcher(*status);
    constexpr int leaving_ms_max = 5000;
    if (launcher.valid()) wait_gone(launcher, leaving_ms_max);
  }
  const auto lock = try_lock(*path);
  if (!lock) {
    return Error{ErrorKind::conflict, "the attempt " + std::string(attempt) + " still runs",
                 "stop it first"};
  }
  loop_->forget(std::string(attempt));
  return remove_tree(*path);
}

Result<LogChunk> Supervisor::read_log(std::string_view attempt, std::string_view stream,
                                      std::int64_t offset, std::int64_t max_bytes) const {
  LOAM_TRY(path, loop_->find(attempt));
  if (stream != "stdout" && stream != "stderr") {
    return invalid("no such stream: `" + std::string(stream) + "`", "ask for stdout or stderr");
  }
  const std::string logs = path + "/" + attempt_files::logs;
  if (::access(logs.c_str(), F_OK) != 0) return LogChunk{};  // refused or not begun: no output
  // The segment size is the order's, which is there from the beginning and never changes.
  LOAM_TRY(text, read_file(path + "/" + attempt_files::order));
  LOAM_TRY(order, parse_launch_order(text));
  return node::read_log(logs, stream, order.log_segment_bytes, offset, max_bytes);
}

Result<LogWatch> Supervisor::watch_logs(std::string_view attempt) const {
  LOAM_TRY(path, loop_->find(attempt));
  // Made here if the launcher has not yet, so that the first line is not missed.
  LOAM_CHECK(make_directories(path + "/" + attempt_files::logs));
  return LogWatch::open(path + "/" + attempt_files::logs);
}

std::uint64_t Supervisor::wakeups() const {
  return loop_->wakeups();
}

}  // namespace loam::node
