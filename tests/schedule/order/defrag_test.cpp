// Defrag: moves of running tasks that make room for a waiting one.
#include "schedule/defrag/defrag.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/random.hpp"
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

DefragRules rules(std::int64_t moves_per_hour) {
  return {moves_per_hour, 2, hour};
}

// Two devices, each with half of it taken: a whole one fits nowhere, but one move makes room.
Story halves(std::int64_t moves_per_hour) {
  Story story(discipline("fifo"), 2);
  story.scheduler.set_defrag(rules(moves_per_hour));
  story.submit(part(1, 600, 0), hour * 5);
  story.submit(part(2, 600, 0), hour * 5);
  story.settle();
  story.submit(part(3, 300, 0), hour * 5);
  story.settle();
  story.run_for(Duration::minutes(10));
  story.end(TaskId{1});  // leaves 300 on one device and 600 on the other
  return story;
}

std::vector<TaskId> moved_for(Story& story, Job asker) {
  story.submit(std::move(asker), hour);
  story.settle();
  return story.moved;
}

TEST(Defrag, OneMoveLetsALargerTaskStart) {
  Story story = halves(10);
  EXPECT_EQ(moved_for(story, part(4, 1000, 1)), std::vector{TaskId{3}}) << "the cheapest to move";
  EXPECT_TRUE(story.runs(4));
  EXPECT_TRUE(story.runs(3));
  EXPECT_EQ(story.scheduler.standing(TaskId{3}).served.ms, Duration::minutes(10).ms);
  EXPECT_TRUE(story.scheduler.standing(TaskId{3}).preempted_at.empty()) << "that is no preemption";
}

TEST(Defrag, MovesNobodyWhereTheOperatorDidNotAskForIt) {
  Story story = halves(0);
  EXPECT_TRUE(moved_for(story, part(4, 1000, 1)).empty());
}

TEST(Defrag, MovesNobodyWithoutNeed) {
  Story story = halves(10);
  EXPECT_TRUE(moved_for(story, part(4, 400, 1)).empty()) << "it fits";
}

TEST(Defrag, MovesNobodyForItsEquals) {
  Story story = halves(10);
  EXPECT_TRUE(moved_for(story, part(4, 1000, 0)).empty());
}

TEST(Defrag, MovesNobodyWhereThatLosesMoreThanItGains) {
  Story story = halves(10);
  Job brief = part(4, 100, 0);  // its end in two minutes would clear the device but for task 3
  brief.limit = Duration::minutes(2);
  story.submit(brief, Duration::minutes(2));
  story.settle();
  story.end(TaskId{3});
  EXPECT_TRUE(moved_for(story, part(5, 1000, 1)).empty()) << "in two minutes a device is free";
}

TEST(Defrag, MovesNobodyWhoWouldLoseMoreThanAllowed) {
  Story story = halves(10);
  story.scheduler.set_defrag({10, 2, Duration::minutes(10)});
  EXPECT_TRUE(moved_for(story, part(4, 1000, 1)).empty()) << "ten minutes of work, and the load";
}

TEST(Defrag, MovesAsManyAnHourAsAllowedAndNobodyTwice) {
  Story story = halves(1);
  ASSERT_EQ(moved_for(story, part(4, 1000, 1)).size(), 1U);
  story.end(TaskId{4});
  story.submit(part(5, 400, 0), hour * 5);
  story.settle();
  EXPECT_EQ(moved_for(story, part(6, 1000, 1)).size(), 1U) << "one an hour";
  story.scheduler.set_defrag(rules(10));
  story.settle();
  EXPECT_EQ(std::count(story.moved.begin(), story.moved.end(), TaskId{3}), 1);
}

// ---- against the best of all sets --------------------------------------------------------------

struct Mover {
  std::int64_t milli = 0;
  std::size_t device = 0;
  std::int64_t loss = 0;
};
struct Cluster {
  std::vector<std::int64_t> free;  // milli, by device
  std::vector<Mover> movers;
  std::int64_t wanted = 0;  // by the asker
};

Cluster cluster_of(Random& random) {
  Cluster cluster;
  cluster.free.assign(2 + random.below(4), 1000);
  for (std::uint64_t left = 2 + random.below(8); left > 0; --left) {
    const Mover mover{random.between(1, 7) * 100,
                      static_cast<std::size_t>(random.below(cluster.free.size())),
                      random.between(1, 50)};
    if (cluster.free[mover.device] < mover.milli) continue;
    cluster.free[mover.device] -= mover.milli;
    cluster.movers.push_back(mover);
  }
  cluster.wanted = random.between(3, 10) * 100;
  return cluster;
}

