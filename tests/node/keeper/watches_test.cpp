// What the keeper watches a lease for: its promise, its idleness. Pure, on a clock of the tests'
// own.
#include <gtest/gtest.h>

#include <vector>

#include "node/keeper/idleness.hpp"
#include "node/keeper/promise.hpp"
#include "node/keeper/units.hpp"

namespace loam::node {
namespace {

// One second after another with the same facts; the shortfalls that are told.
struct Watched {
  PromiseWatch watch{PromiseTerms{}, 0};
  Nanoseconds now = 0;
  Nanoseconds busy = 0;
  std::vector<ShareShortfall> told;

  void pass(int seconds, int share_milli, int used_milli, bool wants, bool kept_waiting) {
    for (int i = 0; i < seconds; ++i) {
      note(share_milli, wants, kept_waiting);
      now += second;
      busy += second / 1000 * used_milli;
    }
    note(share_milli, wants, kept_waiting);
  }
  void note(int share_milli, bool wants, bool kept_waiting) {
    if (const auto short_of = watch.note(now, share_milli, busy, wants, kept_waiting))
      told.push_back(*short_of);
  }
};

TEST(PromiseWatch, AKeptPromiseIsNoEvent) {
  Watched lease;
  lease.pass(600, 300, 300, true, true);
  EXPECT_TRUE(lease.told.empty());
}

TEST(PromiseWatch, WhatNeighboursTookIsTold) {
  Watched lease;
  lease.pass(60, 300, 200, true, true);
  ASSERT_EQ(lease.told.size(), 1u);
  EXPECT_EQ(lease.told[0], (ShareShortfall{0, 60 * second, 18 * second, 12 * second, 6 * second}));
  lease.pass(60, 300, 300, true, true);
  EXPECT_EQ(lease.told.size(), 1u) << "every window is judged by itself";
}

TEST(PromiseWatch, WhoAsksForNothingIsOwedNothing) {
  Watched lease;
  lease.pass(600, 1000, 0, false, false);
  EXPECT_TRUE(lease.told.empty());
  lease.pass(600, 1000, 100, true, false);  // slow, but nobody was in its way
  EXPECT_TRUE(lease.told.empty());
}

TEST(PromiseWatch, NoMoreIsMissingThanNeighboursHeldTheDevice) {
  Watched lease;
  lease.pass(55, 500, 100, true, false);
  lease.pass(5, 500, 0, true, true);
  ASSERT_EQ(lease.told.size(), 1u);
  EXPECT_EQ(lease.told[0].missing_ns, 5 * second);
}

TEST(PromiseWatch, ALittleLessIsWithinTheTolerance) {
  Watched lease;
  lease.pass(600, 300, 295, true, true);
  EXPECT_TRUE(lease.told.empty());
  lease.pass(60, 300, 290, true, true);
  EXPECT_EQ(lease.told.size(), 1u);
}

struct Used {
  IdleWatch watch{IdleTerms{}, 0};
  Nanoseconds now = 0, busy = 0;
  int changes = 0;

  void pass(int seconds, int used_milli) {
    for (int i = 0; i < seconds; ++i) {
      now += second;
      busy += second / 1000 * used_milli;
      if (watch.note(now, busy)) ++changes;
    }
  }
};

TEST(IdleWatch, FiveMinutesBelowFivePercentAreIdle) {
  Used lease;
  lease.pass(299, 40);
  EXPECT_FALSE(lease.watch.idle());
  lease.pass(31, 40);
  EXPECT_TRUE(lease.watch.idle());
  lease.pass(60, 500);
  EXPECT_FALSE(lease.watch.idle());
  EXPECT_EQ(lease.changes, 2);
}

TEST(IdleWatch, ShortPausesDoNotFlap) {
  Used lease;
  for (int i = 0; i < 20; ++i) {
    lease.pass(120, 0);
    lease.pass(60, 600);
  }
  EXPECT_EQ(lease.changes, 0);
  // Nor does a rare kernel wake what is idle.
  lease.pass(600, 0);
  for (int i = 0; i < 20; ++i) {
    lease.pass(29, 0);
    lease.pass(1, 900);
  }
  EXPECT_TRUE(lease.watch.idle());
  EXPECT_EQ(lease.changes, 1);
}

TEST(IdleWatch, WhatIsBusyIsNeverIdle) {
  Used lease;
  lease.pass(3000, 60);
  EXPECT_EQ(lease.changes, 0);
}

}  // namespace
}  // namespace loam::node
