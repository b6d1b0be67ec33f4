// Whose cost every charge is: task, group and tags of what is charged or given back besides usage,
// and that costs by a tag add up to the bill.
#include <map>

#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

// From 01:00 on, by a card that sells everything.
class AttributionTest : public ApiTest {
 protected:
  AttributionTest() {
    daemon.clock.advance(Duration{5});
    const Caught made = post("/v1/rates", R"({"on_demand":"0.02","terms":{
        "reservation_unused":5000,"services":{"storage":"0.1 USD","network":"0.02 USD"},
        "prices":[{"purchase_model":"commitment",
                   "tiers":[{"above_milli_ce_hours":0,"price":"0.013 USD"}]},
                  {"purchase_model":"reservation",
                   "tiers":[{"above_milli_ce_hours":0,"price":"0.03 USD"}]}],
        "tokens":[{"model":"*","prompt":"1 USD"}]}})");
    EXPECT_EQ(made.status(), 201) << made.response->body;
    daemon.clock.advance(Duration::hours(1) - Duration{5});
  }

  void pass(Duration length) {
    daemon.clock.advance(length);
    daemon.run(StopTask{TaskId{99}});  // anything, so that time is looked at
  }
  std::pair<LeaseId, Epoch> lease_of(TaskId task) {
    std::pair<LeaseId, Epoch> found;
    daemon.read([&](const engine::State& state, Instant) {
      found = {state.tasks.at(task).leases.front(), state.tasks.at(task).epoch};
    });
    return found;
  }
  void made(const Caught& answer, int status) {
    ASSERT_EQ(answer.status(), status) << answer.response->body;
  }
  // t1 of the team blue stores and moves something, t2 of the team red gets less than it was
  // promised; a commitment covers all of the one and a fifth of the other.
  void run_two() {
    made(post("/v1/commitments",
              R"({"tenant":"acme","ce":"30","project":"vision","tags":{"plan":"yearly"}})"),
         201);
    const TaskId blue = submit("acme", R"("group":"nightly","tags":{"team":"blue"})");
    const TaskId red = submit("acme", R"("tags":{"team":"red"})");
    daemon.start(blue);
    daemon.start(red);
    daemon.clock.advance(Duration::minutes(30));
    const auto [lease, epoch] = lease_of(blue);
    constexpr std::int64_t gib_hour = 1024 * 3'600'000LL;
    const auto told = daemon.run(ReportServices{
        lease, epoch, daemon.clock.now(), {{gib_hour, std::int64_t{1} << 30, 0}, Mebibytes{0}}});
    EXPECT_FALSE(told.reject) << told.reject->message;
    const auto [slow, its_epoch] = lease_of(red);
    const Instant now = daemon.clock.now();
    const auto less = daemon.run(ReportShortfall{slow, its_epoch, 0, now - Duration::minutes(1),
                                                 now, BasisPoints{2500}, BasisPoints{1250}});
    EXPECT_FALSE(less.reject) << less.reject->message;
    daemon.clock.advance(Duration::minutes(30));
    daemon.end(blue);
    daemon.end(red);
  }
  // Two hours of 40 CE from 02:00 on, of which a task without tags uses 25 for half an hour.
  void run_on_reservation() {
    made(post("/v1/reservations", R"({"tenant":"acme","ce":"40","length":"2h",
                                      "tags":{"team":"platform"}})"),
         201);
    const TaskId task = submit("acme", R"("reservation":"rsv-1")");
    daemon.start(task);
    daemon.clock.advance(Duration::minutes(30));
    daemon.end(task);
    for (int hours = 0; hours < 3; ++hours) pass(Duration::minutes(33));
    pass(Duration::hours(1));
  }
  // acme asks beta's model, and beta acme's.
  void use_tokens() {
    const auto use = [](const char* caller, const char* owner, int tokens, const char* more) {
      return R"({"tenant":")" + std::string(caller) + R"(","owner":")" + owner +
             R"(","model":"tiny","from":"2026-03-02T01:10:00Z","to":"2026-03-02T01:20:00Z",)"
             R"("requests":1,"prompt_tokens":)" +
             std::to_string(tokens) + "," + more + "}";
    };
    made(post("/v1/token-usage",
              R"({"source":"g1","sequence":1,"uses":[)" +
                  use("acme", "beta", 1'000'000, R"("tags":{"team":"blue"})") + "," +
                  use("beta", "acme", 500'000,
                      R"("owner_project":"serving","owner_tags":{"team":"red"})") +
                  "]}"),
         200);
  }

  BillView bill() { return get("/v1/bill?tenant=acme").as<BillView>(); }
  static std::map<std::string, Money> by_team(const BillView& bill) {
    std::map<std::string, Money> sums;
    const auto add = [&](const auto& of) {
      const auto tag = of.tags.find("team");
      const Money zero = Money::zero(Currency("USD"));
      sums.try_emplace(tag == of.tags.end() ? "(none)" : tag->second, zero).first->second +=
          *Money::parse(of.net, zero.currency());
    };
    for (const BillLine& line : bill.lines) add(line);
    for (const AdjustmentView& each : bill.adjustments) add(each);
    return sums;
  }
  static std::string total_of(const std::map<std::string, Money>& sums) {
    Money total = Money::zero(Currency("USD"));
    for (const auto& [team, sum] : sums) total += sum;
    return amount_text(total);
  }
};

