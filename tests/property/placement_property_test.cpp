// What a demand takes of a device.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "schedule/demand.hpp"

namespace loam::schedule {
namespace {

TEST(PlacementProperty, WhatFitsInCeFitsInMilliDevice) {
  // Any parts of a device that sum to at most its CE fit on it together.
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    Random random(seed);
    const MilliCe worth{random.between(1000, 300'000)};
    std::int64_t left = worth.value;
    std::int64_t shares = 0;
    while (left > 0) {
      // Parts below a thousandth are rounded up to one, so they are not promised.
      const std::int64_t least = (worth.value + 999) / 1000;
      if (left < least) break;
      const MilliCe part{random.between(least, left)};
      left -= part.value;
      shares += share_for(part, worth).value;
    }
    ASSERT_LE(shares, 1000) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loam::schedule
