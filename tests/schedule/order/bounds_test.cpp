// Bounded passes: what they leave out has its turn later, and no bound lets a plan be delayed. And
// what a scheduler is made of comes back from its image.
#include <gmock/gmock.h>

#include "base/random.hpp"
#include "schedule/order/story.hpp"

namespace loam::schedule {
namespace {

std::vector<TaskId> starts_of(const Pass& pass) {
  std::vector<TaskId> tasks;
  for (const Action& action : pass.actions) {
    if (const auto* start = std::get_if<Start>(&action)) tasks.push_back(start->task);
  }
  return tasks;
}

TEST(Bounds, APassGoesOnWhereTheOneBeforeWasCutShort) {
  Story story(discipline("any"), 4);
  for (std::uint64_t id = 1; id <= 50; ++id)
    story.submit(limited(id, 8, Duration::seconds(static_cast<std::int64_t>(id))), hour);
  story.submit(limited(51, 1, hour), hour);
  Scheduler::PassLimits limits;
  limits.turns_max = 5;
  limits.turns_beyond = 5;
  std::vector<TaskId> started;
  for (int i = 0; started.empty() && i < 20; ++i) {
    const Pass pass = story.scheduler.pass(story.now, story.room, limits);
    started = starts_of(pass);
    limits.beyond = pass.next;
    if (started.empty()) {
      ASSERT_FALSE(pass.next.empty()) << "the last one was never tried";
    }
  }
  EXPECT_THAT(started, ::testing::ElementsAre(TaskId{51}));
}

TEST(Bounds, ThePassSaysNothingOfGoingOnWhereItWentThrough) {
  Story story(discipline("easy"), 4);
  for (std::uint64_t id = 1; id <= 3; ++id)
    story.submit(limited(id, 8, hour * static_cast<std::int64_t>(id)), hour);
  Scheduler::PassLimits limits;
  limits.turns_max = 3;
  EXPECT_TRUE(story.scheduler.pass(story.now, story.room, limits).next.empty());
  limits.turns_max = 2;
  EXPECT_FALSE(story.scheduler.pass(story.now, story.room, limits).next.empty());
}

// The first that does not fit is further away than the pass looks: only what has ended by then may
// pass it.
TEST(Bounds, AShortLookAheadStillDelaysNobody) {
  Story story(discipline("easy"), 11);
  for (std::uint64_t id = 1; id <= 9; ++id)
    story.submit(limited(id, 1, Duration::minutes(static_cast<std::int64_t>(10 * id))), hour * 9);
  story.settle();
  story.submit(limited(20, 11, hour), hour);  // fits when all have ended, at 90 minutes
  story.submit(limited(21, 1, Duration::minutes(15)), hour);
  story.submit(limited(22, 1, Duration::minutes(45)), hour);
  Scheduler::PassLimits limits;
  limits.ends_max = 2;  // looks as far as the third end, 30 minutes
  const Pass pass = story.scheduler.pass(story.now, story.room, limits);
  EXPECT_THAT(starts_of(pass), ::testing::ElementsAre(TaskId{21}));
  EXPECT_EQ(code_text(*story.scheduler.explain(pass, TaskId{22})), "would_delay(t20)");
}

TEST(Bounds, GangsArePlannedForTheFirstTimeTheyFit) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    Story story(discipline("easy"), 16);
    std::vector<Duration> ends;
    for (std::uint64_t id = 1; id <= 16; ++id) {
      ends.push_back(Duration::minutes(random.between(1, 100)));
      story.submit(limited(id, 1, ends.back()), hour * 9);
    }
    story.settle();
    const std::int64_t wide = random.between(2, 16);
    story.submit(limited(99, wide, hour), hour);
    story.settle();
    std::sort(ends.begin(), ends.end());
    EXPECT_EQ(story.promised.at(TaskId{99}), story.now + ends[static_cast<std::size_t>(wide - 1)])
        << "seed " << seed;
  }
}

// Two schedulers, one of which is written down and read back every now and then, decide alike.
TEST(Image, ASchedulerFromItsImageDecidesAlike) {
  for (const std::string_view name : discipline_names()) {
    Random random(name.size());
    Story story(discipline(std::string(name).c_str()), 6);
    story.scheduler.shares().set_capacity({{0, 0, 6'000, 100, 0, 0}});
    for (std::uint64_t id = 1; id <= 60; ++id) {
      Job made = limited(id, random.between(1, 4), Duration::minutes(random.between(1, 300)));
      made.tenant = TenantId{random.below(3) + 1};
      made.level = random.between(0, 2);
      story.submit(made, *made.limit);
      story.settle();
      story.run_for(Duration::minutes(random.between(0, 40)));
      if (id % 7 != 0) continue;
      Scheduler other;
      other.set_queue(0, {"main", discipline(std::string(name).c_str()), 0, 1, {}});
      other.shares().set_capacity({{0, 0, 6'000, 100, 0, 0}});
      other.restore(story.scheduler.image());
      const Instant later = story.now + Duration::minutes(7);
      const Pass one = story.scheduler.pass(later, story.room);
      const Pass two = other.pass(later, story.room);
      ASSERT_EQ(one.actions.size(), two.actions.size()) << name << ", task " << id;
      for (std::size_t i = 0; i < one.actions.size(); ++i) {
        const auto task = [](const auto& action) { return action.task; };
        EXPECT_EQ(std::visit(task, one.actions[i]), std::visit(task, two.actions[i])) << name;
      }
      EXPECT_EQ(story.scheduler.look_again(story.now), other.look_again(story.now)) << name;
    }
  }
}

TEST(Quota, AScratchCopyLeavesTheBaseAsItIs) {
  Quotas base;
  QuotaSpec spec;
  spec.cohort = "all";
  spec.nominal[static_cast<std::size_t>(Dimension::devices)] = 4'000;
  base.set(TenantId{1}, spec);
  base.set(TenantId{2}, spec);
  Amounts three;
  three[Dimension::devices] = 3'000;
  base.charge(TenantId{1}, three);
  Quotas scratch = Quotas::on_top_of(base);
  scratch.charge(TenantId{1}, three);
  scratch.charge(TenantId{2}, Amounts{{0, 0, 2'000, 0, 0, 0}});
  EXPECT_TRUE(scratch.check(TenantId{2}, Amounts{{0, 0, 1'000, 0, 0, 0}}, {}).has_value());
  EXPECT_TRUE(scratch.borrows(TenantId{1}));
  EXPECT_FALSE(base.borrows(TenantId{1}));
  EXPECT_FALSE(base.check(TenantId{2}, Amounts{{0, 0, 4'000, 0, 0, 0}}, {}).has_value());
}

}  // namespace
}  // namespace loam::schedule
