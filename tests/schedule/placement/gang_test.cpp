// Gangs against brute force on small clusters; units made of several devices.
#include "schedule/gang.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "schedule/placement/world.hpp"

namespace loam::schedule {
namespace {

using testing::ce;
using testing::kind;
using testing::share;
using testing::World;

struct Nearest {
  Nearness nearness;
  std::size_t nodes;
};

// How near a place is that takes of these nodes and devices, by id.
Nearest nearest_of(const World& world, const std::set<std::uint64_t>& nodes,
                   const std::set<std::uint64_t>& devices) {
  std::set<std::string> regions;
  for (const std::uint64_t node : nodes) regions.insert(world.nodes[node - 1].region);
  if (regions.size() > 1) return {Nearness::anywhere, nodes.size()};
  if (nodes.size() > 1) return {Nearness::one_region, nodes.size()};
  std::set<std::string> links;
  std::set<std::optional<std::int64_t>> numa;
  for (const std::uint64_t device : devices) {
    links.insert(world.devices[device - 1].facts->link_group);
    numa.insert(world.devices[device - 1].facts->numa_node);
  }
  if (links.size() == 1 && !links.contains("")) return {Nearness::one_link_group, 1};
  if (numa.size() == 1 && !numa.contains(std::nullopt)) return {Nearness::one_numa_node, 1};
  return {Nearness::one_node, 1};
}

// Every way to put members onto devices of one kind: the nearest, then the fewest nodes.
class BruteForce {
 public:
  BruteForce(const World& world, const std::vector<Demand>& members)
      : world_(world), members_(members) {
    for (const Device& device : world.devices) free_.push_back(device.free().value);
    for (const NodeFigures& node : world.nodes) cpu_.push_back(node.cpu.value);
    try_member(0);
  }
  std::optional<Nearest> best() const { return best_; }

 private:
  void try_member(std::size_t at) {
    if (best_ && best_->nearness == Nearness::one_link_group) return;
    if (at == members_.size()) {
      const Nearest here =
          nearest_of(world_, {used_.begin(), used_.end()}, {taken_.begin(), taken_.end()});
      if (!best_ || std::pair(here.nearness, here.nodes) < std::pair(best_->nearness, best_->nodes))
        best_ = here;
      return;
    }
    for (std::size_t node = 0; node < cpu_.size(); ++node) {
      if (cpu_[node] < members_[at].cpu.value) continue;
      cpu_[node] -= members_[at].cpu.value;
      used_.push_back(node + 1);
      try_slices(at, node, 0, members_[at].devices);
      used_.pop_back();
      cpu_[node] += members_[at].cpu.value;
    }
  }

  // The member's slices that are missing, on devices of the node from this one on.
  void try_slices(std::size_t at, std::size_t node, std::size_t from, std::int64_t missing) {
    if (missing == 0) return try_member(at + 1);
    const std::int64_t milli = members_[at].share->value;
    for (std::size_t d = from; d < free_.size(); ++d) {
      if (world_.devices[d].node.value - 1 != node || free_[d] < milli) continue;
      free_[d] -= milli;
      taken_.push_back(d + 1);
      try_slices(at, node, d + 1, missing - 1);
      taken_.pop_back();
      free_[d] += milli;
    }
  }

