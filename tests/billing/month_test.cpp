// A simulated month of a thousand tenants: metered out of order and twice, rated, held, posted,
// invoiced, partly given back. At its end everything reconciles to zero.
#include "billing/budgets.hpp"
#include "billing/documents.hpp"
#include "billing/fixture.hpp"
#include "billing/focus.hpp"
#include "billing/ledger.hpp"
#include "billing/metering.hpp"

namespace loam::billing {
namespace {

constexpr std::uint64_t tenants = 1000;
const Instant month_start = parse_instant("2026-03-01T00:00:00Z").value();
const Instant month_end = parse_instant("2026-04-01T00:00:00Z").value();

Tables month_tables() {
  PriceTerms terms;
  terms.zone = "Europe/Berlin";  // with the change of the clock on 29 March
  terms.windows = {window("day", hm(8), hm(20)), window("night", hm(20), hm(8))};
  terms.prices = {by_time("day", "0.031"), by_time("night", "0.0117")};
  terms.services.storage = money("0.0001");
  Tables tables = tables_of(card("0.0237", "2026-01-01T00:00:00Z"), terms);
  terms.prices = {by_time("day", "0.029"), by_time("night", "0.0119")};
  auto next = PriceTable::compile(card("0.0229", "2026-03-17T12:00:00Z", 2), terms);
  EXPECT_TRUE(tables.add(*next).ok());
  return tables;
}

// The month's records of one tenant, in hours, with every fourth one sent twice and all shuffled.
std::vector<Usage> deliveries(Random& random, std::uint64_t tenant) {
  std::vector<Usage> all;
  for (std::uint64_t lease = 1; lease <= 1 + random.below(3); ++lease) {
    const Instant from = month_start + Duration{random.between(0, 2'500'000'000)};
    const Instant to = std::min(month_end, from + Duration{random.between(1, 40'000'000)});
    for (const Period& tile : tiles(from, to, Duration::hours(1))) {
      Usage record;
      record.id =
          std::to_string(tenant) + "/" + std::to_string(lease) + "/" + std::to_string(tile.from.ms);
      record.lease = LeaseId{tenant * 10 + lease};
      record.task = TaskId{tenant * 10 + lease};
      record.tenant = TenantId{tenant};
      record.from = tile.from;
      record.to = tile.to;
      record.run_from = from;
      record.terms.tariff = lease == 2 ? Tariff::flat : Tariff::time_of_day;
      record.billable_ce = MilliCe{random.between(1, 400'000)};
      record.storage = Mebibytes{random.between(0, 100'000)};
      record.who.project = "project-" + std::to_string(lease);
      all.push_back(record);
      if (random.chance(250)) all.push_back(record);
    }
  }
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  return all;
}

// Lines by project and meter.
std::vector<DocumentLine> lines_of(const std::map<std::pair<std::string, Meter>, Amount>& sums) {
  std::vector<DocumentLine> lines;
  for (const auto& [key, amount] : sums) {
    DocumentLine line;
    line.project = key.first;
    line.description = name_of(key.second);
    line.list = amount.list;
    line.net = amount.net;
    lines.push_back(line);
  }
  return lines;
}

TEST(Month, of_a_thousand_tenants_reconciles_to_zero) {
  const Tables tables = month_tables();
  Metering metering;
  Ledger ledger;
  DocumentBook book;
  std::uint64_t id = 0;
  Money invoiced = Money::zero(usd), net_of_lines = Money::zero(usd), paid_in = Money::zero(usd);
  Money given_back = Money::zero(usd);
  std::uint64_t duplicates = 0;
  for (std::uint64_t tenant = 1; tenant <= tenants; ++tenant) {
    Random random(tenant);
    const TenantId who{tenant};
    const Rater rater(tables, {usd, {random.between(0, 3000)}});
    ledger.open(who, {usd, PaymentMode::prepaid, Money::zero(usd)});
    ASSERT_TRUE(ledger.top_up(TransactionId{++id}, who, money("1000000"), "").ok());
    paid_in += money("1000000");
    std::map<std::pair<std::string, Meter>, Amount> sums;
    for (const Usage& usage : deliveries(random, tenant)) {
      const auto receipt = metering.add(usage);
      ASSERT_TRUE(receipt.ok()) << to_text(receipt.error());
      duplicates += *receipt == Metering::Receipt::duplicate ? 1 : 0;
      if (*receipt == Metering::Receipt::duplicate) continue;
      std::vector<Charge> charges;
      ASSERT_TRUE(rater.rate(usage, charges).ok());
      for (const Charge& charge : charges) {
        auto& sum =
            sums.try_emplace({usage.who.project, charge.meter}, Money::zero(usd), Money::zero(usd))
                .first->second;
        sum.list += charge.list;
        sum.net += charge.net;
      }
    }
    Document draft;
    draft.tenant = who;
    draft.period = {month_start, month_end};
    draft.lines = lines_of(sums);
    const auto issued = book.issue(draft, {});
    ASSERT_TRUE(issued.ok());
    Money payable = Money::zero(usd), exact = Money::zero(usd);
    for (const DocumentLine& line : (*issued)->lines) {
      payable += line.payable;
      exact += line.net;
    }
    ASSERT_EQ(payable, (*issued)->total);
    ASSERT_EQ(exact.rounded(Rounding::half_even), (*issued)->total);
    invoiced += (*issued)->total;
    net_of_lines += payable;
    // What is due is held, then posted.
    const TransactionId hold{++id};
    if ((*issued)->total > Money::zero(usd)) {
      ASSERT_TRUE(ledger.hold(hold, who, TaskId{}, (*issued)->total + money("5")).ok());
      ASSERT_TRUE(ledger.post(TransactionId{++id}, hold, (*issued)->total).ok());
    }
    if (tenant % 100 == 0 && (*issued)->total > money("0.01")) {
      const auto note = book.credit((*issued)->number, money("0.01"), "goodwill", month_end, {});
      ASSERT_TRUE(note.ok());
      ASSERT_TRUE(ledger.refund(TransactionId{++id}, who, TaskId{}, -(*note)->total).ok());
      given_back -= (*note)->total;
    }
    ASSERT_TRUE(ledger.held(who).is_zero());
  }
  EXPECT_GT(duplicates, 1000u);
  EXPECT_EQ(invoiced, net_of_lines);
  EXPECT_EQ(book.invoices().size(), tenants);
  EXPECT_EQ(ledger.accounts().balance(revenue_in(usd)), invoiced - given_back);
  EXPECT_EQ(ledger.accounts().balance(cash_in(usd)), -paid_in);
  Money wallets = Money::zero(usd);
  for (std::uint64_t tenant = 1; tenant <= tenants; ++tenant)
    wallets += ledger.wallet(TenantId{tenant});
  EXPECT_EQ(paid_in - wallets - (invoiced - given_back), money("0"));
  EXPECT_TRUE(ledger.imbalance(usd).is_zero());
}

TEST(Month, its_rows_pass_the_focus_check) {
  const Tables tables = month_tables();
  std::string csv = focus_csv_head();
  Random random(5);
  Metering metering;
  for (const Usage& usage : deliveries(random, 5)) {
    if (*metering.add(usage) == Metering::Receipt::duplicate) continue;
    std::vector<Charge> charges;
    ASSERT_TRUE(Rater(tables, {usd, {1234}}).rate(usage, charges).ok());
    for (const Charge& charge : charges) {
      FocusRow row = focus_usage(charge, usage, Granularity::exact);
      row.issuer = "Lab";
      row.billing_period = {month_start, month_end};
      csv += to_focus_csv(row);
    }
  }
  const auto report = validate_focus(csv);
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->rows, 10u);
  EXPECT_TRUE(report->faults.empty())
      << report->faults[0].row << " " << report->faults[0].column << " " << report->faults[0].what;
}

}  // namespace
}  // namespace loam::billing
