// The pool's index against trying every node.
#include "schedule/pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "schedule/placement/world.hpp"
#include "schedule/trial.hpp"

namespace loam::schedule {
namespace {

using testing::ce;
using testing::kind;
using testing::random_demand;
using testing::random_world;
using testing::share;
using testing::World;

constexpr PlacementPolicy scored[] = {
    PlacementPolicy::packing_value, PlacementPolicy::fragmentation, PlacementPolicy::best_fit,
    PlacementPolicy::dot_prod,      PlacementPolicy::packing,       PlacementPolicy::clustering,
    PlacementPolicy::spread};

// Worth taken of the pool, which goes before every policy.
std::int64_t worth_of(const World& world, const UnitPlacement& place) {
  std::int64_t worth = 0;
  for (const Placement& slice : place.slices) {
    const Device& device = world.devices[slice.device.value - 1];
    const std::int64_t milli = place.exclusive ? whole_device.value : slice.share.value;
    worth += milli * device.facts->factors.general.value;
  }
  return worth;
}

void check_fits(const World& world, const Demand& demand, const UnitPlacement& place) {
  ASSERT_EQ(place.slices.size(), static_cast<std::size_t>(demand.devices));
  ASSERT_EQ(place.hosts.size(), 1u);
  const NodeFigures& node = world.nodes[place.hosts[0].node.value - 1];
  ASSERT_GE(node.cpu - node.cpu_used, demand.cpu);
  ASSERT_GE(node.memory - node.memory_used, demand.host_memory);
  if (!demand.region.empty()) {
    ASSERT_EQ(node.region, demand.region);
  }
  for (const std::string& label : demand.labels) {
    ASSERT_NE(std::find(node.labels.begin(), node.labels.end(), label), node.labels.end());
  }
  std::vector<DeviceId> seen;
  for (const Placement& slice : place.slices) {
    const Device& device = world.devices[slice.device.value - 1];
    ASSERT_EQ(device.node, node.id);
    ASSERT_TRUE(device.placeable());
    ASSERT_TRUE(admits(demand, device.facts->type));
    ASSERT_GE(device.free(), slice.share);
    ASSERT_EQ(slice.share, needs_on(demand, *device.facts).share);
    ASSERT_EQ(slice.ce, needs_on(demand, *device.facts).ce);
    if (demand.exclusive) {
      ASSERT_EQ(device.used.value, 0);
    }
    ASSERT_EQ(std::count(seen.begin(), seen.end(), slice.device), 0);
    seen.push_back(slice.device);
  }
}

// Whether any node takes the demand, by hand.
bool fits_somewhere(const World& world, const Demand& demand) {
  for (const NodeFigures& node : world.nodes) {
    if (node.cpu - node.cpu_used < demand.cpu) continue;
    if (node.memory - node.memory_used < demand.host_memory) continue;
    if (!demand.region.empty() && node.region != demand.region) continue;
    if (!std::all_of(demand.labels.begin(), demand.labels.end(), [&](const std::string& label) {
          return std::count(node.labels.begin(), node.labels.end(), label) > 0;
        }))
      continue;
    if (demand.devices == 0) return true;
    for (const std::string type : {"a", "b", "c"}) {
      std::int64_t room = 0;
      for (const Device& device : world.devices) {
        if (device.node != node.id || !device.placeable() || device.facts->type != type) continue;
        if (!admits(demand, type)) continue;
        const Placement needs = needs_on(demand, *device.facts);
        if (demand.exclusive ? device.used.value > 0 || needs.share > whole_device
                             : needs.share > device.free())
          continue;
        ++room;
      }
      if (room >= demand.devices) return true;
    }
  }
  return false;
}

bool single(const World& world, const Demand& demand) {
  // One device is enough somewhere: else the unit is split, which gang tests look at.
  return demand.devices != 1 || demand.share ||
         std::any_of(world.devices.begin(), world.devices.end(), [&](const Device& device) {
           return admits(demand, device.facts->type) &&
                  needs_on(demand, *device.facts).share <= whole_device;
         });
}

void book(World& world, const UnitPlacement& place, std::int64_t sign) {
  for (const Placement& slice : place.slices) {
    world.devices[slice.device.value - 1].used += slice.share * sign;
  }
  for (const HostShare& host : place.hosts) {
    NodeFigures& node = world.nodes[host.node.value - 1];
    node.cpu_used += host.cpu * sign;
    node.memory_used += host.memory * sign;
  }
}

TEST(Pool, FindsAPlaceExactlyWhenOneExistsAndItFits) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    World world = random_world(random);
    PoolOptions options;
    options.placement.policy = static_cast<PlacementPolicy>(random.below(8));
    Pool pool = world.pool(options);
    for (int step = 0; step < 12; ++step) {
      Demand demand = random_demand(random);
      if (!single(world, demand)) continue;
      pool.note_request(demand);
      const auto place = pool.find(demand);
      ASSERT_EQ(place.has_value(), fits_somewhere(world, demand)) << "seed " << seed;
      if (!place) continue;
      ASSERT_NO_FATAL_FAILURE(check_fits(world, demand, *place)) << "seed " << seed;
      ASSERT_TRUE(pool.could_hold(demand)) << "seed " << seed;
      if (demand.devices > 0) {
        ASSERT_FALSE(pool.fits_when_empty(demand).empty()) << "seed " << seed;
      }
      if (demand.exclusive) continue;  // the plain books know no locks
      pool.take(*place);
      book(world, *place, 1);
    }
  }
}

