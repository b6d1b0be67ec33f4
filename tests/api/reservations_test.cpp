// Reservations over HTTP: quoted, made, seen, run on, charged for what was not used, cancelled.
#include <set>

#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

class ReservationTest : public ApiTest {
 protected:
  void sell(const char* terms) {
    daemon.clock.advance(Duration{5});
    const Caught made =
        post("/v1/rates", R"({"on_demand":"0.02","terms":)" + std::string(terms) + "}");
    EXPECT_EQ(made.status(), 201) << made.response->body;
  }
  void sell() {
    sell(R"({"reservation_unused":5000,"prices":[{"purchase_model":"reservation",
             "tiers":[{"above_milli_ce_hours":0,"price":"0.03 USD"}]}]})");
  }
  static std::string asked(const std::string& more, const std::string& tenant = "acme") {
    return R"({"tenant":")" + tenant + R"(","ce":"40",)" + more + "}";
  }
  ReservationView make(const std::string& more) {
    const Caught made = post("/v1/reservations", asked(more), uid(1001));
    EXPECT_EQ(made.status(), 201) << made.response->body;
    return made.as<ReservationView>();
  }
  std::vector<ReservationView> seen(const As& who) {
    return get("/v1/reservations", who).as<ReservationList>().reservations;
  }
  void pass(Duration length) {
    daemon.clock.advance(length);
    daemon.run(StopTask{TaskId{99}});  // anything, so that time is looked at
  }
};

const std::string two_hours = R"("from":"2026-03-02T01:00:00Z","to":"2026-03-02T03:00:00Z")";

TEST_F(ReservationTest, is_quoted_made_and_seen_by_its_own_tenant) {
  sell();
  const Caught answer = post("/v1/reservations/quote",
                             asked(R"("from":"2026-03-02T01:00:00Z","length":"2h")"), uid(1001));
  ASSERT_EQ(answer.status(), 200) << answer.response->body;
  const auto quote = answer.as<ReservationQuoteView>();
  EXPECT_EQ(quote.to, "2026-03-02T03:00:00Z");
  EXPECT_EQ(quote.devices, "n1/0 0.4");
  EXPECT_EQ(quote.billable_ce, "40");
  EXPECT_EQ(quote.unit_price, "0.03");
  EXPECT_EQ(quote.per_hour, "1.2");
  EXPECT_EQ(quote.used, "2.4");
  EXPECT_EQ(quote.unused, "1.2");
  EXPECT_EQ(quote.unused_percent, "50");
  EXPECT_TRUE(seen(root).empty());

  const ReservationView made = make(two_hours);
  EXPECT_EQ(made.id, "rsv-1");
  EXPECT_EQ(made.tenant, "acme");
  EXPECT_EQ(made.state, "coming");
  EXPECT_EQ(made.ce, "40");
  EXPECT_EQ(made.devices, "n1/0 0.4");
  EXPECT_EQ(made.from, "2026-03-02T01:00:00Z");
  EXPECT_EQ(made.charged_to, made.from);
  EXPECT_EQ(made.held, quote.held);
  EXPECT_EQ(get("/v1/tenants/acme").as<TenantView>().held, made.held);
  for (const As& who : {root, uid(1001), uid(1003), uid(1004)}) EXPECT_EQ(seen(who).size(), 1U);
  EXPECT_TRUE(seen(uid(1002)).empty());
  pass(Duration::hours(1));
  EXPECT_EQ(seen(root).front().state, "in_force");
}

TEST_F(ReservationTest, a_task_runs_on_it_and_the_rest_is_charged) {
  sell();
  make(two_hours);
  pass(Duration::hours(1));
  const TaskId id = submit("acme", R"("reservation":"rsv-1")");
  const auto task = get("/v1/tasks/" + id.text()).as<TaskView>();
  EXPECT_EQ(task.purchase_model, "reservation");
  EXPECT_EQ(task.reservation, "rsv-1");
  EXPECT_EQ(task.held, "0");
  daemon.start(id);
  daemon.clock.advance(Duration::hours(1));
  daemon.end(id);
  pass(Duration::minutes(3));
  pass(Duration::hours(1));

  // 25 of 40 CE for one of two hours: 25 CE-hours at 0.03, and 55 at half of it.
  const auto bill = get("/v1/bill?tenant=acme").as<BillView>();
  ASSERT_EQ(bill.lines.size(), 1U);
  EXPECT_EQ(bill.lines[0].purchase_model, "reservation");
  EXPECT_EQ(bill.lines[0].reservation, "rsv-1");
  EXPECT_EQ(bill.lines[0].net, "0.75");
  ASSERT_EQ(bill.adjustments.size(), 2U);
  double unused = 0, ce_hours = 0;
  for (const AdjustmentView& each : bill.adjustments) {
    EXPECT_EQ(each.kind, "unused");
    EXPECT_EQ(each.reservation, "rsv-1");
    EXPECT_EQ(each.purchase_model, "reservation");
    EXPECT_EQ(each.unit_price, "0.03");
    unused += std::stod(each.net);
    ce_hours += std::stod(each.ce_hours);
  }
  EXPECT_NEAR(unused, 0.825, 1e-9);
  EXPECT_NEAR(ce_hours, 55, 1e-5);
  const ReservationView over = seen(root).front();
  EXPECT_EQ(over.state, "over");
  EXPECT_EQ(over.charged_to, over.to);
  EXPECT_EQ(over.held, "0");
  EXPECT_EQ(get("/v1/tenants/acme").as<TenantView>().held, "0");
  const auto invoice = post("/v1/invoices", R"({"tenant":"acme"})").as<InvoiceView>();
  std::set<std::string> kinds;
  for (const InvoiceLineView& line : invoice.lines) kinds.insert(line.kind);
  EXPECT_EQ(kinds, (std::set<std::string>{"usage", "unused"}));
}

