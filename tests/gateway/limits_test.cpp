#include "gateway/limits.hpp"

#include <gtest/gtest.h>

namespace loam::gateway {
namespace {

using Which = TenantMeter::Which;
constexpr Instant opened_at{1'000'000};

TEST(Limits, WithoutLimitsEverythingIsLetIn) {
  TenantMeter meter;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(meter.admit({}, 1'000'000'000, opened_at));
  for (int i = 0; i < 1000; ++i) meter.end(1'000'000'000, 5, opened_at);
  EXPECT_TRUE(meter.idle(opened_at));
}

TEST(Limits, RequestsAMinuteRefillEvenly) {
  TenantMeter meter;
  const TenantLimits limits{.requests_per_minute = 6};
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(meter.admit(limits, 0, opened_at));
  const auto refusal = meter.admit(limits, 0, opened_at);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->which, Which::requests);
  EXPECT_EQ(refusal->limit, 6U);
  EXPECT_EQ(refusal->retry_after, Duration::seconds(10));
  // A promise: not before, and surely then.
  EXPECT_TRUE(meter.admit(limits, 0, opened_at + Duration{9'999}));
  EXPECT_FALSE(meter.admit(limits, 0, opened_at + Duration{10'000}));
  EXPECT_TRUE(meter.admit(limits, 0, opened_at + Duration{10'000}));
}

TEST(Limits, TokensAreReservedAndSettledByUse) {
  TenantMeter meter;
  const TenantLimits limits{.tokens_per_minute = 600};
  EXPECT_FALSE(meter.admit(limits, 500, opened_at));
  const auto refusal = meter.admit(limits, 200, opened_at);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->which, Which::tokens);
  EXPECT_EQ(refusal->retry_after, Duration::seconds(10));
  meter.end(500, 100, opened_at);  // used less: the rest is there again at once
  EXPECT_FALSE(meter.admit(limits, 500, opened_at));
  meter.end(500, 700, opened_at);  // used more: a debt of 200
  const auto later = meter.admit(limits, 1, opened_at);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->retry_after, Duration{20'100});
}

TEST(Limits, ARequestAboveAWholeMinuteWaitsForAFullAllowance) {
  TenantMeter meter;
  const TenantLimits limits{.tokens_per_minute = 600};
  EXPECT_FALSE(meter.admit(limits, 6'000, opened_at));
  meter.end(6'000, 6'000, opened_at);
  const auto refusal = meter.admit(limits, 6'000, opened_at);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->retry_after, Duration::minutes(10));
  EXPECT_FALSE(meter.admit(limits, 6'000, opened_at + Duration::minutes(10)));
}

TEST(Limits, RequestsAtOnceAreCounted) {
  TenantMeter meter;
  const TenantLimits limits{.concurrent_requests = 2};
  EXPECT_FALSE(meter.admit(limits, 0, opened_at));
  EXPECT_FALSE(meter.admit(limits, 0, opened_at));
  const auto refusal = meter.admit(limits, 0, opened_at);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->which, Which::concurrency);
  meter.end(0, 0, opened_at);
  EXPECT_FALSE(meter.admit(limits, 0, opened_at));
}

TEST(Limits, ARefusalTakesNothing) {
  TenantMeter meter;
  const TenantLimits limits{.requests_per_minute = 2, .tokens_per_minute = 60};
  EXPECT_FALSE(meter.admit(limits, 60, opened_at));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(meter.admit(limits, 60, opened_at)->which, Which::tokens);
  EXPECT_FALSE(meter.admit(limits, 60, opened_at + Duration::minutes(1)));
}

TEST(Limits, AClockThatStepsBackAndALongSilenceDoNoHarm) {
  TenantMeter meter;
  const TenantLimits limits{4'000'000'000, 4'000'000'000, 0};
  EXPECT_FALSE(meter.admit(limits, 4'000'000'000, opened_at));
  EXPECT_TRUE(meter.admit(limits, 4'000'000'000, opened_at - Duration::hours(1)));
  EXPECT_FALSE(meter.admit(limits, 4'000'000'000, opened_at + Duration::hours(24 * 365 * 100)));
}

TEST(Limits, ALimitThatChangesHoldsFromNowOn) {
  TenantMeter meter;
  EXPECT_FALSE(meter.admit({.requests_per_minute = 1}, 0, opened_at));
  EXPECT_TRUE(meter.admit({.requests_per_minute = 1}, 0, opened_at));
  EXPECT_FALSE(meter.admit({}, 0, opened_at));
}

}  // namespace
}  // namespace loam::gateway