// Every node alone, in a pool of its own with the same mix, gives the place there; the cost of each
// is what a pool of equal options says of the node. The index must choose the least.
TEST(Pool, ChoosesWhatTryingEveryNodeChooses) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    Random random(seed);
    World world = random_world(random, 8);
    const PlacementPolicy policy = scored[random.below(std::size(scored))];
    std::vector<Demand> asked;
    for (int i = 0; i < 8; ++i) asked.push_back(random_demand(random));
    const Mix mix = mix_of(asked);
    PoolOptions options;
    options.placement.policy = policy;
    options.mix = MixSource::known;
    Pool pool = world.pool(options);
    pool.set_mix(mix);
    std::vector<UnitPlacement> placed;
    for (int step = 0; step < 25; ++step) {
      const Demand& demand = asked[random.below(asked.size())];
      if (!single(world, demand) || demand.exclusive) continue;
      if (!placed.empty() && random.chance(300)) {
        const std::size_t at = random.below(placed.size());
        pool.give_back(placed[at]);
        book(world, placed[at], -1);
        placed.erase(placed.begin() + static_cast<long>(at));
      }
      const auto found = pool.find(demand);
      // A pool that never saw anything before: no heaps, no memory of other states.
      Pool fresh = world.pool(options);
      fresh.set_mix(mix);
      const auto again = fresh.find(demand);
      ASSERT_EQ(found, again) << "seed " << seed << " step " << step << " " << name_of(policy);
      if (!found) continue;
      for (const NodeFigures& node : world.nodes) {
        const auto there = fresh.find_on(node.id, demand);
        if (there) {
          ASSERT_LE(worth_of(world, *found), worth_of(world, *there));
        }
      }
      pool.take(*found);
      book(world, *found, 1);
      placed.push_back(*found);
    }
  }
}

