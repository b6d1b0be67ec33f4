// Passes: situations that broke other schedulers, and the reason of everything that waits.
#include <gmock/gmock.h>

#include "base/random.hpp"
#include "schedule/order/story.hpp"

namespace loam::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Pass, FirstComeFirstServedHoldsBackWhatCameLater) {
  Story story(discipline("fifo"), 2);
  story.submit(job(1, 1), hour);
  story.submit(job(2, 2), hour);
  story.submit(job(3, 1), hour);
  story.settle();
  EXPECT_THAT(story.started, ElementsAre(TaskId{1}));
  EXPECT_EQ(story.why(2), "no_room");
  EXPECT_EQ(story.why(3), "behind(t2)");
}

TEST(Pass, AHeadThatWaitsForOneTypeDoesNotBlockTasksThatWantAnother) {
  for (const char* name : {"fifo", "easy", "blind", "priority"}) {
    Story story(discipline(name), CountingRoom({{"h100", 1}, {"l40", 2}}));
    Job big = job(1, 1);
    big.ask.demand.device_type = "h100";
    story.submit(big, hour);
    story.settle();
    Job head = job(2, 1);
    head.ask.demand.device_type = "h100";
    story.submit(head, hour);
    Job other = job(3, 1);
    other.ask.demand.device_type = "l40";
    story.submit(other, hour);
    Job any = job(4, 1);  // may run on either: goes where nobody waits
    story.submit(any, hour);
    story.settle();
    EXPECT_TRUE(story.runs(3)) << name;
    EXPECT_TRUE(story.runs(4)) << name;
    EXPECT_FALSE(story.runs(2)) << name;
  }
}

TEST(Pass, TwoGangsThatEachWantEverythingNeverHoldHalfEach) {
  for (const std::string_view name : discipline_names()) {
    Story story(discipline(std::string(name).c_str()), 100);
    for (const std::uint64_t id : {1, 2}) {
      Job gang = job(id, 100);
      gang.limit = gang.length = hour;
      story.submit(gang, hour);
    }
    story.settle();
    EXPECT_EQ(story.started.size(), 1U) << name;
    EXPECT_EQ(story.room.free_milli(), 0) << name;
    story.run_for(hour * 3);
    EXPECT_EQ(story.ended.size(), 2U) << name;
  }
}

// Whatever their sizes, gangs hold all their places or none, and none keeps another from its end.
TEST(Pass, GangsOfAnySizeHoldAllTheirPlacesOrNoneAndAllEnd) {
  for (const std::string_view name : discipline_names()) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Random random(seed);
      const std::int64_t devices = random.between(2, 12);
      Story story(discipline(std::string(name).c_str()), devices);
      const auto check = [&] {
        std::set<DeviceId> taken;
        for (const TaskId task : story.scheduler.running()) {
          const Standing& gang = story.scheduler.standing(task);
          EXPECT_EQ(static_cast<std::int64_t>(gang.place.size()), gang.job.ask.count)
              << name << ", seed " << seed;
          for (const UnitPlacement& member : gang.place)
            EXPECT_TRUE(taken.insert(member.slices.at(0).device).second)
                << name << ", seed " << seed;
        }
        EXPECT_EQ(story.room.free_milli(),
                  (devices - static_cast<std::int64_t>(taken.size())) * 1000);
      };
      for (std::uint64_t id = 1; id <= 20; ++id) {
        Job gang = job(id, random.between(1, devices));
        gang.limit = gang.length = Duration::minutes(random.between(1, 60));
        story.submit(gang, *gang.length);
        story.settle();
        check();
        story.run_for(Duration::minutes(random.between(0, 20)));
        check();
      }
      story.run_for(hour * 100);
      EXPECT_EQ(story.ended.size(), 20U) << name << ", seed " << seed;
    }
  }
}

TEST(Pass, OneInfeasibleTaskNeverEndsThePass) {
  for (const std::string_view name : discipline_names()) {
    Story story(discipline(std::string(name).c_str()), 4);
    Job wide = job(1, 1);
    wide.ask.demand.share = MilliDevice{2000};  // no device is so large
    story.submit(wide, hour);
    Job nowhere = job(2, 1);
    nowhere.ask.demand.device_type = "none of these";
    story.submit(nowhere, hour);
    story.submit(job(3, 1), hour);
    story.settle();
    EXPECT_TRUE(story.runs(3)) << name;
    EXPECT_EQ(story.why(1), "never_fits") << name;
    EXPECT_EQ(story.why(2), "never_fits") << name;
  }
}