// Whether those of `set` from `next` on have other devices beside what is taken of `free`.
bool all_have_a_place(const std::vector<Mover>& set, std::size_t next,
                      std::vector<std::int64_t>& free) {
  if (next == set.size()) return true;
  for (std::size_t device = 0; device < free.size(); ++device) {
    if (device == set[next].device || free[device] < set[next].milli) continue;
    free[device] -= set[next].milli;
    const bool fits = all_have_a_place(set, next + 1, free);
    free[device] += set[next].milli;
    if (fits) return true;
  }
  return false;
}

// What the moves lose that lose least, of all sets of at most `most`; nothing: none is enough.
std::optional<std::int64_t> least_loss(const Cluster& cluster, std::size_t most) {
  std::optional<std::int64_t> least;
  for (std::size_t bits = 1; bits < std::size_t{1} << cluster.movers.size(); ++bits) {
    std::vector<Mover> set;
    std::vector<std::int64_t> free = cluster.free;
    std::int64_t loss = 0;
    for (std::size_t i = 0; i < cluster.movers.size(); ++i) {
      if ((bits >> i & 1) == 0) continue;
      set.push_back(cluster.movers[i]);
      free[set.back().device] += set.back().milli;
      loss += set.back().loss;
    }
    if (set.size() > most || (least && loss >= *least)) continue;
    for (std::int64_t& there : free) {
      if (there < cluster.wanted) continue;
      there -= cluster.wanted;
      if (all_have_a_place(set, 0, free)) least = loss;
      there += cluster.wanted;
    }
  }
  return least;
}

class AnyPlace final : public MoveStage {
 public:
  std::optional<Place> place_for(const Standing&, const Ask& ask, const Room& then) const override {
    return then.find(ask, 0);
  }
  bool allows(const Defrag&) const override { return true; }
};

Place place_at(std::size_t device, std::int64_t milli) {
  UnitPlacement unit;
  Placement slice;
  slice.device = DeviceId{device + 1};
  slice.share = MilliDevice{milli};
  unit.slices.push_back(slice);
  return {unit};
}

std::optional<Defrag> found_for(const Cluster& cluster, std::size_t most, const Room& room,
                                std::vector<Standing>& standings, Standing& asker) {
  asker.job = part(100, cluster.wanted, 1);
  std::vector<Movable> movable;
  for (std::size_t i = 0; i < standings.size(); ++i)
    movable.push_back({&standings[i], cluster.movers[i].loss});
  std::stable_sort(movable.begin(), movable.end(),
                   [](const Movable& a, const Movable& b) { return a.loss < b.loss; });
  MoveBounds bounds{most, 1'000'000};
  return find_moves(asker, movable, Instant{1'000'000}, room, AnyPlace(), bounds);
}

TEST(Defrag, FindsTheSetThatLosesLeastOfAllOfOneOrTwo) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    Random random(seed);
    const Cluster cluster = cluster_of(random);
    const std::size_t most = 1 + random.below(2);
    CountingRoom room(static_cast<std::int64_t>(cluster.free.size()));
    std::vector<Standing> standings(cluster.movers.size());
    for (std::size_t i = 0; i < standings.size(); ++i) {
      standings[i].job = part(i + 1, cluster.movers[i].milli, 0);
      standings[i].state = JobState::running;
      standings[i].place = place_at(cluster.movers[i].device, cluster.movers[i].milli);
      room.take(standings[i].place);
    }
    Standing asker;
    const auto defrag = found_for(cluster, most, room, standings, asker);
    const bool fits = std::any_of(cluster.free.begin(), cluster.free.end(),
                                  [&](std::int64_t free) { return free >= cluster.wanted; });
    const auto least = fits ? std::nullopt : least_loss(cluster, most);
    ASSERT_EQ(defrag.has_value(), least.has_value()) << "seed " << seed;
    if (!defrag) continue;
    ++found;
    std::int64_t loss = 0;
    for (const Move& move : defrag->moves) {
      loss += cluster.movers[move.task.value - 1].loss;
      room.give_back(move.from);
    }
    EXPECT_EQ(loss, *least) << "seed " << seed;
    for (const Move& move : defrag->moves) {
      ASSERT_TRUE(room.holds(move.to)) << "seed " << seed;
      room.take(move.to);
    }
    EXPECT_TRUE(room.holds(defrag->place)) << "seed " << seed;
  }
  EXPECT_GT(found, 200);
}

}  // namespace
}  // namespace loam::schedule
