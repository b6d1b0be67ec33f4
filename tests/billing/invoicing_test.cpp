// Invoices out of open charges: lines that sum, taxes rounded once, and whole amounts by the
// largest remainder.
#include "billing/invoicing.hpp"

#include "billing/apportion.hpp"
#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

const Instant march = parse_instant("2025-03-01T00:00:00Z").value();
const Instant april = parse_instant("2025-04-01T00:00:00Z").value();
const Instant may = parse_instant("2025-05-01T00:00:00Z").value();

UsageRecord charged(const char* net, Instant month_end = april) {
  UsageRecord record;
  record.from = month_end - hm(2);
  record.to = month_end - hm(1);
  record.billed = hm(1);
  record.billable_ce = MilliCe{1000};
  record.month_end = month_end;
  record.unit_price = money("1");
  record.list = record.net = money(net);
  return record;
}

Attribution of_project(const char* name) {
  Attribution who;
  who.project = name;
  return who;
}

Invoice closed(const OpenCharges& open, Instant to, const char* spare = "1000") {
  return close(open, InvoiceId{1}, TenantId{1}, usd, {to, to}, money(spare));
}

TEST(Invoicing, lines_sum_to_the_subtotal_and_taxes_are_rounded_once) {
  const std::vector<Tax> taxes{{"VAT", 190'000}, {"city", 5'000}};
  OpenCharges halves;
  for (const char* project : {"a", "b", "c"})
    halves.add(of_project(project), charged("0.005"), taxes);
  const Invoice invoice = closed(halves, april);
  ASSERT_EQ(invoice.lines.size(), 3u);
  EXPECT_EQ(invoice.lines[0].payable, money("0.01"));
  EXPECT_EQ(invoice.lines[1].payable, money("0.01"));
  EXPECT_EQ(invoice.lines[2].payable, money("0.00"));
  EXPECT_EQ(invoice.subtotal, money("0.02"));
  ASSERT_EQ(invoice.taxes.size(), 2u);
  EXPECT_EQ(invoice.taxes[0].amount, money("0.00"));  // 0.0038
  OpenCharges hundred;
  hundred.add(of_project("a"), charged("100.10"), {{"VAT", 190'000}});
  EXPECT_EQ(closed(hundred, april).taxes.front().amount, money("19.02"));  // 19.019
  EXPECT_EQ(closed(hundred, april).total, money("119.12"));
}

TEST(Invoicing, months_under_one_key_are_one_line_and_later_ones_stay) {
  OpenCharges open;
  open.add(of_project("b"), charged("1", april), {});
  open.add(of_project("a"), charged("2", april), {});
  open.add(of_project("b"), charged("4", may), {});
  const Invoice first = closed(open, april);
  ASSERT_EQ(first.lines.size(), 2u);
  EXPECT_EQ(first.lines[0].key.project, "a");
  EXPECT_EQ(first.total, money("3"));
  const Invoice both = closed(open, may);
  ASSERT_EQ(both.lines.size(), 2u);
  EXPECT_EQ(both.lines[1].key.project, "b");
  EXPECT_EQ(both.lines[1].net, money("5"));
  EXPECT_EQ(both.lines[1].milli_ce_ms, 2 * 1000 * hm(1).ms);
  open.take(april, april);
  EXPECT_TRUE(open.empty_to(april));
  EXPECT_EQ(closed(open, may).total, money("4"));
}

TEST(Invoicing, an_invoice_is_rounded_down_where_the_wallet_has_nothing_to_spare) {
  OpenCharges open;
  open.add(of_project("a"), charged("0.016"), {});
  EXPECT_EQ(closed(open, april).total, money("0.02"));
  EXPECT_EQ(closed(open, april).rounding, money("0.004"));
  EXPECT_EQ(closed(open, april, "0.003").total, money("0.01"));
}

// As sums of all of them, in whatever order they came.
TEST(Invoicing, lines_are_the_sums_of_their_charges) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    struct Told {
      std::string project;
      UsageRecord record;
    };
    std::vector<Told> all;
    std::map<std::string, Money> sums;
    for (std::uint64_t i = 0; i < 1 + random.below(40); ++i) {
      UsageRecord record = charged("0", random.chance(500) ? april : may);
      record.list = record.net = Money(random.between(-1'000'000'000, 9'000'000'000'000), usd);
      all.push_back({"p" + std::to_string(random.below(6)), record});
      sums.try_emplace(all.back().project, Money::zero(usd)).first->second += record.net;
    }
    const auto lines = [&] {
      OpenCharges open;
      for (const Told& each : all) open.add(of_project(each.project.c_str()), each.record, {});
      return closed(open, may).lines;
    };
    const std::vector<InvoiceLine> in_order = lines();
    ASSERT_EQ(in_order.size(), sums.size()) << "seed " << seed;
    for (const InvoiceLine& line : in_order)
      EXPECT_EQ(line.net, sums.at(line.key.project)) << "seed " << seed;
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
    EXPECT_EQ(lines(), in_order) << "seed " << seed;
  }
}

TEST(Invoicing, lines_of_any_currency_sum_to_their_total) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Currency currencies[] = {usd, Currency("JPY"), Currency("KWD")};
    const Currency currency = currencies[random.below(3)];
    std::vector<Money> exact;
    Money sum = Money::zero(currency);
    for (std::uint64_t i = 0; i < random.below(20); ++i) {
      exact.push_back(Money(random.between(-2'000'000'000'000, 9'000'000'000'000), currency));
      sum += exact.back();
    }
    const Settled settled = settle(exact, currency);
    Money payable = Money::zero(currency);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      payable += settled.payable[i];
      const Int128 off = exact[i].units() - settled.payable[i].units();
      EXPECT_TRUE(off < payable_unit(currency) && -off < payable_unit(currency)) << "seed " << seed;
    }
    EXPECT_EQ(payable, settled.total) << "seed " << seed;
    EXPECT_EQ(settled.total, sum.rounded(Rounding::half_even)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loam::billing
