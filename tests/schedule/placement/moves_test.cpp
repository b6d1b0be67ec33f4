// Moves: only what lets the demand start, never without it.
#include "schedule/moves.hpp"

#include <gtest/gtest.h>

#include "schedule/placement/world.hpp"

namespace loam::schedule {
namespace {

using testing::kind;
using testing::random_demand;
using testing::random_world;
using testing::share;
using testing::World;

Resident put(Pool& pool, std::uint64_t id, const Demand& demand, std::uint64_t node) {
  const auto place = pool.find_on(NodeId{node}, demand);
  EXPECT_TRUE(place.has_value());
  pool.take(*place);
  return {id, demand, *place};
}

TEST(Moves, OneResidentGoesWhereItFitsAndTheLargeOneStarts) {
  World world;
  const auto a = kind("a", 100'000, 0);
  const auto first = world.add_node(64'000, 0);
  const auto second = world.add_node(64'000, 0);
  world.add_device(first, a);
  world.add_device(second, a);
  Pool pool = world.pool();
  std::vector<Resident> residents;
  residents.push_back(put(pool, 1, share(300), first));
  residents.push_back(put(pool, 2, share(400), second));
  EXPECT_FALSE(pool.find(share(1000)).has_value());
  const auto plan = plan_moves(pool, residents, share(1000));
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->moves.size(), 1u);
  for (const UnitMove& move : plan->moves) {
    pool.give_back(move.from);
    pool.take(move.to);
  }
  pool.take(plan->place);  // asserts that it fits
}

TEST(Moves, TwoGoWhereOneIsNotEnough) {
  World world;
  const auto a = kind("a", 100'000, 0);
  const auto node = world.add_node(64'000, 0);
  world.add_device(node, a);
  const auto other = world.add_node(64'000, 0);
  world.add_device(other, a, 500);
  Pool pool = world.pool();
  std::vector<Resident> residents;
  residents.push_back(put(pool, 1, share(200), node));
  residents.push_back(put(pool, 2, share(300), node));
  MoveOptions options;
  options.moves_max = 1;
  EXPECT_FALSE(plan_moves(pool, residents, share(1000), options).has_value());
  options.moves_max = 2;
  const auto plan = plan_moves(pool, residents, share(1000), options);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->moves.size(), 2u);
}

TEST(Moves, EveryPlanCanBeCarriedOut) {
  int planned = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const World world = random_world(random, 6);
    PoolOptions options;
    options.placement.policy =
        random.chance(500) ? PlacementPolicy::spread : PlacementPolicy::packing_value;
    Pool pool = world.pool(options);
    std::vector<Resident> residents;
    for (std::uint64_t id = 1; id <= 12; ++id) {
      Demand demand = random_demand(random);
      demand.exclusive = false;
      const auto place = pool.find(demand);
      if (!place) continue;
      pool.take(*place);
      residents.push_back({id, demand, *place});
    }
    Demand wanted = share(1000, random.between(1, 2), random.between(0, 3) * 4'000);
    if (pool.find(wanted)) continue;
    const std::int64_t free = pool.totals().free_milli;
    const auto plan = plan_moves(pool, residents, wanted);
    ASSERT_EQ(pool.totals().free_milli, free);
    if (!plan) continue;
    ++planned;
    ASSERT_LE(plan->moves.size(), 2u);
    for (const UnitMove& move : plan->moves) {
      ASSERT_NE(move.from.hosts[0].node, move.to.hosts[0].node);
      pool.give_back(move.from);
      pool.take(move.to);
    }
    pool.take(plan->place);
  }
  EXPECT_GT(planned, 30);
}

TEST(Moves, SmallDemandsMoveNobody) {
  World world;
  const auto a = kind("a", 100'000, 0);
  const auto node = world.add_node(64'000, 0);
  world.add_device(node, a, 400);
  world.add_device(world.add_node(64'000, 0), a, 700);
  Pool pool = world.pool();
  Mover mover(pool);
  const auto place = pool.find_on(NodeId{node}, share(300));
  pool.take(*place);
  mover.add(share(300), *place);
  std::int64_t moves = 0;
  EXPECT_FALSE(mover.make_room(share(499), 10, moves).has_value());
  EXPECT_EQ(moves, 0);
  EXPECT_TRUE(mover.make_room(share(600), 10, moves).has_value());
  EXPECT_EQ(moves, 1);
}

}  // namespace
}  // namespace loam::schedule
