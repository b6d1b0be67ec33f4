// The command line on who pays, money committed, tasks that go on otherwise, and what they made.
#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

class TermsTest : public DaemonTest {
 protected:
  void publish(const char* what, PriceTerms terms) {
    daemon.clock.advance(Duration::minutes(1));
    RateCard card;
    card.on_demand = *Money::parse("0.02", card.currency);
    card.terms = std::move(terms);
    const auto answer = daemon.run(PublishRateCard{card});
    ASSERT_FALSE(answer.reject) << what << ": " << answer.reject->message;
  }
  std::string an_invoice() {
    EXPECT_EQ(loam({"submit", "--tenant", "acme", "--ce", "25", "--", "x"}).status, 0);
    const TaskId id{daemon_tasks()};
    daemon.start(id);
    daemon.clock.advance(Duration::hours(1));
    daemon.end(id);
    EXPECT_EQ(loam({"invoice", "issue", "acme"}).status, 0);
    return "inv-1";
  }
  std::uint64_t daemon_tasks() {
    std::uint64_t last = 0;
    daemon.read([&](const engine::State& state, Instant) { last = state.next.task - 1; });
    return last;
  }
};

TEST_F(TermsTest, who_a_tenant_is_is_said_shown_printed_and_forgotten) {
  const Ran none = loam({"tenant", "address", "acme"});
  EXPECT_EQ(none.status, 0);
  EXPECT_NE(none.err.find("nothing is known of acme"), std::string::npos) << none.err;
  const Ran said = loam({"tenant", "address", "acme", "--name", "ACME Ltd", "--address",
                         "1 High Street", "--address", "Oxford", "--tax-id", "GB123"});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_EQ(said.out, "ACME Ltd\n1 High Street\nOxford\nTax ID GB123\n");
  // What is left out stays.
  EXPECT_EQ(loam({"tenant", "address", "acme", "--tax-id", "GB9"}).out,
            "ACME Ltd\n1 High Street\nOxford\nTax ID GB9\n");
  daemon.run(SetSeller{{"Loam Lab GmbH", "Beispielweg 1", "DE123", "net", 14}});
  const std::string id = an_invoice();
  const Ran text = loam({"invoice", "show", id, "--format", "text"});
  EXPECT_NE(text.out.find("from       Loam Lab GmbH\n           Beispielweg 1\n"),
            std::string::npos)
      << text.out;
  EXPECT_NE(
      text.out.find("to         ACME Ltd (acme)\n           1 High Street\n           Oxford\n"
                    "           Tax ID GB9\n"),
      std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("due        0.00, paid from the wallet\n"), std::string::npos);
  const Ran other = loam({"invoice", "show", id, "--format", "text", "--issuer", "Somebody Inc"});
  EXPECT_NE(other.status, 0);
  EXPECT_NE(other.err.find("names who sold: Loam Lab GmbH"), std::string::npos) << other.err;
  EXPECT_NE(loam({"tenant", "address", "acme", "--forget", "--name", "x"}).status, 0);
  EXPECT_EQ(loam({"tenant", "address", "acme", "--forget"}).status, 0);
  const Ran after = loam({"invoice", "show", id, "--format", "json"});
  EXPECT_EQ(after.out.find("ACME Ltd"), std::string::npos) << after.out;
  EXPECT_NE(loam({"tenant", "address", "nobody", "--name", "x"}).status, 0);
}

TEST_F(TermsTest, money_is_committed_by_the_hour) {
  PriceTerms terms;
  Price commitment;
  commitment.purchase_model = PurchaseModel::commitment;
  commitment.tiers = {{0, *Money::parse("0.01", Currency("USD"))}};
  terms.prices = {commitment};
  publish("commitments", terms);
  const Ran bought = loam({"commit", "buy", "acme", "--spend", "0.05"});
  EXPECT_EQ(bought.status, 0) << bought.err;
  EXPECT_NE(bought.out.find("0.05 an hour"), std::string::npos) << bought.out;
  EXPECT_NE(bought.out.find("36.50"), std::string::npos) << bought.out;
  EXPECT_NE(loam({"commit", "list"}).out.find("0.05 an hour"), std::string::npos);
  for (const std::vector<std::string>& odd :
       {std::vector<std::string>{}, {"--ce", "1", "--spend", "1"}, {"--spend", "much"}}) {
    std::vector<std::string> words{"commit", "buy", "acme"};
    words.insert(words.end(), odd.begin(), odd.end());
    EXPECT_NE(loam(words).status, 0);
  }
  // In FOCUS too.
  const Ran focus = loam({"cost", "export", "acme"});
  EXPECT_NE(focus.out.find("Spend"), std::string::npos) << focus.out;
}

TEST_F(TermsTest, a_task_that_is_sold_no_more_goes_on_otherwise) {
  PriceTerms spot;
  spot.spot.sold = true;
  publish("spot", spot);
  daemon.clock.advance(Duration::minutes(2));
  daemon.run(StopTask{TaskId{99}});
  ASSERT_EQ(
      loam({"submit", "--tenant", "acme", "--ce", "25", "--purchase", "spot", "--", "x"}).status,
      0);
  daemon.start(TaskId{1});
  loam({"pause", "t1"});
  daemon.end(TaskId{1});
  publish("none", {});
  const Ran refused = loam({"resume", "t1"});
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.err.find("loam resume t1 --purchase on_demand"), std::string::npos)
      << refused.err;
  const Ran resumed = loam({"resume", "t1", "--purchase", "on_demand"});
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_NE(loam({"show", "t1"}).out.find("on_demand"), std::string::npos);
}

TEST_F(TermsTest, what_a_unit_of_output_cost_is_shown) {
  ASSERT_EQ(
      loam({"submit", "--tenant", "acme", "--ce", "25", "--name", "render", "--", "x"}).status, 0);
  daemon.start(TaskId{1});
  daemon.clock.advance(Duration::hours(1));
  daemon.end(TaskId{1}, Duration::minutes(15), 2'500);
  EXPECT_NE(loam({"show", "t1"}).out.find("2.5"), std::string::npos);
  // 25 CE at 0.02 for an hour are 0.50, for 2.5 units.
  const Ran report = loam({"cost", "efficiency", "acme", "--json"});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_NE(report.out.find("\"output\":2.5,\"per_output\":\"0.2\""), std::string::npos)
      << report.out;
  const Ran table = loam({"cost", "efficiency", "acme"});
  EXPECT_NE(table.out.find("A UNIT USD"), std::string::npos) << table.out;
}

}  // namespace
}  // namespace loam::cli
