#include "api/bill_maker.hpp"
#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

using MoneyTest = ApiTest;

// March was invoiced with the usage records up to u5, April with those up to u9.
TEST(InvoiceFinder, tells_what_corrects_a_month_that_was_invoiced_before) {
  const Instant april = *parse_instant("2026-04-01T00:00:00Z");
  const Instant may = *parse_instant("2026-05-01T00:00:00Z");
  const Instant june = *parse_instant("2026-06-01T00:00:00Z");
  InvoiceFinder finder;
  const auto invoice = [&](std::uint64_t id, Instant month_end, std::uint64_t upto) {
    InvoiceRecord record;
    record.invoice.id = InvoiceId{id};
    record.invoice.to = record.invoice.months_to = month_end;
    record.usage_upto = UsageId{upto};
    record.sequence = upto;
    finder.add(record);
  };
  invoice(1, april, 5);
  invoice(2, may, 9);
  const auto of = [&](std::uint64_t id, Instant month_end) {
    UsageRecord record;
    record.id = UsageId{id};
    record.month_end = month_end;
    const Invoiced on = finder.of(record);
    AdjustmentRecord adjustment;
    adjustment.sequence = id - 1;
    adjustment.line.month_end = month_end;
    EXPECT_EQ(finder.of(adjustment), on) << id;
    return std::pair(on.invoice.value, on.correction);
  };
  using Found = std::pair<std::uint64_t, bool>;
  EXPECT_EQ(of(3, april), Found(1, false));
  EXPECT_EQ(of(7, april), Found(2, true)) << "told after March was invoiced";
  EXPECT_EQ(of(7, may), Found(2, false));
  EXPECT_EQ(of(12, april), Found(0, true));
  EXPECT_EQ(of(12, june), Found(0, false));
  EXPECT_EQ(of(7, Instant{}), Found(2, false)) << "old records do not tell their month";
}

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

TEST_F(MoneyTest, a_months_invoice_leaves_what_is_later_open_and_the_bill_says_which) {
  const auto zone = ask(http::Method::patch, "/v1/tenants/acme",
                        R"({"billing_zone":"America/New_York","invoicing":"monthly"})");
  ASSERT_EQ(zone.status(), 200) << zone.response->body;
  EXPECT_EQ(zone.as<TenantView>().billing_zone, "America/New_York");
  EXPECT_EQ(zone.as<TenantView>().invoicing, "monthly");
  EXPECT_EQ(ask(http::Method::patch, "/v1/tenants/acme", R"({"billing_zone":"Nowhere"})").status(),
            400);
  EXPECT_EQ(ask(http::Method::patch, "/v1/tenants/acme", R"({"invoicing":"weekly"})").status(),
            400);
  // Half an hour of March, and one of April, by the clock of New York.
  daemon.clock.advance(*parse_instant("2026-04-01T03:30:00Z") - daemon.clock.now());
  const TaskId id = submit("acme", R"("model":"llama@3.1","group":"nightly")");
  daemon.start(id);
  daemon.clock.advance(Duration::hours(1));
  daemon.end(id);
  daemon.clock.advance(Duration::minutes(2));
  EXPECT_EQ(post("/v1/invoices", R"({"tenant":"acme","month":"2026-13"})").status(), 400);
  EXPECT_EQ(post("/v1/invoices", R"({"tenant":"acme","month":"2026-04"})").problem().code,
            "wrong_state");
  const Caught issued = post("/v1/invoices", R"({"tenant":"acme","month":"2026-03"})");
  ASSERT_EQ(issued.status(), 201) << issued.response->body;
  const auto invoice = issued.as<InvoiceView>();
  EXPECT_EQ(invoice.to, "2026-04-01T04:00:00Z");
  ASSERT_EQ(invoice.lines.size(), 1U);
  EXPECT_EQ(invoice.lines[0].model, "llama");
  EXPECT_EQ(invoice.lines[0].model_version, "3.1");
  EXPECT_EQ(invoice.lines[0].net, "0.25");
  EXPECT_EQ(post("/v1/invoices", R"({"tenant":"acme","month":"2026-03"})").problem().code,
            "wrong_state");
  const auto bill = get("/v1/bill?tenant=acme").as<BillView>();
  EXPECT_EQ(bill.billing_zone, "America/New_York");
  ASSERT_EQ(bill.lines.size(), 2U);
  EXPECT_EQ(bill.lines[0].invoice, invoice.id);
  EXPECT_EQ(bill.lines[0].net, "0.25");
  EXPECT_EQ(bill.lines[0].group, "nightly");
  EXPECT_EQ(bill.lines[0].model_version, "3.1");
  EXPECT_EQ(bill.lines[1].invoice, "");
  EXPECT_EQ(bill.lines[1].net, "0.25");
}

