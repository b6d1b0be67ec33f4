// Texts to embed beside streams: they go in pieces, by the same rules as everything else. Judged by
// what the steps hold, on a model without maths.
#include <gtest/gtest.h>

#include <algorithm>

#include "fake_model.hpp"

namespace loam::infer {
namespace {

std::uint32_t tokens_of(const FakeModel& model, SequenceId sequence) {
  std::uint32_t tokens = 0;
  for (const BatchItem& item : model.last_items) {
    if (item.sequence == sequence) tokens += item.tokens;
  }
  return tokens;
}

TEST(Embeddings, AFloodOfThemNeitherLeavesAStreamOutNorMakesItsStepsLong) {
  for (const bool same_tenant : {false, true}) {
    TokenCounters counters;
    FakeModel model(small(), counters);
    const SequenceId stream = model.submit(ask("a", numbered(0, 8), 400));
    for (int i = 0; i < 20; ++i) model.step();
    const std::uint64_t usual = model.last_step_us;
    for (int i = 0; i < 64; ++i) {
      model.submit(ask_embedding(same_tenant ? "a" : "b", numbered(1000 * i, 500)));
    }
    std::uint64_t largest = 0;
    std::uint32_t steps_with_texts = 0;
    for (int i = 0; i < 300; ++i) {
      model.step();
      EXPECT_EQ(tokens_of(model, stream), 1U) << "a token of the stream in every step";
      largest = std::max(largest, model.last_step_us);
      if (model.last_items.size() > 1) ++steps_with_texts;
    }
    EXPECT_LE(largest, 8 * usual);
    EXPECT_EQ(steps_with_texts, 300U) << "and the texts go on meanwhile";
    model.run();
    EXPECT_EQ(model.usage.size(), 65U);
  }
}

TEST(Embeddings, WhatATokenOfATextCostsIsLearnedApartFromThatOfAPrompt) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  model.submit(ask("a", numbered(0, 200), 1));
  model.run();
  model.submit(ask_embedding("a", numbered(1000, 200)));
  model.run();
  EXPECT_EQ(model.batcher.costs().prompt_token_us(), 300U);
  EXPECT_EQ(model.batcher.costs().prompt_token_us(PromptWork::embedding), 500U);
}

TEST(Embeddings, ShortTextsShareAStep) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  for (int i = 0; i < 4; ++i) model.submit(ask_embedding("a", numbered(100 * i, 8)));
  model.step();
  EXPECT_EQ(model.last_items.size(), 4U);
  EXPECT_EQ(model.usage.size(), 4U);
  for (const auto& [id, usage] : model.usage) {
    EXPECT_EQ(usage, (TokenUsage{8, 0, 0, 0, usage.engine_time_us}));
  }
}

TEST(Embeddings, TwoTenantsTextsAreComputedByTheirWeights) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  for (int i = 0; i < 60; ++i) {
    SequenceRequest heavy = ask_embedding("heavy", numbered(1000 * i, 100));
    heavy.weight = 3;
    model.submit(heavy);
    model.submit(ask_embedding("light", numbered(1000 * i + 500, 100)));
  }
  std::map<std::string, double> served;
  for (int i = 0; i < 200; ++i) {
    model.step();
    for (const BatchItem& item : model.last_items) {
      served[item.sequence.value % 2 == 1 ? "heavy" : "light"] += item.tokens;
    }
  }
  EXPECT_NEAR(served["heavy"] / served["light"], 3.0, 0.6);
}

TEST(Embeddings, ANewcomersTextDoesNotWaitForTheTextsOfAFlood) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  for (int i = 0; i < 48; ++i) model.submit(ask_embedding("flood", numbered(1000 * i, 500)));
  for (int i = 0; i < 10; ++i) model.step();
  const SequenceId newcomer = model.submit(ask_embedding("newcomer", numbered(90'000, 32)));
  int steps = 0;
  while (model.usage.count(newcomer) == 0 && steps < 100) {
    model.step();
    ++steps;
  }
  EXPECT_LE(steps, 5);
  model.run();
  EXPECT_EQ(model.usage.size(), 49U);
}

TEST(Embeddings, ATextPutAsideGoesOnWhereItWasWithoutTakingAVectorTwice) {
  for (const std::uint64_t cache : {std::uint64_t{1'000'000}, std::uint64_t{0}}) {
    TokenCounters counters;
    BatcherConfig config = small();
    config.slots = 1;
    config.cache_bytes_max = cache;
    FakeModel model(config, counters);
    SequenceRequest low = ask_embedding("a", numbered(0, 200));
    low.service_class = ServiceClass::batch;
    const SequenceId text = model.submit(low);
    for (int i = 0; i < 3; ++i) model.step();
    SequenceRequest high = ask("b", numbered(500, 10), 3);
    high.service_class = ServiceClass::interactive;
    model.submit(high);
    model.run();
    EXPECT_EQ(model.vectors.at(text), 200U);
    EXPECT_EQ(model.usage.at(text).prompt_tokens, 200U);
    EXPECT_EQ(model.usage.at(text).cached_tokens, 0U);
    EXPECT_EQ(model.usage.at(text).recomputed_tokens, cache == 0 ? 96U : 0U);
  }
}

TEST(Embeddings, AStoredBeginningHoldsNoVectorsAndIsComputedAgainForAText) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  model.submit(ask("a", numbered(0, 100), 5));
  model.run();
  const SequenceId text = model.submit(ask_embedding("a", numbered(0, 100)));
  model.run();
  EXPECT_EQ(model.usage.at(text), (TokenUsage{100, 0, 0, 0, model.usage.at(text).engine_time_us}));
}

TEST(Embeddings, ATextLongerThanTheContextIsRefusedAndOneThatFillsItIsNot) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  const auto refused = model.batcher.submit(ask_embedding("a", numbered(0, 513)));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("513"), std::string::npos);
  const SequenceId whole = model.submit(ask_embedding("a", numbered(0, 512)));
  model.run();
  EXPECT_EQ(model.usage.at(whole).prompt_tokens, 512U);
}

}  // namespace
}  // namespace loam::infer