TEST_F(ReservationTest, what_cannot_be_reserved_is_refused_with_the_reason) {
  const auto code = [&](const std::string& body, const As& who = root) {
    return post("/v1/reservations", body, who).problem().code;
  };
  EXPECT_EQ(code(asked(two_hours)), "not_sold");
  sell();
  EXPECT_EQ(code(asked(R"("from":"2026-03-02T01:00:00Z")")), "invalid_argument");
  EXPECT_EQ(code(asked(two_hours + R"(,"length":"2h")")), "invalid_argument");
  EXPECT_EQ(code(asked(R"("from":"2026-03-01T00:00:00Z","length":"2h")")), "invalid_argument");
  EXPECT_EQ(code(asked(R"("from":"1970-01-01T00:00:00Z","length":"2h")")), "invalid_argument");
  EXPECT_EQ(code(asked(R"("from":"2026-03-02","length":"2h")")), "invalid_argument");
  EXPECT_EQ(code(R"({"tenant":"acme","length":"2h","ce":"0"})"), "invalid_argument");
  EXPECT_EQ(code(asked(R"("length":"2000h")")), "insufficient_funds");
  EXPECT_EQ(code(asked(two_hours, "nobody")), "not_found");
  EXPECT_EQ(code(asked(two_hours, "acme"), uid(1002)), "not_found");
  EXPECT_EQ(post("/v1/reservations", asked(two_hours), uid(1004)).status(), 403);
  make(two_hours);
  make(two_hours);
  EXPECT_EQ(code(asked(two_hours, "beta"), uid(1002)), "does_not_fit");  // 20 of 100 CE are left
  EXPECT_EQ(seen(root).size(), 2U);
}

TEST_F(ReservationTest, a_task_names_one_of_its_own_tenant_and_is_bought_so) {
  sell();
  make(two_hours);
  const auto code = [&](const char* tenant, const std::string& more) {
    return post("/v1/tasks", task_body(tenant, more)).problem().code;
  };
  EXPECT_EQ(code("acme", R"("reservation":"nine")"), "invalid_argument");
  EXPECT_EQ(code("acme", R"("reservation":"rsv-9")"), "not_found");
  EXPECT_EQ(code("beta", R"("reservation":"rsv-1")"), "not_found");
  EXPECT_EQ(code("acme", R"("purchase_model":"reservation")"), "invalid_argument");
  EXPECT_EQ(code("acme", R"("reservation":"rsv-1","purchase_model":"on_demand")"),
            "invalid_argument");
  EXPECT_EQ(code("acme", R"("reservation":"rsv-1","tariff":"time_of_day")"), "invalid_argument");
}

TEST_F(ReservationTest, is_cancelled_before_it_begins_at_no_cost) {
  sell();
  make(two_hours);
  const auto cancel = [&](const std::string& id, const As& who = uid(1001)) {
    return post("/v1/reservations/" + id + "/cancel", R"({"reason":"not needed"})", who);
  };
  EXPECT_EQ(cancel("rsv-1", uid(1002)).status(), 404);
  const auto cancelled = cancel("rsv-1").as<ReservationView>();
  EXPECT_EQ(cancelled.state, "cancelled");
  EXPECT_EQ(cancelled.reason, "not needed");
  EXPECT_EQ(cancelled.to, cancelled.from);
  EXPECT_EQ(cancelled.held, "0");
  EXPECT_EQ(get("/v1/tenants/acme").as<TenantView>().held, "0");
  EXPECT_EQ(cancel("rsv-1").problem().code, "wrong_state");
  EXPECT_EQ(cancel("rsv-9").status(), 404);
  EXPECT_EQ(cancel("nine").status(), 404);
  make(R"("length":"1h")");
  EXPECT_EQ(cancel("rsv-2").problem().code, "wrong_state");
  pass(Duration::hours(4));
  EXPECT_EQ(get("/v1/bill?tenant=acme").as<BillView>().adjustments.at(0).reservation, "rsv-2");
}

}  // namespace
}  // namespace loam::api::testing