TEST(Pool, BestFitTakesTheFullestNodeAndDevice) {
  World world;
  const auto a = kind("a", 100'000, 0);
  const auto first = world.add_node(64'000, 1000);
  const auto second = world.add_node(64'000, 1000);
  world.add_device(first, a, 100);
  world.add_device(first, a, 200);
  world.add_device(second, a, 600);
  world.add_device(second, a, 400);
  PoolOptions options;
  options.placement.policy = PlacementPolicy::best_fit;
  const Pool pool = world.pool(options);
  EXPECT_EQ(pool.find(share(300))->slices[0].device.value, 3u);
  EXPECT_EQ(pool.find(share(500))->slices[0].device.value, 4u);
  EXPECT_EQ(pool.find(share(700))->slices[0].device.value, 2u);
  EXPECT_FALSE(pool.find(share(950)).has_value());
}

TEST(Pool, TiesGoToTheFullestNodeThenTheFirst) {
  World world;
  const auto a = kind("a", 100'000, 0);
  for (const std::int64_t cpu : {32'000, 16'000, 16'000})
    world.add_device(world.add_node(cpu, 1000), a);
  PoolOptions options;
  options.placement.policy =
      PlacementPolicy::fragmentation;  // no mix yet: every node costs the same
  EXPECT_EQ(world.pool(options).find(share(500))->hosts[0].node.value, 2u);
  options.placement.tie_break = TieBreak::by_id;
  EXPECT_EQ(world.pool(options).find(share(500))->hosts[0].node.value, 1u);
}

TEST(Pool, RandomTiesReachEveryNodeAndFollowTheSeed) {
  World world;
  const auto a = kind("a", 100'000, 0);
  for (int i = 0; i < 4; ++i) world.add_device(world.add_node(16'000, 1000), a);
  for (const auto policy : {PlacementPolicy::fragmentation, PlacementPolicy::random}) {
    std::vector<int> hits(4, 0);
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
      PoolOptions options;
      options.placement.policy = policy;
      options.placement.tie_break = TieBreak::random;
      options.placement.seed = seed;
      const auto place = world.pool(options).find(share(500));
      ++hits[place->hosts[0].node.value - 1];
      ASSERT_EQ(place, world.pool(options).find(share(500)));
    }
    for (const int hit : hits) EXPECT_NEAR(hit, 100, 45) << name_of(policy);
  }
}

TEST(Pool, QuantisationDecidesWhatIsATie) {
  World world;
  const auto a = kind("a", 100'000, 0);
  // Left over: 0.5·(15.9 or 16)/128 …: less than one point of a hundred apart.
  world.add_device(world.add_node(16'000, 1000), a);
  world.add_device(world.add_node(15'900, 1000), a);
  PoolOptions options;
  options.placement.policy = PlacementPolicy::best_fit;
  options.placement.tie_break = TieBreak::by_id;
  EXPECT_EQ(world.pool(options).find(share(500))->hosts[0].node.value, 1u);
  options.placement.quantisation = Quantisation::fine;
  EXPECT_EQ(world.pool(options).find(share(500))->hosts[0].node.value, 2u);
}

TEST(Pool, OneRequestTakesADifferentShareOfEachKindAndWastesLeastWorth) {
  World world;
  const auto node = world.add_node(64'000, 1000);
  const auto big = world.add_device(node, kind("big", 200'000, 0));
  Demand demand = ce(30'000);
  demand.memory = Mebibytes{0};
  EXPECT_EQ(world.pool().find(demand)->slices[0].share.value, 150);
  const auto small = world.add_device(node, kind("small", 40'000, 0));
  // Both lose 30 CE: equal worth, so the policy decides; for decode the small one is worth half.
  const auto either = world.pool().find(demand);
  EXPECT_TRUE(either->slices[0].device.value == big || either->slices[0].device.value == small);
  demand.share = MilliDevice{500};
  demand.ce.reset();
  EXPECT_EQ(world.pool().find(demand)->slices[0].device.value, small);
}

TEST(Pool, MemoryOfTheDeviceIsReckonedToo) {
  World world;
  const auto node = world.add_node(64'000, 1000);
  const auto tight = world.add_device(node, kind("a", 100'000, 1000), 500, 900);
  const auto roomy = world.add_device(node, kind("a", 100'000, 1000), 400, 100);
  Demand demand = share(300);
  demand.memory = Mebibytes{200};
  EXPECT_EQ(world.pool().find(demand)->slices[0].device.value, roomy);
  demand.memory = Mebibytes{50};
  EXPECT_EQ(world.pool().find(demand)->slices[0].device.value, tight);
  demand.memory = Mebibytes{1001};
  EXPECT_FALSE(world.pool().could_hold(demand));
  demand.memory.reset();  // in proportion: 300 MiB
  EXPECT_EQ(world.pool().find(demand)->slices[0].device.value, roomy);
}

TEST(Pool, AnExclusiveUnitHasNoNeighbours) {
  World world;
  const auto node = world.add_node(64'000, 1000);
  world.add_device(node, kind("a", 100'000, 0), 100);
  const auto idle = world.add_device(node, kind("a", 100'000, 0));
  Pool pool = world.pool();
  Demand demand = share(200);
  demand.exclusive = true;
  const auto place = pool.find(demand);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->slices[0].device.value, idle);
  EXPECT_TRUE(place->exclusive);
  pool.take(*place);
  EXPECT_FALSE(pool.find(share(950)).has_value());
  EXPECT_FALSE(pool.find(demand).has_value());
  EXPECT_TRUE(pool.could_hold(demand));
  pool.give_back(*place);
  EXPECT_TRUE(pool.find(share(950)).has_value());
}

TEST(Pool, ANamedDeviceIsTakenForWhatItIs) {
  World world;
  const auto node = world.add_node(64'000, 1000);
  world.add_device(node, kind("a", 100'000, 0));
  const auto wanted = world.add_device(node, kind("b", 100'000, 0), 700);
  Demand demand = share(300);
  demand.device = DeviceId{wanted};
  demand.device_types = {"a"};
  const Pool pool = world.pool();
  EXPECT_EQ(pool.find(demand)->slices[0].device.value, wanted);
  demand.share = MilliDevice{301};
  EXPECT_FALSE(pool.find(demand).has_value());
  EXPECT_TRUE(pool.could_hold(demand));
  demand.device = DeviceId{99};
  EXPECT_FALSE(pool.find(demand).has_value());
  EXPECT_FALSE(pool.could_hold(demand));
}

TEST(Pool, DrainedAndLostDevicesTakeNothing) {
  World world;
  const auto node = world.add_node(64'000, 1000);
  const auto id = world.add_device(node, kind("a", 100'000, 0));
  Pool pool = world.pool();
  Device device = world.devices[id - 1];
  device.draining = true;
  pool.refresh(device);
  EXPECT_FALSE(pool.find(share(100)).has_value());
  EXPECT_FALSE(pool.could_hold(share(100)));
  EXPECT_EQ(pool.fits_when_empty(share(100)).size(), 1u);
  device.draining = false;
  device.health = DeviceHealth::lost;
  pool.refresh(device);
  EXPECT_TRUE(pool.fits_when_empty(share(100)).empty());
  device.health = DeviceHealth::healthy;
  pool.refresh(device);
  EXPECT_TRUE(pool.find(share(100)).has_value());
  EXPECT_EQ(pool.totals().devices, 1);
  EXPECT_EQ(pool.totals().idle_devices, 1);
}

TEST(Pool, HostsDecideToo) {
  World world;
  const auto poor = world.add_node(4'000, 1'000, "east");
  world.add_device(poor, kind("a", 100'000, 0));
  const Pool pool = world.pool();
  EXPECT_TRUE(pool.find(share(100, 1, 4'000)).has_value());
  EXPECT_FALSE(pool.find(share(100, 1, 4'001)).has_value());
  EXPECT_FALSE(pool.could_hold(share(100, 1, 4'001)));
  EXPECT_TRUE(pool.fits_when_empty(share(100, 1, 4'001)).empty());
  EXPECT_FALSE(pool.could_hold(share(100, 2)));
  Demand west = share(100);
  west.region = "west";
  EXPECT_FALSE(pool.could_hold(west));
  Demand host;
  host.devices = 0;
  host.cpu = MilliCpu{4'000};
  EXPECT_TRUE(pool.find(host)->slices.empty());
}

TEST(Pool, ABoundOnScoringNeverMissesWhatFits) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    World world = random_world(random, 40);
    PoolOptions options;
    options.scored_max = 2;
    Pool pool = world.pool(options);
    for (int step = 0; step < 40; ++step) {
      const Demand demand = random_demand(random);
      if (!single(world, demand) || demand.exclusive) continue;
      const auto place = pool.find(demand);
      ASSERT_EQ(place.has_value(), fits_somewhere(world, demand)) << "seed " << seed;
      if (!place) continue;
      ASSERT_NO_FATAL_FAILURE(check_fits(world, demand, *place)) << "seed " << seed;
      pool.take(*place);
      book(world, *place, 1);
    }
  }
}

TEST(Pool, GivingEverythingBackLeavesItAsItWas) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const World world = random_world(random, 10);
    Pool pool = world.pool();
    const Pool::Totals before = pool.totals();
    std::vector<UnitPlacement> placed;
    for (int step = 0; step < 30; ++step) {
      const auto place = pool.find(random_demand(random));
      if (!place) continue;
      pool.take(*place);
      placed.push_back(*place);
    }
    while (!placed.empty()) {
      const std::size_t at = random.below(placed.size());
      pool.give_back(placed[at]);
      placed.erase(placed.begin() + static_cast<long>(at));
    }
    ASSERT_EQ(pool.totals().free_milli, before.free_milli);
    ASSERT_EQ(pool.totals().idle_devices, before.idle_devices);
    ASSERT_EQ(pool.totals().states, before.states);
  }
}

// A trial answers as a pool in which the same was done.
TEST(Trial, AnswersAsThePoolWould) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const World world = random_world(random, 8);
    PoolOptions options;
    options.placement.policy = scored[random.below(std::size(scored))];
    const Pool pool = world.pool(options);
    Pool real = world.pool(options);
    Trial trial(pool);
    std::vector<UnitPlacement> placed;
    for (int step = 0; step < 20; ++step) {
      if (!placed.empty() && random.chance(300)) {
        const std::size_t at = random.below(placed.size());
        trial.give_back(placed[at]);
        real.give_back(placed[at]);
        placed.erase(placed.begin() + static_cast<long>(at));
      }
      const Demand demand = random_demand(random);
      if (!single(world, demand)) continue;
      const auto thought = trial.find(demand);
      ASSERT_EQ(thought, real.find(demand)) << "seed " << seed << " step " << step;
      ASSERT_EQ(trial.fits(demand), thought.has_value());
      if (!thought) continue;
      trial.take(*thought);
      real.take(*thought);
      placed.push_back(*thought);
    }
    trial.reset();
    const Demand demand = share(500);
    ASSERT_EQ(trial.find(demand), pool.find(demand)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loam::schedule
