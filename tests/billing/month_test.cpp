// A month of a tenant as FOCUS rows. That a month of a thousand tenants reconciles to zero is shown
// on the engine.
#include "billing/fixture.hpp"
#include "billing/focus.hpp"

namespace loam::billing {
namespace {

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

// The month's records of one tenant, in hours, shuffled.
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
      record.storage_mib_ms = random.between(0, 100'000) * record.length().ms;
      record.who.project = "project-" + std::to_string(lease);
      all.push_back(record);
    }
  }
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  return all;
}

TEST(Month, its_rows_pass_the_focus_check) {
  const Tables tables = month_tables();
  std::string csv = focus_csv_head();
  Random random(5);
  for (const Usage& usage : deliveries(random, 5)) {
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