  const World& world_;
  const std::vector<Demand>& members_;
  std::vector<std::int64_t> free_;
  std::vector<std::int64_t> cpu_;
  std::vector<std::uint64_t> used_;   // nodes
  std::vector<std::uint64_t> taken_;  // devices
  std::optional<Nearest> best_;
};

World small_world(Random& random, std::int64_t nodes_max = 4, std::int64_t devices_max = 2) {
  World world;
  const auto a = kind("a", 100'000, 0);
  for (std::int64_t n = random.between(1, nodes_max); n > 0; --n) {
    const auto node =
        world.add_node(random.between(1, 8) * 1'000, 0, random.chance(500) ? "e" : "w");
    for (std::int64_t d = random.between(1, devices_max); d > 0; --d) {
      world.add_device(node, a, random.between(0, 10) * 100);
    }
  }
  return world;
}

void check_places(const World& world, const std::vector<Demand>& members,
                  const GangPlacement& gang) {
  ASSERT_EQ(gang.members.size(), members.size());
  std::map<std::uint64_t, std::int64_t> milli;
  std::map<std::uint64_t, std::int64_t> cpu;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const UnitPlacement& member = gang.members[i];
    std::set<std::uint64_t> devices;
    for (const Placement& slice : member.slices) {
      ASSERT_EQ(slice.share, *members[i].share);
      ASSERT_EQ(slice.node, member.hosts[0].node);
      milli[slice.device.value] += slice.share.value;
      devices.insert(slice.device.value);
    }
    ASSERT_EQ(devices.size(), static_cast<std::size_t>(members[i].devices));
    cpu[member.hosts[0].node.value] += members[i].cpu.value;
  }
  for (const auto& [device, sum] : milli) ASSERT_LE(sum, world.devices[device - 1].free().value);
  for (const auto& [node, sum] : cpu) ASSERT_LE(sum, world.nodes[node - 1].cpu.value);
}

TEST(Gang, UnequalMembersAreFoundWheneverBruteForceFindsThem) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    const World world = small_world(random);
    std::vector<Demand> members;
    for (std::int64_t m = random.between(1, 4); m > 0; --m) {
      members.push_back(share(random.between(1, 10) * 100, 1, random.between(0, 3) * 1'000));
    }
    const auto expected = BruteForce(world, members).best();
    const auto gang = find_gang(world.pool(), members);
    ASSERT_EQ(gang.has_value(), expected.has_value()) << "seed " << seed;
    if (!gang) continue;
    ++found;
    ASSERT_NO_FATAL_FAILURE(check_places(world, members, *gang)) << "seed " << seed;
    ASSERT_EQ(gang->nearness, expected->nearness) << "seed " << seed;
  }
  EXPECT_GT(found, 500);
}

// A gang that an empty node holds may wait for a place that the search does not see, for ever.
TEST(Gang, MembersOfSeveralDevicesAreFoundWheneverBruteForceFindsThem) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const World world = small_world(random, 2, 4);
    const std::int64_t devices = random.between(2, 3);
    const bool alike = random.chance(600);
    std::vector<Demand> members;
    for (std::int64_t m = random.between(2, 4); m > 0; --m) {
      const std::int64_t milli = random.between(1, 5) * 100;
      members.push_back(!members.empty() && alike
                            ? members.front()
                            : share(milli, random.between(1, devices), 1'000));
    }
    const auto expected = BruteForce(world, members).best();
    const auto gang = find_gang(world.pool(), members);
    ASSERT_EQ(gang.has_value(), expected.has_value()) << "seed " << seed;
    if (!gang) continue;
    ++found;
    ASSERT_NO_FATAL_FAILURE(check_places(world, members, *gang)) << "seed " << seed;
    ASSERT_EQ(gang->nearness, expected->nearness) << "seed " << seed;
  }
  EXPECT_GT(found, 200);
}

TEST(Gang, EqualMembersTakeTheFewestNodes) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const World world = small_world(random);
    const std::vector<Demand> members(
        random.below(4) + 1, share(random.between(1, 6) * 100, 1, random.between(0, 2) * 1'000));
    const auto expected = BruteForce(world, members).best();
    const auto gang = find_gang(world.pool(), members);
    ASSERT_EQ(gang.has_value(), expected.has_value()) << "seed " << seed;
    if (!gang) continue;
    std::set<std::uint64_t> nodes;
    for (const UnitPlacement& member : gang->members) nodes.insert(member.hosts[0].node.value);
    ASSERT_EQ(nodes.size(), expected->nodes) << "seed " << seed;
  }
}

TEST(Gang, LargestDoesNotMeanBest) {
  World world;
  const auto a = kind("a", 100'000, 0);
  const auto node = world.add_node(1'000, 0);
  world.add_device(node, a, 470);  // 530 free
  world.add_device(node, a, 690);  // 310 free
  for (const bool turned : {false, true}) {
    std::vector<Demand> members = {share(300), share(500)};
    if (turned) std::swap(members[0], members[1]);
    const auto gang = find_gang(world.pool(), members);
    ASSERT_TRUE(gang.has_value());
    ASSERT_NO_FATAL_FAILURE(check_places(world, members, *gang));
  }
}

TEST(Gang, WholeOrNotAtAllAndThePoolStaysAsItWas) {
  World world;
  const auto a = kind("a", 100'000, 0);
  for (int n = 0; n < 25; ++n) {
    const auto node = world.add_node(64'000, 1'000, "east");
    for (int d = 0; d < 4; ++d) world.add_device(node, a);
  }
  Pool pool = world.pool();
  const std::vector<Demand> hundred(100, share(1000));
  const auto gang = find_gang(pool, hundred);
  ASSERT_TRUE(gang.has_value());
  EXPECT_EQ(gang->nearness, Nearness::one_region);
  EXPECT_EQ(pool.totals().idle_devices, 100);
  for (const UnitPlacement& member : gang->members) pool.take(member);
  EXPECT_EQ(pool.totals().idle_devices, 0);
  // The second gang of a hundred gets nothing, not half.
  EXPECT_FALSE(find_gang(pool, hundred).has_value());
  EXPECT_FALSE(find_gang(world.pool(), std::vector<Demand>(101, share(1000))).has_value());
}

TEST(Gang, NearnessThatIsTooFarIsRefused) {
  World world;
  const auto a = kind("a", 100'000, 0);
  world.add_device(world.add_node(1'000, 0, "east"), a);
  world.add_device(world.add_node(1'000, 0, "west"), a);
  const std::vector<Demand> pair(2, share(1000));
  GangOptions options;
  EXPECT_EQ(find_gang(world.pool(), pair)->nearness, Nearness::anywhere);
  options.farthest = Nearness::one_region;
  EXPECT_FALSE(find_gang(world.pool(), pair, options).has_value());
  world.add_device(world.add_node(1'000, 0, "west"), a);
  EXPECT_EQ(find_gang(world.pool(), pair, options)->nearness, Nearness::one_region);
  options.farthest = Nearness::one_node;
  EXPECT_FALSE(find_gang(world.pool(), pair, options).has_value());
}

std::shared_ptr<DeviceFacts> linked(const std::string& group,
                                    std::optional<std::int64_t> numa_node = {}) {
  auto facts = kind("a", 100'000, 0);
  facts->link_group = group;
  facts->numa_node = numa_node;
  return facts;
}

// Of some devices it is known which are near.
World joined_world(Random& random) {
  World world;
  for (std::int64_t n = random.between(1, 3); n > 0; --n) {
    const auto node =
        world.add_node(random.between(2, 8) * 1'000, 0, random.chance(700) ? "e" : "w");
    for (std::int64_t d = random.between(1, 4); d > 0; --d) {
      const char* const groups[] = {"", "x", "x", "y"};
      const std::optional<std::int64_t> numa_nodes[] = {{}, 0, 0, 1};
      world.add_device(node, linked(groups[random.below(4)], numa_nodes[random.below(4)]),
                       random.chance(500) ? 0 : random.between(0, 4) * 250);
    }
  }
  return world;
}

Nearest nearest_of(const World& world, const std::vector<UnitPlacement>& members) {
  std::set<std::uint64_t> nodes;
  std::set<std::uint64_t> devices;
  for (const UnitPlacement& member : members) {
    for (const HostShare& host : member.hosts) nodes.insert(host.node.value);
    for (const Placement& slice : member.slices) devices.insert(slice.device.value);
  }
  return nearest_of(world, nodes, devices);
}

TEST(Near, AGangLiesAsNearAsBruteForceFindsForAnyPolicy) {
  std::map<Nearness, int> found;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Random random(seed);
    const World world = joined_world(random);
    const bool alike = random.chance(600);
    std::vector<Demand> members;
    for (std::int64_t m = random.between(2, 3); m > 0; --m) {
      members.push_back(!members.empty() && alike
                            ? members.front()
                            : share(random.between(1, 4) * 250, random.chance(200) ? 2 : 1, 1'000));
    }
    PoolOptions options;
    options.placement.policy = static_cast<PlacementPolicy>(random.below(8));
    const auto expected = BruteForce(world, members).best();
    const auto gang = find_gang(world.pool(options), members);
    ASSERT_EQ(gang.has_value(), expected.has_value()) << "seed " << seed;
    if (!gang) continue;
    ++found[gang->nearness];
    ASSERT_NO_FATAL_FAILURE(check_places(world, members, *gang)) << "seed " << seed;
    ASSERT_EQ(gang->nearness, expected->nearness) << "seed " << seed;
    ASSERT_EQ(nearest_of(world, gang->members).nearness, expected->nearness) << "seed " << seed;
  }
  EXPECT_GT(found[Nearness::one_link_group], 500);
  EXPECT_GT(found[Nearness::one_numa_node], 100);
  EXPECT_GT(found[Nearness::one_node], 100);
}

TEST(Near, DevicesOfAUnitLieAsNearAsBruteForceFindsForAnyPolicy) {
  std::map<Nearness, int> found;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Random random(seed);
    const World world = joined_world(random);
    const std::vector<Demand> unit{
        share(random.between(1, 4) * 250, random.between(2, 3), random.between(0, 4) * 1'000)};
    PoolOptions options;
    options.placement.policy = static_cast<PlacementPolicy>(random.below(8));
    const auto expected = BruteForce(world, unit).best();
    const Pool pool = world.pool(options);
    // Where something was tried on every node the answer comes another way.
    Trial touched(pool);
    for (const Device& device : world.devices) {
      UnitPlacement nothing;
      nothing.slices.push_back({device.id, MilliDevice{0}, Mebibytes{0}, MilliCe{0}, device.node});
      touched.take(nothing);
    }
    for (const auto& place :
         {pool.find(unit[0]), Trial(pool).find(unit[0]), touched.find(unit[0])}) {
      ASSERT_EQ(place.has_value(), expected.has_value()) << "seed " << seed;
      if (!place) continue;
      ASSERT_NO_FATAL_FAILURE(check_places(world, unit, {{*place}})) << "seed " << seed;
      ASSERT_EQ(nearest_of(world, {*place}).nearness, expected->nearness) << "seed " << seed;
      ++found[expected->nearness];
    }
  }
  EXPECT_GT(found[Nearness::one_link_group], 1000);
  EXPECT_GT(found[Nearness::one_numa_node], 100);
  EXPECT_GT(found[Nearness::one_node], 100);
}

TEST(Near, WhoWantsOneDeviceGoesWhereHeWouldIfNothingWereKnown) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    const World world = joined_world(random);
    World unknown = world;
    for (Device& device : unknown.devices) device.facts = kind("a", 100'000, 0);
    PoolOptions options;
    options.placement.policy = static_cast<PlacementPolicy>(random.below(8));
    const Demand one = share(random.between(1, 10) * 100, 1, random.between(0, 4) * 1'000);
    const auto place = world.pool(options).find(one);
    ASSERT_EQ(place, unknown.pool(options).find(one)) << "seed " << seed;
    if (place) ++found;
  }
  EXPECT_GT(found, 500);
}

TEST(Near, OfGroupsThatHoldItTheFullestIsTakenThenTheOneWithTheLowestDevice) {
  World world;
  const auto first = world.add_node(64'000, 0);
  for (const char* group : {"x", "x", "x", "y", "y", "y"}) world.add_device(first, linked(group));
  const auto second = world.add_node(64'000, 0);
  for (const char* group : {"z", "z", "z"}) world.add_device(second, linked(group));
  const auto devices_of = [](const std::vector<UnitPlacement>& members) {
    std::set<std::uint64_t> devices;
    for (const UnitPlacement& member : members) {
      for (const Placement& slice : member.slices) devices.insert(slice.device.value);
    }
    return devices;
  };
  const std::vector<Demand> pair(2, share(1000));
  const std::set<std::uint64_t> lowest{1, 2};
  EXPECT_EQ(devices_of(find_gang(world.pool(), pair)->members), lowest);
  world.devices[7].used = MilliDevice{1000};  // of z
  const std::set<std::uint64_t> of_z{7, 9};
  EXPECT_EQ(devices_of(find_gang(world.pool(), pair)->members), of_z);
  world.devices[8].draining = true;
  world.devices[4].used = MilliDevice{1};  // of y, which still has two
  const std::set<std::uint64_t> of_y{4, 6};
  EXPECT_EQ(devices_of(find_gang(world.pool(), pair)->members), of_y);
  EXPECT_EQ(devices_of({*world.pool().find(share(1000, 2))}), of_y);
}

TEST(Gang, TrialsCountWhatTheyTook) {
  World world;
  const auto node = world.add_node(1'000, 0);
  for (int d = 0; d < 2; ++d) world.add_device(node, kind("a", 100'000, 0));
  const Pool pool = world.pool();
  Trial trial(pool);
  const std::vector<Demand> pair(2, share(1000));
  ASSERT_TRUE(find_gang(trial, pair).has_value());
  const auto one = trial.find(share(1000));
  trial.take(*one);
  EXPECT_FALSE(find_gang(trial, pair).has_value());
  EXPECT_TRUE(find_gang(pool, pair).has_value());
  trial.give_back(*one);
  EXPECT_TRUE(find_gang(trial, pair).has_value());
}

TEST(Aggregated, ARequestLargerThanADeviceIsSplitOverOneNode) {
  World world;
  const auto a = kind("a", 100'000, 1'000);
  const auto small = world.add_node(64'000, 1'000, "east");
  world.add_device(small, a);
  const auto big = world.add_node(64'000, 1'000, "east");
  for (int d = 0; d < 3; ++d) world.add_device(big, a);
  Pool pool = world.pool();
  const auto place = pool.find(ce(250'001));
  ASSERT_TRUE(place.has_value());
  ASSERT_EQ(place->slices.size(), 3u);
  std::int64_t sum = 0;
  for (const Placement& slice : place->slices) {
    EXPECT_EQ(slice.node.value, big);
    sum += slice.ce.value;
  }
  EXPECT_EQ(sum, 250'001);
  EXPECT_TRUE(pool.could_hold(ce(250'001)));
  pool.take(*place);
  EXPECT_FALSE(pool.find(ce(250'001)).has_value());
  EXPECT_TRUE(pool.could_hold(ce(250'001)));
  pool.give_back(*place);
}

TEST(Aggregated, AcrossNodesOfOneRegionButNoFarther) {
  World world;
  const auto a = kind("a", 100'000, 1'000);
  world.add_device(world.add_node(64'000, 1'000, "east"), a);
  world.add_device(world.add_node(64'000, 1'000, "west"), a);
  Demand demand = ce(150'000);
  demand.cpu = MilliCpu{8'001};
  EXPECT_FALSE(world.pool().find(demand).has_value());
  world.add_device(world.add_node(64'000, 1'000, "west"), a);
  const auto place = world.pool().find(demand);
  ASSERT_TRUE(place.has_value());
  ASSERT_EQ(place->hosts.size(), 2u);
  EXPECT_GE((place->hosts[0].cpu + place->hosts[1].cpu).value, 8'001);
  EXPECT_EQ((place->slices[0].ce + place->slices[1].ce).value, 150'000);
}

TEST(Aggregated, MemoryTooCanAskForSeveralDevices) {
  World world;
  const auto node = world.add_node(64'000, 1'000);
  for (int d = 0; d < 3; ++d) world.add_device(node, kind("a", 100'000, 1'000));
  Demand demand = ce(50'000);
  demand.memory = Mebibytes{2'500};
  const auto place = world.pool().find(demand);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->slices.size(), 3u);
  demand.memory = Mebibytes{3'001};
  EXPECT_FALSE(world.pool().could_hold(demand));
}

}  // namespace
}  // namespace loam::schedule
