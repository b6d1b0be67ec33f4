// Time: promised starts, backfill around them, reservations.
#include <gmock/gmock.h>

#include "base/random.hpp"
#include "schedule/order/story.hpp"

namespace loam::schedule {
namespace {

constexpr Duration ten_minutes = Duration::seconds(600);

TEST(Easy, BackfillsWhatDoesNotDelayThePlan) {
  Story story(discipline("easy"), 2);
  story.submit(limited(1, 1, ten_minutes), ten_minutes);
  story.settle();
  story.submit(limited(2, 2, ten_minutes), ten_minutes);
  story.settle();
  ASSERT_EQ(story.promised.count(TaskId{2}), 1U);
  EXPECT_EQ(story.promised[TaskId{2}], story.now + ten_minutes);
  story.submit(limited(3, 1, Duration::seconds(700)), Duration::seconds(100));
  story.settle();
  EXPECT_EQ(story.why(3), "would_delay(t2)");
  story.submit(limited(4, 1, Duration::seconds(500)), Duration::seconds(500));
  story.settle();
  EXPECT_TRUE(story.runs(4));
  story.run_for(Duration::seconds(600));
  EXPECT_TRUE(story.runs(2));
}

TEST(Easy, NothingPassesAHeadWhoseStartNobodyKnows) {
  Story story(discipline("easy"), 2);
  story.submit(job(1, 1), ten_minutes);  // no limit
  story.settle();
  story.submit(limited(2, 2, ten_minutes), ten_minutes);
  story.submit(limited(3, 1, Duration::seconds(1)), Duration::seconds(1));
  story.settle();
  EXPECT_EQ(story.why(3), "behind(t2)");
}

// With true limits no promise is ever broken, whatever comes later.
TEST(Backfill, NeverDelaysAPlan) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const std::int64_t devices = random.between(2, 12);
    const char* name = seed % 2 == 0 ? "easy" : "conservative";
    Story story(discipline(name), devices);
    for (std::uint64_t id = 1; id <= 40; ++id) {
      const Duration limit = Duration::seconds(random.between(10, 2000));
      const Duration runs = random.chance(500) ? limit : Duration{random.between(1, limit.ms)};
      story.submit(limited(id, random.between(1, devices), limit), runs);
      story.settle();
      story.run_for(Duration::seconds(random.between(0, 300)));
    }
    story.run_for(Duration::hours(40));
    ASSERT_EQ(story.ended.size(), 40U) << name << " seed " << seed;
    for (const auto& [task, at] : story.promised)
      ASSERT_LE(story.start_at[task], at) << name << " seed " << seed << " " << task.text();
  }
}

TEST(Conservative, EveryoneHasAPlanAndLaterTasksPassNobody) {
  Story story(discipline("conservative"), 2);
  story.submit(limited(1, 1, ten_minutes), ten_minutes);
  story.settle();
  story.submit(limited(2, 2, ten_minutes), ten_minutes);
  story.submit(limited(3, 1, ten_minutes), ten_minutes);  // fits in front of 2: starts
  story.submit(limited(4, 2, ten_minutes), ten_minutes);
  story.submit(limited(5, 1, Duration::seconds(601)), ten_minutes);
  story.settle();
  EXPECT_TRUE(story.runs(3));
  EXPECT_EQ(story.promised[TaskId{2}], story.now + ten_minutes);
  EXPECT_EQ(story.promised[TaskId{4}], story.now + ten_minutes * 2);
  EXPECT_EQ(story.promised[TaskId{5}], story.now + ten_minutes * 3);
}

// --- Reservations
// ---------------------------------------------------------------------------------

Reservation reservation(const Story& story, std::int64_t devices, Duration in, Duration lasts) {
  Reservation reserved;
  reserved.id = ReservationId{1};
  reserved.tenant = TenantId{1};
  reserved.from = story.now + in;
  reserved.to = reserved.from + lasts;
  Ask ask;
  ask.demand.share = whole_device;
  ask.count = devices;
  const auto place =
      story.scheduler.reservable(ask, story.now, reserved.from, reserved.to, story.room);
  EXPECT_TRUE(place);
  reserved.place = *place;
  return reserved;
}