TEST(Pass, AStartThatAlwaysFailsBacksOffAndOthersGoOn) {
  Story story(discipline("fifo"), 1);
  story.submit(job(1, 1), hour);
  story.settle();
  std::vector<std::int64_t> pauses_s;
  for (int i = 0; i < 12; ++i) {
    story.room.give_back(story.scheduler.standing(TaskId{1}).place);
    story.scheduler.fails_to_start(TaskId{1}, story.now);
    story.settle();
    EXPECT_EQ(story.why(1), "backing_off");
    const Instant again = story.scheduler.look_again(story.now);
    pauses_s.push_back((again - story.now).ms / 1000);
    if (i == 0) {  // somebody else has the device meanwhile
      story.submit(job(2, 1), Duration::seconds(1));
      story.settle();
      EXPECT_TRUE(story.runs(2));
    }
    story.run_until(again);
    ASSERT_TRUE(story.runs(1)) << "tried again " << i;
  }
  EXPECT_THAT(pauses_s, ElementsAre(5, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 600));
}

TEST(Pass, BarredEnvironmentsNeverStart) {
  Story story(discipline("fifo"), 4);
  QueueSpec spec{"production", discipline("fifo"), 0, 1, {"test"}};
  story.scheduler.set_queue(0, spec);
  Job test = job(1, 1);
  test.environment = "test";
  story.submit(test, hour);
  story.submit(job(2, 1), hour);
  story.settle();
  EXPECT_THAT(story.started, ElementsAre(TaskId{2}));
  EXPECT_EQ(story.why(1), "barred_environment");
}

TEST(Pass, ATenantAtItsQuotaHoldsNobodyElseBack) {
  Story story(discipline("fifo"), 4);
  story.scheduler.quotas().set(TenantId{1}, quota(1));
  story.submit(job(1, 1, 1), hour);
  story.submit(job(2, 1, 1), hour);
  story.submit(job(3, 1, 2), hour);
  story.settle();
  EXPECT_THAT(story.started, ElementsAre(TaskId{1}, TaskId{3}));
  EXPECT_EQ(story.why(2), "quota_exceeded");
}

TEST(Pass, QueuesDoNotBlockOneAnotherAndTakeTurnsByWhatTheyHold) {
  Story story(discipline("fifo"), CountingRoom({{"a", 4}, {"b", 4}}));
  story.scheduler.set_queue(1, {"second", discipline("fifo"), 0, 1, {}});
  Job head = job(1, 8);  // never fits on one type
  head.ask.demand.device_type = "a";
  story.submit(head, hour);
  Job other = job(2, 2);
  other.queue = 1;
  story.submit(other, hour);
  story.settle();
  EXPECT_TRUE(story.runs(2)) << "another queue's head is no reason to wait";
}

TEST(Pass, ActionsAreBoundedOnRequest) {
  Story story(discipline("fifo"), 8);
  for (std::uint64_t id = 1; id <= 5; ++id) story.submit(job(id, 1), hour);
  Scheduler::PassLimits limits;
  limits.actions_max = 2;
  EXPECT_EQ(story.scheduler.pass(story.now, story.room, limits).actions.size(), 2U);
}

// --- Cohorts
// --------------------------------------------------------------------------------------

TEST(Reclaim, TakesTheLowestAndNoMoreThanNeeded) {
  // Three tenants borrow four devices each; the owner of the twelve needs four.
  Discipline how = discipline("fifo");
  Story story(how, 12);
  story.scheduler.quotas().set(TenantId{9}, quota(12, "c"));
  for (std::uint64_t tenant = 1; tenant <= 3; ++tenant)
    story.scheduler.quotas().set(TenantId{tenant}, quota(0, "c"));
  std::uint64_t id = 0;
  for (std::uint64_t tenant = 1; tenant <= 3; ++tenant) {
    for (int i = 0; i < 4; ++i) {
      Job borrower = job(++id, 1, tenant);
      borrower.level = static_cast<std::int64_t>(3 - tenant);  // tenant 3 is the lowest
      story.submit(borrower, hour);
    }
  }
  story.settle();
  ASSERT_EQ(story.started.size(), 12U);
  story.run_for(Duration::minutes(1));
  story.submit(job(++id, 4, 9), hour);
  story.settle();
  EXPECT_TRUE(story.runs(id));
  EXPECT_THAT(story.preempted, ElementsAre(TaskId{9}, TaskId{10}, TaskId{11}, TaskId{12}));
}

TEST(Reclaim, StopsWhereTheBorrowerBorrowsNoMore) {
  Story story(discipline("fifo"), 8);
  story.scheduler.quotas().set(TenantId{1}, quota(4, "c"));
  story.scheduler.quotas().set(TenantId{2}, quota(4, "c"));
  for (std::uint64_t id = 1; id <= 6; ++id) story.submit(job(id, 1, 1), hour);
  story.settle();
  story.submit(job(7, 2, 2), hour);
  story.settle();
  EXPECT_THAT(story.preempted, IsEmpty()) << "two devices are free";
  story.submit(job(8, 2, 2), hour);
  story.settle();
  EXPECT_EQ(story.preempted.size(), 2U);
  story.submit(job(9, 1, 2), hour);
  story.settle();
  EXPECT_EQ(story.preempted.size(), 2U) << "what is within a tenant's own quota stays";
  EXPECT_EQ(story.why(9), "quota_exceeded");
}

