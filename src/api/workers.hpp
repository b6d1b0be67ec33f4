// A few threads that take work in order. Shell: threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace loam::api {

class Workers {
 public:
  // 0 threads: run() does the work itself.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // From any thread, also from within work. After stop() it drops the work.
  void run(std::function<void()> work);
  // Drops what has not begun and waits for what has. Not from within work.
  void stop();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

// Blocks every signal on this thread: they are for the program's main one.
void block_signals();

}  // namespace loam::api
