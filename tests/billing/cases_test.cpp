// Faults that users of other billing systems reported, each with the right answer worked by hand. A
// test's name begins with the case's; those of dup-event, rerun-batch, failed-payment-void and
// tier-edge are scenarios, since what they ask is the engine's.
#include "billing/accounts.hpp"
#include "billing/apportion.hpp"
#include "billing/attribution.hpp"
#include "billing/budgets.hpp"
#include "billing/fixture.hpp"
#include "billing/focus.hpp"
#include "billing/purchase.hpp"

namespace loam::billing {
namespace {

TEST(BillingCase, boundary_sample_is_in_one_bucket) {
  const auto buckets =
      tiles(at("2025-03-01T00:30:00Z"), at("2025-03-01T01:30:00Z"), Duration::hours(1));
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].to - buckets[0].from, Duration::seconds(1800));
  EXPECT_EQ(buckets[1].to - buckets[1].from, Duration::seconds(1800));
  EXPECT_FALSE(buckets[0].contains(at("2025-03-01T01:00:00Z")));
  EXPECT_TRUE(buckets[1].contains(at("2025-03-01T01:00:00Z")));
}

TEST(BillingCase, dst_fall_bills_the_repeated_hour_twice_at_its_own_price) {
  PriceTerms terms;
  terms.zone = "America/New_York";
  terms.windows = {window("one", hm(1), hm(2)), window("rest", hm(2), hm(1))};
  terms.prices = {by_time("one", "1.00"), by_time("rest", "2.00")};
  const Tables tables = tables_of(card("9"), terms);
  Usage night = usage("n", at("2025-11-02T04:30:00Z"), at("2025-11-02T07:30:00Z"), 1000);
  night.terms.tariff = Tariff::time_of_day;
  EXPECT_EQ(night.length(), Duration::seconds(10'800));
  EXPECT_EQ(rated(tables, night).net, money("4.00"));
}

TEST(BillingCase, month_boundary_local_is_midnight_whenever_the_account_was_made) {
  const Tables tables = tables_of(card("1.50"));
  const Zone zone = *Zone::open("America/New_York");
  const Usage task = usage("t", at("2025-04-01T03:30:00Z"), at("2025-04-01T04:30:00Z"), 4000);
  // The account's day of creation is no input at all.
  const Instant cut = month_of(zone, task.from).to;
  EXPECT_EQ(cut, at("2025-04-01T04:00:00Z"));
  Usage march = task, april = task;
  march.to = april.from = april.run_from = cut;
  EXPECT_EQ(rated(tables, march).net, money("3.00"));
  EXPECT_EQ(rated(tables, april).net, money("3.00"));
}

TEST(BillingCase, proration_denominator_is_the_days_of_the_quarter_itself) {
  const Money fee = money("910.00");
  EXPECT_EQ(
      prorated(fee, day("2024-04-01"), day("2024-07-01"), day("2024-05-20"), day("2025-05-20")),
      money("420.00"));
  EXPECT_EQ(
      prorated(fee, day("2024-04-15"), day("2024-07-15"), day("2024-05-20"), day("2025-05-20")),
      money("560.00"));
  CommitmentPlan quarter{"q", day("2024-04-15"), 3, day("2024-05-20"), day("2024-07-15"), fee, {}};
  const auto lines = fees(quarter);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].days, 56);
  EXPECT_EQ(lines[0].days_of_period, 91);
}

TEST(BillingCase, terminate_before_start_costs_nothing) {
  const Money fee = money("100.00");
  EXPECT_EQ(
      prorated(fee, day("2017-08-15"), day("2017-09-15"), day("2017-08-15"), day("2017-08-15")),
      money("0"));
  EXPECT_EQ(
      prorated(fee, day("2017-08-15"), day("2017-09-15"), day("2017-08-15"), day("2017-08-14")),
      money("0"));
}

TEST(BillingCase, price_change_midrun_splits_the_charge) {
  Tables tables = tables_of(card("1.50"));
  ASSERT_TRUE(tables.add(*PriceTable::compile(card("2.00", "2025-04-01T00:00:00Z", 2))).ok());
  std::vector<Charge> charges;
  ASSERT_TRUE(
      Rater(tables, {usd, {0}})
          .rate(usage("t", at("2025-03-31T23:00:00Z"), at("2025-04-01T01:00:00Z"), 4000), charges)
          .ok());
  EXPECT_EQ(charges.size(), 2u);
  EXPECT_EQ(total_of(charges, usd).net, money("14.00"));
}

TEST(BillingCase, line_vs_total_of_half_cents_agree) {
  const Settled settled = settle(std::vector<Money>(3, money("0.005")), usd);
  EXPECT_EQ(settled.total, money("0.02"));
  EXPECT_EQ(settled.payable, (std::vector<Money>{money("0.01"), money("0.01"), money("0.00")}));
}

