// The pool as the scheduler's room: it answers as the counting one does where devices are alike,
// and a copy changes nothing else.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "schedule/order/story.hpp"
#include "schedule/pool_room.hpp"

namespace loam::schedule {
namespace {

struct TestPool {
  Pool pool;
  PoolKinds kinds;

  void add(const std::string& type, std::uint64_t node, std::int64_t devices) {
    pool.refresh(
        NodeFigures{NodeId{node}, "", {}, MilliCpu{1'000'000}, Mebibytes{1'000'000}, {}, {}});
    for (std::int64_t i = 0; i < devices; ++i) {
      auto facts = std::make_shared<DeviceFacts>();
      facts->type = type;
      facts->memory = Mebibytes{81'920};
      const MilliCe worth{100'000};
      facts->factors = {worth, worth, worth, worth};
      Device device;
      device.id = DeviceId{++devices_};
      device.node = NodeId{node};
      device.index = static_cast<std::uint32_t>(i);
      device.facts = std::move(facts);
      pool.refresh(device);
      kinds.note(device.id, type);
    }
  }

 private:
  std::uint64_t devices_ = 0;
};

Ask ask_of(std::int64_t count, const std::string& type = "") {
  Ask ask;
  ask.demand.share = whole_device;
  ask.demand.device_type = type;
  ask.count = count;
  return ask;
}

TEST(PoolRoom, AnswersAsTheCountingRoomWhereDevicesAreAlike) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    TestPool made;
    made.add("a", 1, 4);
    made.add("a", 2, 3);
    made.add("b", 3, 5);
    PoolRoom room(made.pool, made.kinds);
    CountingRoom counting({{"a", 7}, {"b", 5}});
    std::vector<std::pair<Place, Place>> taken;
    for (int step = 0; step < 40; ++step) {
      if (!taken.empty() && random.chance(400)) {
        const std::size_t i = random.below(taken.size());
        room.give_back(taken[i].first);
        counting.give_back(taken[i].second);
        taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      const Ask ask = ask_of(random.between(1, 4), random.chance(500) ? "a" : "b");
      ASSERT_EQ(room.kinds(ask), counting.kinds(ask));
      const Kinds barred = random.below(4);
      const auto place = room.find(ask, barred);
      const auto other = counting.find(ask, barred);
      ASSERT_EQ(place.has_value(), other.has_value()) << "seed " << seed << " step " << step;
      if (!place) continue;
      ASSERT_TRUE(room.holds(*place));
      ASSERT_EQ(room.kinds_of(*place), counting.kinds_of(*other));
      room.take(*place);
      counting.take(*other);
      ASSERT_FALSE(room.holds(*place));
      taken.emplace_back(*place, *other);
    }
  }
}

TEST(PoolRoom, ACopyLeavesTheOriginalAlone) {
  TestPool made;
  made.add("a", 1, 2);
  const PoolRoom room(made.pool, made.kinds);
  const auto copy = room.copy();
  const auto place = copy->find(ask_of(2), 0);
  ASSERT_TRUE(place);
  copy->take(*place);
  EXPECT_FALSE(copy->find(ask_of(1), 0));
  EXPECT_TRUE(room.find(ask_of(2), 0));
  EXPECT_TRUE(room.holds(*place));
}

TEST(PoolRoom, TheSchedulerPassesOverIt) {
  TestPool made;
  made.add("h100", 1, 1);
  made.add("l40", 2, 2);
  Scheduler scheduler;
  scheduler.set_queue(0, {"main", discipline("easy"), 0, 1, {}});
  for (std::uint64_t id = 1; id <= 4; ++id) {
    Job next = job(id, 1);
    next.ask = ask_of(1, id <= 2 ? "h100" : "l40");
    next.limit = Duration::hours(1);
    scheduler.arrives(next, Instant{0});
  }
  const PoolRoom room(made.pool, made.kinds);
  const Pass pass = scheduler.pass(Instant{0}, room);
  std::vector<TaskId> started;
  for (const Action& action : pass.actions) {
    if (const auto* start = std::get_if<Start>(&action)) started.push_back(start->task);
  }
  EXPECT_EQ(started, (std::vector<TaskId>{TaskId{1}, TaskId{3}, TaskId{4}}));
  EXPECT_EQ(scheduler.explain(pass, TaskId{2})->code, WaitCode::no_room);
}

}  // namespace
}  // namespace loam::schedule
