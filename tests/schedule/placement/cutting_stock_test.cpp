// Cutting stock: proved optimal by strong duality against every pattern, enumerated.
#include "schedule/placement/cutting_stock.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <set>

#include "base/random.hpp"

namespace loam::schedule {
namespace {

void every_pattern(const std::vector<RollPiece>& pieces, std::size_t at, std::int64_t left,
                   std::vector<std::int64_t>& pattern,
                   const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  if (at == pieces.size()) {
    visit(pattern);
    return;
  }
  for (std::int64_t n = 0; n * pieces[at].size <= left; ++n) {
    pattern[at] = n;
    every_pattern(pieces, at + 1, left - n * pieces[at].size, pattern, visit);
  }
  pattern[at] = 0;
}

TEST(CuttingStock, IsOptimalByStrongDuality) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const std::int64_t roll = random.between(5, 25);
    std::set<std::int64_t> sizes;
    for (std::int64_t n = random.between(1, 5); n > 0; --n) sizes.insert(random.between(1, roll));
    std::vector<RollPiece> pieces;
    for (const std::int64_t size : sizes) {
      pieces.push_back({size, static_cast<double>(random.between(1, 1000)) / 100});
    }
    const CuttingStock solved = solve_cutting_stock(pieces, roll);
    // Primal: the cuts are possible and cover the demand.
    double used = 0;
    std::vector<double> made(pieces.size(), 0.0);
    for (std::size_t q = 0; q < solved.patterns.size(); ++q) {
      std::int64_t length = 0;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        ASSERT_GE(solved.patterns[q][i], 0);
        length += solved.patterns[q][i] * pieces[i].size;
        made[i] += solved.uses[q] * static_cast<double>(solved.patterns[q][i]);
      }
      ASSERT_LE(length, roll);
      ASSERT_GE(solved.uses[q], 0);
      used += solved.uses[q];
    }
    double worth = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      ASSERT_GE(made[i], pieces[i].demand - 1e-6) << "seed " << seed;
      ASSERT_GE(solved.duals[i], 0);
      worth += solved.duals[i] * pieces[i].demand;
    }
    // Dual: no pattern is worth more than a roll, and both sides agree.
    std::vector<std::int64_t> pattern(pieces.size(), 0);
    every_pattern(pieces, 0, roll, pattern, [&](const std::vector<std::int64_t>& cut) {
      double value = 0;
      for (std::size_t i = 0; i < cut.size(); ++i)
        value += solved.duals[i] * static_cast<double>(cut[i]);
      ASSERT_LE(value, 1 + 1e-6) << "seed " << seed;
    });
    ASSERT_NEAR(worth, solved.rolls, 1e-6) << "seed " << seed;
    ASSERT_NEAR(used, solved.rolls, 1e-6) << "seed " << seed;
  }
}

TEST(CuttingStock, KnapsackIsTheBestOfAllPatterns) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const std::int64_t capacity = random.between(0, 20);
    std::vector<RollPiece> pieces;
    std::vector<std::int64_t> sizes;
    std::vector<double> values;
    for (std::int64_t n = random.between(1, 4); n > 0; --n) {
      sizes.push_back(random.between(1, 12));
      values.push_back(static_cast<double>(random.between(0, 100)) / 10);
      pieces.push_back({sizes.back(), 1});
    }
    const std::vector<double> best = knapsack_values(sizes, values, capacity);
    for (std::int64_t f = 0; f <= capacity; ++f) {
      double most = 0;
      std::vector<std::int64_t> pattern(pieces.size(), 0);
      every_pattern(pieces, 0, f, pattern, [&](const std::vector<std::int64_t>& cut) {
        double value = 0;
        for (std::size_t i = 0; i < cut.size(); ++i)
          value += values[i] * static_cast<double>(cut[i]);
        most = std::max(most, value);
      });
      ASSERT_NEAR(best[static_cast<std::size_t>(f)], most, 1e-9) << "seed " << seed << " f " << f;
    }
  }
}

TEST(CuttingStock, KnownCases) {
  // Halves and wholes: a half is worth half a roll.
  const CuttingStock halves = solve_cutting_stock({{50, 1}, {100, 1}}, 100);
  EXPECT_NEAR(halves.rolls, 1.5, 1e-9);
  EXPECT_NEAR(halves.duals[0], 0.5, 1e-9);
  EXPECT_NEAR(halves.duals[1], 1, 1e-9);
  // 81 of 100 leaves nothing that anyone asks for: it is worth a whole roll.
  const CuttingStock slivers = solve_cutting_stock({{81, 1}, {47, 1}}, 100);
  EXPECT_NEAR(slivers.duals[0], 1, 1e-9);
  EXPECT_NEAR(slivers.duals[1], 0.5, 1e-9);
  EXPECT_TRUE(solve_cutting_stock({}, 100).duals.empty());
}

}  // namespace
}  // namespace loam::schedule
