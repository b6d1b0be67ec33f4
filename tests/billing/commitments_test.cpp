// Commitments: fees by the day with anchored month ends, and what of a tenant's use they cover.
#include "billing/commitments.hpp"

#include "base/random.hpp"
#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

PriceTable selling(const char* price, const char* zone = "UTC") {
  PriceTerms terms;
  terms.zone = zone;
  Price commitment;
  commitment.purchase_model = PurchaseModel::commitment;
  commitment.tiers = {{0, money(price)}};
  terms.prices = {commitment};
  return *PriceTable::compile(card("2.00"), terms);
}

CommitmentOrder order(std::int64_t months, const char* from, const char* until = nullptr,
                      const char* anchor = nullptr) {
  CommitmentOrder made;
  made.ce = MilliCe{10'000};
  made.months = months;
  made.from = at(from);
  if (until != nullptr) made.until = at(until);
  if (anchor != nullptr) made.anchor = at(anchor);
  return made;
}

const Instant now = at("2025-01-31T10:00:00Z");

TEST(Commitments, periods_begin_on_the_anchors_day_or_the_months_last) {
  const auto terms = *commitment_on(
      selling("1.30"), order(1, "2025-01-31T00:00:00Z", "2025-04-30T00:00:00Z"), {0}, now);
  // It covers from now on and is paid for the whole of today.
  EXPECT_EQ(terms.from, now);
  ASSERT_EQ(terms.fees.size(), 3u);
  EXPECT_EQ(terms.fees[1].from, at("2025-02-28T00:00:00Z"));
  EXPECT_EQ(terms.fees[2].from, at("2025-03-31T00:00:00Z"));
  EXPECT_EQ(terms.fees[2].to, at("2025-04-30T00:00:00Z"));
  // 10 CE × 730 h × 1.30, whichever month it is.
  for (const CommitmentFee& fee : terms.fees) {
    EXPECT_EQ(fee.net, money("9490"));
    EXPECT_EQ(fee.days, fee.days_of_period);
  }
}

TEST(Commitments, a_part_of_a_period_is_paid_by_its_days) {
  const auto terms = *commitment_on(
      selling("1.00"),
      order(3, "2025-05-20T00:00:00Z", "2025-07-01T00:00:00Z", "2025-04-01T00:00:00Z"), {0},
      at("2025-05-01T00:00:00Z"));
  ASSERT_EQ(terms.fees.size(), 1u);
  EXPECT_EQ(terms.fees[0].days, 42);
  EXPECT_EQ(terms.fees[0].days_of_period, 91);
  EXPECT_EQ(terms.fees[0].net, money("21900").times_ratio(42, 91, Rounding::half_even));
}

TEST(Commitments, days_are_those_of_the_cards_zone_and_discounts_apply) {
  const auto terms = *commitment_on(selling("1.00", "America/New_York"),
                                    order(1, "2025-03-01T12:00:00Z", "2025-04-01T12:00:00Z"),
                                    {2000}, at("2025-02-01T00:00:00Z"));
  EXPECT_EQ(terms.from, at("2025-03-01T05:00:00Z"));
  EXPECT_EQ(terms.to, at("2025-04-01T04:00:00Z"));  // daylight saving began meanwhile
  EXPECT_EQ(terms.fees[0].days, 31);
  EXPECT_EQ(terms.fees[0].list, money("7300"));
  EXPECT_EQ(terms.fees[0].net, money("5840"));
}

TEST(Commitments, orders_that_make_no_sense_are_refused) {
  const auto fault = [&](CommitmentOrder asked) {
    return refusal(commitment_on(selling("1"), asked, {0}, now));
  };
  EXPECT_NE(fault(order(2, "2025-02-01T00:00:00Z")).find("2 months"), std::string::npos);
  EXPECT_NE(fault(order(1, "2025-01-30T00:00:00Z")).find("before today"), std::string::npos);
  EXPECT_NE(fault(order(1, "2025-02-01T00:00:00Z", "2025-02-01T00:00:00Z")).find("not after"),
            std::string::npos);
  EXPECT_NE(fault(order(12, "2025-02-01T00:00:00Z", "2035-03-01T00:00:00Z")).find("too long"),
            std::string::npos);
  EXPECT_NE(fault(order(1, "2025-02-01T00:00:00Z", nullptr, "2025-02-02T00:00:00Z")).find("anchor"),
            std::string::npos);
  CommitmentOrder nothing = order(1, "2025-02-01T00:00:00Z");
  nothing.ce = MilliCe{0};
  EXPECT_NE(fault(nothing).find("0 CE"), std::string::npos);
  EXPECT_NE(refusal(commitment_on(*PriceTable::compile(card("1")), order(1, "2025-02-01T00:00:00Z"),
                                  {0}, now))
                .find("sells no commitment"),
            std::string::npos);
}

const Instant noon = at("2025-03-01T12:00:00Z");
Period hours(std::int64_t from_minutes, std::int64_t to_minutes) {
  return {noon + Duration::minutes(from_minutes), noon + Duration::minutes(to_minutes)};
}
CoverUse use(std::uint64_t lease, std::int64_t since, Period period, std::int64_t ce) {
  return {noon + Duration::minutes(since), LeaseId{lease}, period, MilliCe{ce * 1000}};
}
constexpr Int128 ce_hour = Int128{1000} * 3'600'000;

TEST(Commitments, cover_the_earliest_lease_first_at_every_instant) {
  // 10 CE: 6 from before the hour, 8 more from its middle on.
  const std::vector<CoverUse> uses{use(2, 30, hours(30, 60), 8), use(1, -60, hours(0, 60), 6)};
  const Covered covered = cover(uses, {{"com-1", hours(-600, 600), MilliCe{10'000}}}, hours(0, 60));
  EXPECT_EQ(covered.milli_ce_ms[1], ce_hour * 6);
  EXPECT_EQ(covered.milli_ce_ms[0], ce_hour * 2);  // 4 CE for half an hour
  EXPECT_EQ(covered.unused, ce_hour * 2);          // 4 CE in the first half
}

TEST(Commitments, a_lease_cut_by_a_price_keeps_its_place) {
  const std::vector<CoverUse> uses{use(1, 0, hours(0, 20), 6), use(1, 0, hours(20, 60), 6),
                                   use(2, 10, hours(10, 60), 8)};
  const Covered covered = cover(uses, {{"com-1", hours(0, 60), MilliCe{6000}}}, hours(0, 60));
  EXPECT_EQ(covered.milli_ce_ms[0] + covered.milli_ce_ms[1], ce_hour * 6);
  EXPECT_EQ(covered.milli_ce_ms[2], 0);
}

TEST(Commitments, what_is_covered_and_unused_is_the_whole_right) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<CoverUse> uses;
    for (std::uint64_t i = 0; i < random.below(12); ++i) {
      const std::int64_t from = random.between(0, 59), to = random.between(from + 1, 60);
      uses.push_back(use(i + 1, from, hours(from, to), random.between(1, 20)));
    }
    std::vector<CapacityRight> rights;
    Int128 whole = 0;
    for (std::uint64_t i = 0; i < 1 + random.below(3); ++i) {
      const std::int64_t from = random.between(0, 59), to = random.between(from + 1, 60);
      rights.push_back({"", hours(from, to), MilliCe{random.between(1, 20) * 1000}});
      whole += Int128{rights.back().ce.value} * (to - from) * 60'000;
    }
    const Covered covered = cover(uses, rights, hours(0, 60));
    Int128 sum = covered.unused;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const Int128 most = Int128{uses[i].ce.value} * (uses[i].period.to - uses[i].period.from).ms;
      EXPECT_LE(covered.milli_ce_ms[i], most) << "seed " << seed;
      sum += covered.milli_ce_ms[i];
    }
    EXPECT_EQ(sum, whole) << "seed " << seed;
    // In any order of the uses each is covered alike.
    std::vector<CoverUse> turned(uses.rbegin(), uses.rend());
    const Covered again = cover(turned, rights, hours(0, 60));
    for (std::size_t i = 0; i < uses.size(); ++i)
      EXPECT_EQ(again.milli_ce_ms[uses.size() - 1 - i], covered.milli_ce_ms[i]) << "seed " << seed;
  }
}

TEST(Commitments, the_covered_part_of_a_price_is_exact) {
  EXPECT_EQ(covered_part(money("12"), ce_hour * 4, MilliCe{6000}, Duration::hours(1)), money("8"));
  EXPECT_EQ(covered_part(money("12"), 0, MilliCe{6000}, Duration::hours(1)), money("0"));
}

// --- Money an hour
// ------------------------------------------------------------------------------

const Period an_hour{at("2025-03-01T00:00:00Z"), at("2025-03-01T01:00:00Z")};

CoverUse use_of(std::uint64_t lease, const char* from, const char* to, std::int64_t ce) {
  return {at(from), LeaseId{lease}, {at(from), at(to)}, MilliCe{ce}};
}

TEST(SpendCommitments, cost_their_money_for_every_hour_of_the_month) {
  CommitmentOrder money_order = order(1, "2025-02-01T00:00:00Z");
  money_order.ce = MilliCe{0};
  money_order.spend = money("1.00");
  const auto terms = *commitment_on(selling("1.30"), money_order, {1000}, now);
  EXPECT_EQ(terms.ce, MilliCe{0});
  EXPECT_EQ(terms.spend, money("1"));
  ASSERT_EQ(terms.fees.size(), 1u);
  EXPECT_EQ(terms.fees[0].list, money("730"));
  EXPECT_EQ(terms.fees[0].net, money("657"));
}

TEST(SpendCommitments, orders_that_make_no_sense_are_refused) {
  const auto refused = [](const char* spend, std::int64_t ce, const char* price, Currency in) {
    CommitmentOrder asked = order(1, "2025-02-01T00:00:00Z");
    asked.ce = MilliCe{ce};
    asked.spend = money(spend, in);
    return refusal(commitment_on(selling(price), asked, {0}, now));
  };
  EXPECT_NE(refused("1", 10'000, "1.30", usd).find("both 10 CE and"), std::string::npos);
  EXPECT_NE(refused("0", 0, "1.30", usd).find("cannot be committed"), std::string::npos);
  EXPECT_NE(refused("-1", 0, "1.30", usd).find("cannot be committed"), std::string::npos);
  EXPECT_NE(refused("1", 0, "1.30", Currency("EUR")).find("cannot be committed"),
            std::string::npos);
  EXPECT_NE(refused("130000.01", 0, "1.30", usd).find("out of range"), std::string::npos);
  EXPECT_NE(refused("1", 0, "0", usd).find("out of range"), std::string::npos);
}

TEST(SpendCommitments, cover_what_the_hours_use_is_worth_whenever_in_it_it_was) {
  const std::vector<CoverUse> uses{
      use_of(1, "2025-03-01T00:30:00Z", "2025-03-01T01:00:00Z", 2'000),   // worth 1.30
      use_of(2, "2025-03-01T00:00:00Z", "2025-03-01T00:15:00Z", 4'000)};  // the same, and earlier
  Covered covered;
  covered.milli_ce_ms = {0, 0};
  cover_spend(uses, {{an_hour, money("1.95"), money("1.30")}}, an_hour, covered);
  const Int128 ce_hour = Int128{1000} * 3'600'000;
  EXPECT_EQ(covered.milli_ce_ms[1], ce_hour);
  EXPECT_EQ(covered.milli_ce_ms[0], ce_hour / 2);
  EXPECT_EQ(covered.unused, 0);
}

// Case commitment-unused: of 1.00 an hour 0.75 are covered.
TEST(SpendCommitments, commitment_unused_of_an_hour_is_told) {
  const std::vector<CoverUse> uses{use_of(1, "2025-03-01T00:00:00Z", "2025-03-01T01:00:00Z", 750)};
  Covered covered;
  covered.milli_ce_ms = {0};
  cover_spend(uses, {{an_hour, money("1.00"), money("1.00")}}, an_hour, covered);
  const Int128 ce_hour = Int128{1000} * 3'600'000;
  EXPECT_EQ(covered.milli_ce_ms[0], ce_hour * 3 / 4);
  EXPECT_EQ(covered.unused, ce_hour / 4);
}

TEST(SpendCommitments, a_part_of_an_hour_has_its_part_of_the_money) {
  const Period second_half{at("2025-03-01T00:30:00Z"), at("2025-03-05T00:00:00Z")};
  const std::vector<CoverUse> uses{
      use_of(1, "2025-03-01T00:00:00Z", "2025-03-01T01:00:00Z", 10'000)};
  Covered covered;
  covered.milli_ce_ms = {0};
  cover_spend(uses, {{second_half, money("1"), money("1")}}, an_hour, covered);
  EXPECT_EQ(covered.milli_ce_ms[0], Int128{1000} * 1'800'000);
}

// Whatever is there, nothing is covered twice, and covered and unused are the whole right.
TEST(SpendCommitments, conserve_the_right_and_the_use) {
  Random random(11);
  for (int round = 0; round < 500; ++round) {
    std::vector<CoverUse> uses;
    for (std::int64_t i = 0; i < random.between(0, 6); ++i) {
      const std::int64_t from = random.between(0, 3'599'999);
      const std::int64_t to = random.between(from + 1, 3'600'000);
      const Instant begin = an_hour.from + Duration{from};
      uses.push_back({begin,
                      LeaseId{static_cast<std::uint64_t>(i + 1)},
                      {begin, an_hour.from + Duration{to}},
                      MilliCe{random.between(1, 5'000)}});
    }
    Covered covered = cover(uses, {{"c", an_hour, MilliCe{random.between(1, 3'000)}}}, an_hour);
    const Int128 before = covered.unused;
    Int128 by_capacity = 0, all = 0;
    for (const Int128 part : covered.milli_ce_ms) by_capacity += part;
    const Money price = Money(random.between(1, 3'000'000), usd);
    const Money spend = Money(random.between(1, 9'000'000), usd);
    cover_spend(uses, {{an_hour, spend, price}}, an_hour, covered);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      all += covered.milli_ce_ms[i];
      EXPECT_LE(covered.milli_ce_ms[i],
                Int128{uses[i].ce.value} * (uses[i].period.to - uses[i].period.from).ms);
    }
    const Int128 right = spend.units() * 3'600'000 * 1000 / price.units();
    EXPECT_EQ(all - by_capacity + covered.unused - before, right);
  }
}

}  // namespace
}  // namespace loam::billing