TEST_F(AttributionTest, costs_by_a_tag_and_what_has_none_are_the_bill) {
  run_two();
  use_tokens();
  run_on_reservation();
  const BillView view = bill();
  const auto sums = by_team(view);
  EXPECT_EQ(total_of(sums), view.total);
  std::map<std::string, std::string> texts;
  for (const auto& [team, sum] : sums) texts[team] = amount_text(sum);
  // blue: 0.50 of compute, all covered; storage, network, and a million tokens.
  // red: 0.50, 0.10 of it covered; half a minute's price given back; and what beta was charged.
  // platform: 67.5 of 80 CE-hours were not used. (none): the fee, and the task without tags.
  EXPECT_EQ(texts, (std::map<std::string, std::string>{{"blue", "1.12"},
                                                       {"red", "-0.104166666667"},
                                                       {"platform", "1.0125"},
                                                       {"(none)", "285.075"}}));
  // An invoice's rounding and a credit note are nobody's.
  const Caught issued = post("/v1/invoices", R"({"tenant":"acme"})");
  made(issued, 201);
  std::vector<std::string> covered;  // an invoice has no tags: leases of one price are one line
  for (const InvoiceLineView& line : issued.as<InvoiceView>().lines) {
    if (line.kind == "covered") covered.push_back(line.net);
  }
  EXPECT_EQ(covered, (std::vector<std::string>{"-0.6"}));
  made(post("/v1/invoices/inv-1/credit", R"({"amount":"1","reason":"slow"})"), 201);
  const BillView after = bill();
  EXPECT_EQ(total_of(by_team(after)), after.total);
  EXPECT_EQ(by_team(after).at("blue"), sums.at("blue"));
  EXPECT_LT(by_team(after).at("(none)"), sums.at("(none)"));
}

