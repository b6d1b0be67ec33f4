// The guard's lock: nobody is inside with another, also while it becomes one thread's own and is
// taken away from it again.
#include "guard/spin_lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace loam::guard {
namespace {

constexpr int until_own = 5000;  // beyond the times after which a lock is one thread's own

void take_often(SpinLock& lock, long& counted, int times) {
  for (int i = 0; i < times; ++i) {
    const Spinning locked(lock);
    counted = counted + 1;  // not atomic: two inside at once would lose one
  }
}

// Until it is this thread's own, where the kernel allows that.
void take_alone(SpinLock& lock) {
  long counted = 0;
  take_often(lock, counted, until_own);
}

SpinLock::Hold take_once(SpinLock& lock) {
  const SpinLock::Hold hold = lock.lock();
  lock.unlock(hold);
  return hold;
}

TEST(SpinLock, BecomesTheOwnOfAThreadThatTakesItAlone) {
  if (!barriers_work) GTEST_SKIP() << "this kernel has no membarrier";
  SpinLock lock;
  EXPECT_EQ(take_once(lock), SpinLock::Hold::shared);
  take_alone(lock);
  EXPECT_EQ(take_once(lock), SpinLock::Hold::own);
}

TEST(SpinLock, IsTakenFromItsOwnerByTheNextThread) {
  SpinLock lock;
  take_alone(lock);
  std::thread([&] { EXPECT_EQ(take_once(lock), SpinLock::Hold::shared); }).join();
  EXPECT_EQ(take_once(lock), SpinLock::Hold::shared);
}

TEST(SpinLock, TheNextWaitsWhileTheOwnerIsInside) {
  SpinLock lock;
  take_alone(lock);
  const SpinLock::Hold hold = lock.lock();
  std::atomic<bool> got = false;
  std::thread other([&] {
    const Spinning locked(lock);
    got = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(got);
  lock.unlock(hold);
  other.join();
  EXPECT_TRUE(got);
}

TEST(SpinLock, NothingIsLostBetweenThreads) {
  SpinLock lock;
  long counted = 0;
  constexpr int rounds = 20, times = 3 * until_own;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        take_often(lock, counted, times);
        // Now and then one has it for itself for long.
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted, 3L * rounds * times);
}

TEST(SpinLock, AForkedChildFindsItFree) {
  SpinLock lock;
  take_alone(lock);
  const SpinLock::Hold hold = lock.lock();
  const pid_t child = ::fork();
  if (child == 0) {
    lock.forget();
    const Spinning locked(lock);
    ::_exit(0);
  }
  lock.unlock(hold);
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace loam::guard
