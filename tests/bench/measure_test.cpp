#include <gtest/gtest.h>

#include <numeric>

#include "base/random.hpp"
#include "bench/bench.hpp"

namespace loam::bench {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Median, of_odd_and_even_counts) {
  EXPECT_EQ(median_of({7, 1, 3, 2, 6, 4, 5}).value, 4);
  EXPECT_EQ(median_of({6, 1, 3, 2, 5, 4}).value, 3.5);
}

// The ranks that tables of the sign test give for 95 %.
TEST(Median, interval_has_the_ranks_of_the_binomial_tables) {
  const auto ranks = [](int n) {
    const Interval found = median_of(one_to(n)).interval;
    return std::pair{found.low, found.high};
  };
  EXPECT_EQ(ranks(6), (std::pair{1.0, 6.0}));
  EXPECT_EQ(ranks(10), (std::pair{2.0, 9.0}));
  EXPECT_EQ(ranks(20), (std::pair{6.0, 15.0}));
  EXPECT_EQ(ranks(25), (std::pair{8.0, 18.0}));
  EXPECT_EQ(ranks(100), (std::pair{40.0, 61.0}));
}

TEST(Median, interval_of_many_values_is_narrow_and_holds_the_median) {
  const Median found = median_of(one_to(10'001));
  EXPECT_EQ(found.value, 5001);
  EXPECT_GT(found.interval.low, 4890);
  EXPECT_LT(found.interval.high, 5110);
}

TEST(Median, interval_covers_the_true_median_about_95_times_in_100) {
  Random random(7);
  constexpr int trials = 2000;
  int covered = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> values;
    for (int i = 0; i < 20; ++i) values.push_back(static_cast<double>(random.below(1'000'001)));
    const Interval found = median_of(std::move(values)).interval;
    covered += found.low <= 500'000 && 500'000 <= found.high;
  }
  EXPECT_GE(covered, trials * 94 / 100);  // exactly 95.9 % is expected
  EXPECT_LE(covered, trials * 98 / 100);
}

TEST(Percentile, is_a_value_by_nearest_rank) {
  EXPECT_EQ(percentile(one_to(100), 99), 99);
  EXPECT_EQ(percentile(one_to(100), 50), 50);
  EXPECT_EQ(percentile(one_to(100), 0), 1);
  EXPECT_EQ(percentile(one_to(100), 100), 100);
  EXPECT_EQ(percentile({5}, 99), 5);
}

TEST(Comparison, the_first_to_go_alternates) {
  std::string order;
  compare_alternating(
      [&] {
        order += 'a';
        return 1.0;
      },
      [&] {
        order += 'b';
        return 1.0;
      });
  ASSERT_EQ(order.size(), 40U);
  EXPECT_EQ(order.substr(0, 8), "abbaabba");
}

TEST(Comparison, a_drift_of_the_machine_does_not_show_in_the_ratio) {
  double slowness = 1;
  const auto cost = [&](double own) {
    slowness *= 1.05;  // every measurement is slower than the one before
    return own * slowness;
  };
  const Median found = compare_alternating([&] { return cost(3); }, [&] { return cost(2); }, 40);
  EXPECT_NEAR(found.value, 1.5, 0.08);
  EXPECT_LE(found.interval.low, 1.5);
  EXPECT_GE(found.interval.high, 1.5);
}

TEST(Comparison, outliers_do_not_move_the_median) {
  int call = 0;
  const Median found =
      compare_alternating([&] { return ++call % 5 == 0 ? 1000.0 : 2.0; }, [] { return 1.0; });
  EXPECT_EQ(found.value, 2);
}

TEST(ComparisonDeathTest, fewer_than_20_pairs_prove_nothing) {
  const auto one = [] { return 1.0; };
  EXPECT_DEATH(compare_alternating(one, one, 19), "pairs_min");
}

}  // namespace
}  // namespace loam::bench
