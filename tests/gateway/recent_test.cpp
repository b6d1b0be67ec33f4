#include "gateway/recent.hpp"

#include <gtest/gtest.h>

namespace loam::gateway {
namespace {

constexpr Instant start{1'000'000};

TEST(DurationCounts, AQuantileIsAtMostAnEighthTooLong) {
  for (std::uint64_t us = 1; us < 100'000'000; us += 1 + us / 7) {
    DurationCounts one;
    one.observe(us);
    const std::uint64_t told = one.quantile_us(500).value();
    EXPECT_GE(told, us);
    EXPECT_LE(told, us + us / 8 + 1) << us;
  }
}

TEST(DurationCounts, TheQuantilesOfManyAreThoseOfTheList) {
  DurationCounts counts;
  EXPECT_FALSE(counts.quantile_us(500).has_value());
  for (std::uint64_t i = 1; i <= 1000; ++i) counts.observe(i * 100);
  EXPECT_NEAR(static_cast<double>(counts.quantile_us(500).value()), 50'000, 50'000 / 8.0);
  EXPECT_NEAR(static_cast<double>(counts.quantile_us(990).value()), 99'000, 99'000 / 8.0);
  counts.observe(UINT64_MAX);  // longer than can be told
  EXPECT_GT(counts.quantile_us(1000).value(), 100'000'000U);
}

TEST(Recent, WhatIsOlderThanAMinuteIsForgotten) {
  Recent recent;
  recent.generated(100, start);
  recent.gap(5'000, start);
  EXPECT_EQ(recent.summary(start + Duration::seconds(30)).generated_tokens, 100U);
  EXPECT_EQ(recent.summary(start + Duration::seconds(30)).over, Duration::seconds(30));
  recent.prompt(60, 20, start + Duration::seconds(40));
  recent.first_token(70'000, start + Duration::seconds(40));
  const Recent::Summary later = recent.summary(start + Duration::seconds(65));
  EXPECT_EQ(later.generated_tokens, 0U);
  EXPECT_FALSE(later.gap_p50_us.has_value());
  EXPECT_EQ(later.prompt_tokens, 60U);
  EXPECT_EQ(later.cached_tokens, 20U);
  EXPECT_GE(later.first_token_p99_us.value(), 70'000U);
  EXPECT_LE(later.over, Duration::minutes(1));
  const Recent::Summary silent = recent.summary(start + Duration::hours(1));
  EXPECT_EQ(silent.prompt_tokens, 0U);
  EXPECT_FALSE(silent.first_token_p99_us.has_value());
}

TEST(Recent, NothingWasToldYet) {
  EXPECT_EQ(Recent{}.summary(start).over, Duration{});
}

}  // namespace
}  // namespace loam::gateway
