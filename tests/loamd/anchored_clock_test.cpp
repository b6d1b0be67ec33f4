// The daemon's clock: steps of the wall clock and restarts bend no bill.
#include "app/loamd/anchored_clock.hpp"

#include <gtest/gtest.h>

namespace loam::daemon {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;
const Instant noon{1'772'452'800'000};

TEST(AnchoredClock, FollowsBootTimeFromItsAnchor) {
  const AnchoredClock clock({"boot-1", 100 * ns_per_s, noon});
  EXPECT_EQ(clock.at(100 * ns_per_s), noon);
  EXPECT_EQ(clock.at(160 * ns_per_s), noon + Duration::seconds(60));
  EXPECT_EQ(clock.at(40 * ns_per_s), noon - Duration::seconds(60));  // before the daemon's start
}

TEST(AnchoredClock, AStepOfTheWallClockChangesNothingWithinABoot) {
  const ClockAnchor old{"boot-1", 100 * ns_per_s, noon};
  for (const Duration step :
       {Duration::hours(1), Duration::hours(-1), Duration::hours(-24 * 365)}) {
    const ClockAnchor next =
        choose_anchor(old, "boot-1", 400 * ns_per_s, noon + Duration::seconds(300) + step,
                      noon + Duration::seconds(299));
    EXPECT_EQ(next, old);
  }
}

TEST(AnchoredClock, AnotherBootBeginsAtTheWallClock) {
  const ClockAnchor old{"boot-1", 100 * ns_per_s, noon};
  const ClockAnchor next =
      choose_anchor(old, "boot-2", 5 * ns_per_s, noon + Duration::hours(2), noon);
  EXPECT_EQ(next, (ClockAnchor{"boot-2", 5 * ns_per_s, noon + Duration::hours(2)}));
}

TEST(AnchoredClock, NeverFallsBehindTheJournal) {
  const ClockAnchor old{"boot-1", 100 * ns_per_s, noon};
  // After a boot with the wall clock an hour behind, and in a boot whose anchor was restored from
  // an older backup than the journal.
  EXPECT_EQ(choose_anchor(old, "boot-2", 5 * ns_per_s, noon - Duration::hours(1), noon).instant,
            noon);
  const ClockAnchor stale =
      choose_anchor(old, "boot-1", 101 * ns_per_s, noon, noon + Duration::hours(3));
  EXPECT_EQ(AnchoredClock(stale).at(101 * ns_per_s), noon + Duration::hours(3));
}

TEST(AnchoredClock, AMachineWithoutABootIdIsAnchoredAnew) {
  const ClockAnchor old{"", 100 * ns_per_s, noon};
  EXPECT_EQ(choose_anchor(old, "", 200 * ns_per_s, noon + Duration::hours(1), noon).instant,
            noon + Duration::hours(1));
}

TEST(AnchoredClock, TheAnchorsTextComesBack) {
  const ClockAnchor anchor{"3b1c-boot", 123'456'789, noon};
  EXPECT_EQ(parse_anchor(to_text(anchor)).value(), anchor);
  for (const char* text : {"", "boot", "boot 1", "boot x 1", "boot 1 y"})
    EXPECT_FALSE(parse_anchor(text).ok()) << text;
}

TEST(AnchoredClock, TheRealOneDoesNotFall) {
  AnchoredClock clock({boot_id(), boottime_ns(), wall_clock()});
  Instant last = clock.now();
  for (int i = 0; i < 10'000; ++i) {
    const Instant now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace loam::daemon
