#include "api/workers.hpp"

#include <pthread.h>
#include <signal.h>

namespace loam::api {

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

Workers::Workers(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
}

Workers::~Workers() {
  stop();
}

void Workers::run(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (!threads_.empty()) {
      waiting_.push_back(std::move(work));
      changed_.notify_one();
      return;
    }
  }
  work();
}

void Workers::serve() {
  block_signals();
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

void Workers::stop() {
  std::deque<std::function<void()>> dropped;  // destroyed without the lock
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(waiting_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace loam::api
