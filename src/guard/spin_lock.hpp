// A lock for a few instructions: one locked instruction to take, none to give back. Only within a
// process; a thread that waits long lets others run.
#pragma once

#include <sched.h>

#include <atomic>

namespace loam::guard {

class SpinLock {
 public:
  void lock() {
    int tries = 0;
    while (taken_.exchange(true, std::memory_order_acquire)) {
      while (taken_.load(std::memory_order_relaxed))
        if (++tries % 64 == 0) ::sched_yield();
    }
  }
  void unlock() { taken_.store(false, std::memory_order_release); }
  // In a forked child, whose other threads are gone.
  void forget() { taken_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> taken_{false};
};

struct Spinning {
  SpinLock& lock;
  explicit Spinning(SpinLock& l) : lock(l) { lock.lock(); }
  Spinning(const Spinning&) = delete;
  Spinning& operator=(const Spinning&) = delete;
  ~Spinning() { lock.unlock(); }
};

}  // namespace loam::guard
