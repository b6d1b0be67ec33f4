// What is done about waiting: moves that make room, and escalation.
#include <gmock/gmock.h>

#include "base/random.hpp"
#include "schedule/defrag/defrag.hpp"
#include "schedule/order/story.hpp"
#include "schedule/waiting/escalation.hpp"

namespace loam::schedule {
namespace {

using ::testing::HasSubstr;

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

TEST(Escalation, StepsComeInTurnAndThoseThatCannotHelpArePassedOver) {
  Story story(discipline("fifo"), 4);
  story.submit(job(1, 2), Duration::hours(9));
  story.settle();
  Job gang = job(2, 4);
  story.submit(gang, Duration::hours(1));
  story.settle();
  WaitingPromises promises;
  promises[0] = {Duration::hours(1),
                 {{EscalationKind::alarm, Duration{0}, 0},
                  {EscalationKind::on_demand, Duration::minutes(5), 0},
                  {EscalationKind::split, Duration::minutes(10), 0}}};
  std::map<TaskId, std::size_t> taken;
  const auto due = [&] {
    return due_escalations(story.scheduler, promises, taken, story.now, story.room);
  };
  story.run_for(Duration::minutes(59));
  EXPECT_TRUE(due().empty());
  story.run_for(Duration::minutes(1));
  ASSERT_EQ(due().size(), 1U);
  EXPECT_EQ(due()[0].step.kind, EscalationKind::alarm);
  EXPECT_THAT(to_text(due()[0]), HasSubstr("t2 has waited 1h, its class promises 1h"));
  taken[TaskId{2}] = 1;
  EXPECT_TRUE(due().empty());
  story.run_for(Duration::minutes(15));
  ASSERT_EQ(due().size(), 1U) << "on-demand is no help to what is not spot";
  EXPECT_EQ(due()[0].step.kind, EscalationKind::split);
  EXPECT_EQ(due()[0].parts, 2);
  EXPECT_EQ(due()[0].number, 2U);
}

TEST(Escalation, ClassesWithoutAPromiseAreLeftAlone) {
  Story story(discipline("fifo"), 1);
  story.submit(job(1, 1), Duration::hours(9));
  Job other = job(2, 1);
  other.level = 7;
  story.submit(other, Duration::hours(1));
  story.settle();
  story.run_for(Duration::hours(5));
  WaitingPromises promises;
  promises[0] = {Duration::minutes(1), {{EscalationKind::alarm, Duration{0}, 0}}};
  EXPECT_TRUE(due_escalations(story.scheduler, promises, {}, story.now, story.room).empty());
}

}  // namespace
}  // namespace loam::schedule
