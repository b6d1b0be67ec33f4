// Commitments over HTTP: bought, seen, covering what runs, on the bill and the invoice.
#include <set>

#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

class CommitmentTest : public ApiTest {
 protected:
  CommitmentTest() {
    daemon.clock.advance(Duration{5});
    const Caught made = post("/v1/rates", R"({"on_demand":"0.02","terms":{"prices":[
        {"purchase_model":"commitment","tiers":[{"above_milli_ce_hours":0,"price":"0.013 USD"}]}]}})");
    EXPECT_EQ(made.status(), 201) << made.response->body;
  }
};

TEST_F(CommitmentTest, is_bought_seen_and_covers_what_runs) {
  const Caught bought = post(
      "/v1/commitments", R"({"tenant":"acme","ce":"10","until":"2026-05-02","project":"vision"})");
  ASSERT_EQ(bought.status(), 201) << bought.response->body;
  const auto view = bought.as<CommitmentView>();
  EXPECT_EQ(view.id, "com-1");
  EXPECT_EQ(view.state, "in_force");
  EXPECT_EQ(view.ce, "10");
  EXPECT_EQ(view.period, "month");
  EXPECT_EQ(view.to, "2026-05-02T00:00:00Z");
  ASSERT_EQ(view.fees.size(), 2U);
  EXPECT_EQ(view.fees[0].net, "94.9");  // 10 CE × 730 h × 0.013
  EXPECT_TRUE(view.fees[0].charged);
  EXPECT_FALSE(view.fees[1].charged);
  EXPECT_EQ(get("/v1/commitments").as<CommitmentList>().commitments.size(), 1U);
  EXPECT_EQ(get("/v1/commitments", uid(1001)).as<CommitmentList>().commitments.size(), 1U);
  EXPECT_EQ(get("/v1/commitments", uid(1002)).as<CommitmentList>().commitments.size(), 0U);

  // 25 CE for an hour at 0.02 are 0.50; 10 of them are covered: 0.20 come back.
  const TaskId id = submit("acme", R"("purchase_model":"commitment","project":"vision")");
  daemon.start(id);
  daemon.clock.advance(Duration::hours(1));
  daemon.end(id);
  daemon.clock.advance(Duration::minutes(3));
  daemon.run(StopTask{TaskId{99}});  // anything, so that time is looked at
  const auto bill = get("/v1/bill?tenant=acme").as<BillView>();
  ASSERT_EQ(bill.adjustments.size(), 2U);
  // In order of time: the hour began before the card did, and with it the commitment.
  EXPECT_EQ(bill.adjustments[1].kind, "fee");
  EXPECT_EQ(bill.adjustments[1].commitment, "com-1");
  EXPECT_EQ(bill.adjustments[1].net, "94.9");
  EXPECT_EQ(bill.adjustments[0].kind, "covered");
  EXPECT_EQ(bill.adjustments[0].project, "vision");
  EXPECT_EQ(bill.lines.at(0).purchase_model, "on_demand");
  const auto invoice = post("/v1/invoices", R"({"tenant":"acme"})").as<InvoiceView>();
  EXPECT_EQ(invoice.total, bill.total.substr(0, invoice.total.size()));
  std::set<std::string> kinds;
  for (const InvoiceLineView& line : invoice.lines) kinds.insert(line.kind);
  EXPECT_EQ(kinds, (std::set<std::string>{"usage", "fee", "covered"}));
}

