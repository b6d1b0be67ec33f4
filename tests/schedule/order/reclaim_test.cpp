// Reclaim against the best of all sets of victims on small clusters: a tenant takes back what is
// its own from the fewest and lowest of those who borrowed it, and from nobody beyond what he
// borrowed.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "base/random.hpp"
#include "schedule/order/story.hpp"

namespace loam::schedule {
namespace {

struct Running {
  TaskId task;
  std::size_t tenant;
  std::int64_t devices;
  std::int64_t level;
};

// Tenants 1 to `nominal.size()` of one cohort, the last of which owns and runs nothing. All devices
// that there are belong to somebody.
struct Cluster {
  std::vector<std::int64_t> nominal;  // devices
  std::vector<Running> running;
  std::int64_t free = 0;
  std::int64_t wanted = 0;  // by the last one, within its own
};

Cluster cluster_of(Random& random) {
  Cluster cluster;
  std::int64_t devices = 0;
  for (std::uint64_t left = 2 + random.below(3); left > 0; --left) {
    cluster.nominal.push_back(random.between(0, 4));
    devices += cluster.nominal.back();
  }
  if (cluster.nominal.back() == 0) {
    cluster.nominal.back() = 1;
    ++devices;
  }
  cluster.wanted = random.between(1, cluster.nominal.back());
  cluster.free = devices;
  while (cluster.running.size() < 8) {
    const std::int64_t count = random.between(1, 3);
    if (count > cluster.free) break;
    cluster.free -= count;
    cluster.running.push_back({TaskId{cluster.running.size() + 1},
                               static_cast<std::size_t>(random.below(cluster.nominal.size() - 1)),
                               count, random.between(0, 2)});
  }
  return cluster;
}

using Cost = std::tuple<std::int64_t, std::size_t>;  // the highest level, how many

// Whether these may leave: none of them could be back within what is its tenant's own.
bool is_fair(const Cluster& cluster, std::size_t set) {
  for (std::size_t tenant = 0; tenant + 1 < cluster.nominal.size(); ++tenant) {
    std::int64_t stays = 0;
    std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < cluster.running.size(); ++i) {
      const Running& task = cluster.running[i];
      if (task.tenant != tenant) continue;
      if (set >> i & 1) {
        smallest = std::min(smallest, task.devices);
      } else {
        stays += task.devices;
      }
    }
    if (smallest <= cluster.nominal[tenant] - stays) return false;
  }
  return true;
}

std::optional<Cost> best_of_all(const Cluster& cluster) {
  std::optional<Cost> best;
  for (std::size_t set = 1; set < std::size_t{1} << cluster.running.size(); ++set) {
    std::int64_t free = cluster.free;
    Cost cost{-1, 0};
    for (std::size_t i = 0; i < cluster.running.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      free += cluster.running[i].devices;
      std::get<0>(cost) = std::max(std::get<0>(cost), cluster.running[i].level);
      ++std::get<1>(cost);
    }
    if (free < cluster.wanted || !is_fair(cluster, set)) continue;
    if (!best || cost < *best) best = cost;
  }
  return best;
}

TEST(ReclaimOfAll, TheVictimsAreTheLowestAndTheFewestThatGiveTheOwnerItsOwn) {
  std::size_t reclaimed = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    const Cluster cluster = cluster_of(random);
    Discipline how = discipline("fifo");
    how.safe_min = how.safe_max = Duration{0};
    how.preemptions_max = 0;
    std::int64_t devices = cluster.free + 1;  // one is the stranger's
    for (const Running& task : cluster.running) devices += task.devices;
    Story story(how, devices);
    for (std::size_t tenant = 0; tenant < cluster.nominal.size(); ++tenant) {
      story.scheduler.quotas().set(TenantId{tenant + 1}, quota(cluster.nominal[tenant], "c"));
    }
    // Below all of them, and it borrows, but of another cohort.
    const TaskId stranger{100};
    story.scheduler.quotas().set(TenantId{20}, quota(0, "other"));
    story.scheduler.quotas().set(TenantId{21}, quota(1, "other"));
    Job apart = job(stranger.value, 1, 20);
    apart.level = -1;
    story.submit(apart, hour);
    for (const Running& task : cluster.running) {
      Job borrower = job(task.task.value, task.devices, task.tenant + 1);
      borrower.level = task.level;
      story.submit(borrower, hour);
    }
    story.settle();
    ASSERT_EQ(story.started.size(), cluster.running.size() + 1) << "seed " << seed;
    const TaskId owner{cluster.running.size() + 1};
    story.submit(job(owner.value, cluster.wanted, cluster.nominal.size()), hour);
    story.settle();
    if (cluster.free >= cluster.wanted) {
      EXPECT_TRUE(story.preempted.empty()) << "seed " << seed;
      continue;
    }
    const auto best = best_of_all(cluster);
    ASSERT_EQ(story.runs(owner.value), best.has_value()) << "seed " << seed;
    if (!best) continue;
    ++reclaimed;
    Cost cost{-1, story.preempted.size()};
    std::size_t set = 0;
    for (const TaskId victim : story.preempted) {
      ASSERT_NE(victim, stranger) << "seed " << seed;
      set |= std::size_t{1} << (victim.value - 1);
      std::get<0>(cost) = std::max(std::get<0>(cost), cluster.running[victim.value - 1].level);
    }
    EXPECT_TRUE(is_fair(cluster, set)) << "seed " << seed;
    EXPECT_EQ(cost, *best) << "seed " << seed;
  }
  EXPECT_GT(reclaimed, 300U);  // or nothing was tried
}

}  // namespace
}  // namespace loam::schedule