// Publishes the same price with tax.
void tax_it(FakeDaemon& daemon) {
  daemon.clock.advance(Duration{5});
  RateCard card;
  card.effective_from = daemon.clock.now();
  card.on_demand = *Money::parse("0.02", card.currency);
  card.terms.taxes = {{"VAT", 190'000}, {"levy", 10'000}};
  daemon.run(PublishRateCard{card});
}

TEST_F(MoneyTest, a_bill_with_its_taxes_is_what_the_ledger_took) {
  tax_it(daemon);
  const TaskId id = submit();
  daemon.start(id);
  daemon.clock.advance(Duration{7'777'777});
  daemon.end(id);
  const auto bill = get("/v1/bill?tenant=acme").as<BillView>();
  ASSERT_EQ(bill.taxes.size(), 2U);
  EXPECT_EQ(bill.taxes[0].name, "VAT");
  EXPECT_EQ(bill.taxes[0].percent, "19");
  EXPECT_EQ(bill.taxes[0].base, bill.total);
  const Currency usd("USD");
  const auto money = [&](const std::string& text) { return *Money::parse(text, usd); };
  EXPECT_EQ(money(bill.total) + money(bill.taxes[0].amount) + money(bill.taxes[1].amount),
            money(bill.total_with_tax));
  const auto tenant = get("/v1/tenants/acme").as<TenantView>();
  EXPECT_EQ(money(tenant.wallet) + money(bill.total_with_tax), money("1000"));
  const auto task = get("/v1/tasks/" + id.text()).as<TaskView>();
  EXPECT_EQ(task.cost, bill.total);
  EXPECT_EQ(task.cost_with_tax, bill.total_with_tax);
  EXPECT_EQ(bill.lines[0].isolation, "software");
  EXPECT_EQ(bill.lines[0].used_from, "2026-03-02T00:00:00.005Z");
  EXPECT_EQ(bill.lines[0].invoice, "");

  const auto quote = post("/v1/quote", R"({"tenant":"acme","ce":"25","time":"1h","command":["x"]})")
                         .as<QuoteView>();
  EXPECT_EQ(quote.expected, "0.5");
  EXPECT_EQ(quote.expected_with_tax, "0.6");
  EXPECT_EQ(quote.worst_with_tax, "0.606666666667");
  EXPECT_EQ(quote.at_most, "0.606666666668");  // rounded up: it is set aside
}

