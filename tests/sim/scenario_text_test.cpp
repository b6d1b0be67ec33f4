// The words of a scenario, and where its faults are.
#include "sim/scenario_text.hpp"

#include <gmock/gmock.h>

#include "sim/scenario.hpp"

namespace loam::sim {
namespace {

using ::testing::HasSubstr;

Line line(std::string_view text) {
  auto read = read_line("f", 1, text);
  EXPECT_TRUE(read.ok()) << text;
  return read ? *read : Line{};
}

TEST(ScenarioText, WordsHaveKeysAndColumns) {
  const Line read = line("at 0s  submit j1 ce=25 # why not");
  ASSERT_EQ(read.words.size(), 5u);
  EXPECT_EQ(read.words[2].text, "submit");
  EXPECT_EQ(read.words[2].column, 8u);
  EXPECT_EQ(read.words[4].key, "ce");
  EXPECT_EQ(read.words[4].text, "25");
  EXPECT_FALSE(read.indented);
  EXPECT_TRUE(line("  total 1 USD").indented);
}

TEST(ScenarioText, QuotesKeepBlanksHashesAndEqualsSigns) {
  const Line read = line("x refused=\"no such # a=b\" \"c d\"");
  ASSERT_EQ(read.words.size(), 3u);
  EXPECT_EQ(read.words[1].text, "no such # a=b");
  EXPECT_EQ(read.words[2].text, "c d");
  EXPECT_EQ(read.written(), "x refused=\"no such # a=b\" \"c d\"");
}

TEST(ScenarioText, AQuoteThatIsNotClosedIsNamedWithItsColumn) {
  const auto read = read_line("f.scn", 7, "ab \"cd");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("f.scn:7:4: "));
}

TEST(ScenarioText, ExpectedAttributesAreASubsetAndWordsAreAll) {
  const auto words = [](std::string_view text) { return line(text).words; };
  const auto actual = words("start j1 on n1/0 share=0.5 ce=50");
  EXPECT_TRUE(agrees(words("start j1 on n1/0"), actual));
  EXPECT_TRUE(agrees(words("start j1 on n1/0 ce=50"), actual));
  EXPECT_FALSE(agrees(words("start j1 on n1/0 ce=51"), actual));
  EXPECT_FALSE(agrees(words("start j1 on n1/0 epoch=1"), actual));
  EXPECT_FALSE(agrees(words("start j1"), actual));
  EXPECT_FALSE(agrees(words("start j1 on n1/0 now"), actual));
}

struct Bad {
  const char* text;
  const char* place;
  const char* words;
};

class ScenarioFaults : public ::testing::TestWithParam<Bad> {};

TEST_P(ScenarioFaults, SayWhereAndWhatToWriteInstead) {
  const auto scenario = parse_scenario("f.scn", GetParam().text);
  ASSERT_FALSE(scenario.ok());
  EXPECT_THAT(scenario.error().message, HasSubstr(std::string("f.scn:") + GetParam().place + ": "));
  EXPECT_THAT(scenario.error().message, HasSubstr(GetParam().words));
  EXPECT_FALSE(scenario.error().next_step.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, ScenarioFaults,
    ::testing::Values(
        Bad{"sumbit j1 acme", "1:1", "'sumbit' is not a statement"},
        Bad{"at", "1:4", "the time is missing"}, Bad{"at soon submit", "1:4", "soon"},
        Bad{"at 0s expect start j1 on n1/0", "1:7", "does not follow 'at'"},
        Bad{"at 0s clock 2026-01-01T00:00:00Z", "1:7", "does not follow 'at'"},
        Bad{"tenant acme\nclock 2026-01-01T00:00:00Z", "2:1", "the clock is set after"},
        Bad{"tenant acme\n  total 1 USD", "2:3", "belongs to nothing"},
        Bad{"submit j1", "1:11", "the tenant is missing"},
        Bad{"submit j1 acme cee=25", "1:16", "'cee=25' means nothing here"},
        Bad{"submit j1 acme ce=1e3", "1:16", "1e3"}, Bad{"submit j1 acme ce=-1", "1:16", "-1"},
        Bad{"submit j1 acme memory=1e3GiB", "1:16", "'1e3' is not"},
        Bad{"submit j1 acme sport ce=1", "1:16", "'sport' is not one of them"},
        Bad{"submit j1 acme share=0", "1:16", "0"}, Bad{"submit j1 acme limit=1y", "1:16", "1y"},
        Bad{"device d memory=1GiB", "1:22", "ce= is missing"},
        Bad{"node n devices=d*x", "1:8", "x"}, Bad{"node n devices=d*1001", "1:8", "1001"},
        Bad{"node n devices=d*8 links=x", "1:20", "x"},
        Bad{"node n devices=d*8 links=1", "1:20", "'links=1' does not part 8 devices"},
        Bad{"node n devices=d*8 links=3", "1:20", "'links=3' does not part 8 devices"},
        Bad{"node n links=2", "1:8", "'links=2' does not part 0 devices"},
        Bad{"rate on_demand 1 USD", "1:18", "'USD' is not a unit of price"},
        Bad{"rate on_demand x USD/ce_hour", "1:16", "x"},
        Bad{"tenant a discount=10", "1:10", "'10' is not a percentage"},
        Bad{"tenant a wallet=10", "1:10", ""},
        Bad{"tenant a wallet=1USD credit=1EUR", "1:22", "different currencies"},
        Bad{"reserve acme ce=1", "1:19", "to= is missing"},
        Bad{"reserve acme ce=1 to=x", "1:19", "'x' is not a length of time"},
        Bad{"reserve acme ce=1 from=1x to=1h", "1:19", "1x"},
        Bad{"submit j1 acme ce=1 reservation=r1", "1:21", "'r1' is no reservation"},
        Bad{"cancel x-1", "1:8", "'x-1' is no commitment and no reservation"},
        Bad{"fault clock 1h", "1:13", "'1h' is not a step"},
        Bad{"fault daemon tired", "1:14", "'tired' does not happen to a daemon"},
        Bad{"fault journal odd", "1:15", "'odd' does not happen to a journal"},
        Bad{"fault n1/0 ill", "1:12", "'ill' is not one of them"},
        Bad{"report j1 paused", "1:11", "'paused' is not reported"},
        Bad{"quiet please", "1:7", "'please' means nothing here"},
        Bad{"expect", "1:8", "what is expected is missing"},
        Bad{"bill", "1:6", "the tenant is missing"}));

}  // namespace
}  // namespace loam::sim
