// Money properties over many random cases: how usage is cut changes nothing; an invoice's lines are
// its total. The seed of a failing case is in its message.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "billing/accounts.hpp"
#include "billing/invoicing.hpp"
#include "billing/rating.hpp"

namespace loam::billing {
namespace {

constexpr std::uint64_t cases = 2000;
const Currency usd("USD");

Instant instant(std::int64_t ms) {
  return Instant{1'767'225'600'000 + ms};
}

// A book with a few changes of price, and a lease that started at its beginning.
struct Priced {
  RateBook book;
  Lease lease;
  Payer payer;
};

Priced priced(Random& random) {
  Priced all;
  Instant from = instant(0);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    RateCard card;
    card.id = RateCardId{id};
    card.effective_from = from;
    card.currency = usd;
    card.on_demand = Money(random.between(0, 3'000'000'000'000), usd);
    all.book.add(card);
    from = from + Duration{random.between(1, 5'000'000)};
  }
  all.lease.id = LeaseId{1};
  all.lease.billable_ce = MilliCe{random.between(1, 300'000)};
  all.lease.started_at = all.lease.billed_until = instant(random.between(0, 1'000'000));
  all.lease.segment_list = all.lease.segment_net = Money::zero(usd);
  all.payer = {usd, BasisPoints{random.between(0, 10'000)}};
  return all;
}

struct Sum {
  Money list = Money::zero(usd);
  Money net = Money::zero(usd);
  std::int64_t ms = 0;
  friend bool operator==(const Sum&, const Sum&) = default;
};

void rate_to(const Priced& all, Lease& lease, Instant to, Sum& sum) {
  const auto records = to < lease.billed_until ? rate_back(lease, all.payer, all.book, to)
                                               : rate_until(lease, all.payer, all.book, to);
  for (const UsageRecord& record : records) {
    EXPECT_EQ(record.from, lease.billed_until);
    advance(lease, record);
    sum.list += record.list;
    sum.net += record.net;
    sum.ms += record.length().ms;
  }
  EXPECT_EQ(lease.billed_until, to);
}

TEST(RatingProperty, HoweverUsageIsCutItSumsToTheSame) {
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    const Priced all = priced(random);
    const Instant end = all.lease.started_at + Duration{random.between(1, 20'000'000)};
    Sum whole;
    Lease at_once = all.lease;
    rate_to(all, at_once, end, whole);
    Sum pieces;
    Lease lease = all.lease;
    while (lease.billed_until < end) {
      const std::int64_t rest = (end - lease.billed_until).ms;
      rate_to(all, lease, lease.billed_until + Duration{random.between(1, rest)}, pieces);
    }
    ASSERT_TRUE(whole == pieces) << "seed " << seed;
  }
}

TEST(RatingProperty, GoingBackLeavesWhatWouldHaveBeenRatedAtOnce) {
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    const Priced all = priced(random);
    const Duration ran{random.between(0, 20'000'000)};
    const Instant end = all.lease.started_at + ran;
    Sum right;
    Lease known = all.lease;
    rate_to(all, known, end, right);
    Sum corrected;
    Lease late = all.lease;
    rate_to(all, late, end + Duration{random.between(0, 2'000'000)}, corrected);
    rate_to(all, late, end + Duration{random.between(2'000'000, 20'000'000)}, corrected);
    rate_to(all, late, end, corrected);
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
    ASSERT_TRUE(sums_to_zero(charge(id, tenant, TaskId{1}, a, b)));
    ASSERT_TRUE(sums_to_zero(refund(id, tenant, TaskId{1}, a)));
    ASSERT_TRUE(sums_to_zero(release(id, tenant, TaskId{1}, a)));
  }
}

}  // namespace
}  // namespace loam::billing
