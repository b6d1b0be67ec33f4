// The command line on whose cost it is: tags of what is bought, costs by tag, group and task, and
// the tags of FOCUS rows.
#include <set>

#include "app/loam/spending.hpp"
#include "billing/csv.hpp"
#include "billing/focus.hpp"
#include "cli/fixture.hpp"

namespace loam::cli {
namespace {

using Tags = std::vector<std::pair<std::string, std::string>>;

class AttributionTest : public DaemonTest {
 protected:
  // From 01:00 on, by a card that sells commitments and reservations.
  AttributionTest() {
    daemon.clock.advance(Duration::hours(1));
    RateCard card;
    card.on_demand = *Money::parse("0.02", card.currency);
    for (const auto& [model, amount] :
         {std::pair{PurchaseModel::commitment, "0.013"}, {PurchaseModel::reservation, "0.03"}}) {
      Price price;
      price.purchase_model = model;
      price.tiers = {{0, *Money::parse(amount, card.currency)}};
      card.terms.prices.push_back(price);
    }
    const auto answer = daemon.run(PublishRateCard{card});
    EXPECT_FALSE(answer.reject) << answer.reject->message;
  }
  void pass(Duration length) {
    daemon.clock.advance(length);
    daemon.run(StopTask{TaskId{99}});  // anything, so that time is looked at
  }
  // Two tasks of 25 CE for an hour, of which a commitment covers 10 CE of the first; and 10 CE that
  // were reserved and not used.
  void spend() {
    const Ran bought = loam({"commit", "buy", "acme", "--ce", "10", "--tag", "plan=yearly"});
    ASSERT_EQ(bought.status, 0) << bought.err;
    const Ran made = loam({"reservation", "make", "--tenant", "acme", "--ce", "10", "--for", "1h",
                           "--tag", "team=platform"});
    ASSERT_EQ(made.status, 0) << made.err;
    for (const char* tag : {"team=blue", "team=red"}) {
      const Ran task = loam({"submit", "--tenant", "acme", "--ce", "25", "--group", "nightly",
                             "--tag", tag, "--", "x"});
      ASSERT_EQ(task.status, 0) << task.err;
    }
    daemon.start(TaskId{1});
    daemon.start(TaskId{2});
    daemon.clock.advance(Duration::hours(1));
    daemon.end(TaskId{1});
    daemon.end(TaskId{2});
    pass(Duration::minutes(3));
  }
  std::string cost(const std::vector<std::string>& more) {
    std::vector<std::string> words{"cost", "acme", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = loam(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  }
};

TEST_F(AttributionTest, costs_are_grouped_and_filtered_by_whose_they_are) {
  spend();
  // 94.90 for the commitment; blue's 0.50 less the 0.20 that it covers.
  EXPECT_EQ(cost({"--by", "tag:team"}),
            "{\"currency\":\"USD\",\"lines\":[{\"tag:team\":\"(none)\",\"cost\":\"94.9\"},"
            "{\"tag:team\":\"blue\",\"cost\":\"0.3\"},{\"tag:team\":\"platform\",\"cost\":\"0.3\"},"
            "{\"tag:team\":\"red\",\"cost\":\"0.5\"}],\"total\":\"96\"}\n");
  EXPECT_NE(loam({"bill", "acme", "--json"}).out.find("\"total\":\"96\""), std::string::npos);
  EXPECT_EQ(cost({"--by", "task,meter", "--where", "group=nightly"}),
            "{\"currency\":\"USD\",\"lines\":[{\"task\":\"t1\",\"meter\":\"compute\","
            "\"cost\":\"0.5\"},{\"task\":\"t1\",\"meter\":\"covered\",\"cost\":\"-0.2\"},"
            "{\"task\":\"t2\",\"meter\":\"compute\",\"cost\":\"0.5\"}],\"total\":\"0.8\"}\n");
  EXPECT_EQ(cost({"--where", "tag:plan=yearly", "--by", "meter,task"}),
            "{\"currency\":\"USD\",\"lines\":[{\"meter\":\"commitment_fee\",\"task\":\"(none)\","
            "\"cost\":\"94.9\"}],\"total\":\"94.9\"}\n");
  const std::string bill = loam({"bill", "acme"}).out;
  const std::size_t covered = bill.find("covered");
  ASSERT_NE(covered, std::string::npos) << bill;
  const std::string line = bill.substr(covered, bill.find('\n', covered) - covered);
  EXPECT_NE(line.find(" t1 "), std::string::npos) << bill;
}

TEST_F(AttributionTest, the_rows_of_an_export_carry_their_tags) {
  spend();
  const Ran lines = loam({"cost", "export", "acme", "--json"});
  const auto report = billing::validate_focus(lines.out);
  ASSERT_TRUE(report.ok()) << lines.out << lines.err;
  for (const auto& fault : report->faults) ADD_FAILURE() << fault.column << " " << fault.what;
  const auto tags_of = [&](const std::string& what) {
    const std::size_t at = lines.out.find(what);
    EXPECT_NE(at, std::string::npos) << what << "\n" << lines.out;
    if (at == std::string::npos) return std::string();
    const std::size_t begin = lines.out.rfind('\n', at) + 1;  // npos + 1 is the beginning
    const std::string row = lines.out.substr(begin, lines.out.find('\n', at) - begin);
    const std::size_t tags = row.find("\"Tags\":");
    return row.substr(tags, row.find('}', tags) - tags + 1);
  };
  EXPECT_EQ(tags_of("use that a commitment covers"),
            R"("Tags":{"environment":"default","team":"blue","group":"nightly"})");
  EXPECT_EQ(tags_of("unused of rsv-1"), R"("Tags":{"environment":"default","team":"platform"})");
  for (const char* row : {"commitment com-1", "covered by com-1", "unused of com-1"})
    EXPECT_EQ(tags_of(row), R"("Tags":{"environment":"default","plan":"yearly"})") << row;
}

// 10 CE-hours reserved at 0.03 and not used, 0.30: they go to both tasks, which used 25 each.
TEST_F(AttributionTest, what_was_not_used_goes_to_the_tasks_that_ran) {
  spend();
  struct Sums {
    Money billed = Money::zero(Currency("USD"));
    Money effective = billed;
    std::map<std::string, Money> of;  // by who bears it
    std::set<std::string> tags;
  };
  const auto sums_of = [&](const char* method) {
    const Ran ran = loam({"cost", "export", "acme", "--idle", method});
    EXPECT_EQ(ran.status, 0) << ran.err;
    const auto report = *billing::validate_focus(ran.out);
    for (const auto& fault : report.faults) ADD_FAILURE() << fault.column << " " << fault.what;
    const auto table = *billing::read_csv(ran.out);
    Sums sums;
    for (std::size_t row = 1; row < table.size(); ++row) {
      const auto cell = [&](const char* column) {
        const auto at = std::find(table[0].begin(), table[0].end(), column) - table[0].begin();
        return table[row].at(static_cast<std::size_t>(at));
      };
      const auto money = [&](const char* column) {
        return *Money::parse(cell(column), Currency("USD"));
      };
      sums.billed += money("BilledCost");
      sums.effective += money("EffectiveCost");
      if (cell("CapacityReservationStatus") != "Unused") continue;
      sums.of.try_emplace(cell("AllocatedResourceId"), Money::zero(Currency("USD")))
          .first->second += money("BilledCost");
      sums.tags.insert(cell("AllocatedTags"));
    }
    return sums;
  };
  const Sums kept = sums_of("kept"), weighted = sums_of("weighted"), even = sums_of("even");
  EXPECT_EQ(amount_text(kept.billed), "96");
  for (const Sums* split : {&weighted, &even}) {
    EXPECT_EQ(split->billed, kept.billed);
    EXPECT_EQ(split->effective, kept.effective);
    ASSERT_EQ(split->of.size(), 2U);
    EXPECT_EQ(amount_text(split->of.at("t1")), "0.15");
    EXPECT_EQ(amount_text(split->of.at("t2")), "0.15");
    EXPECT_EQ(split->tags, (std::set<std::string>{R"({"team":"blue","group":"nightly"})",
                                                  R"({"team":"red","group":"nightly"})"}));
  }
  ASSERT_EQ(kept.of.size(), 1U);
  EXPECT_EQ(amount_text(kept.of.at("NULL")), "0.3");
  EXPECT_NE(loam({"cost", "export", "acme", "--idle", "mine"}).err.find("mine"), std::string::npos);
}

TEST_F(AttributionTest, a_tag_that_is_none_is_refused_before_anything_is_bought) {
  for (const char* tag : {"yearly", "=x", "plan=a,b", "a b=c"}) {
    const Ran ran = loam({"commit", "buy", "acme", "--ce", "10", "--tag", tag});
    EXPECT_NE(ran.status, 0) << tag;
    EXPECT_NE(ran.err.find("--tag"), std::string::npos) << ran.err;
  }
  EXPECT_NE(loam({"commit", "list"}).err.find("no commitments"), std::string::npos);
}

TEST(FocusTags, of_services_and_tokens_are_those_of_whose_cost_they_are) {
  api::AdjustmentView stored;
  stored.kind = "storage";
  stored.task = "t5";
  stored.project = "vision";
  stored.environment = "test";
  stored.model = "llama";
  stored.model_version = "3";
  stored.group = "nightly";
  stored.tags = {{"team", "blue"}, {"model", "said twice"}};
  stored.from = "2026-03-02T00:00:00Z";
  stored.to = "2026-03-02T01:00:00Z";
  stored.unit_price = stored.list = stored.net = "0.1";
  stored.gib = "1";
  api::AdjustmentView asked = stored;
  asked.kind = "prompt_tokens";
  asked.task = asked.group = asked.gib = asked.model_version = "";
  asked.tags = {{"group", "its own"}};
  asked.tokens = 1'000'000;
  api::BillView bill;
  bill.tenant = "acme";
  bill.currency = "USD";
  bill.adjustments = {stored, asked};
  const Instant from = *parse_instant("2026-03-02T00:00:00Z");
  const auto rows = *focus_adjustments({{{from, from + Duration::hours(24)}, bill}}, {}, "Lab");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].resource_id, "t5");
  EXPECT_EQ(rows[0].resource_type, "storage");
  EXPECT_EQ(rows[0].tags, (Tags{{"environment", "test"},
                                {"model", "llama"},
                                {"model_version", "3"},
                                {"team", "blue"},
                                {"group", "nightly"}}));
  EXPECT_EQ(rows[1].resource_id, "llama");
  EXPECT_EQ(rows[1].tags,
            (Tags{{"environment", "test"}, {"model", "llama"}, {"group", "its own"}}));
  std::string csv = billing::focus_csv_head();
  for (const billing::FocusRow& row : rows) csv += billing::to_focus_csv(row);
  const auto report = *billing::validate_focus(csv);
  EXPECT_TRUE(report.faults.empty()) << report.faults[0].column << " " << report.faults[0].what;
}

}  // namespace
}  // namespace loam::cli
