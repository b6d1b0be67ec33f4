#include "gateway/limits.hpp"

#include <gtest/gtest.h>

namespace loam::gateway {
namespace {

using Which = TenantMeter::Which;
constexpr Instant start{1'000'000};

TEST(Limits, WithoutLimitsEverythingIsLetIn) {
  TenantMeter meter;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(meter.admit({}, 1'000'000'000, start));
  for (int i = 0; i < 1000; ++i) meter.end(1'000'000'000, 5, start);
  EXPECT_TRUE(meter.idle(start));
}

TEST(Limits, RequestsAMinuteRefillEvenly) {
  TenantMeter meter;
  const TenantLimits limits{.requests_per_minute = 6};
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(meter.admit(limits, 0, start));
  const auto refusal = meter.admit(limits, 0, start);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->which, Which::requests);
  EXPECT_EQ(refusal->limit, 6U);
  EXPECT_EQ(refusal->retry_after, Duration::seconds(10));
  // A promise: not before, and surely then.
  EXPECT_TRUE(meter.admit(limits, 0, start + Duration{9'999}));
  EXPECT_FALSE(meter.admit(limits, 0, start + Duration{10'000}));
  EXPECT_TRUE(meter.admit(limits, 0, start + Duration{10'000}));
}

TEST(Limits, TokensAreReservedAndSettledByUse) {
  TenantMeter meter;
  const TenantLimits limits{.tokens_per_minute = 600};
  EXPECT_FALSE(meter.admit(limits, 500, start));
  const auto refusal = meter.admit(limits, 200, start);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->which, Which::tokens);
  EXPECT_EQ(refusal->retry_after, Duration::seconds(10));
  meter.end(500, 100, start);  // used less: the rest is there again at once
  EXPECT_FALSE(meter.admit(limits, 500, start));
  meter.end(500, 700, start);  // used more: a debt of 200
  const auto later = meter.admit(limits, 1, start);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->retry_after, Duration{20'100});
}

TEST(Limits, ARequestAboveAWholeMinuteWaitsForAFullAllowance) {
  TenantMeter meter;
  const TenantLimits limits{.tokens_per_minute = 600};
  EXPECT_FALSE(meter.admit(limits, 6'000, start));
  meter.end(6'000, 6'000, start);
  const auto refusal = meter.admit(limits, 6'000, start);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->retry_after, Duration::minutes(10));
  EXPECT_FALSE(meter.admit(limits, 6'000, start + Duration::minutes(10)));
}

TEST(Limits, RequestsAtOnceAreCounted) {
  TenantMeter meter;
  const TenantLimits limits{.concurrent_requests = 2};
  EXPECT_FALSE(meter.admit(limits, 0, start));
  EXPECT_FALSE(meter.admit(limits, 0, start));
  const auto refusal = meter.admit(limits, 0, start);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->which, Which::concurrency);
  meter.end(0, 0, start);
  EXPECT_FALSE(meter.admit(limits, 0, start));
}

TEST(Limits, ARefusalTakesNothing) {
  TenantMeter meter;
  const TenantLimits limits{.requests_per_minute = 2, .tokens_per_minute = 60};
  EXPECT_FALSE(meter.admit(limits, 60, start));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(meter.admit(limits, 60, start)->which, Which::tokens);
  EXPECT_FALSE(meter.admit(limits, 60, start + Duration::minutes(1)));
}

TEST(Limits, AClockThatStepsBackAndALongSilenceDoNoHarm) {
  TenantMeter meter;
  const TenantLimits limits{4'000'000'000, 4'000'000'000, 0};
  EXPECT_FALSE(meter.admit(limits, 4'000'000'000, start));
  EXPECT_TRUE(meter.admit(limits, 4'000'000'000, start - Duration::hours(1)));
  EXPECT_FALSE(meter.admit(limits, 4'000'000'000, start + Duration::hours(24 * 365 * 100)));
}

TEST(Limits, ALimitThatChangesHoldsFromNowOn) {
  TenantMeter meter;
  EXPECT_FALSE(meter.admit({.requests_per_minute = 1}, 0, start));
  EXPECT_TRUE(meter.admit({.requests_per_minute = 1}, 0, start));
  EXPECT_FALSE(meter.admit({}, 0, start));
}

}  // namespace
}  // namespace loam::gateway
