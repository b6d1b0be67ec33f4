// Money properties over many random cases: how usage is cut changes nothing; an invoice's lines are
// its total. The seed of a failing case is in its message.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "billing/accounts.hpp"
#include "billing/invoicing.hpp"
#include "billing/lease_rating.hpp"

namespace loam::billing {
namespace {

constexpr std::uint64_t cases = 2000;
const Currency usd("USD");

Instant instant(std::int64_t ms) {
  return Instant{1'767'225'600'000 + ms};
}

// A few cards, each with units, windows, tiers and a discount of its own, and a lease that started
// under the first.
struct Priced {
  Tables tables;
  Lease lease;
  Terms terms;
  Payer payer;
};

Price price_of(Random& random, Tariff tariff, const char* window, bool tiers) {
  Price price;
  price.tariff = tariff;
  price.window = window;
  price.tiers = {{0, Money(random.between(0, 3'000'000'000'000), usd)}};
  for (std::int64_t above = 0; tiers && random.chance(600);) {
    above += random.between(1, 200'000);
    price.tiers.push_back({above, Money(random.between(0, 3'000'000'000'000), usd)});
  }
  if (random.chance(300)) price.tier_mode = TierMode::volume;
  return price;
}

PriceTerms terms_of(Random& random, bool tiers) {
  const Granularity units[] = {Granularity::exact, Granularity::second, Granularity::minute,
                               Granularity::hour};
  PriceTerms terms;
  terms.granularity = units[random.below(4)];
  terms.zone = random.chance(500) ? "UTC" : "Europe/Berlin";
  terms.windows = {{"day", {}, "", Duration::hours(1), Duration::hours(3)},
                   {"night", {}, "", Duration::hours(3), Duration::hours(1)}};
  terms.prices = {price_of(random, Tariff::time_of_day, "day", tiers),
                  price_of(random, Tariff::time_of_day, "night", tiers),
                  price_of(random, Tariff::flat, "", tiers)};
  if (random.chance(300)) terms.discounts = {{"card", {random.between(0, 4'000)}, {}}};
  return terms;
}

Priced priced(Random& random, bool tiers) {
  Priced all;
  Instant from = instant(0);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    RateCard card;
    card.id = RateCardId{id};
    card.effective_from = from;
    card.currency = usd;
    card.on_demand = Money(random.between(0, 3'000'000'000'000), usd);
    card.terms = terms_of(random, tiers);
    auto table = PriceTable::compile(card);
    EXPECT_TRUE(table.ok()) << to_text(table.error());
    EXPECT_TRUE(all.tables.add(std::move(*table)).ok());
    from = from + Duration{random.between(1, 5'000'000)};
  }
  all.lease.id = LeaseId{1};
  all.lease.billable_ce = MilliCe{random.between(1, 300'000)};
  all.lease.started_at = all.lease.billed_until = instant(random.between(0, 1'000'000));
  all.lease.rated_list = all.lease.rated_net = Money::zero(usd);
  if (random.chance(500)) all.terms.tariff = Tariff::time_of_day;
  all.payer = {usd, BasisPoints{random.between(0, 10'000)}};
  return all;
}

struct Sum {
  Money list = Money::zero(usd);
  Money net = Money::zero(usd);
  std::int64_t ms = 0;
  std::int64_t billed_ms = 0;
  friend bool operator==(const Sum&, const Sum&) = default;
};

void rate_to(const Priced& all, Lease& lease, TierCounters& tiers, Instant to, Sum& sum) {
  const auto records = to < lease.billed_until
                           ? rate_back(lease, all.terms, all.payer, all.tables, tiers, to)
                           : rate_until(lease, all.terms, all.payer, all.tables, tiers, to);
  for (const UsageRecord& record : records) {
    EXPECT_EQ(record.from, lease.billed_until);
    advance(lease, record);
    sum.list += record.list;
    sum.net += record.net;
    sum.ms += record.length().ms;
    sum.billed_ms += record.billed.ms;
    if (record.tier_month != Instant{})
      tiers.add(record.purchase_model, record.tier_month,
                static_cast<Int128>(record.billable_ce.value) * record.billed.ms);
  }
  EXPECT_EQ(lease.billed_until, to);
}

TEST(RatingProperty, HoweverUsageIsCutItSumsToTheSame) {
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    const Priced all = priced(random, seed % 2 == 0);
    const Instant end = all.lease.started_at + Duration{random.between(1, 20'000'000)};
    Sum whole;
    Lease at_once = all.lease;
    TierCounters of_whole;
    rate_to(all, at_once, of_whole, end, whole);
    Sum pieces;
    Lease lease = all.lease;
    TierCounters of_pieces;
    while (lease.billed_until < end) {
      const std::int64_t rest = (end - lease.billed_until).ms;
      rate_to(all, lease, of_pieces, lease.billed_until + Duration{random.between(1, rest)},
              pieces);
    }
    ASSERT_TRUE(whole == pieces) << "seed " << seed;
  }
}

TEST(RatingProperty, GoingBackLeavesWhatWouldHaveBeenRatedAtOnce) {
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    const Priced all = priced(random, seed % 2 == 0);
    const Duration ran{random.between(0, 20'000'000)};
    const Instant end = all.lease.started_at + ran;
    Sum right;
    Lease known = all.lease;
    TierCounters of_known, of_late;
    rate_to(all, known, of_known, end, right);
    Sum corrected;
    Lease late = all.lease;
    rate_to(all, late, of_late, end + Duration{random.between(0, 2'000'000)}, corrected);
    rate_to(all, late, of_late, end + Duration{random.between(2'000'000, 20'000'000)}, corrected);
    rate_to(all, late, of_late, end, corrected);
    ASSERT_TRUE(right == corrected) << "seed " << seed;
  }
}

TEST(RatingProperty, AmountsAreTheExactRationalRoundedOnce) {
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    const MilliCe ce{random.between(0, 1'000'000)};
    const Duration length{random.between(0, 100'000'000)};
    const Money price(random.between(0, 1'000'000'000'000), usd);
    const BasisPoints discount{random.between(0, 10'000)};
    const Amount amount = rate(ce, length, price, discount);
    const Int128 divisor = Int128{1000} * 3'600'000 * 10'000;
    const Int128 exact = price.units() * ce.value * length.ms * (10'000 - discount.value);
    const Int128 off = amount.net.units() * divisor - exact;
    ASSERT_TRUE(off * 2 <= divisor && -off * 2 <= divisor) << "seed " << seed;
    ASSERT_TRUE(amount.net <= amount.list) << "seed " << seed;
  }
}

TEST(InvoiceProperty, PayableLinesSumToTheTotalAndAreLessThanAUnitOff) {
  const Currency currencies[] = {usd, Currency("JPY"), Currency("KWD")};
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    const Currency currency = currencies[random.below(3)];
    Int128 unit = 1;
    for (int i = currency.exponent(); i < Money::decimals; ++i) unit *= 10;
    std::vector<InvoiceLine> lines(random.below(12));
    Money exact = Money::zero(currency);
    for (InvoiceLine& line : lines) {
      // Also lines that take something back, and exact halves.
      line.net = random.chance(300)
                     ? Money(unit / 2 * random.between(-5, 9), currency)
                     : Money(random.between(-2'000'000'000'000, 9'000'000'000'000), currency);
      exact += line.net;
    }
    const Money total = settle(lines, currency);
    Money sum = Money::zero(currency);
    for (const InvoiceLine& line : lines) {
      sum += line.payable;
      const Int128 off = line.net.units() - line.payable.units();
      ASSERT_TRUE(off < unit && -off < unit) << "seed " << seed;
      ASSERT_TRUE(line.payable.units() % unit == 0) << "seed " << seed;
    }
    ASSERT_EQ(sum, total) << "seed " << seed;
    ASSERT_EQ(total, exact.rounded(Rounding::half_even)) << "seed " << seed;
  }
}

TEST(LedgerProperty, EveryTransactionSumsToZero) {
  const TenantId tenant{1};
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    const Money a(random.between(1, 1'000'000'000'000), usd);
    const Money b(random.between(0, 1'000'000'000'000), usd);
    const TransactionId id{seed};
    ASSERT_TRUE(sums_to_zero(top_up(id, tenant, a, "")));
    ASSERT_TRUE(sums_to_zero(hold(id, tenant, TaskId{1}, a)));
    ASSERT_TRUE(
        sums_to_zero(charge(id, tenant, TaskId{1}, a, Money(random.between(0, 1000), usd), b)));
    ASSERT_TRUE(
        sums_to_zero(refund(id, tenant, TaskId{1}, a, Money(random.between(0, 1000), usd))));
    ASSERT_TRUE(sums_to_zero(release(id, tenant, TaskId{1}, a)));
  }
}

}  // namespace
}  // namespace loam::billing
