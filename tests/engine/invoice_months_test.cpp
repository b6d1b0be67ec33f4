// Months of tenants: they cut records and change no price; invoices that come unasked.
#include <algorithm>

#include "engine/region.hpp"

namespace loam::engine {
namespace {

constexpr Instant april{1'775'001'600'000};  // 2026-04-01T00:00:00Z

class InvoiceMonthsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    region.on_decision = [this](const Decision& decision) {
      for (const Event& event : decision.events) {
        if (const auto* usage = std::get_if<UsageRated>(&event)) records.push_back(usage->record);
        if (const auto* issued = std::get_if<InvoiceIssued>(&event))
          invoices.push_back({region.now, issued->invoice});
      }
    };
  }
  TenantId tenant(const char* name, const char* zone, Invoicing invoicing) {
    TenantSpec spec;
    spec.name = name;
    spec.payment = PaymentMode::postpaid;
    spec.currency = usd;
    spec.credit_limit = money("1000000");
    spec.discount = BasisPoints{700};
    spec.billing_zone = zone;
    spec.invoicing = invoicing;
    const Decision made = act(CreateTenant{spec});
    EXPECT_FALSE(made.reject);
    return *TenantId::parse(made.subject);
  }
  Decision act(const Command& command) { return region.act(command); }
  void settle() { region.settle(); }
  void go(Instant to) { region.go(to); }
  LeaseId begin(TenantId tenant, Tariff tariff) {
    TaskSpec spec = Region::spec();
    spec.grace = Duration{0};
    spec.tariff = tariff;
    const Decision submitted = act(SubmitTask{tenant, spec});
    EXPECT_FALSE(submitted.reject);
    settle();
    const LeaseId id{region.state.next.lease - 1};
    act(ReportStarted{id, region.state.leases.at(id).epoch, region.now});
    return id;
  }
  void end(LeaseId id, Instant at) {
    const Lease& lease = region.state.leases.at(id);
    ReportEnded ended;
    ended.lease = id;
    ended.epoch = lease.epoch;
    ended.started_at = lease.started_at;
    ended.ended_at = at;
    EXPECT_FALSE(act(ended).reject);
    settle();
  }
  // What each of a tenant's months came to, by the records alone.
  std::map<Instant, Money> by_month(TenantId tenant) const {
    std::map<Instant, Money> sums;
    for (const UsageRecord& record : records) {
      if (record.tenant != tenant) continue;
      sums.try_emplace(record.month_end, Money::zero(usd)).first->second += record.net;
    }
    return sums;
  }
  Money sum_of(TenantId tenant) const {
    Money sum = Money::zero(usd);
    for (const auto& [end, net] : by_month(tenant)) sum += net;
    return sum;
  }

  struct Issued {
    Instant at;
    Invoice invoice;
  };
  Region region;
  std::vector<UsageRecord> records;
  std::vector<Issued> invoices;
};