TEST_F(CommitmentTest, of_money_an_hour_covers_what_it_is_worth) {
  const Caught bought = post("/v1/commitments", R"({"tenant":"acme","spend":"0.13"})");
  ASSERT_EQ(bought.status(), 201) << bought.response->body;
  const auto view = bought.as<CommitmentView>();
  EXPECT_EQ(view.ce, "0");
  EXPECT_EQ(view.spend, "0.13");
  EXPECT_EQ(view.fees.at(0).net, "94.9");
  // 25 CE for an hour at 0.02 are 0.50; 0.13 at 0.013 are 10 CE-hours: 0.20 come back.
  const TaskId id = submit("acme");
  daemon.start(id);
  daemon.clock.advance(Duration::hours(1));
  daemon.end(id);
  daemon.clock.advance(Duration::minutes(3));
  daemon.run(StopTask{TaskId{99}});
  const auto bill = get("/v1/bill?tenant=acme").as<BillView>();
  std::vector<std::string> kinds;
  for (const AdjustmentView& each : bill.adjustments) kinds.push_back(each.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"covered", "fee"}));
  // Ten, less the moments by which the commitment began after the hour.
  EXPECT_EQ(bill.adjustments.at(0).ce_hours.substr(0, 7), "-9.9999")
      << bill.adjustments.at(0).ce_hours;
  const auto code = [&](const char* body) { return post("/v1/commitments", body).problem().code; };
  EXPECT_EQ(code(R"({"tenant":"acme","spend":"0"})"), "invalid_argument");
  EXPECT_EQ(code(R"({"tenant":"acme","spend":"1.0.0"})"), "invalid_argument");
  EXPECT_EQ(code(R"({"tenant":"acme","spend":"1","ce":"10"})"), "invalid_argument");
  EXPECT_EQ(code(R"({"tenant":"acme","spend":"-1"})"), "invalid_argument");
}

TEST_F(CommitmentTest, what_cannot_be_bought_is_refused_with_the_reason) {
  const auto code = [&](const char* body, const As& who = root) {
    return post("/v1/commitments", body, who).problem().code;
  };
  EXPECT_EQ(code(R"({"tenant":"acme","ce":"10","period":"week"})"), "invalid_argument");
  EXPECT_EQ(code(R"({"tenant":"acme","ce":"0"})"), "invalid_argument");
  EXPECT_EQ(code(R"({"tenant":"acme","ce":"10","from":"2026-02-30"})"), "invalid_argument");
  EXPECT_EQ(code(R"({"tenant":"acme","ce":"10","from":"2026-03-01"})"), "invalid_argument");
  EXPECT_EQ(code(R"({"tenant":"acme","ce":"99999","period":"year"})"), "insufficient_funds");
  EXPECT_EQ(code(R"({"tenant":"nobody","ce":"10"})"), "not_found");
  EXPECT_EQ(post("/v1/commitments", R"({"tenant":"acme","ce":"10"})", uid(1001)).status(), 403);
  EXPECT_EQ(post("/v1/tasks", task_body("acme", R"("purchase_model":"commitment")")).problem().code,
            "not_sold");
  EXPECT_TRUE(get("/v1/commitments").as<CommitmentList>().commitments.empty());
}

TEST_F(CommitmentTest, is_cancelled_before_its_first_day_or_with_what_is_paid) {
  const auto buy = [&](const char* body) {
    return post("/v1/commitments", body).as<CommitmentView>().id;
  };
  const std::string coming = buy(R"({"tenant":"acme","ce":"1","from":"2026-06-01"})");
  const std::string running = buy(R"({"tenant":"acme","ce":"1","until":"2026-06-02"})");
  const char* why = R"({"reason":"not needed"})";
  const auto cancel = [&](const std::string& id, const As& who = root) {
    return post("/v1/commitments/" + id + "/cancel", why, who);
  };
  EXPECT_EQ(cancel(coming, uid(1001)).status(), 403);
  const auto never_begun = cancel(coming).as<CommitmentView>();
  EXPECT_EQ(never_begun.state, "cancelled");
  EXPECT_EQ(never_begun.to, never_begun.from);
  EXPECT_FALSE(never_begun.fees[0].charged);
  const auto ending = cancel(running).as<CommitmentView>();
  EXPECT_EQ(ending.state, "ending");
  EXPECT_EQ(ending.to, ending.fees[0].to);
  EXPECT_EQ(cancel(running).problem().code, "wrong_state");
  EXPECT_EQ(cancel("com-9").status(), 404);
  EXPECT_EQ(cancel("nine").status(), 404);
}

}  // namespace
}  // namespace loam::api::testing
