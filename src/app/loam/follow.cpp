#include "app/loam/follow.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "app/loam/exit_code.hpp"
#include "app/loam/human.hpp"
#include "app/loam/logs.hpp"

namespace loam::cli {
namespace {

// The error stream's last line, redrawn below whatever the task writes. Thread-safe.
class LiveLine {
 public:
  LiveLine(Console& console, bool quiet)
      : console_(console), quiet_(quiet), shown_(console.err_is_terminal && !quiet) {}
  ~LiveLine() { erase(); }

  void show(const std::string& line) {
    const std::lock_guard lock(mutex_);
    line_ = cut_to(line, console_.columns == 0 ? 79 : console_.columns - 1);
    erase();
    draw();
  }
  // Writes the task's bytes to `stream`, in front of the line.
  void write(std::ostream& stream, const std::string& bytes) {
    if (bytes.empty()) return;
    const std::lock_guard lock(mutex_);
    erase();
    stream << bytes << std::flush;
    if (&stream == &console_.err || console_.out_is_terminal) at_line_start_ = bytes.back() == '\n';
    draw();
  }
  void say(const std::string& line) {
    if (quiet_) return;
    const std::lock_guard lock(mutex_);
    erase();
    if (!at_line_start_ && shown_) console_.err << "\n";
    at_line_start_ = true;
    console_.err << line << std::endl;
    draw();
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    erase();
    line_.clear();
  }

 private:
  // Only where the task has not left a line unfinished: its output is never touched.
  void draw() {
    if (!shown_ || line_.empty() || !at_line_start_) return;
    console_.err << styled(line_, Style::dim, console_.err_colour) << std::flush;
    drawn_ = true;
  }
  void erase() {
    if (drawn_) console_.err << "\r\x1b[K" << std::flush;
    drawn_ = false;
  }

  Console& console_;
  const bool quiet_;
  const bool shown_;
  std::mutex mutex_;
  std::string line_;
  bool drawn_ = false;
  bool at_line_start_ = true;
};

// Takes SIGINT and SIGTERM from the rest of the program while it lives and gives each to
// `on_signal`, on a thread of its own.
class Interrupts {
 public:
  explicit Interrupts(std::function<void(int count)> on_signal) : on_signal_(std::move(on_signal)) {
    sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, wake}) sigaddset(&signals_, number);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    thread_ = std::thread([this] { wait(); });
  }
  ~Interrupts() {
    ending_ = true;
    pthread_kill(thread_.native_handle(), wake);
    thread_.join();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  static constexpr int wake = SIGUSR1;

  void wait() {
    for (int count = 0;;) {
      int number = 0;
      if (sigwait(&signals_, &number) != 0) continue;
      if (ending_) return;
      if (number != wake) on_signal_(++count);
    }
  }

  std::function<void(int)> on_signal_;
  std::atomic<bool> ending_ = false;
  sigset_t signals_{};
  sigset_t before_{};
  std::thread thread_;
};

}  // namespace

std::string status_line(const api::TaskView& task) {
  std::string line = human_duration(task.run_ms) + "  " + task.state;
  if (task.state == "waiting" || task.state == "paused") {
    if (!task.reason.empty()) line += ": " + printable(task.reason);
    return line;
  }
  line += "  " + percent(task.share) + " of " + printable(task.device);
  if (task.share_measured) line += " (measured " + percent(*task.share_measured) + ")";
  return line + "  " + money_short(task.cost_with_tax, task.currency) + " " + task.currency;
}

std::string ending_line(const api::TaskView& task) {
  std::string how = task.outcome;
  if (how == "limit_reached") how = "reached its time limit";
  if (how == "device_lost") how = "lost its device";
  if (how == "failed") how = "failed with exit code " + std::to_string(task.exit_code);
  std::string line = task.id + " " + how;
  const bool says_more = task.outcome == "failed"
                             ? task.reason != "exit status " + std::to_string(task.exit_code)
                             : task.outcome != "limit_reached" && task.outcome != "stopped";
  if (task.run_ms > 0) line += " after " + human_duration(task.run_ms);
  line += ", " + money_short(task.cost_with_tax, task.currency) + " " + task.currency +
          (task.cost_with_tax == task.cost ? "" : " with tax");
  if (says_more && !task.reason.empty()) line += ": " + printable(task.reason);
  return line;
}

Result<int> follow(Session& session, const api::TaskView& task) {
  Console& console = session.console();
  LOAM_TRY(client, session.client());
  http::Canceller detach;
  LiveLine live(console, session.quiet());
  bool lost = false;
  std::atomic<bool> stop_asked = false;
  Result<api::TaskView> end = task;
  {
    const Interrupts interrupts([&](int count) {
      if (count > 1) return detach.cancel();
      live.say("stopping " + task.id + ": it has its grace period to save its work; " +
               "Ctrl-C again does not wait for its end");
      auto second = session.second_client();
      const auto stopped = second ? second->stop(task.id) : Result<api::TaskView>(second.error());
      if (stopped) stop_asked = true;
      if (!stopped) live.say("error: it could not be stopped: " + stopped.error().message);
    });
    api::WatchOptions options;
    options.logs = true;
    api::WatchEvents events;
    RotatedAway missing;
    events.on_task = [&](const api::TaskView& view) {
      if (lost) live.say("loamd is back");
      lost = false;
      if (view.state != "finished") live.show(status_line(view));
    };
    events.on_log = [&](const api::LogChunk& chunk) {
      missing.see(chunk);
      const bool out = chunk.stream == "stdout" && !session.json();
      live.write(out ? console.out : console.err, chunk.bytes);
    };
    events.on_lost = [&](const Error&) {
      if (!lost) live.say("loamd does not answer; the task goes on, waiting for it");
      lost = true;
    };
    end = client->watch(task.id, options, events, &detach);
    live.finish();
    if (const std::string words = missing.words(task.id); !words.empty()) live.say(words);
  }
  const bool finished = end && end->state == "finished";
  if (!finished && detach.cancelled()) {
    live.say("detached: " + task.id +
             (stop_asked ? " was asked to stop and ends within its grace period"
                         : " goes on; follow it with: loam logs -f " + task.id) +
             "; see it with: loam show " + task.id);
    return exit_detached;
  }
  if (!end) return end.error();
  if (session.json()) session.print_json(*end);
  live.say(ending_line(*end));
  return exit_code_of(end->outcome, end->exit_code);
}

}  // namespace loam::cli
