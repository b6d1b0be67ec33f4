// Quotas and cohorts: what is admitted, in what words it is refused, and that books always balance.
#include <gmock/gmock.h>

#include "base/random.hpp"
#include "schedule/admission/quotas.hpp"

namespace loam::schedule {
namespace {

using ::testing::HasSubstr;
using Kind = Shortfall::Kind;

Amounts devices(std::int64_t milli) {
  Amounts amounts;
  amounts[Dimension::devices] = milli;
  return amounts;
}

QuotaSpec spec(std::int64_t nominal, const char* cohort = "",
               std::optional<std::int64_t> borrow = {}, std::optional<std::int64_t> lend = {}) {
  QuotaSpec spec;
  const auto d = static_cast<std::size_t>(Dimension::devices);
  spec.nominal[d] = nominal;
  spec.borrow_max[d] = borrow;
  spec.lend_max[d] = lend;
  spec.cohort = cohort;
  return spec;
}

constexpr TenantId a{1};
constexpr TenantId b{2};

std::optional<Kind> kind(const Quotas& quotas, TenantId tenant, std::int64_t milli) {
  const auto shortfall = quotas.check(tenant, devices(milli), std::nullopt);
  return shortfall ? std::optional(shortfall->kind) : std::nullopt;
}

TEST(Quotas, ATenantAloneHasItsOwnAndNoMore) {
  Quotas quotas;
  quotas.set(a, spec(4000));
  EXPECT_EQ(kind(quotas, a, 4000), std::nullopt);
  EXPECT_EQ(kind(quotas, a, 4001), Kind::nominal);
  quotas.charge(a, devices(3000));
  EXPECT_EQ(kind(quotas, a, 1000), std::nullopt);
  EXPECT_EQ(kind(quotas, a, 2000), Kind::nominal);
  quotas.release(a, devices(3000));
  EXPECT_EQ(kind(quotas, a, 4000), std::nullopt);
}

TEST(Quotas, AMonthsHoursCountWhatRunsToItsLimitAndBeginAnewWithTheNext) {
  Quotas quotas;
  QuotaSpec limits;
  limits.ce_hours_month = 100'000;
  quotas.set(a, limits);
  Amounts task;
  task[Dimension::ce] = 10'000;
  const Duration six = Duration::hours(6);
  quotas.charge(a, task, six);  // 60 of 100
  EXPECT_EQ(quotas.check(a, task, six)->kind, Kind::month);
  EXPECT_FALSE(quotas.check(a, task, Duration::hours(4)).has_value());
  quotas.release(a, task, six);
  EXPECT_FALSE(quotas.check(a, task, six).has_value());
  const Instant end{1'000'000};
  quotas.set_month(a, 95'000, end);
  EXPECT_EQ(quotas.check(a, task, six)->kind, Kind::month);
  EXPECT_EQ(Quotas::on_top_of(quotas, end - Duration{1}).check(a, task, six)->kind, Kind::month);
  EXPECT_FALSE(Quotas::on_top_of(quotas, end).check(a, task, six).has_value());
  EXPECT_EQ(quotas.never(a, task, Duration::hours(11))->kind, Kind::month);
}

TEST(Quotas, WithoutAnEntryThereIsNoLimit) {
  EXPECT_EQ(kind(Quotas{}, a, 1'000'000), std::nullopt);
}

TEST(Quotas, IdleQuotaIsLentAlthoughTheOwnersHeadWaitsForAllOfIt) {
  Quotas quotas;
  quotas.set(a, spec(4000, "c"));
  quotas.set(b, spec(4000, "c"));
  quotas.charge(a, devices(2000));  // its next asks for 4000 and waits
  EXPECT_EQ(kind(quotas, a, 4000), std::nullopt) << "a borrows from b";
  EXPECT_EQ(kind(quotas, b, 6000), std::nullopt);
  EXPECT_EQ(kind(quotas, b, 6001), Kind::cohort);
}

TEST(Quotas, LentQuotaIsMissedAsLentAndComesBack) {
  Quotas quotas;
  quotas.set(a, spec(4000, "c"));
  quotas.set(b, spec(4000, "c"));
  quotas.charge(b, devices(7000));
  EXPECT_TRUE(quotas.borrows(b));
  EXPECT_EQ(quotas.borrowed(b)[Dimension::devices], 3000);
  EXPECT_EQ(kind(quotas, a, 1000), std::nullopt);
  EXPECT_EQ(kind(quotas, a, 4000), Kind::lent);
  quotas.release(b, devices(3000));
  EXPECT_FALSE(quotas.borrows(b));
  EXPECT_EQ(kind(quotas, a, 4000), std::nullopt);
}

TEST(Quotas, LimitsOnBorrowingAndLendingHold) {
  Quotas quotas;
  quotas.set(a, spec(4000, "c", 1000));
  quotas.set(b, spec(4000, "c", {}, 3000));
  EXPECT_EQ(kind(quotas, a, 5000), std::nullopt);
  EXPECT_EQ(kind(quotas, a, 5001), Kind::borrow_max);
  quotas.set(a, spec(4000, "c"));
  EXPECT_EQ(kind(quotas, a, 7000), std::nullopt);
  EXPECT_EQ(kind(quotas, a, 7001), Kind::cohort) << "b keeps 1000 to itself";
  quotas.charge(a, devices(7000));
  EXPECT_EQ(kind(quotas, b, 1000), std::nullopt);
  EXPECT_EQ(kind(quotas, b, 1001), Kind::lent);
}

TEST(Quotas, EveryDimensionCountsAndIsNamed) {
  Quotas quotas;
  QuotaSpec all;
  for (std::size_t d = 0; d < dimensions; ++d) all.nominal[d] = 10'000;
  quotas.set(a, all);
  for (std::size_t d = 0; d < dimensions; ++d) {
    Amounts amounts;
    amounts.values[d] = 10'001;
    const auto shortfall = quotas.check(a, amounts, std::nullopt);
    ASSERT_TRUE(shortfall);
    EXPECT_EQ(shortfall->dimension, static_cast<Dimension>(d));
    EXPECT_THAT(to_text(*shortfall), HasSubstr("of at most"));
  }
}

TEST(Quotas, TheLongestDurationAndTheMonthAreLimits) {
  Quotas quotas;
  QuotaSpec limits;
  limits.longest = Duration::hours(2);
  limits.ce_hours_month = 100'000;
  quotas.set(a, limits);
  Amounts task;
  task[Dimension::ce] = 50'000;
  EXPECT_FALSE(quotas.check(a, task, Duration::hours(2)));
  EXPECT_EQ(quotas.check(a, task, std::nullopt)->kind, Kind::no_limit);
  EXPECT_EQ(quotas.check(a, task, Duration::hours(3))->kind, Kind::longest);
  EXPECT_FALSE(quotas.admissible(a, task, Duration::hours(3)));
  quotas.set_month(a, 1);
  EXPECT_EQ(quotas.check(a, task, Duration::hours(2))->kind, Kind::month);
  EXPECT_EQ(to_text(*quotas.check(a, task, Duration::hours(2))),
            "may use 100 CE-hours with 0.001 used or running of the month's 100");
  EXPECT_FALSE(quotas.check(a, task, Duration::hours(1)));
}

TEST(Quotas, WhatCanNeverBeAdmittedIsKnown) {
  Quotas quotas;
  quotas.set(a, spec(4000, "c", 1000));
  quotas.set(b, spec(4000, "c"));
  quotas.charge(b, devices(8000));
  EXPECT_TRUE(quotas.admissible(a, devices(5000), std::nullopt)) << "once b gives back";
  EXPECT_FALSE(quotas.admissible(a, devices(5001), std::nullopt));
  EXPECT_FALSE(quotas.admissible(b, devices(8001), std::nullopt));
}

// Whatever is admitted: no cohort holds more than its members' quotas, nobody passes its limits,
// and whoever asks for its own finds it free or lent out to somebody who borrows.
TEST(Quotas, BooksBalanceUnderAnySequence) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Quotas quotas;
    const std::uint64_t tenants = 1 + random.below(5);
    std::map<TenantId, QuotaSpec> specs;
    std::int64_t total = 0;
    for (std::uint64_t t = 1; t <= tenants; ++t) {
      const std::int64_t nominal = random.between(0, 10);
      std::optional<std::int64_t> borrow, lend;
      if (random.chance(400)) borrow = random.between(0, 10);
      if (random.chance(400)) lend = random.between(0, 12);
      specs[TenantId{t}] = spec(nominal, "c", borrow, lend);
      quotas.set(TenantId{t}, specs[TenantId{t}]);
      total += nominal;
    }
    std::vector<std::pair<TenantId, std::int64_t>> held;
    for (int step = 0; step < 200; ++step) {
      const TenantId tenant{1 + random.below(tenants)};
      if (!held.empty() && random.chance(400)) {
        const std::size_t i = random.below(held.size());
        quotas.release(held[i].first, devices(held[i].second));
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      const std::int64_t amount = random.between(1, 5);
      const auto shortfall = quotas.check(tenant, devices(amount), std::nullopt);
      if (!shortfall) {
        ASSERT_TRUE(quotas.admissible(tenant, devices(amount), std::nullopt));
        quotas.charge(tenant, devices(amount));
        held.emplace_back(tenant, amount);
      } else if (quotas.within_nominal(tenant, devices(amount))) {
        ASSERT_EQ(shortfall->kind, Kind::lent);
        bool somebody = false;
        for (const auto& [other, ignored] : specs) somebody |= quotas.borrows(other);
        ASSERT_TRUE(somebody);
      }
      std::int64_t sum = 0;
      for (const auto& [other, its] : specs) {
        const auto d = static_cast<std::size_t>(Dimension::devices);
        const std::int64_t holds = quotas.held(other)[Dimension::devices];
        sum += holds;
        if (its.borrow_max[d]) {
          ASSERT_LE(holds, *its.nominal[d] + *its.borrow_max[d]);
        }
      }
      ASSERT_LE(sum, total) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace loam::schedule
