// Victims: against the best of all sets on small pools, and the rules of who may be stopped.
#include <gmock/gmock.h>

#include <algorithm>
#include <tuple>

#include "base/random.hpp"
#include "schedule/order/story.hpp"
#include "schedule/preempt/victims.hpp"

namespace loam::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Devices shared in parts; the asker wants `count` slices of `milli`.
class Small final : public Stage {
 public:
  Small(std::vector<std::int64_t> free, std::int64_t count, std::int64_t milli)
      : free_(std::move(free)), count_(count), milli_(milli) {}
  void add(std::size_t device, std::int64_t milli) { victims_.push_back({device, milli}); }
  void remove(std::size_t i) override { free_[victims_[i].first] += victims_[i].second; }
  void restore(std::size_t i) override { free_[victims_[i].first] -= victims_[i].second; }
  bool enough() override {
    ++looks;
    std::int64_t fit = 0;
    for (const std::int64_t free : free_) fit += free / milli_;
    return fit >= count_;
  }
  const std::vector<std::int64_t>& free() const { return free_; }
  int looks = 0;

 private:
  std::vector<std::int64_t> free_;
  std::vector<std::pair<std::size_t, std::int64_t>> victims_;
  std::int64_t count_;
  std::int64_t milli_;
};

using Cost = std::tuple<std::int64_t, std::size_t, std::int64_t>;  // highest level, count, loss

Cost cost_of(const std::vector<PossibleVictim>& candidates,
             const std::vector<std::size_t>& chosen) {
  Cost cost{-1, chosen.size(), 0};
  for (const std::size_t i : chosen) {
    std::get<0>(cost) = std::max(std::get<0>(cost), candidates[i].level);
    std::get<2>(cost) += candidates[i].loss;
  }
  return cost;
}

std::optional<Cost> best_of_all(const std::vector<PossibleVictim>& candidates, Small& stage) {
  std::optional<Cost> best;
  for (std::size_t set = 0; set < std::size_t{1} << candidates.size(); ++set) {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (set >> i & 1) chosen.push_back(i);
    }
    for (const std::size_t i : chosen) stage.remove(i);
    if (stage.enough()) {
      const Cost cost = cost_of(candidates, chosen);
      if (!best || cost < *best) best = cost;
    }
    for (const std::size_t i : chosen) stage.restore(i);
  }
  return best;
}

struct SmallPool {
  Small stage;
  std::vector<PossibleVictim> candidates;
};

SmallPool small_pool(Random& random) {
  const std::size_t devices = 1 + random.below(4);
  std::vector<std::int64_t> free(devices, 1000);
  std::vector<std::pair<std::size_t, std::int64_t>> victims;
  for (std::uint64_t i = random.below(10); i > 0; --i) {
    const std::size_t device = random.below(devices);
    const std::int64_t milli = random.between(1, 10) * 100;
    if (milli > free[device]) continue;
    free[device] -= milli;
    victims.emplace_back(device, milli);
  }
  SmallPool pool{Small(free, random.between(1, 4), random.between(1, 10) * 100), {}};
  for (const auto& [device, milli] : victims) {
    pool.stage.add(device, milli);
    pool.candidates.push_back(
        {TaskId{pool.candidates.size() + 1}, random.between(0, 2), random.between(0, 5)});
  }
  return pool;
}

TEST(Victims, AreTheLowestTheFewestAndTheCheapestOfAllSets) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    SmallPool pool = small_pool(random);
    const auto before = pool.stage.free();
    const auto chosen = fewest_victims(pool.candidates, pool.stage);
    ASSERT_EQ(pool.stage.free(), before) << "the stage is left as it was";
    const auto best = best_of_all(pool.candidates, pool.stage);
    ASSERT_EQ(chosen.has_value(), best.has_value()) << "seed " << seed;
    if (best) {
      ASSERT_EQ(cost_of(pool.candidates, *chosen), *best) << "seed " << seed;
    }
  }
}

TEST(Victims, OutOfTriesTheChoiceStillSufficesAndSparesWhatItCan) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    SmallPool pool = small_pool(random);
    const auto chosen = fewest_victims(pool.candidates, pool.stage, 0);
    const auto exact = fewest_victims(pool.candidates, pool.stage);
    ASSERT_EQ(chosen.has_value(), exact.has_value()) << "seed " << seed;
    if (!chosen) continue;
    for (const std::size_t i : *chosen) pool.stage.remove(i);
    ASSERT_TRUE(pool.stage.enough());
    for (const std::size_t i : *chosen) {
      pool.stage.restore(i);
      ASSERT_FALSE(pool.stage.enough()) << "seed " << seed << ": " << i << " was not needed";
      pool.stage.remove(i);
    }
    for (const std::size_t i : *chosen) pool.stage.restore(i);
    ASSERT_EQ(std::get<0>(cost_of(pool.candidates, *chosen)),
              std::get<0>(cost_of(pool.candidates, *exact)));
  }
}