// Tenants of one cohort whose tasks borrow, outrank one another and reclaim never evict each other
// in turn, though nothing but the rule itself keeps them apart: whatever idles of the quotas, and
// however many devices there are for them.
TEST(Reclaim, EvictionsAreFewForAnyFiniteWork) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Discipline how = discipline(random.chance(700) ? "priority" : "fifo");
    how.safe_min = how.safe_max = Duration{0};
    how.preemptions_max = 0;
    const std::int64_t devices = random.between(1, 8);
    Story story(how, devices);
    const std::uint64_t tenants = 2 + random.below(2);
    for (std::uint64_t tenant = 1; tenant <= tenants; ++tenant) {
      QuotaSpec spec = quota(random.between(0, devices), "c");
      const auto d = static_cast<std::size_t>(Dimension::devices);
      if (random.chance(300)) spec.borrow_max[d] = random.between(0, devices) * 1000;
      if (random.chance(300)) spec.lend_max[d] = random.between(0, *spec.nominal[d]);
      story.scheduler.quotas().set(TenantId{tenant}, spec);
    }
    story.scheduler.quotas().set(TenantId{9}, quota(random.between(0, 2 * devices), "c"));  // idle
    std::size_t count = 0;
    for (std::uint64_t id = 1; id <= 30; ++id) {
      Job next = job(id, random.between(1, std::max<std::int64_t>(1, devices / 2)),
                     1 + random.below(tenants));
      next.limit = Duration::minutes(random.between(1, 30));
      next.level = random.between(0, 2);
      if (!story.scheduler.quotas().admissible(next.tenant, next.takes, next.limit)) continue;
      ++count;
      story.submit(next, *next.limit);
      story.settle();
      story.run_for(Duration::seconds(random.between(0, 300)));
    }
    story.run_for(hour * 40);
    EXPECT_EQ(story.ended.size(), count) << "seed " << seed;
    EXPECT_LE(story.preempted.size(), 2 * count) << "seed " << seed;
  }
}

TEST(Reclaim, ABorrowerStopsNobodyWithinItsOwnWhateverItsLevel) {
  Discipline how = discipline("priority");
  how.safe_min = how.safe_max = Duration{0};
  how.preemptions_max = 0;
  Story story(how, 1);
  story.scheduler.quotas().set(TenantId{1}, quota(1, "c"));
  story.scheduler.quotas().set(TenantId{2}, quota(0, "c"));
  story.scheduler.quotas().set(TenantId{3}, quota(1, "c"));  // idles
  story.submit(job(1, 1, 1), hour);
  story.settle();
  story.run_for(Duration::minutes(10));
  Job premium = job(2, 1, 2);
  premium.level = 10;
  story.submit(premium, hour);
  story.run_for(hour * 3);
  EXPECT_THAT(story.preempted, IsEmpty());
  EXPECT_EQ(story.ended, (std::vector<TaskId>{TaskId{1}, TaskId{2}}));
}

// --- Promises
// -------------------------------------------------------------------------------------

// On a pool that holds one task at a time, who starts is always the first by level and waiting,
// whatever was promised before it came.
TEST(Promised, NobodyStartsBeforeAHigherLevelThatWaits) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    Discipline how = discipline("priority");
    how.ageing = Duration::minutes(random.between(0, 60));
    how.preemption = Preemption::none;  // else one may take a place that those before it cannot
    Story story(how, 2);
    std::map<TaskId, std::int64_t> keys;
    std::size_t seen = 0;
    const auto check = [&] {
      for (; seen < story.started.size(); ++seen) {
        for (const auto& [line, tasks] : story.scheduler.lines()) {
          for (const auto& [arrival, waiting] : tasks) {
            EXPECT_LE(keys.at(story.started[seen]), keys.at(waiting)) << "seed " << seed;
          }
        }
      }
    };
    for (std::uint64_t id = 1; id <= 40; ++id) {
      Job next = job(id, 2);
      next.level = random.between(-2, 3);
      next.limit = Duration::minutes(random.between(1, 90));
      keys[next.id] = how.ageing.ms == 0 ? -next.level : story.now.ms - next.level * how.ageing.ms;
      story.submit(next, *next.limit);
      story.settle();
      check();
      const std::size_t steps = random.below(6);
      for (std::size_t step = 0; step < steps; ++step) {
        story.run_for(Duration::minutes(10));
        if (story.started.size() > seen + 1) seen = story.started.size() - 1;  // others came since
        check();
      }
    }
  }
}

