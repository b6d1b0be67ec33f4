// A month of a thousand tenants through the engine: everything that was paid in is in a wallet, in
// revenue or in tax; what was invoiced is what was charged; nothing is left over.
#include <map>

#include "engine/region.hpp"

namespace loam::engine {
namespace {

constexpr std::uint64_t tenants = 1000;
constexpr std::uint64_t devices = 60;

PriceTerms month_terms() {
  PriceTerms terms = day_and_night();
  terms.granularity = Granularity::minute;
  terms.prices.push_back(price(Tariff::flat, "", "0.5"));
  terms.prices.back().service_class = "gold";
  terms.prices.front().tiers.push_back({20'000, money("2.2")});
  terms.discounts = {{"spring", {300}, {}}};
  terms.taxes = {{"VAT", 190'000}, {"levy", 1'234}};
  return terms;
}

class Month {
 public:
  Month() : random_(7) {
    for (std::uint64_t d = 1; d <= devices; ++d) {
      DeviceFacts facts;
      facts.uuid = "pool-" + std::to_string(d);
      facts.type = "A100";
      facts.memory = Mebibytes{81'920};
      facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
      region_.act(AttachDevice{"n1", facts});
    }
    EXPECT_FALSE(region_.publish(month_terms(), "1.1").reject);
    // Prices change in the middle of the month.
    PriceTerms later = month_terms();
    later.prices.front().tiers.front().price = money("3.3");
    EXPECT_FALSE(region_.publish(later, "1.3", start + Duration::hours(24 * 14)).reject);
    for (std::uint64_t t = 2; t <= tenants; ++t) {
      TenantSpec spec;
      spec.name = "tenant-" + std::to_string(t);
      spec.currency = usd;
      spec.credit_limit = Money::zero(usd);
      spec.discount = BasisPoints{static_cast<std::int64_t>(t % 7) * 100};
      region_.act(CreateTenant{spec});
      region_.act(TopUp{TenantId{t}, money("50000"), ""});
    }
    paid_in_ = money("100000") + money("50000").times_ratio(tenants - 1, 1, Rounding::half_even);
  }

  // Submits for every tenant in turn, over the month, and lets time pass.
  void live() {
    const Duration step{28LL * 24 * 3'600'000 / static_cast<std::int64_t>(2 * tenants)};
    for (std::uint64_t i = 0; i < 2 * tenants; ++i) {
      region_.go(region_.now + step);
      end_due();
      submit(TenantId{i % tenants + 1});
      region_.settle();
      launch();
    }
    while (!ends_.empty()) {
      region_.go(ends_.begin()->first);
      end_due();
      region_.settle();
      launch();
    }
  }

  void submit(TenantId tenant) {
    TaskSpec spec = Region::spec();
    spec.request.share = MilliDevice{random_.between(50, 1000)};
    spec.limit = Duration{random_.between(60'000, 8LL * 3'600'000)};
    spec.attribution.project = random_.chance(500) ? "vision" : "speech";
    spec.tariff = random_.chance(500) ? Tariff::time_of_day : Tariff::flat;
    if (spec.tariff == Tariff::flat && random_.chance(300)) spec.service_class = "gold";
    const Decision decision = region_.act(SubmitTask{tenant, spec});
    EXPECT_FALSE(decision.reject) << decision.reject->message;
  }

  // Every lease that has none yet gets an end: on time, early, or told an hour late.
  void launch() {
    for (auto at = region_.state.leases.upper_bound(last_); at != region_.state.leases.end();
         at = region_.state.leases.upper_bound(last_)) {
      last_ = at->first;
      const Lease lease = at->second;
      region_.act(ReportStarted{lease.id, lease.epoch, region_.now});
      const Duration limit = region_.state.tasks.at(lease.task).spec->limit;
      const Instant end = region_.now + Duration{random_.between(1, limit.ms)};
      const Duration late{random_.chance(200) ? random_.between(1, 3'600'000) : 0};
      ends_.emplace(end + late, std::pair(lease.id, end));
    }
  }

  void end_due() {
    while (!ends_.empty() && ends_.begin()->first <= region_.now) {
      const auto [lease, end] = ends_.begin()->second;
      ends_.erase(ends_.begin());
      ReportEnded ended;
      ended.lease = lease;
      ended.epoch = region_.state.leases.at(lease).epoch;
      ended.started_at = region_.state.leases.at(lease).started_at;
      ended.ended_at = end;
      region_.act(ended);
    }
  }

  Region region_;
  Random random_;
  LeaseId last_;
  std::multimap<Instant, std::pair<LeaseId, Instant>> ends_;
  Money paid_in_;
};

TEST(Month, a_thousand_tenants_reconcile_to_zero) {
  Month month;
  month.live();
  State& state = month.region_.state;
  EXPECT_TRUE(state.tasks.empty());
  Money invoiced = Money::zero(usd);
  Money subtotals = Money::zero(usd);
  Money taxes = Money::zero(usd);
  std::uint64_t count = 0;
  for (std::uint64_t t = 1; t <= tenants; ++t) {
    const Decision decision = month.region_.act(IssueInvoice{TenantId{t}});
    ASSERT_FALSE(decision.reject) << decision.reject->message;
    const Invoice& invoice = std::get<InvoiceIssued>(decision.events.back()).invoice;
    EXPECT_EQ(invoice.id.value, ++count);
    Money lines = Money::zero(usd);
    for (const InvoiceLine& line : invoice.lines) {
      invoiced += line.net;
      lines += line.payable;
    }
    EXPECT_EQ(lines, invoice.subtotal);
    Money total = invoice.subtotal;
    for (const TaxLine& tax : invoice.taxes) total += tax.amount;
    EXPECT_EQ(total, invoice.total);
    EXPECT_EQ(invoice.taxes.size(), 2u);
    subtotals += invoice.subtotal;
    taxes += total - invoice.subtotal;
    EXPECT_TRUE(state.open_charges.at(TenantId{t}).empty());
  }
  const Money revenue = month.region_.revenue();
  const Money tax = state.accounts.balance(billing::tax_in(usd));
  EXPECT_GT(revenue, money("1000"));
  EXPECT_EQ(invoiced, revenue);
  // What was invoiced is what the ledger moved by, to the last decimal.
  const Money rounding = state.accounts.balance(billing::rounding_in(usd));
  EXPECT_EQ(subtotals, revenue + rounding);
  EXPECT_EQ(taxes, tax);
  EXPECT_FALSE(rounding.is_zero());
  // Everything that was paid in is somewhere, and all of it together is nothing.
  Money wallets = Money::zero(usd);
  Money all = Money::zero(usd);
  for (const auto& [account, amount] : state.accounts.balances()) {
    all += amount;
    if (account.kind == AccountKind::wallet) wallets += amount;
    if (account.kind == AccountKind::held) {
      EXPECT_TRUE(amount.is_zero()) << to_text(account);
    }
  }
  EXPECT_TRUE(all.is_zero()) << to_text(all);
  EXPECT_EQ(wallets + revenue + tax + rounding, month.paid_in_);
  EXPECT_EQ(wallets + subtotals + taxes, month.paid_in_);
  EXPECT_EQ(digest(state_of(image_of(state))), digest(state));
}

}  // namespace
}  // namespace loam::engine
