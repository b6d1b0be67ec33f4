// Running scenarios: what fails, how it is said, and what --update writes.
#include <gmock/gmock.h>

#include "sim/scenario_run.hpp"

namespace loam::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* pool =
    "device a100 ce=100 memory=80GiB\nnode n1 devices=a100\n"
    "rate on_demand 0.36 USD/ce_hour\ntenant acme\n";

Result<ScenarioResult> run(const std::string& text, bool update = false) {
  const auto scenario = parse_scenario("f.scn", text);
  EXPECT_TRUE(scenario.ok()) << (scenario ? "" : to_text(scenario.error()));
  if (!scenario) return scenario.error();
  return run_scenario(*scenario, update);
}

// What --update makes of the text; it must then pass.
std::string updated(const std::string& text) {
  const auto result = run(text, true);
  EXPECT_TRUE(result.ok());
  if (!result) return {};
  const std::string fresh = edited(text, result->edits);
  const auto again = run(fresh);
  EXPECT_TRUE(again.ok()) << to_text(again.error()) << "\n" << fresh;
  return fresh;
}

std::string body(const std::string& text) {
  return text.substr(std::string(pool).size());
}

TEST(Scenario, AnExpectationThatDoesNotHoldSaysWhatHappenedInstead) {
  const auto result = run(std::string(pool) +
                          "at 0s submit j1 acme share=0.5 limit=1m\n"
                          "expect start j1 on n1/1\n");
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("f.scn:6:1: expected 'start j1 on n1/1'"));
  EXPECT_THAT(result.error().message, HasSubstr("start j1 on n1/0"));
  EXPECT_THAT(result.error().next_step, HasSubstr("--update"));
}

TEST(Scenario, QuietFailsOnWhatWasNotExpected) {
  const auto result = run(std::string(pool) + "at 0s submit j1 acme share=0.5 limit=1m\nquiet\n");
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("it was not quiet: start j1 on n1/0"));
}

TEST(Scenario, AnExpectationBelongsToItsOwnInstant) {
  EXPECT_FALSE(run(std::string(pool) + "at 0s submit j1 acme share=0.5 limit=1m run=10s\n"
                                       "at 11s\nexpect finish j1\n")
                   .ok());
  EXPECT_TRUE(run(std::string(pool) + "at 0s submit j1 acme share=0.5 limit=1m run=10s\n"
                                      "at 10s\nexpect finish j1\n")
                  .ok());
}

TEST(Scenario, OneDecisionMeetsOneExpectation) {
  EXPECT_FALSE(run(std::string(pool) + "at 0s submit j1 acme share=0.5 limit=1m\n"
                                       "expect start j1 on n1/0\nexpect start j1 on n1/0\n")
                   .ok());
}

TEST(Scenario, BillsAreComparedLineByLine) {
  const std::string run_once =
      std::string(pool) + "at 0s submit j1 acme share=1 limit=1m run=10s\nat 10s\n";
  EXPECT_TRUE(run(run_once + "bill acme\n  usage j1 net=0.1\n  total 0.1 USD\n").ok());
  EXPECT_FALSE(run(run_once + "bill acme\n  total 0.1 USD\n").ok());
  EXPECT_FALSE(run(run_once + "bill acme\n  usage j1 net=0.1\n").ok());
  const auto wrong = run(run_once + "bill acme\n  usage j1 net=0.2\n  total 0.1 USD\n");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, HasSubstr("f.scn:8:3: the line is: usage j1 net=0.1"));
}

TEST(Scenario, TimeDoesNotGoBack) {
  const auto result = run(std::string(pool) + "at 10s\nat 9s\n");
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("f.scn:6:1: "));
}

TEST(Scenario, WhatIsNotThereIsNamed) {
  EXPECT_THAT(run("submit j1 nobody share=1").error().message,
              HasSubstr("there is no tenant 'nobody'"));
  EXPECT_THAT(run(std::string(pool) + "stop j9").error().message, HasSubstr("no task 'j9'"));
  EXPECT_THAT(run(std::string(pool) + "drain n7/0").error().message,
              HasSubstr("there is no device 'n7/0'"));
  EXPECT_THAT(run("node n1 devices=a100").error().message,
              HasSubstr("there is no device type 'a100'"));
  EXPECT_THAT(run(std::string(pool) + "fault daemon down\nquote acme share=1").error().message,
              HasSubstr("the daemon is down"));
}

TEST(ScenarioUpdate, LeavesAloneWhatHolds) {
  const std::string text = std::string(pool) +
                           "at 0s submit j1 acme share=1 limit=1m run=10s  # a comment\n"
                           "expect start j1 on n1/0\nquiet\n";
  EXPECT_EQ(updated(text), text);
}

TEST(ScenarioUpdate, WritesWhatHappenedInPlaceOfWhatDidNot) {
  const std::string text = std::string(pool) +
                           "at 0s submit j1 acme share=0.5 limit=1m run=10s\n"
                           "expect start j1 on n9/9 share=0.1\n"
                           "at 10s\n"
                           "expect fail j1 failed\n"
                           "quiet\n";
  EXPECT_EQ(body(updated(text)),
            "at 0s submit j1 acme share=0.5 limit=1m run=10s\n"
            "expect start j1 on n1/0 share=0.5\n"
            "at 10s\n"
            "expect finish j1\n"
            "quiet\n");
}

TEST(ScenarioUpdate, FillsInAnEmptyBlockAndKeepsTheColumnsOfAFullOne) {
  const std::string text = std::string(pool) +
                           "at 0s submit j1 acme share=1 limit=1m run=10s\n"
                           "at 10s\n"
                           "ledger acme\n"
                           "bill acme\n"
                           "  usage j1 net=7\n"
                           "  total 7 USD\n";
  EXPECT_EQ(body(updated(text)),
            "at 0s submit j1 acme share=1 limit=1m run=10s\n"
            "at 10s\n"
            "ledger acme\n"
            "  wallet -0.1 USD\n"
            "  held 0 USD\n"
            "  charged 0.1 USD\n"
            "bill acme\n"
            "  usage j1 net=0.1\n"
            "  total 0.1 USD\n");
}

TEST(ScenarioUpdate, AnswersAboutThePresentAreUpdatedToo) {
  const std::string text = std::string(pool) +
                           "at 0s submit j1 acme share=1 limit=1m\n"
                           "at 1s submit j2 acme share=1 limit=1m\n"
                           "expect wait j2 quota\n";
  EXPECT_THAT(updated(text), HasSubstr("expect wait j2 no_room\n"));
}

}  // namespace
}  // namespace loam::sim
