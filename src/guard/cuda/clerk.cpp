#include "guard/cuda/clerk.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "guard/cuda/gate.hpp"
#include "guard/cuda/spill.hpp"
#include "guard/lock.hpp"
#include "guard/page.hpp"

namespace loam::guard::cuda {

namespace {

std::uint32_t bell = 0;  // a futex
std::atomic<bool> started{false};
std::atomic<bool> sleeps{false};
// It stays awake this long after the last lane closed: programs that wait for each kernel open one
// again a moment later.
constexpr std::uint64_t lingers_ns = 2'000'000;
constexpr std::uint64_t lingering_nap_ns = 500'000;

// Held while the clerk looks after lanes; by the process's end for good: the driver may be gone
// then.
pthread_mutex_t working = PTHREAD_MUTEX_INITIALIZER;
constexpr long leave_within_ns = 100'000'000;

void stop_at_exit() {
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += leave_within_ns;
  if (until.tv_nsec >= 1'000'000'000) {
    until.tv_nsec -= 1'000'000'000;
    ++until.tv_sec;
  }
  ::pthread_mutex_timedlock(&working, &until);
}

std::uint64_t look() {
  const Locked locked(working);
  const std::uint64_t lanes = look_after_lanes(), memory = look_after_memory();
  if (lanes == 0 || memory == 0) return lanes + memory;
  return lanes < memory ? lanes : memory;
}

// Until the bell rings that was seen at `seen`, or the keeper asks for memory.
void sleep_until_asked(std::uint32_t seen) {
  constexpr int words_max = 1 + LOAM_SLICE_DEVICES_MAX;
  futex_waitv words[words_max] = {};
  words[0].val = seen;
  words[0].uaddr = reinterpret_cast<std::uintptr_t>(&bell);
  words[0].flags = FUTEX_32 | FUTEX_PRIVATE_FLAG;
  const int count = 1 + leave_words(words + 1, words_max - 1);
  if (count > 1) {
    if (::syscall(SYS_futex_waitv, words, count, 0, nullptr, CLOCK_MONOTONIC) >= 0 ||
        errno != ENOSYS)
      return;
    // A kernel before 5.16: asked within the time that a keeper waits.
    const timespec time{0, 50'000'000};
    ::syscall(SYS_futex, &bell, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, seen, &time, nullptr, 0);
    return;
  }
  ::syscall(SYS_futex, &bell, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, seen, nullptr, nullptr, 0);
}

void nap(std::uint64_t ns) {
  timespec time{static_cast<time_t>(ns / 1'000'000'000u), static_cast<long>(ns % 1'000'000'000u)};
  ::nanosleep(&time, nullptr);
}

void* run(void*) {
  // Late is costly: the device idles until it hears. The default slack is 50 microseconds.
  ::prctl(PR_SET_TIMERSLACK, 1000);
  ::pthread_setname_np(::pthread_self(), "loam-clerk");
  int mode = capture_mode_relaxed;
  if (const Driver* const real = driver(); real && real->cuThreadExchangeStreamCaptureMode)
    real->cuThreadExchangeStreamCaptureMode(&mode);
  std::uint64_t idle_since = 0;
  for (;;) {
    const std::uint32_t seen = __atomic_load_n(&bell, __ATOMIC_SEQ_CST);
    if (const std::uint64_t next = look(); next > 0) {
      idle_since = 0;
      nap(next);
      continue;
    }
    const std::uint64_t now = now_ns();
    if (idle_since == 0) idle_since = now;
    if (now - idle_since < lingers_ns) {
      nap(lingering_nap_ns);
      continue;
    }
    sleeps.store(true);
    sleep_until_asked(seen);
    sleeps.store(false);
    idle_since = 0;
  }
}

void forget_in_child() {
  const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  std::memcpy(&working, &fresh, sizeof fresh);
  started = false;
  sleeps = false;
}
[[gnu::constructor]] void forget_after_fork() {
  at_fork_in_child(&forget_in_child);
}

}  // namespace

void wake_clerk() {
  if (started.load(std::memory_order_acquire)) [[likely]] {
    __atomic_add_fetch(&bell, 1u, __ATOMIC_SEQ_CST);
    if (sleeps.load())
      ::syscall(SYS_futex, &bell, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
    return;
  }
  if (started.exchange(true)) return;
  std::atexit(&stop_at_exit);
  // No signal of the program's is for this thread.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, &run, nullptr) == 0)
    ::pthread_detach(thread);
  else
    say("no thread for the guard: turns end only when the program calls the driver");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace loam::guard::cuda