TEST_F(InvoiceMonthsTest, a_month_that_ends_cuts_records_and_changes_no_price) {
  Random random(5);
  constexpr Granularity units[] = {Granularity::exact, Granularity::second, Granularity::minute,
                                   Granularity::hour};
  for (int round = 0; round < 60; ++round) {
    region = Region();
    records.clear();
    PriceTerms terms = day_and_night();
    terms.granularity = units[random.below(4)];
    if (random.chance(500)) {
      // Tiers count in months of Berlin, which no tenant's are.
      for (Price& each : terms.prices)
        each.tiers.push_back({random.between(1, 60'000), money("0.7")});
    }
    region.now = april - Duration::hours(20);
    ASSERT_FALSE(region.publish(terms, "2").reject);
    const TenantId plain = tenant("plain", "UTC", Invoicing::on_demand);
    const TenantId kolkata = tenant("kolkata", "Asia/Kolkata", Invoicing::monthly);
    const TenantId york = tenant("york", "America/New_York", Invoicing::monthly);
    const Instant began = april - Duration{random.between(0, 12 * 3'600'000)};
    go(began);
    std::vector<LeaseId> leases;
    for (const TenantId each : {plain, kolkata, york})
      leases.push_back(begin(each, Tariff::time_of_day));
    const Instant ended = began + Duration{random.between(1, 14 * 3'600'000)};
    // Told so late that what was rated goes back, over a month's end too.
    go(ended + Duration{random.chance(500) ? random.between(0, 7'200'000) : 0});
    for (const LeaseId each : leases) end(each, ended);
    EXPECT_EQ(sum_of(kolkata), sum_of(plain)) << round;
    EXPECT_EQ(sum_of(york), sum_of(plain)) << round;
    for (const UsageRecord& record : records) {
      const billing::Zone& zone =
          region.state.zones.at(region.state.tenant(record.tenant).spec.billing_zone);
      const Instant first = std::min(record.from, record.to);
      const Instant last = std::max(record.from, record.to);
      EXPECT_LE(last, record.month_end);
      EXPECT_GE(first, billing::month_of(zone, record.month_end - Duration{1}).from);
      EXPECT_EQ(billing::month_of(zone, record.month_end).from, record.month_end);
    }
    EXPECT_EQ(digest(state_of(image_of(region.state))), digest(region.state));
    EXPECT_EQ(state_of(image_of(region.state)).invoice_dues, region.state.invoice_dues);
  }
}

TEST_F(InvoiceMonthsTest, invoices_come_unasked_an_hour_after_their_months) {
  region.now = april - Duration::hours(20);
  ASSERT_FALSE(region.publish({}, "2").reject);
  const TenantId kolkata = tenant("kolkata", "Asia/Kolkata", Invoicing::monthly);
  const TenantId plain = tenant("plain", "UTC", Invoicing::on_demand);
  go(april - Duration::hours(8));
  const LeaseId one = begin(kolkata, Tariff::flat), other = begin(plain, Tariff::flat);
  go(april + Duration::hours(1));
  end(one, region.now);
  end(other, region.now);
  go(april + Duration::hours(24 * 31));
  const Instant ends = april - Duration::minutes(330);
  const Instant next = ends + Duration::hours(24 * 30);
  ASSERT_EQ(invoices.size(), 2U);
  EXPECT_EQ(invoices[0].at, ends + Duration::hours(1));
  EXPECT_EQ(invoices[1].at, next + Duration::hours(1));
  const std::map<Instant, Money> expected = by_month(kolkata);
  EXPECT_EQ(expected.size(), 2U);
  for (const Issued& issued : invoices) {
    EXPECT_EQ(issued.invoice.tenant, kolkata);
    EXPECT_EQ(issued.invoice.to, issued.invoice.months_to);
    ASSERT_EQ(issued.invoice.lines.size(), 1U);
    EXPECT_EQ(issued.invoice.lines.front().net, expected.at(issued.invoice.to));
  }
  EXPECT_EQ(invoices[1].invoice.from, invoices[0].invoice.to);
  // Who turns monthly gets the months that were open, one each, and nothing comes twice.
  TenantSpec spec = region.state.tenant(plain).spec;
  spec.invoicing = Invoicing::monthly;
  act(ChangeTenant{plain, spec});
  settle();
  ASSERT_EQ(invoices.size(), 4U);
  go(april + Duration::hours(24 * 70));
  ASSERT_EQ(invoices.size(), 4U);
  EXPECT_EQ(invoices[2].invoice.to, april);
  EXPECT_EQ(invoices[2].invoice.lines.front().net + invoices[3].invoice.lines.front().net,
            sum_of(plain));
}

TEST_F(InvoiceMonthsTest, what_belongs_to_no_month_is_on_the_next_invoice_of_a_month) {
  ASSERT_FALSE(region.publish({}, "2").reject);
  const TenantId plain = tenant("plain", "UTC", Invoicing::on_demand);
  const LeaseId lease = begin(plain, Tariff::flat);
  go(region.now + Duration::minutes(30));
  end(lease, region.now);
  // As a journal of before tells it.
  billing::OpenCharges& open = region.state.open_charges.at(plain);
  auto month = open.months.extract(open.months.begin());
  month.key() = Instant{};
  open.months.insert(std::move(month));
  TenantSpec spec = region.state.tenant(plain).spec;
  spec.invoicing = Invoicing::monthly;
  act(ChangeTenant{plain, spec});
  go(april + Duration::hours(2));
  ASSERT_EQ(invoices.size(), 1U);
  EXPECT_EQ(invoices[0].at, april + Duration::hours(1));
  EXPECT_EQ(invoices[0].invoice.to, april);
  EXPECT_TRUE(region.state.open_charges.at(plain).empty());
}

}  // namespace
}  // namespace loam::engine