// --- Who may be stopped
// ---------------------------------------------------------------------------

Job at_level(std::uint64_t id, std::int64_t devices, std::int64_t level) {
  Job task = job(id, devices);
  task.level = level;
  return task;
}

TEST(Preemption, LeavesATaskItsMinimumRunTime) {
  Discipline how = discipline("priority");
  how.safe_min = how.safe_max = Duration::minutes(5);
  Story story(how, 1);
  story.submit(at_level(1, 1, 0), Duration::hours(1));
  story.settle();
  story.run_for(Duration::minutes(4));
  story.submit(at_level(2, 1, 1), Duration::minutes(1));
  story.settle();
  EXPECT_THAT(story.preempted, IsEmpty());
  story.run_for(Duration::minutes(1));
  EXPECT_THAT(story.preempted, ElementsAre(TaskId{1}));
}

TEST(Preemption, ProtectsATaskThatWasStoppedOften) {
  Discipline how = discipline("priority");
  how.safe_min = how.safe_max = Duration{0};
  how.preemptions_max = 3;
  how.preemption_window = Duration::hours(24);
  Story story(how, 1);
  story.submit(at_level(1, 1, 0), Duration::hours(1));
  story.settle();
  for (std::uint64_t id = 2; id <= 6; ++id) {
    story.run_for(Duration::minutes(2));
    story.submit(at_level(id, 1, 1), Duration::minutes(1));
    story.settle();
  }
  EXPECT_EQ(story.preempted.size(), 3U);
  story.run_for(Duration::hours(3));
  EXPECT_EQ(story.ended.size(), 6U);
}

TEST(Preemption, NeverStopsAnEqualOrAHigherLevel) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    Discipline how = discipline("priority");
    how.safe_min = how.safe_max = Duration{0};
    const std::int64_t devices = random.between(1, 6);
    Story story(how, devices);
    std::map<TaskId, std::int64_t> levels;
    for (std::uint64_t id = 1; id <= 30; ++id) {
      Job next = at_level(id, random.between(1, devices), random.between(0, 3));
      next.limit = Duration::minutes(random.between(1, 60));
      levels[next.id] = next.level;
      story.submit(next, *next.limit);
      for (;;) {
        const Pass pass = story.scheduler.pass(story.now, story.room);
        for (const Action& action : pass.actions) {
          const auto* preempt = std::get_if<Preempt>(&action);
          if (preempt == nullptr) continue;
          ASSERT_FALSE(preempt->victims.empty());
          for (const TaskId victim : preempt->victims)
            ASSERT_LT(levels[victim], levels[preempt->task]) << "seed " << seed;
        }
        break;
      }
      story.settle();
      story.run_for(Duration::seconds(random.between(0, 600)));
    }
    story.run_for(Duration::hours(60));
    EXPECT_EQ(story.ended.size(), 30U);
  }
}

TEST(Preemption, CountsWhatAVictimWouldLose) {
  Discipline how = discipline("priority");
  how.safe_min = how.safe_max = Duration{0};
  Story story(how, 2);
  story.submit(at_level(1, 1, 0), Duration::hours(9));
  story.submit(at_level(2, 1, 0), Duration::hours(9));
  story.settle();
  story.run_for(Duration::hours(1));
  story.scheduler.saves(TaskId{2}, story.now);  // the other would lose an hour
  story.run_for(Duration::minutes(1));
  story.submit(at_level(3, 1, 1), Duration::minutes(1));
  story.settle();
  EXPECT_THAT(story.preempted, ElementsAre(TaskId{2}));
}

TEST(Preemption, SpotGivesWayInQueuesThatDoNotPreemptOtherwise) {
  Story story(discipline("fifo"), 1);
  Job spot = job(1, 1);
  spot.preemptible = true;
  spot.level = -1;
  story.submit(spot, Duration::hours(1));
  story.settle();
  story.run_for(Duration::minutes(1));
  story.submit(at_level(2, 1, 0), Duration::minutes(1));
  story.settle();
  EXPECT_THAT(story.preempted, ElementsAre(TaskId{1}));
  story.run_for(Duration::minutes(2));
  EXPECT_TRUE(story.runs(1));
}

}  // namespace
}  // namespace loam::schedule