TEST(BillingCase, currency_exponent_is_that_of_each_currency) {
  const Currency jpy("JPY"), kwd("KWD");
  const Money yen = prorated(money("10000", jpy), day("2025-01-01"), day("2025-02-01"),
                             day("2025-01-26"), day("2025-02-01"));
  EXPECT_EQ(yen.rounded(Rounding::half_even), money("1935", jpy));
  EXPECT_EQ(money("1.2345", kwd).rounded(Rounding::half_up), money("1.235", kwd));
  EXPECT_EQ(money("1.2345", kwd).rounded(Rounding::half_even), money("1.234", kwd));
}

TEST(BillingCase, budget_race_admits_no_more_than_it_holds) {
  BudgetBook books;
  Budget budget;
  budget.name = "cap";
  budget.scope.tenant = TenantId{1};
  budget.monthly = money("0.45");
  ASSERT_TRUE(books.add(budget).ok());
  const Instant now = at("2025-03-05T00:00:00Z");
  int admitted = 0;
  for (int i = 0; i < 5; ++i) {
    if (!books.admit(TenantId{1}, {}, money("0.15"), now).ok()) continue;
    books.set_aside("t" + std::to_string(i), TenantId{1}, {}, money("0.15"), now);
    ++admitted;
  }
  EXPECT_EQ(admitted, 3);
  for (int i = 0; i < 3; ++i) {
    books.set_aside("t" + std::to_string(i), TenantId{1}, {}, money("0"), now);
    books.count(TenantId{1}, {}, money("0.12"), now);
  }
  const auto standing = books.standing("cap", now);
  EXPECT_EQ(standing.spent, money("0.36"));
  EXPECT_EQ(standing.reserved, money("0.00"));
  EXPECT_EQ(standing.available, money("0.09"));
  EXPECT_FALSE(books.admit(TenantId{1}, {}, money("0.15"), now).ok());
  EXPECT_TRUE(books.admit(TenantId{1}, {}, money("0.09"), now).ok());
}

TEST(BillingCase, shared_gpu_costs_four_pods_its_price_once) {
  const Tables tables = tables_of(card("2.00"));
  Money sum = Money::zero(usd);
  for (int pod = 0; pod < 4; ++pod) {
    const Money each =
        rated(tables, usage("p", at("2025-03-01T00:00:00Z"), at("2025-03-01T01:00:00Z"), 250)).net;
    EXPECT_EQ(each, money("0.50"));
    sum += each;
  }
  EXPECT_EQ(sum, money("2.00"));
  const SplitCost split = split_cost(
      money("2.00"), 1000, {{"a", 250}, {"b", 250}, {"c", 250}, {"d", 250}}, IdleMethod::kept);
  EXPECT_EQ(split.idle, money("0.00"));
}

TEST(BillingCase, never_started_has_no_usage_to_bill) {
  // 34 seconds of provisioning that failed: a meter gives no record, and one without length is
  // refused.
  const Instant never_ran = at("2025-03-01T00:00:34Z");
  EXPECT_NE(refusal(check(usage("x", never_ran, never_ran, 100'000))).find("not after its start"),
            std::string::npos);
  const Lease lease;
  EXPECT_FALSE(lease.started());
}

// What is used and unused of the hour is SpendCommitments.commitment_unused_of_an_hour_is_told's.
TEST(BillingCase, commitment_unused_is_a_row_of_its_own) {
  const Period hour{at("2025-03-01T00:00:00Z"), at("2025-03-01T01:00:00Z")};
  const Int128 one = Money::units_per_one;
  const FocusCommitment commitment{"c", "Subscription", "USD", money("1.00")};
  const FocusRow used = focus_covered(commitment, money("0.75"), {one * 3 / 4, one * 3 / 4}, hour);
  EXPECT_EQ(used.billed, money("0.00"));
  EXPECT_EQ(used.effective, money("0.75"));
  EXPECT_EQ(used.commitment_quantity, one * 3 / 4);
  const FocusRow unused = focus_unused(commitment, money("0.25"), {one / 4, one / 4}, hour);
  EXPECT_EQ(unused.billed, money("0.00"));
  EXPECT_EQ(unused.effective, money("0.25"));
  EXPECT_EQ(unused.consumed_quantity, std::nullopt);
  const FocusRow purchase = focus_purchase(commitment, money("1.00"), {one, one}, hour);
  EXPECT_EQ(purchase.billed, money("1.00"));
  EXPECT_EQ(purchase.effective, money("0.00"));
}

}  // namespace
}  // namespace loam::billing
