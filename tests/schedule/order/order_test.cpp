// Orders: what is learned of lengths, fair shares, ageing.
#include <gmock/gmock.h>

#include <cmath>

#include "base/random.hpp"
#include "schedule/order/rank.hpp"
#include "schedule/order/story.hpp"

namespace loam::schedule {
namespace {

using ::testing::HasSubstr;

TEST(Lengths, WithoutExperienceTheMedianIsThatOfTheLogUniformPrior) {
  const Lengths lengths(Lengths::trust_blind);
  EXPECT_NEAR(lengths.median_s(), std::sqrt(30.0 * 30 * 86'400), 400);
}

TEST(Lengths, TheMedianFollowsWhatEnds) {
  Lengths lengths(Lengths::trust_blind);
  for (int i = 0; i < 1000; ++i) lengths.end(Duration::seconds(i % 2 == 0 ? 600 : 900), {});
  lengths.learn({});
  EXPECT_GT(lengths.median_s(), 500);
  EXPECT_LT(lengths.median_s(), 1'000);
  EXPECT_LT(lengths.long_s(), 1'100);
}

TEST(Lengths, UnfinishedTasksMakeLengthsLonger) {
  Lengths lengths(Lengths::trust_blind);
  for (int i = 0; i < 10; ++i) lengths.end(Duration::seconds(600), {});
  lengths.learn({});
  const double before = lengths.median_s();
  lengths.learn(std::vector<Lengths::Alive>(30, {Duration::hours(10), {}}));
  EXPECT_GT(lengths.median_s(), 2 * before);
}

TEST(Lengths, TheGittinsIndexOfAKnownLengthIsOneOverWhatIsLeft) {
  Hazard hazard({100, 200, 400}, {0.5, 0.5}, 1);
  // Both bins' midpoints: 141 and 283. At 200 only the second is left.
  EXPECT_NEAR(hazard.gittins(200, 1), 1 / (std::sqrt(200.0 * 400) - 200), 1e-9);
  EXPECT_EQ(hazard.gittins(300, 1), 0);
  // From 0 the best is to stop after the first half, or to go on, whichever has more per second.
  const double first = std::sqrt(100.0 * 200);
  const double second = std::sqrt(200.0 * 400);
  EXPECT_NEAR(hazard.gittins(0, 1), std::max(0.5 / first, 1 / (0.5 * first + 0.5 * second)), 1e-9);
}

TEST(Lengths, NearTheirStatedLimitTasksAreTakenToBeNearlyDone) {
  const Lengths lengths(Lengths::trust_limited);
  const Duration limit = Duration::hours(1);
  EXPECT_GT(lengths.gittins(Duration::minutes(50), limit),
            lengths.gittins(Duration::minutes(5), limit));
  EXPECT_GT(lengths.gittins(Duration::seconds(0), Duration::minutes(10)),
            lengths.gittins(Duration::seconds(0), Duration::hours(10)));
}

TEST(Discipline, UnknownNamesAreRefusedWithTheKnownOnes) {
  const auto found = discipline_named("lifo");
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("lifo"));
  EXPECT_THAT(found.error().next_step, HasSubstr("semi_blind"));
}

TEST(Priority, AHigherLevelGoesFirstAndWaitingMakesUpForIt) {
  Discipline how = discipline("priority");
  how.preemption = Preemption::none;
  how.ageing = Duration::minutes(10);
  Story story(how, 1);
  story.submit(job(1, 1), Duration::hours(1));
  story.settle();
  story.submit(job(2, 1), Duration::minutes(1));  // waits from the start
  story.run_for(Duration::minutes(15));
  Job high = job(3, 1);
  high.level = 1;
  story.submit(high, Duration::minutes(1));  // one level, but 15 minutes later
  Job higher = job(4, 1);
  higher.level = 2;
  story.submit(higher, Duration::minutes(1));
  story.run_for(Duration::hours(2));
  EXPECT_EQ(story.started, (std::vector<TaskId>{TaskId{1}, TaskId{4}, TaskId{2}, TaskId{3}}));
}

// A task of level 0 among an endless stream of higher ones: after `ageing` times their difference
// it is before all that come later.
TEST(Priority, NobodyStarves) {
  Discipline how = discipline("priority");
  how.preemption = Preemption::none;
  Story story(how, 1);
  story.submit(job(1, 1), Duration::minutes(10));
  story.settle();
  story.submit(job(2, 1), Duration::minutes(10));
  for (std::uint64_t id = 3; id < 60; ++id) {
    Job high = job(id, 1);
    high.level = 3;
    story.submit(high, Duration::minutes(10));
    story.run_for(Duration::minutes(9));
  }
  ASSERT_EQ(story.start_at.count(TaskId{2}), 1U);
  EXPECT_LE(story.start_at[TaskId{2}] - Instant{1'000'000}, how.ageing * 3 + Duration::minutes(40));
}

TEST(Shares, HeldAmountsDriftIntoTheAverageAndFade) {
  Shares shares;
  Amounts pool;
  pool[Dimension::devices] = 1000;
  shares.set_capacity(pool);
  shares.set_half_life(Duration::hours(1));
  Amounts half;
  half[Dimension::devices] = 500;
  const TenantId tenant{1};
  shares.charge(tenant, "p", half, Instant{0});
  const double ahead = 0.5 * std::log(2.0) * 10 / 3600;  // ten seconds of what is held
  EXPECT_NEAR(shares.of(tenant, Instant{0}), ahead, 1e-9);
  EXPECT_NEAR(shares.of(tenant, Instant{3'600'000}), 0.25 + ahead, 1e-9);
  shares.release(tenant, "p", half, Instant{3'600'000});
  EXPECT_NEAR(shares.of(tenant, Instant{7'200'000}), 0.125, 1e-9);
  shares.set_weight(tenant, 5);
  EXPECT_NEAR(shares.of(tenant, Instant{7'200'000}), 0.025, 1e-9);
}

// Device time that each tenant had within an hour of endless demand.
std::map<TenantId, double> an_hour(std::int64_t devices, std::uint64_t seed, bool projects) {
  Story story(discipline("drf"), devices);
  Amounts pool;
  pool[Dimension::devices] = devices * 1000;
  story.scheduler.shares().set_capacity(pool);
  story.scheduler.shares().set_weight(TenantId{1}, 1);
  story.scheduler.shares().set_weight(TenantId{2}, 3);
  if (projects) {
    story.scheduler.shares().set_weight(TenantId{2}, "a", 1);
    story.scheduler.shares().set_weight(TenantId{2}, "b", 3);
  }
  Random random(seed);
  std::uint64_t id = 0;
  for (int i = 0; i < 1600 * static_cast<int>(devices); ++i) {
    ++id;
    Job next = job(id, 1, 1 + id % 2);
    next.project = projects && id % 4 == 1 ? "a" : "b";
    next.limit = Duration::seconds(6);
    story.submit(next, Duration::seconds(random.between(2, 6)));
  }
  const Instant begin = story.now;
  story.settle();
  story.run_for(Duration::hours(1));
  std::map<TenantId, double> time;
  for (const auto& [task, at] : story.start_at) {
    const Instant end = std::min(story.now, at + story.lengths[task]);
    time[TenantId{1 + task.value % 2}] += static_cast<double>((end - std::max(at, begin)).ms);
  }
  return time;
}

TEST(Drf, TwoTenantsAtOneToThreeGetThatWithinOnePercentOverAnHour) {
  for (const std::int64_t devices : {1, 3, 8}) {
    auto time = an_hour(devices, static_cast<std::uint64_t>(devices), false);
    EXPECT_NEAR(time[TenantId{2}] / time[TenantId{1}], 3, 0.03) << devices << " devices";
  }
}

TEST(Drf, WhatEachResourceIsDominantForDecides) {
  // 9 CPUs and 18 GiB, tasks of 1 CPU + 4 GiB and of 3 CPUs + 1 GiB: three of the first, two of
  // the second (the example of the DRF paper).
  Story story(discipline("drf"), 100);
  Amounts pool;
  pool[Dimension::cpu] = 9'000;
  pool[Dimension::host_memory] = 18 * 1024;
  story.scheduler.shares().set_capacity(pool);
  // The pool's CPUs and memory are a quota that both tenants fill.
  std::uint64_t id = 0;
  Amounts held;
  for (int i = 0; i < 5; ++i) {
    const double a = story.scheduler.shares().of(TenantId{1}, story.now);
    const double b = story.scheduler.shares().of(TenantId{2}, story.now);
    Job next = job(++id, 1, a <= b ? 1 : 2);
    next.takes = {};
    next.takes[Dimension::cpu] = a <= b ? 1'000 : 3'000;
    next.takes[Dimension::host_memory] = a <= b ? 4 * 1024 : 1024;
    held += next.takes;
    story.submit(next, Duration::hours(1));
    story.settle();
  }
  EXPECT_EQ(held[Dimension::cpu], 9'000);
  EXPECT_EQ(held[Dimension::host_memory], 14 * 1024);
}

}  // namespace
}  // namespace loam::schedule
