// Tokens over HTTP: recorded once by operators, on the bill, the invoice and the ledger.
#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

class TokenUsageTest : public ApiTest {
 protected:
  TokenUsageTest() {
    daemon.clock.advance(Duration{5});
    const Caught made = post("/v1/rates", R"({"on_demand":"0.02","terms":{"tokens":[
        {"model":"*","prompt":"1 USD","cached":"0.5 USD","generated":"4 USD"}]}})");
    EXPECT_EQ(made.status(), 201) << made.response->body;
    daemon.clock.advance(Duration{5});
  }
  static std::string body(int sequence, const std::string& tenant = "beta",
                          const std::string& more = "") {
    return R"({"source":"g1","sequence":)" + std::to_string(sequence) + R"(,"uses":[{"tenant":")" +
           tenant +
           R"(","owner":"acme","model":"tiny","from":"2026-03-02T00:00:01Z",)"
           R"("to":"2026-03-02T00:00:02Z","requests":1,"prompt_tokens":30,"cached_tokens":10,)"
           R"("generated_tokens":5)" +
           more + "}]}";
  }
};

TEST_F(TokenUsageTest, is_recorded_once_and_is_on_both_bills) {
  EXPECT_EQ(get("/v1/token-usage/g1").as<TokenUsageView>().sequence, 0);
  for (int i = 0; i < 2; ++i) {
    const Caught told = post("/v1/token-usage", body(7));
    ASSERT_EQ(told.status(), 200) << told.response->body;
    EXPECT_EQ(told.as<TokenUsageView>().sequence, 7);
    EXPECT_TRUE(told.as<TokenUsageView>().refused.empty());
  }
  EXPECT_EQ(post("/v1/token-usage", body(8)).status(), 200);
  EXPECT_EQ(get("/v1/token-usage/g1").as<TokenUsageView>().sequence, 8);

  const auto bill = get("/v1/bill?tenant=beta").as<BillView>();
  ASSERT_EQ(bill.adjustments.size(), 3U);  // two reports, added up
  EXPECT_EQ(bill.adjustments[0].kind, "prompt_tokens");
  EXPECT_EQ(bill.adjustments[0].model, "tiny");
  EXPECT_EQ(bill.adjustments[0].tokens, 40);
  EXPECT_EQ(bill.adjustments[0].ce_hours, "0");
  EXPECT_EQ(bill.adjustments[1].tokens, 20);
  EXPECT_EQ(bill.adjustments[2].tokens, 10);
  EXPECT_EQ(bill.total, "0.00009");  // (40 × 1 + 20 × 0.5 + 10 × 4) / 1e6
  EXPECT_EQ(get("/v1/bill?tenant=acme").as<BillView>().total, "-0.00009");
  const auto ledger = get("/v1/ledger?tenant=acme").as<LedgerView>();
  EXPECT_EQ(ledger.entries.at(0).note, "others' tokens of tiny");
}

TEST_F(TokenUsageTest, only_operators_record) {
  EXPECT_EQ(post("/v1/token-usage", body(1), uid(1003)).status(), 200);
  for (const std::uint32_t other : {1001U, 1002U, 1004U}) {
    EXPECT_EQ(post("/v1/token-usage", body(2), uid(other)).status(), 403);
    EXPECT_EQ(get("/v1/token-usage/g1", uid(other)).status(), 403);
  }
}

TEST_F(TokenUsageTest, a_caller_that_nobody_knows_is_told_and_holds_up_no_other) {
  const Caught told = post("/v1/token-usage", body(3, "ghost"));
  ASSERT_EQ(told.status(), 200) << told.response->body;
  const auto view = told.as<TokenUsageView>();
  ASSERT_EQ(view.refused.size(), 1U);
  EXPECT_NE(view.refused[0].find("'ghost'"), std::string::npos);
}

TEST_F(TokenUsageTest, what_cannot_be_read_is_refused) {
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string(R"({"source":"g"})"), body(0), body(-1),
        body(1, "beta", R"(,"nonsense":1)"), body(1, "beta", R"(,"prompt_tokens":"x")"),
        std::string(R"({"source":"g","sequence":1,"uses":[{"tenant":"beta","from":"noon"}]})")}) {
    const int status = post("/v1/token-usage", bad).status();
    EXPECT_TRUE(status == 400 || status == 422) << status << " for " << bad;
  }
  EXPECT_EQ(get("/v1/bill?tenant=beta").as<BillView>().adjustments.size(), 0U);
}

TEST_F(TokenUsageTest, prices_of_tokens_that_cannot_be_used_are_refused) {
  const Caught refused = post(
      "/v1/rates", R"({"on_demand":"0.02","terms":{"tokens":[{"model":"a*b","prompt":"1 USD"}]}})");
  EXPECT_EQ(refused.status(), 400) << refused.response->body;
}

}  // namespace
}  // namespace loam::api::testing