TEST(Promised, SpotGivesWayToAllOthersAndIsTriedAsIfItHadComeADayLater) {
  for (const char* name : {"priority", "easy", "conservative", "fifo"}) {
    Story story(discipline(name), 1);
    story.submit(limited(1, 1, hour), hour);
    story.settle();
    Job spot = limited(2, 1, hour * 2);
    spot.preemptible = true;
    spot.level = -spot_levels_below;
    story.submit(spot, hour);
    story.settle();
    story.run_for(Duration::minutes(30));
    for (std::uint64_t id = 3; id <= 60; ++id) {  // there is always one more that is not spot
      story.submit(limited(id, 1, hour), hour);
      story.settle();
      story.run_for(hour);
      if (id == 3) {
        EXPECT_TRUE(story.runs(3)) << name;
      }
      if (id == 20) {
        EXPECT_EQ(story.start_at.count(TaskId{2}), 0U) << name;
      }
    }
    // Where others are promised a start it may starve.
    const bool has_its_turn = discipline(name).overtaking == Overtaking::none ||
                              discipline(name).order == Order::priority;
    if (has_its_turn) {
      EXPECT_EQ(story.start_at.count(TaskId{2}), 1U) << name << ": it starves";
    }
  }
}

TEST(Preempted, VictimsDoNotJumpBackBeforeTheirPreemptor) {
  Discipline how = discipline("priority");
  how.safe_min = how.safe_max = Duration{0};
  Story story(how, 2);
  story.submit(job(1, 1), hour);
  story.submit(job(2, 1), hour);
  story.settle();
  Job high = job(3, 2);
  high.level = 5;
  story.submit(high, hour);
  story.settle();
  EXPECT_TRUE(story.runs(3));
  EXPECT_THAT(story.preempted, ElementsAre(TaskId{1}, TaskId{2}));
  EXPECT_FALSE(story.runs(1));
}

// Where victims take time to leave, their place is kept for the one they leave for.
TEST(Preempted, TheClearedPlaceIsKeptUntilTheVictimsHaveLeft) {
  Discipline how = discipline("priority");
  how.safe_min = how.safe_max = Duration{0};
  Story story(how, 2);
  story.submit(job(1, 1), hour);
  story.submit(job(2, 1), hour);
  story.settle();
  Job high = job(3, 2);
  high.level = 5;
  story.submit(high, hour);
  const Pass pass = story.scheduler.pass(story.now, story.room);
  ASSERT_EQ(pass.actions.size(), 1U);
  const auto& clears = std::get<Preempt>(pass.actions[0]);
  const Instant by = story.now + Duration::seconds(120);
  for (const TaskId victim : clears.victims) story.scheduler.is_stopping(victim, by);
  story.scheduler.is_promised(TaskId{3}, story.now, {TaskId{3}, by, clears.place}, true);
  story.settle();  // decides nothing twice
  EXPECT_EQ(story.why(3), "victims_leaving");
  // The first leaves; what it leaves is for nobody else.
  story.room.give_back(story.scheduler.standing(TaskId{1}).place);
  story.scheduler.is_preempted(TaskId{1}, story.now);
  story.submit(job(4, 1), hour);
  story.settle();
  EXPECT_FALSE(story.runs(1));
  EXPECT_FALSE(story.runs(4));
  story.room.give_back(story.scheduler.standing(TaskId{2}).place);
  story.scheduler.is_preempted(TaskId{2}, story.now);
  story.settle();
  EXPECT_TRUE(story.runs(3));
}

// --- The clock
// ------------------------------------------------------------------------------------

TEST(Overdue, ThePoolDrainsForTheEldestAndItRunsToItsEnd) {
  Discipline how = discipline("blind");
  how.overdue_after = Duration::minutes(30);
  Story story(how, 2);
  story.submit(job(1, 1), hour * 2);
  story.submit(job(2, 1), hour * 3);
  story.settle();
  story.submit(job(3, 2), hour * 10);
  std::uint64_t id = 3;
  for (int i = 0; i < 30; ++i) {
    story.submit(job(++id, 1), Duration::minutes(5));
    story.run_for(Duration::minutes(3));
  }
  EXPECT_TRUE(story.runs(3));
  EXPECT_LE(story.start_at[TaskId{3}] - Instant{1'000'000}, hour * 2);
  story.run_for(hour * 9);
  EXPECT_EQ(story.scheduler.standings().count(TaskId{3}) == 0 || story.runs(3), true);
  for (const TaskId victim : story.preempted) EXPECT_NE(victim, TaskId{3});
}

}  // namespace
}  // namespace loam::schedule
