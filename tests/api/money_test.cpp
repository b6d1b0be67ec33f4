#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

using MoneyTest = ApiTest;

TEST_F(MoneyTest, a_bill_adds_up_and_proves_its_seconds) {
  const TaskId id = submit("acme", R"("name":"train","project":"vision")");
  daemon.start(id);
  daemon.clock.advance(Duration::minutes(90));
  daemon.run(StopTask{id});
  daemon.end(id);
  const auto bill = get("/v1/bill?tenant=acme").as<BillView>();
  ASSERT_EQ(bill.lines.size(), 1U);
  EXPECT_EQ(bill.lines[0].task, id.text());
  EXPECT_EQ(bill.lines[0].name, "train");
  EXPECT_EQ(bill.lines[0].project, "vision");
  EXPECT_EQ(bill.lines[0].ce, "25");
  EXPECT_EQ(bill.lines[0].unit_price, "0.02");
  EXPECT_EQ(bill.lines[0].net, bill.total);
  EXPECT_EQ(bill.run_ms, 5'400'000);
  EXPECT_EQ(bill.billed_ms, 5'400'000);
  EXPECT_EQ(bill.total, "0.75");
  EXPECT_EQ(bill.discount, "0");
  EXPECT_TRUE(bill.billed_equals_run);
  EXPECT_EQ(get("/v1/bill?tenant=beta").as<BillView>().lines.size(), 0U);
  EXPECT_FALSE(get("/v1/bill?tenant=beta").as<BillView>().billed_equals_run);
}

TEST_F(MoneyTest, a_bill_of_a_period_holds_that_usage_only) {
  const TaskId id = submit();
  daemon.start(id);
  daemon.clock.advance(Duration::minutes(10));
  daemon.end(id);
  const auto before = get("/v1/bill?tenant=acme&to=2026-03-02T00:00:00Z").as<BillView>();
  EXPECT_EQ(before.lines.size(), 0U);
  const auto after =
      get("/v1/bill?tenant=acme&from=2026-03-02T00:00:00Z&to=2026-03-03T00:00:00Z").as<BillView>();
  EXPECT_EQ(after.lines.size(), 1U);
  EXPECT_EQ(get("/v1/bill?tenant=acme&from=2026-03-03T00:00:00Z&to=2026-03-02T00:00:00Z").status(),
            400);
  EXPECT_EQ(get("/v1/bill?tenant=acme&from=yesterday").status(), 400);
}

TEST_F(MoneyTest, tenants_are_made_changed_and_topped_up) {
  const Caught made = post("/v1/tenants", R"({"name":"gamma","payment":"postpaid",
      "currency":"EUR","credit_limit":"50","discount_percent":"12.5","quota_ce":"200",
      "quota_memory":"100GiB","quota_tasks":3})");
  ASSERT_EQ(made.status(), 201) << made.response->body;
  const auto tenant = made.as<TenantView>();
  EXPECT_EQ(tenant.currency, "EUR");
  EXPECT_EQ(tenant.available, "50");
  EXPECT_EQ(tenant.discount_percent, "12.5");
  EXPECT_EQ(tenant.quota_ce, "200");
  EXPECT_EQ(tenant.quota_memory, "100GiB");
  EXPECT_EQ(tenant.quota_tasks, 3);
  EXPECT_FALSE(tenant.quota_queued.has_value());

  const auto changed = ask(http::Method::patch, "/v1/tenants/gamma",
                           R"({"quota_ce":"none","quota_tasks":"5","discount_percent":"0"})");
  ASSERT_EQ(changed.status(), 200) << changed.response->body;
  EXPECT_FALSE(changed.as<TenantView>().quota_ce.has_value());
  EXPECT_EQ(changed.as<TenantView>().quota_tasks, 5);
  EXPECT_EQ(changed.as<TenantView>().quota_memory, "100GiB");
  EXPECT_EQ(changed.as<TenantView>().discount_percent, "0");

  const auto paid = post("/v1/tenants/gamma/topup", R"({"amount":"12.34","note":"card"})");
  EXPECT_EQ(paid.as<TenantView>().wallet, "12.34");
  EXPECT_EQ(post("/v1/tenants", R"({"name":"gamma"})").problem().code, "name_taken");
  EXPECT_EQ(get("/v1/tenants").as<TenantList>().tenants.size(), 3U);
  EXPECT_EQ(get("/v1/tenants/nobody").status(), 404);
}

TEST_F(MoneyTest, a_price_without_a_date_takes_effect_at_once) {
  daemon.clock.advance(Duration{5});
  const Caught made = post("/v1/rates", R"({"currency":"EUR","on_demand":"0.03"})");
  ASSERT_EQ(made.status(), 201) << made.response->body;
  EXPECT_EQ(made.as<RateView>().on_demand, "0.03");
  EXPECT_EQ(made.as<RateView>().effective_from, "2026-03-02T00:00:00.005Z");
  EXPECT_EQ(get("/v1/rates").as<RateList>().rates.size(), 2U);
  EXPECT_EQ(
      post("/v1/rates", R"({"on_demand":"0.03","effective_from":"2020-01-01T00:00:00Z"})").status(),
      400);
  EXPECT_EQ(
      post("/v1/rates", R"({"on_demand":"1","effective_from":"1970-01-01T00:00:00Z"})").status(),
      400);
}

TEST_F(MoneyTest, invoices_close_what_is_open_once) {
  EXPECT_EQ(post("/v1/invoices", R"({"tenant":"acme"})").problem().code, "nothing_to_invoice");
  const TaskId id = submit();
  daemon.start(id);
  daemon.clock.advance(Duration::hours(1) - Duration::seconds(1));
  daemon.end(id);
  const Caught issued = post("/v1/invoices", R"({"tenant":"acme"})", root, "inv");
  ASSERT_EQ(issued.status(), 201) << issued.response->body;
  const auto invoice = issued.as<InvoiceView>();
  EXPECT_EQ(issued.response->headers.get("Location"), "/v1/invoices/" + invoice.id);
  EXPECT_EQ(invoice.total, "0.5");
  ASSERT_EQ(invoice.lines.size(), 1U);
  EXPECT_EQ(invoice.lines[0].ce_hours, "24.993056");
  EXPECT_EQ(post("/v1/invoices", R"({"tenant":"acme"})", root, "inv").as<InvoiceView>().id,
            invoice.id);
  EXPECT_EQ(get("/v1/invoices?tenant=acme").as<InvoiceList>().invoices.size(), 1U);
  EXPECT_EQ(get("/v1/invoices/" + invoice.id).as<InvoiceView>().total, "0.5");
  EXPECT_EQ(get("/v1/invoices/inv-99").status(), 404);
}

TEST_F(MoneyTest, the_ledger_shows_every_posting_in_pages) {
  submit();
  const auto ledger = get("/v1/ledger?tenant=acme&limit=1").as<LedgerView>();
  ASSERT_EQ(ledger.entries.size(), 1U);
  EXPECT_EQ(ledger.entries[0].kind, "hold");
  ASSERT_EQ(ledger.entries[0].postings.size(), 2U);
  const auto next = get("/v1/ledger?tenant=acme&limit=1&after=" + ledger.next).as<LedgerView>();
  ASSERT_EQ(next.entries.size(), 1U);
  EXPECT_EQ(next.entries[0].kind, "top_up");
  EXPECT_EQ(next.entries[0].note, "first");
  EXPECT_EQ(next.next, "");
}

}  // namespace
}  // namespace loam::api::testing
