// Defrag: moves of running tasks that make room for a waiting one.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "schedule/defrag/defrag.hpp"
#include "schedule/order/story.hpp"

namespace loam::schedule {
namespace {

Job part(std::uint64_t id, std::int64_t milli, std::int64_t level) {
  Job task = job(id, 1);
  task.ask.demand.share = MilliDevice{milli};
  task.milli = milli;
  task.level = level;
  task.load = Duration::seconds(30);
  return task;
}

// Two devices, each with half of it taken: a whole one fits nowhere, but one move makes room.
Story halves() {
  Story story(discipline("fifo"), 2);
  story.submit(part(1, 600, 0), Duration::hours(5));
  story.submit(part(2, 600, 0), Duration::hours(5));
  story.settle();
  story.submit(part(3, 300, 0), Duration::hours(5));
  story.settle();
  story.run_for(Duration::minutes(10));
  story.end(TaskId{1});  // leaves 300 on one device and 600 on the other
  return story;
}

TEST(Defrag, OneMoveLetsALargerTaskStart) {
  Story story = halves();
  Job whole = part(4, 1000, 1);
  story.submit(whole, Duration::hours(1));
  const auto defrag = find_moves(story.scheduler, TaskId{4}, story.now, story.room);
  ASSERT_TRUE(defrag);
  ASSERT_EQ(defrag->moves.size(), 1U);
  EXPECT_EQ(defrag->moves[0].task, TaskId{3}) << "the cheapest to move";
  EXPECT_FALSE(touch(defrag->place, defrag->moves[0].to));
}

TEST(Defrag, NeverMovesWithoutNeedNorAtALossNorItsEquals) {
  Story story = halves();
  story.submit(part(4, 400, 1), Duration::hours(1));
  EXPECT_FALSE(find_moves(story.scheduler, TaskId{4}, story.now, story.room)) << "it fits";
  story.submit(part(5, 1000, 0), Duration::hours(1));
  EXPECT_FALSE(find_moves(story.scheduler, TaskId{5}, story.now, story.room)) << "its equals";
  story.submit(part(6, 1000, 1), Duration::hours(1));
  DefragLimits little;
  little.gain_if_unknown = Duration::seconds(60);
  EXPECT_FALSE(find_moves(story.scheduler, TaskId{6}, story.now, story.room, little))
      << "ten minutes of work since the last checkpoint are worth more";
}

// Whatever is found: what moves has a place, everyone fits, the gain is above the loss.
TEST(Defrag, WhatItProposesCanBeDone) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const std::int64_t devices = random.between(2, 4);
    Story story(discipline("any"), devices);
    std::uint64_t id = 0;
    for (int i = 0; i < 12; ++i)
      story.submit(part(++id, random.between(1, 7) * 100, 0),
                   Duration::hours(random.between(1, 9)));
    story.settle();
    story.run_for(Duration::minutes(random.between(1, 20)));
    for (std::uint64_t task = 1; task <= id; ++task) {
      if (story.runs(task) && random.chance(400)) story.end(TaskId{task});
    }
    story.submit(part(++id, random.between(5, 10) * 100, 1), Duration::hours(1));
    const auto defrag = find_moves(story.scheduler, TaskId{id}, story.now, story.room);
    if (!defrag) continue;
    ++found;
    EXPECT_LE(defrag->moves.size(), 2U);
    const auto room = story.room.copy();
    for (const Move& move : defrag->moves) room->give_back(move.from);
    for (const Move& move : defrag->moves) {
      ASSERT_TRUE(room->holds(move.to)) << "seed " << seed;
      room->take(move.to);
    }
    EXPECT_TRUE(room->holds(defrag->place)) << "seed " << seed;
  }
  EXPECT_GT(found, 10);
}

}  // namespace
}  // namespace loam::schedule