TEST_F(MoneyTest, a_credit_note_is_on_the_bill_and_shown_by_its_id) {
  tax_it(daemon);
  const TaskId id = submit();
  daemon.start(id);
  daemon.clock.advance(Duration::hours(1));
  daemon.end(id);
  const auto invoice = post("/v1/invoices", R"({"tenant":"acme"})").as<InvoiceView>();
  EXPECT_EQ(invoice.tenant_id, "tenant-1");
  EXPECT_EQ(invoice.credited, "0");
  daemon.clock.advance(Duration::seconds(1));
  EXPECT_EQ(
      post("/v1/invoices/" + invoice.id + "/credit", R"({"reason":"x","amount":"0.205"})").status(),
      400);
  const auto note =
      post("/v1/invoices/" + invoice.id + "/credit", R"({"reason":"slow","amount":"0.20"})")
          .as<CreditNoteView>();
  EXPECT_EQ(note.id, "cn-1");
  ASSERT_EQ(note.taxes.size(), 2U);
  const auto shown = get("/v1/credit-notes/cn-1").as<CreditNoteView>();
  EXPECT_EQ(to_json(shown), to_json(note));
  EXPECT_EQ(shown.tenant, "acme");
  EXPECT_EQ(get("/v1/credit-notes/cn-2").status(), 404);
  EXPECT_EQ(get("/v1/credit-notes/cn-1", uid(1002)).status(), 404);  // somebody else's
  EXPECT_EQ(get("/v1/invoices?tenant=acme").as<InvoiceList>().invoices[0].credited, note.total);

  const auto bill = get("/v1/bill?tenant=acme").as<BillView>();
  EXPECT_EQ(bill.lines[0].invoice, invoice.id);
  ASSERT_EQ(bill.adjustments.size(), 1U);
  EXPECT_EQ(bill.adjustments[0].kind, "credit_note");
  EXPECT_EQ(bill.adjustments[0].note, "cn-1");
  EXPECT_EQ(bill.total, "0.3");
  ASSERT_EQ(bill.invoices.size(), 1U);
  EXPECT_EQ(bill.invoices[0].total, invoice.total);
  EXPECT_EQ(get("/v1/invoices/1").problem().detail.find("there is no invoice 1"), 0U);
}

TEST_F(MoneyTest, bills_of_all_tenants_are_cut_into_buckets_of_a_zone) {
  const TaskId id = submit();
  daemon.start(id);
  daemon.clock.advance(Duration::hours(2));
  daemon.end(id);
  // 00:00Z is 05:30 in Kolkata: records of UTC hours are cut at its hours.
  const auto list = get("/v1/bills?bucket=hour&zone=Asia/Kolkata").as<BillList>();
  ASSERT_EQ(list.bills.size(), 3U);
  const char* const costs[] = {"0.25", "0.5", "0.25"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(list.bills[i].tenant, "acme");
    EXPECT_EQ(list.bills[i].total, costs[i]) << i;
  }
  EXPECT_EQ(list.bills[1].from, "2026-03-02T00:30:00Z");
  EXPECT_EQ(get("/v1/bills", uid(1002)).as<BillList>().bills.size(), 1U);
  EXPECT_EQ(get("/v1/bills", uid(1002)).as<BillList>().bills[0].tenant, "beta");
  EXPECT_EQ(get("/v1/bills?tenant=acme", uid(1002)).status(), 404);
  EXPECT_EQ(get("/v1/bills?bucket=fortnight").status(), 400);
  EXPECT_EQ(get("/v1/bills?zone=Mars/Olympus").status(), 400);
  EXPECT_EQ(get("/v1/bills?bucket=hour&from=1990-01-01T00:00:00Z").status(), 400);
  // Any cut of the time adds up.
  EXPECT_EQ(get("/v1/bill?tenant=acme&to=2026-03-02T00:40:00Z").as<BillView>().total,
            "0.333333333333");
  EXPECT_EQ(get("/v1/bill?tenant=acme&from=2026-03-02T00:40:00Z").as<BillView>().total,
            "0.666666666667");
}

TEST_F(MoneyTest, what_no_list_of_currencies_has_is_refused_and_half_a_yen_too) {
  EXPECT_NE(
      post("/v1/tenants", R"({"name":"gamma","currency":"USB"})").problem().detail.find("USB"),
      std::string::npos);
  EXPECT_EQ(post("/v1/rates", R"({"currency":"QQQ","on_demand":"1"})").status(), 400);
  ASSERT_EQ(post("/v1/tenants", R"({"name":"gamma","currency":"JPY"})").status(), 201);
  EXPECT_EQ(post("/v1/tenants/gamma/topup", R"({"amount":"10.5"})").status(), 400);
  EXPECT_EQ(post("/v1/tenants/gamma/topup", R"({"amount":"10"})").status(), 200);
  EXPECT_EQ(post("/v1/tenants/acme/topup", R"({"amount":"0.001"})").status(), 400);
}

