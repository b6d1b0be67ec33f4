// The batcher's parts by themselves: prefix tree, token counters, step cost, schema grammar.
#include <gtest/gtest.h>

#include "fake_model.hpp"
#include "infer/json_grammar.hpp"
#include "infer/prefix_tree.hpp"
#include "infer/step_cost.hpp"
#include "infer/token_counter.hpp"

namespace loam::infer {
namespace {

PrefixKey key(const std::vector<Token>& tokens, std::string_view tenant, std::uint32_t open = 0) {
  return {tokens, tenant, open};
}

TEST(PrefixTree, TheLongestStoredBeginningIsFound) {
  PrefixTree tree(1000, 1);
  std::vector<MemoryOp> ops;
  const auto long_one = numbered(0, 40);
  tree.store(key(long_one, "a"), 0, ops);
  EXPECT_EQ(tree.stored_tokens(key(numbered(0, 60), "a")), 40U);
  EXPECT_EQ(tree.stored_tokens(key(numbered(0, 25), "a")), 25U);
  EXPECT_EQ(tree.stored_tokens(key(numbered(1, 25), "a")), 0U);
}

TEST(PrefixTree, PrivateBeginningsAreFoundByTheirTenantOnly) {
  PrefixTree tree(1000, 1);
  std::vector<MemoryOp> ops;
  const auto tokens = numbered(0, 40);
  tree.store(key(tokens, "a", 10), 0, ops);
  EXPECT_EQ(tree.stored_tokens(key(tokens, "a", 10)), 40U);
  EXPECT_EQ(tree.stored_tokens(key(tokens, "b", 10)), 10U) << "both marked it public";
  EXPECT_EQ(tree.stored_tokens(key(tokens, "b", 40)), 10U) << "marking more finds no more";
  EXPECT_EQ(tree.stored_tokens(key(tokens, "b", 0)), 0U) << "unmarked finds nothing";
  EXPECT_EQ(tree.stored_tokens(key(tokens, "b", 4)), 4U);
}

TEST(PrefixTree, SharedBeginningsAreHeldOnce) {
  PrefixTree tree(1000, 1);
  std::vector<MemoryOp> ops;
  auto first = numbered(0, 30);
  auto second = numbered(0, 30);
  second[20] = 999;
  tree.store(key(first, "a"), 0, ops);
  tree.store(key(second, "a"), 1, ops);
  EXPECT_EQ(tree.bytes(), 40U);
  EXPECT_EQ(tree.nodes(), 3U);
  EXPECT_TRUE(tree.consistent());
}

TEST(PrefixTree, TheLeastRecentlyUsedGoesFirstAndThePinnedStays) {
  PrefixTree tree(100, 1);
  std::vector<MemoryOp> ops;
  const auto a = numbered(0, 40);
  const auto b = numbered(100, 40);
  const auto pinned = tree.store(key(a, "a"), 0, ops);
  tree.pin(pinned.node);
  tree.store(key(b, "a"), 0, ops);
  tree.store(key(numbered(200, 40), "a"), 0, ops);
  EXPECT_EQ(tree.stored_tokens(key(a, "a")), 40U);
  EXPECT_EQ(tree.stored_tokens(key(b, "a")), 0U);
  tree.unpin(pinned.node);
  tree.store(key(numbered(300, 90), "a"), 0, ops);
  EXPECT_EQ(tree.stored_tokens(key(a, "a")), 0U);
  EXPECT_EQ(tree.store(key(numbered(400, 101), "a"), 0, ops).tokens, 0U) << "larger than all room";
  EXPECT_TRUE(tree.consistent());
}

TEST(SharedTokens, OnlySamePositionsOfTheSameScope) {
  const auto tokens = numbered(0, 20);
  EXPECT_EQ(shared_tokens(key(tokens, "a"), key(tokens, "a")), 20U);
  EXPECT_EQ(shared_tokens(key(tokens, "a"), key(tokens, "b")), 0U);
  EXPECT_EQ(shared_tokens(key(tokens, "a", 12), key(tokens, "b", 9)), 9U);
  EXPECT_EQ(shared_tokens(key(tokens, "a", 12), key(tokens, "a", 9)), 9U);
  EXPECT_EQ(shared_tokens(key(tokens, "a", 20), key(tokens, "b", 0)), 0U);
}

TEST(TokenCounters, AbsenceEarnsNoCredit) {
  TokenCounters counters;
  counters.arrive("busy", 1);
  counters.charge("busy", 1000);
  counters.arrive("late", 1);
  EXPECT_EQ(counters.counter("late"), counters.counter("busy"));
  counters.charge("late", 10);
  counters.leave("late");
  counters.charge("busy", 1000);
  counters.arrive("late", 1);
  EXPECT_EQ(counters.counter("late"), counters.counter("busy"));
}

TEST(TokenCounters, LeavingDoesNotClearADebt) {
  TokenCounters counters;
  counters.arrive("a", 1);
  counters.arrive("b", 1);
  counters.charge("a", 500);
  counters.leave("a");
  counters.arrive("a", 1);
  EXPECT_EQ(counters.counter("a"), 500'000'000U);
  counters.leave("a");
  counters.leave("b");
  counters.arrive("c", 1);
  EXPECT_EQ(counters.counter("c"), 0U) << "b left last, at 0";
}

TEST(TokenCounters, AWeightDividesTheCost) {
  TokenCounters counters;
  counters.arrive("a", 4);
  counters.charge("a", 8);
  EXPECT_EQ(counters.counter("a"), 2'000'000U);
}

TEST(StepCost, TheBudgetKeepsAStepWithinTheFactor) {
  StepCost cost(8);
  EXPECT_EQ(cost.prompt_budget(1, 5, 8, 64), 8U) << "nothing known yet";
  for (int i = 0; i < 50; ++i) cost.learn(1, 0, 18'000);
  for (int i = 0; i < 50; ++i) cost.learn(0, 64, 64 * 3'600);
  EXPECT_EQ(cost.prompt_budget(1, 5, 8, 64), 20U);
  EXPECT_EQ(cost.prompt_budget(1, 100, 8, 64), 64U);
}

TEST(JsonGrammar, AnObjectHasItsRequiredMembersInOrder) {
  const auto grammar = grammar_of_schema(
      R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]})");
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_NE(grammar->find("root ::= ws r"), std::string::npos);
  EXPECT_EQ(grammar->find("ws\n"), std::string::npos) << "nothing follows a value: " << *grammar;
  EXPECT_NE(grammar->find("\"\\\"name\\\"\" ws \":\" ws string"), std::string::npos) << *grammar;
}

TEST(JsonGrammar, WhatCannotBeKeptIsRefusedByName) {
  const auto refused = [](const char* schema, const char* word) {
    const auto grammar = grammar_of_schema(schema);
    ASSERT_FALSE(grammar.ok()) << schema;
    EXPECT_NE(grammar.error().message.find(word), std::string::npos) << grammar.error().message;
  };
  refused("{", "read");
  refused("3", "no object");
  refused(R"({"type":"string","pattern":"a+"})", "pattern");
  refused(R"({"type":"integer","minimum":3})", "minimum");
  refused(R"({"type":"colour"})", "colour");
  refused(R"({"type":[]})", "type");
  refused(R"({"enum":[]})", "enum");
  refused(R"({"anyOf":[]})", "choice");
  refused(R"({"$ref":"#/$defs/x"})", "#/$defs/x");
  refused(R"({"$ref":"other.json"})", "other.json");
  refused(R"({"type":"array","minItems":3,"maxItems":2})", "minItems");
  refused(R"({"type":"array","minItems":-1})", "minItems");
  refused(R"({"type":"object","properties":{"a":true},"required":["b"]})", "b");
  refused(R"({"$ref":"#/$defs/x","$defs":{"x":{"$ref":"#/$defs/x"}}})", "circle");
}

}  // namespace
}  // namespace loam::infer
