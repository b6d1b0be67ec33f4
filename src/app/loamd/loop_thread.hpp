// The engine's loop on a thread of its own: other threads post commands and read the state; while
// one batch is being made durable the next gathers, so that many clients share one commit.
// Sleeps while there is nothing to do.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/loop.hpp"

namespace loam::daemon {

class LoopThread {
 public:
  LoopThread(engine::Clock& clock, engine::Journal& journal, engine::Executor& executor);
  ~LoopThread();

  // Recovers the state; before start(). Timers and placements then wait for settled().
  Result<void> recover() {
    loop_.wait_for_reports(true);
    return loop_.recover();
  }
  // The node has reported what became of its attempts: go on.
  void settled();
  void on_record(std::function<void(const Record&)> listener) {
    loop_.on_record(std::move(listener));
  }
  // Called on the loop's thread after each batch that wrote records.
  void after_batch(std::function<void(const engine::State&)> listener) {
    after_batch_ = std::move(listener);
  }
  void start();
  // Handles what was posted, then ends the thread.
  void stop();

  // From any thread. The reply comes on the loop's thread, after the commit.
  void post(engine::Submission submission);
  // The same, but a journal that cannot take it now does not lose it: it is tried again until it
  // can. For reports of what has already happened. `then` is told the durable answer.
  using Then = std::function<void(const engine::Answer&)>;
  void post_until_durable(Command command, Actor actor, Then then = {});
  // Runs `look` on the loop's thread between batches and returns when it has run. Not from the
  // loop's own thread. Keep it short: the loop waits.
  void read(const std::function<void(const engine::State&, Instant now)>& look);

  // False while the journal cannot be written.
  bool healthy() const { return healthy_.load(); }
  // Since the start: batches run, and those of them that the journal could not take.
  std::int64_t batches() const { return batches_.load(); }
  std::int64_t failures() const { return failures_.load(); }

 private:
  struct Read {
    const std::function<void(const engine::State&, Instant)>* look = nullptr;
    bool* done = nullptr;
    std::condition_variable* changed = nullptr;  // of this reader alone: the others sleep on
  };

  void run();
  void answer(const std::vector<Read>& reads);
  void run_batch(std::vector<engine::Submission> batch);
  // Waits for work; false when stopping and nothing is left.
  bool gather(std::vector<engine::Submission>& batch, std::vector<Read>& reads);
  // How long the loop may sleep if nobody posts; nothing: until somebody does.
  std::optional<Duration> patience();

  engine::Clock& clock_;
  engine::Loop loop_;
  std::function<void(const engine::State&)> after_batch_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<engine::Submission> inbox_;
  std::vector<Read> reads_;
  bool stopping_ = false;
  bool settled_ = false;
  std::atomic<bool> healthy_ = true;
  std::atomic<std::int64_t> batches_ = 0;
  std::atomic<std::int64_t> failures_ = 0;
  std::thread thread_;
};

}  // namespace loam::daemon