TEST_F(MoneyTest, tags_are_checked_before_anything_is_accepted) {
  for (const char* tags : {R"({"a b":"x"})", R"({"a":"x,y"})", R"({"a":"\t"})", R"({"":"x"})"}) {
    const Caught said = post("/v1/tasks", std::string(R"({"tenant":"acme","ce":"1","tags":)") +
                                              tags + R"(,"command":["x"]})");
    EXPECT_EQ(said.status(), 400) << tags;
    EXPECT_NE(said.problem().detail.find("'tags'"), std::string::npos);
  }
}

TEST_F(MoneyTest, the_price_of_spot_is_told_with_its_past) {
  EXPECT_TRUE(get("/v1/rates/spot").as<SpotPriceList>().prices.empty());
  daemon.clock.advance(Duration{5});
  RateCard card;
  card.effective_from = daemon.clock.now();
  card.on_demand = *Money::parse("0.02", card.currency);
  card.terms.spot.sold = true;
  daemon.run(PublishRateCard{card});
  daemon.clock.advance(Duration::minutes(2));
  submit();  // a pass that prices spot
  const auto list = get("/v1/rates/spot?from=2026-03-02T00:00:00Z").as<SpotPriceList>();
  EXPECT_EQ(list.on_demand, "0.02");
  ASSERT_FALSE(list.prices.empty());
  EXPECT_EQ(list.prices[0].to, "");
  EXPECT_EQ(list.prices.back().price, "0.003");  // 15 % of it where nobody wants any
  EXPECT_EQ(get("/v1/rates/spot?currency=XYZ").status(), 400);
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

TEST_F(MoneyTest, money_is_paid_out_and_payments_are_turned_round_once) {
  const char* all = R"({"amount":"1000.01","note":"back"})";
  EXPECT_EQ(post("/v1/tenants/acme/refund", all).problem().code, "insufficient_funds");
  EXPECT_EQ(post("/v1/tenants/acme/refund", R"({"amount":"-1"})").status(), 400);
  EXPECT_EQ(post("/v1/tenants/nobody/refund", R"({"amount":"1"})").status(), 404);
  EXPECT_EQ(post("/v1/tenants/acme/refund", R"({"amount":"1"})", uid(1001)).status(), 403);
  const char* some = R"({"amount":"400","note":"back"})";
  EXPECT_EQ(post("/v1/tenants/acme/refund", some, root, "out").as<TenantView>().wallet, "600");
  EXPECT_EQ(post("/v1/tenants/acme/refund", some, root, "out").as<TenantView>().wallet, "600");
  const auto paid = get("/v1/ledger?tenant=acme").as<LedgerView>();
  ASSERT_EQ(paid.entries.size(), 2U);
  EXPECT_EQ(paid.entries[0].kind, "payout");
  EXPECT_EQ(paid.entries[1].kind, "top_up");
  const std::string top_up = "/v1/ledger/" + paid.entries[1].id + "/reverse";
  const char* why = R"({"note":"never came"})";
  EXPECT_EQ(post(top_up, why, uid(1001)).status(), 403);
  EXPECT_EQ(post(top_up, why, root, "rev").as<TenantView>().wallet, "-400");
  EXPECT_EQ(post(top_up, why, root, "rev").as<TenantView>().wallet, "-400");  // the same request
  EXPECT_EQ(post(top_up, why).problem().code, "wrong_state");
  EXPECT_EQ(post("/v1/ledger/x99/reverse", why).status(), 404);
  EXPECT_EQ(post("/v1/ledger/what/reverse", why).status(), 404);
  const auto after = get("/v1/ledger?tenant=acme").as<LedgerView>();
  EXPECT_EQ(after.entries[0].kind, "reversal");
  EXPECT_EQ(after.entries[0].reverses, paid.entries[1].id);
  EXPECT_EQ(after.entries[0].note, "never came");
  EXPECT_EQ(post("/v1/tasks", task_body("acme")).problem().code, "insufficient_funds");
}

}  // namespace
}  // namespace loam::api::testing