TEST(Reservations, LockTheirCapacityAgainstWhatWouldStillRun) {
  Story story(discipline("easy"), 2);
  story.scheduler.reserve(reservation(story, 2, Duration::hours(1), Duration::hours(1)));
  story.submit(limited(1, 1, Duration::hours(2)), Duration::hours(2));
  story.submit(limited(2, 1, Duration::minutes(30)), Duration::minutes(30));
  story.submit(job(3, 1), ten_minutes);  // no limit: nobody knows
  story.settle();
  EXPECT_EQ(story.why(1), "held_by_reservation(rsv-1)");
  EXPECT_TRUE(story.runs(2));
  EXPECT_EQ(story.why(3), "held_by_reservation(rsv-1)");
  Job mine = limited(4, 2, Duration::minutes(20));
  mine.reservation = ReservationId{1};
  story.submit(mine, Duration::minutes(20));
  story.settle();
  EXPECT_EQ(story.why(4), "no_reservation(rsv-1)");
  story.run_for(Duration::hours(1));
  EXPECT_TRUE(story.runs(4));
  story.run_for(Duration::hours(1));
  EXPECT_TRUE(story.runs(1)) << "it is over";
}

TEST(Reservations, PreemptibleTasksUseThemUntilTwoMinutesBefore) {
  Story story(discipline("easy"), 1);
  story.scheduler.reserve(reservation(story, 1, Duration::hours(1), Duration::hours(1)));
  Job spot = job(1, 1);
  spot.preemptible = true;
  story.submit(spot, Duration::hours(5));
  story.settle();
  EXPECT_TRUE(story.runs(1));
  story.run_for(Duration::minutes(57));
  EXPECT_TRUE(story.runs(1));
  story.run_for(Duration::minutes(3));
  EXPECT_EQ(story.preempted.size(), 1U);
  EXPECT_FALSE(story.runs(1));
  story.run_for(Duration::hours(1));
  EXPECT_TRUE(story.runs(1)) << "it comes back when the reservation is over";
}

TEST(Reservations, OnlyTheirTenantsTasksRunOnThem) {
  Story story(discipline("easy"), 2);
  story.scheduler.reserve(reservation(story, 1, Duration{0}, Duration::hours(1)));
  Job stranger = job(1, 1, 2);
  stranger.reservation = ReservationId{1};
  story.submit(stranger, ten_minutes);
  story.submit(limited(2, 1, ten_minutes), ten_minutes);
  story.submit(limited(3, 1, ten_minutes), ten_minutes);
  Job mine = job(4, 1);
  mine.reservation = ReservationId{1};
  story.submit(mine, ten_minutes);
  story.settle();
  EXPECT_FALSE(story.runs(1));
  EXPECT_TRUE(story.runs(2));
  EXPECT_FALSE(story.runs(3));
  EXPECT_TRUE(story.runs(4));
}

TEST(Reservations, AreRefusedWhereSomethingWithoutLimitMayStillRun) {
  Story story(discipline("easy"), 2);
  story.submit(job(1, 1), ten_minutes);
  story.settle();
  Ask ask;
  ask.demand.share = whole_device;
  ask.count = 2;
  EXPECT_FALSE(story.scheduler.reservable(ask, story.now, story.now + Duration::hours(1),
                                          story.now + Duration::hours(2), story.room));
  ask.count = 1;
  EXPECT_TRUE(story.scheduler.reservable(ask, story.now, story.now + Duration::hours(1),
                                         story.now + Duration::hours(2), story.room));
}

// Whatever runs, what is reserved is free for its owner when it begins.
TEST(Reservations, AreAlwaysReadyWhenTheyBegin) {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    const std::int64_t devices = random.between(2, 8);
    Story story(discipline(seed % 2 == 0 ? "easy" : "fifo"), devices);
    std::uint64_t id = 0;
    const auto some = [&] {
      Job next =
          limited(++id, random.between(1, devices), Duration::minutes(random.between(1, 90)));
      next.preemptible = random.chance(300);
      if (next.preemptible && random.chance(500)) next.limit.reset();
      story.submit(next, next.limit.value_or(Duration::hours(3)));
      story.settle();
    };
    for (int i = 0; i < 3; ++i) some();
    Ask ask;
    ask.demand.share = whole_device;
    ask.count = random.between(1, devices);
    const Instant from = story.now + Duration::minutes(random.between(0, 120));
    const auto place =
        story.scheduler.reservable(ask, story.now, from, from + Duration::hours(1), story.room);
    if (!place) continue;
    story.scheduler.reserve({ReservationId{1}, TenantId{1}, from, from + Duration::hours(1), *place,
                             Duration::seconds(120)});
    story.settle();
    while (story.now + Duration::minutes(5) < from) {
      some();
      story.run_for(Duration::minutes(5));
    }
    story.run_until(std::max(story.now, from));
    EXPECT_TRUE(story.room.holds(*place)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loam::schedule
