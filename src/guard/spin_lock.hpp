// A lock for a few instructions. Only within a process; a thread that waits long lets others run.
// A lock that one thread alone takes becomes that thread's own, and then costs no locked
// instruction; the first other thread that wants it takes this away again, for one system call.
// (Kawachiya, Koseki & Onodera, "Lock reservation", OOPSLA 2002, has the idea.)
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "guard/barrier.hpp"

namespace loam::guard {

// Its address is the thread.
extern thread_local constinit char this_thread;

class SpinLock {
 public:
  // How it is held: as its own, or like everybody.
  enum class Hold : std::uint8_t { own, shared };

  [[nodiscard]] Hold lock() {
    const char* const me = &this_thread;
    if (owner_.load(std::memory_order_relaxed) == me) [[likely]] {
      inside_.store(true, std::memory_order_relaxed);
      paired_with_barrier();
      if (owner_.load(std::memory_order_relaxed) == me) [[likely]]
        return Hold::own;
      inside_.store(false, std::memory_order_release);
    }
    lock_shared(me);
    return Hold::shared;
  }
  void unlock(Hold hold) {
    if (hold == Hold::own) [[likely]]
      inside_.store(false, std::memory_order_release);
    else
      taken_.store(false, std::memory_order_release);
  }
  // In a forked child, whose other threads are gone.
  void forget() {
    taken_.store(false, std::memory_order_relaxed);
    inside_.store(false, std::memory_order_relaxed);
    owner_.store(nullptr, std::memory_order_relaxed);
  }

 private:
  // So often without another thread before the lock becomes a thread's own: the system call of
  // losing it again is then a small part.
  static constexpr std::uint32_t alone_for = 4096;

  [[gnu::noinline]] void lock_shared(const char* me) {
    int tries = 0;
    while (taken_.exchange(true, std::memory_order_acquire)) {
      while (taken_.load(std::memory_order_relaxed))
        if (++tries % 64 == 0) ::sched_yield();
    }
    if (owner_.load(std::memory_order_relaxed) != nullptr) {
      // Either its owner sees this, or it is seen inside.
      owner_.store(nullptr, std::memory_order_relaxed);
      barrier_in_all_threads();
      while (inside_.load(std::memory_order_acquire)) ::sched_yield();
    }
    if (last_ != me) {
      last_ = me;
      times_ = 0;
    } else if (++times_ >= alone_for && barriers_work) {
      times_ = 0;
      owner_.store(me, std::memory_order_relaxed);
    }
  }

  std::atomic<const char*> owner_{nullptr};
  std::atomic<bool> inside_{false};  // its owner holds it; written by the owner alone
  std::atomic<bool> taken_{false};   // somebody who is not the owner holds it
  // The last that took it like everybody, and how often on end; under `taken_`.
  const char* last_ = nullptr;
  std::uint32_t times_ = 0;
};

class Spinning {
 public:
  explicit Spinning(SpinLock& lock) : lock_(lock), hold_(lock.lock()) {}
  Spinning(const Spinning&) = delete;
  Spinning& operator=(const Spinning&) = delete;
  ~Spinning() { lock_.unlock(hold_); }

 private:
  SpinLock& lock_;
  SpinLock::Hold hold_;
};

}  // namespace loam::guard