TEST_F(AttributionTest, each_kind_is_of_its_task_or_of_what_was_bought) {
  run_two();
  use_tokens();
  run_on_reservation();
  const BillView view = bill();
  std::map<std::string, std::vector<AdjustmentView>> kinds;
  for (const AdjustmentView& each : view.adjustments) kinds[each.kind].push_back(each);
  using Tags = std::map<std::string, std::string>;

  ASSERT_EQ(kinds["covered"].size(), 2U);  // a line for each lease
  EXPECT_EQ(kinds["covered"][0].task, "t1");
  EXPECT_EQ(kinds["covered"][0].net, "-0.5");
  EXPECT_EQ(kinds["covered"][0].tags, (Tags{{"team", "blue"}}));
  EXPECT_EQ(kinds["covered"][0].group, "nightly");
  EXPECT_EQ(kinds["covered"][1].task, "t2");
  EXPECT_EQ(kinds["covered"][1].net, "-0.1");
  EXPECT_EQ(kinds["covered"][1].group, "");
  for (const char* kind : {"storage", "network"}) {
    ASSERT_EQ(kinds[kind].size(), 1U) << kind;
    EXPECT_EQ(kinds[kind][0].task, "t1");
    EXPECT_EQ(kinds[kind][0].group, "nightly");
    EXPECT_EQ(kinds[kind][0].tags, (Tags{{"team", "blue"}}));
  }
  ASSERT_EQ(kinds["credit"].size(), 1U);
  EXPECT_EQ(kinds["credit"][0].task, "t2");
  EXPECT_EQ(kinds["credit"][0].tags, (Tags{{"team", "red"}}));
  ASSERT_EQ(kinds["fee"].size(), 1U);
  EXPECT_EQ(kinds["fee"][0].task, "");
  EXPECT_EQ(kinds["fee"][0].tags, (Tags{{"plan", "yearly"}}));
  ASSERT_EQ(kinds["unused"].size(), 2U);
  EXPECT_EQ(kinds["unused"][0].task, "");
  EXPECT_EQ(kinds["unused"][0].tags, (Tags{{"team", "platform"}}));
  ASSERT_EQ(kinds["prompt_tokens"].size(), 1U);
  EXPECT_EQ(kinds["prompt_tokens"][0].tags, (Tags{{"team", "blue"}}));
  ASSERT_EQ(kinds["token_income"].size(), 1U);
  EXPECT_EQ(kinds["token_income"][0].project, "serving");
  EXPECT_EQ(kinds["token_income"][0].tags, (Tags{{"team", "red"}}));

  EXPECT_EQ(get("/v1/commitments").as<CommitmentList>().commitments.at(0).tags,
            (Tags{{"plan", "yearly"}}));
  EXPECT_EQ(get("/v1/reservations").as<ReservationList>().reservations.at(0).tags,
            (Tags{{"team", "platform"}}));
}

// Tokens of two teams at one price are not added up, those of one are.
TEST_F(AttributionTest, reports_of_tokens_are_added_up_by_their_tags) {
  for (int sequence = 1; sequence <= 4; ++sequence) {
    const std::string team = sequence % 2 == 0 ? "blue" : "red";
    made(post("/v1/token-usage",
              R"({"source":"g1","sequence":)" + std::to_string(sequence) +
                  R"(,"uses":[{"tenant":"acme","owner":"beta","model":"tiny","requests":1,)"
                  R"("from":"2026-03-02T00:10:00Z","to":"2026-03-02T00:20:00Z",)"
                  R"("prompt_tokens":10,"tags":{"team":")" +
                  team + R"("}}]})"),
         200);
  }
  const BillView view = bill();
  ASSERT_EQ(view.adjustments.size(), 2U);
  for (const AdjustmentView& each : view.adjustments) EXPECT_EQ(each.tokens, 20);
  EXPECT_NE(view.adjustments[0].tags, view.adjustments[1].tags);
}

TEST_F(AttributionTest, tags_that_are_none_are_refused_where_something_is_bought) {
  for (const char* tags : {R"({"a b":"c"})", R"({"team":"x,y"})", R"({"team":1})", R"(["team"])"}) {
    const std::string with = R"(,"tags":)" + std::string(tags) + "}";
    EXPECT_EQ(post("/v1/commitments", R"({"tenant":"acme","ce":"1")" + with).problem().code,
              "invalid_argument")
        << tags;
    EXPECT_EQ(post("/v1/reservations", R"({"tenant":"acme","ce":"1","length":"1h")" + with)
                  .problem()
                  .code,
              "invalid_argument")
        << tags;
    const Caught tokens =
        post("/v1/token-usage", R"({"source":"g1","sequence":9,"uses":[{"tenant":"acme",)"
                                R"("model":"tiny","from":"2026-03-02T00:10:00Z",)"
                                R"("to":"2026-03-02T00:20:00Z","prompt_tokens":1)" +
                                    with + "]}");
    EXPECT_EQ(tokens.problem().code, "invalid_argument") << tags;
  }
  EXPECT_TRUE(bill().adjustments.empty());
}

}  // namespace
}  // namespace loam::api::testing
