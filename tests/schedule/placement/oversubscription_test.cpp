// Devices lent more than once, against sums made by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "schedule/placement/world.hpp"
#include "schedule/room.hpp"

namespace loam::schedule {
namespace {

using testing::kind;
using testing::World;

Demand asked(std::int64_t milli, std::int64_t mib, bool burstable) {
  Demand demand = testing::share(milli);
  demand.memory = Mebibytes{mib};
  demand.oversubscribable = burstable;
  return demand;
}

PoolOptions lent(std::int64_t ce_permille, std::int64_t memory_permille) {
  PoolOptions options;
  options.oversubscription = {ce_permille, memory_permille};
  return options;
}

TEST(Oversubscription, OfABurstableSliceItsPartIsPromised) {
  World world;
  world.add_device(world.add_node(64'000, 1000), kind("a", 100'000, 900));
  Pool pool = world.pool(lent(1500, 1200));
  const auto burstable = pool.find(asked(301, 121, true));
  ASSERT_TRUE(burstable.has_value());
  EXPECT_EQ(burstable->slices[0].share.value, 301);
  EXPECT_EQ(burstable->slices[0].promised().value, 201) << "rounded up";
  EXPECT_EQ(burstable->slices[0].memory.value, 121);
  EXPECT_EQ(burstable->slices[0].memory_promised().value, 101);
  const auto strict = pool.find(asked(301, 121, false));
  EXPECT_EQ(strict->slices[0].promised().value, 301);
  EXPECT_EQ(strict->slices[0].memory_promised().value, 121);
  // A whole device has no neighbours.
  EXPECT_EQ(pool.find(asked(1000, 900, true))->slices[0].promised().value, 1000);
  EXPECT_EQ(pool.find(asked(1000, 900, true))->slices[0].memory_promised().value, 900);
  // One slice never gets more than the device.
  EXPECT_FALSE(pool.could_hold(asked(500, 901, true)));
}

TEST(Oversubscription, MemoryIsLentTwiceOnlyWhereItCanLeave) {
  for (const Backend backend :
       {Backend::simulated, Backend::cuda, Backend::opencl, Backend::rocm}) {
    World world;
    auto facts = kind("a", 100'000, 900);
    facts->backend = backend;
    world.add_device(world.add_node(64'000, 1000), facts);
    const auto place = world.pool(lent(1000, 1500)).find(asked(300, 300, true));
    const bool leaves = backend == Backend::simulated || backend == Backend::cuda;
    EXPECT_EQ(place->slices[0].memory_promised().value, leaves ? 200 : 300);
    EXPECT_EQ(place->slices[0].promised().value, 300);
  }
}

TEST(Oversubscription, WhatALeaseHoldsStaysPromisedUnderOtherFactors) {
  World world;
  const auto id = world.add_device(world.add_node(64'000, 1000), kind("a", 100'000, 0), 1600);
  world.devices[id - 1].unpromised = MilliDevice{800};
  EXPECT_TRUE(world.pool(lent(1000, 1000)).find(asked(200, 0, true)).has_value());
  EXPECT_FALSE(world.pool(lent(1000, 1000)).find(asked(201, 0, true)).has_value());
  EXPECT_TRUE(world.pool(lent(2000, 1000)).find(asked(400, 0, true)).has_value());
  EXPECT_FALSE(world.pool(lent(2000, 1000)).find(asked(400, 0, false)).has_value());
}

TEST(Oversubscription, TwoAsksThatDifferInThisAloneAreTwo) {
  const Ask strict{asked(300, 0, false), 1};
  const Ask burstable{asked(300, 0, true), 1};
  EXPECT_TRUE(strict < burstable || burstable < strict);
  EXPECT_NE(key_of(strict.demand), key_of(burstable.demand));
}

// A device as sums: what leases were lent, and of each what it gets at the least, rounded up.
struct Book {
  struct Held {
    std::int64_t milli = 0;
    std::int64_t mib = 0;
    bool burstable = false;
  };
  std::vector<Held> held;

  static std::int64_t least(std::int64_t amount, std::int64_t permille) {
    std::int64_t part = amount * 1000 / permille;
    if (part * permille < amount * 1000) ++part;
    return part;
  }
  bool holds(const Held& more, const Oversubscription& factors, std::int64_t mib_max) const {
    std::int64_t milli = 0, mib = 0;
    std::vector<Held> all = held;
    all.push_back(more);
    for (const Held& one : all) {
      milli += one.burstable ? least(one.milli, factors.ce_permille) : one.milli;
      mib += one.burstable ? least(one.mib, factors.memory_permille) : one.mib;
    }
    return milli <= 1000 && mib <= mib_max;
  }
};

TEST(Oversubscription, RandomLeasesKeepBothBoundsAndFindRoomExactlyWhereThereIsSome) {
  constexpr std::int64_t mib_max = 777;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    World world;
    const auto node = world.add_node(1'000'000, 1'000'000);
    const auto devices = static_cast<std::size_t>(random.between(1, 3));
    for (std::size_t i = 0; i < devices; ++i) world.add_device(node, kind("a", 100'000, mib_max));
    const Oversubscription factors{random.between(1000, 3000), random.between(1000, 3000)};
    PoolOptions options = lent(factors.ce_permille, factors.memory_permille);
    options.placement.policy = static_cast<PlacementPolicy>(random.below(8));
    Pool pool = world.pool(options);
    std::vector<Book> books(devices);
    std::vector<std::pair<UnitPlacement, Book::Held>> placed;
    for (int step = 0; step < 60; ++step) {
      if (!placed.empty() && random.chance(300)) {
        const std::size_t at = random.below(placed.size());
        pool.give_back(placed[at].first);
        auto& held = books[placed[at].first.slices[0].device.value - 1].held;
        held.erase(std::find_if(held.begin(), held.end(), [&](const Book::Held& one) {
          const Book::Held& gone = placed[at].second;
          return one.milli == gone.milli && one.mib == gone.mib && one.burstable == gone.burstable;
        }));
        placed.erase(placed.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      const Book::Held more{random.between(1, 700), random.between(1, 500), random.chance(600)};
      const Demand demand = asked(more.milli, more.mib, more.burstable);
      pool.note_request(demand);
      const auto place = pool.find(demand);
      const bool fits = std::any_of(books.begin(), books.end(), [&](const Book& book) {
        return book.holds(more, factors, mib_max);
      });
      ASSERT_EQ(place.has_value(), fits) << "seed " << seed;
      if (!place) continue;
      pool.take(*place);
      Book& book = books[place->slices[0].device.value - 1];
      ASSERT_TRUE(book.holds(more, factors, mib_max)) << "seed " << seed;
      book.held.push_back(more);
      placed.emplace_back(*place, more);
      std::int64_t strict = 0, all = 0, strict_mib = 0, all_mib = 0;
      for (const Book::Held& one : book.held) {
        all += one.milli;
        all_mib += one.mib;
        strict += one.burstable ? 0 : one.milli;
        strict_mib += one.burstable ? 0 : one.mib;
      }
      ASSERT_LE(strict, 1000) << "seed " << seed;
      ASSERT_LE(strict_mib, mib_max) << "seed " << seed;
      ASSERT_LE(all * 1000, 1000 * factors.ce_permille) << "seed " << seed;
      ASSERT_LE(all_mib * 1000, mib_max * factors.memory_permille) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace loam::schedule
