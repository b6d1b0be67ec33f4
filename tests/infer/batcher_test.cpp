// Continuous batching on a model without maths: the situations that break servers, and a property
// test over random ones.
#include "infer/batcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "fake_model.hpp"

namespace loam::infer {
namespace {

TEST(Batcher, ARequestJoinsTheNextStepOfThoseThatRun) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  model.submit(ask("a", numbered(0, 20), 50));
  for (int i = 0; i < 5; ++i) model.step();
  const SequenceId late = model.submit(ask("a", numbered(100, 20), 5));
  model.step();
  EXPECT_EQ(model.last_items.size(), 2U);
  model.run();
  EXPECT_EQ(model.usage.at(late), (TokenUsage{20, 0, 5, 0, model.usage.at(late).engine_time_us}));
}

TEST(Batcher, ALongPromptGoesInPiecesBesideARunningStream) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  model.submit(ask("a", numbered(0, 8), 200));
  for (int i = 0; i < 20; ++i) model.step();
  const std::uint64_t usual = model.last_step_us;
  model.submit(ask("a", numbered(1000, 400), 5));
  std::uint64_t largest = 0;
  std::size_t steps_without_stream = 0;
  while (model.batcher.load().running < 2 || model.last_items.size() < 2) model.step();
  for (int i = 0; i < 60; ++i) {
    model.step();
    largest = std::max(largest, model.last_step_us);
    if (model.last_items.front().slot != 0) ++steps_without_stream;
  }
  EXPECT_EQ(steps_without_stream, 0U);
  EXPECT_LE(largest, 8 * usual);
  model.run();
}

TEST(Batcher, AFloodDoesNotKeepANewcomerWaiting) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  for (int i = 0; i < 48; ++i) model.submit(ask("flood", numbered(100 * i, 32), 100));
  for (int i = 0; i < 30; ++i) model.step();
  ASSERT_EQ(model.batcher.load().running, 4U);
  const SequenceId newcomer = model.submit(ask("newcomer", numbered(9000, 32), 10));
  int steps = 0;
  while (model.first_sample_us.count(newcomer) == 0) {
    model.step();
    ++steps;
  }
  // In the next step it has a slot; its prompt takes at most a few.
  EXPECT_LE(steps, 5);
  EXPECT_EQ(model.batcher.load().swapped, 1U);
  model.run();
  EXPECT_EQ(model.usage.size(), 49U);
}

TEST(Batcher, ANewcomersPromptGoesBeforeThePromptsOfTheFlood) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  for (int i = 0; i < 12; ++i) model.submit(ask("flood", numbered(1000 * i, 300), 20));
  model.step();
  ASSERT_EQ(model.batcher.load().running, 4U);
  const SequenceId newcomer = model.submit(ask("newcomer", numbered(90'000, 32), 10));
  model.step();
  EXPECT_EQ(model.first_sample_us.count(newcomer), 1U) << "one step, however many prompts wait";
  model.run();
}

TEST(Batcher, WithoutFairnessTheNewcomerWaitsForTheWholeFlood) {
  TokenCounters counters;
  BatcherConfig config = small();
  config.fair = false;
  FakeModel model(config, counters);
  for (int i = 0; i < 12; ++i) model.submit(ask("flood", numbered(100 * i, 32), 20));
  model.step();
  const SequenceId newcomer = model.submit(ask("newcomer", numbered(9000, 32), 10));
  while (model.first_sample_us.count(newcomer) == 0) model.step();
  EXPECT_GE(model.usage.size(), 9U) << "most of the flood went first, so the test above can fail";
}

TEST(Batcher, TheFirstWaveComputesItsPrefixOnce) {
  TokenCounters counters;
  BatcherConfig config = small();
  config.slots = 8;
  FakeModel model(config, counters);
  std::uint64_t own = 0;
  for (int i = 0; i < 24; ++i) {
    std::vector<Token> prompt = numbered(0, 256);
    const auto rest = numbered(10'000 + 100 * i, 20);
    prompt.insert(prompt.end(), rest.begin(), rest.end());
    model.submit(ask("a", std::move(prompt), 10));
    own += 20 + 9;  // the last generated token is never computed
  }
  model.run();
  EXPECT_EQ(model.computed, 256 + own);
  std::uint64_t cached = 0;
  for (const auto& [id, usage] : model.usage) {
    EXPECT_EQ(usage.prompt_tokens, 276U);
    cached += usage.cached_tokens;
  }
  EXPECT_EQ(cached, 23U * 256);
}

TEST(Batcher, MemoryForAQuarterOfTheDemandFailsNobody) {
  // 8 x (100 + 200) tokens in a context of 1,024, promised once and promised twice over.
  for (const std::uint32_t overcommit : {1000U, 3000U}) {
    TokenCounters counters;
    BatcherConfig config = small();
    config.slots = 8;
    config.unified = true;
    config.cells = 1024;
    config.overcommit_permille = overcommit;
    FakeModel model(config, counters);
    for (int i = 0; i < 8; ++i) model.submit(ask("a", numbered(1000 * i, 100), 200));
    model.run();
    ASSERT_EQ(model.usage.size(), 8U);
    for (const auto& [id, usage] : model.usage) {
      EXPECT_EQ(usage.prompt_tokens, 100U);
      EXPECT_EQ(usage.generated_tokens, 200U);
    }
    EXPECT_EQ(model.batcher.load().preemptions > 0, overcommit > 1000);
  }
}

TEST(Batcher, MemoryThatIsLessThanWasToldPutsStreamsAsideAndFailsNobody) {
  for (const std::uint32_t overcommit : {1000U, 3000U}) {
    for (const std::uint64_t cache_bytes : {0U, 1'000'000U}) {
      TokenCounters counters;
      BatcherConfig config = small();
      config.slots = 8;
      config.unified = true;
      config.cells = 4096;
      config.overcommit_permille = overcommit;
      config.cache_bytes_max = cache_bytes;
      FakeModel model(config, counters);
      model.cells_there = 700;
      for (int i = 0; i < 8; ++i) model.submit(ask("a", numbered(1000 * i, 100), 200));
      model.run();
      ASSERT_EQ(model.usage.size(), 8U);
      for (const auto& [id, usage] : model.usage) {
        EXPECT_EQ(usage.prompt_tokens, 100U);
        EXPECT_EQ(usage.generated_tokens, 200U);
      }
      EXPECT_GT(model.rooms_lacked, 0U);
      EXPECT_LE(model.rooms_lacked, 8U * 8) << "about once for each that ends, not once a step";
    }
  }
}

TEST(Batcher, AStepWithoutRoomForOneAloneCannotBeComputed) {
  TokenCounters counters;
  BatcherConfig config = small();
  for (const bool unified : {true, false}) {
    config.unified = unified;
    Batcher batcher(config, counters);
    const auto add = [&](Token first) {
      ASSERT_TRUE(batcher.submit(ask("a", numbered(first, 10), 5)).ok());
    };
    add(0);
    StepPlan plan = batcher.plan();
    batcher.finish({}, {}, 0);
    EXPECT_FALSE(batcher.lacked_room(plan));
    add(100);
    plan = batcher.plan();
    batcher.finish({}, {}, 0);
    EXPECT_EQ(batcher.lacked_room(plan), unified) << "apart, nobody else has the room";
  }
}

TEST(Batcher, WithoutHostMemoryASwappedStreamIsRecomputedAndThatIsCountedApart) {
  TokenCounters counters;
  BatcherConfig config = small();
  config.slots = 1;
  config.cache_bytes_max = 0;
  FakeModel model(config, counters);
  SequenceRequest low = ask("a", numbered(0, 50), 20);
  low.service_class = ServiceClass::batch;
  const SequenceId slow = model.submit(low);
  for (int i = 0; i < 5; ++i) model.step();
  SequenceRequest high = ask("b", numbered(500, 10), 3);
  high.service_class = ServiceClass::interactive;
  model.submit(high);
  model.run();
  const TokenUsage& usage = model.usage.at(slow);
  EXPECT_EQ(usage.prompt_tokens, 50U);
  EXPECT_EQ(usage.generated_tokens, 20U);
  EXPECT_GT(usage.recomputed_tokens, 50U);
  EXPECT_EQ(usage.cached_tokens, 0U);
}

TEST(Batcher, AHigherClassPreemptsAndThePreemptedResumesBeforeTheNeverStarted) {
  TokenCounters counters;
  BatcherConfig config = small();
  config.slots = 1;
  FakeModel model(config, counters);
  SequenceRequest low = ask("a", numbered(0, 30), 20);
  low.service_class = ServiceClass::batch;
  const SequenceId first = model.submit(low);
  low.prompt = numbered(200, 30);
  const SequenceId second = model.submit(low);
  for (int i = 0; i < 6; ++i) model.step();
  SequenceRequest high = ask("b", numbered(500, 10), 5);
  high.service_class = ServiceClass::interactive;
  const SequenceId urgent = model.submit(high);
  std::vector<SequenceId> order;
  while (model.batcher.has_work()) {
    for (const Ended& end : model.step()) order.push_back(end.sequence);
  }
  EXPECT_EQ(order, (std::vector<SequenceId>{urgent, first, second}));
  EXPECT_EQ(model.usage.at(first).recomputed_tokens, 0U) << "its memory was kept on the host";
}

TEST(Batcher, ACancelledStreamIsMeteredAsFarAsItCameAndItsSlotIsFree) {
  TokenCounters counters;
  BatcherConfig config = small();
  config.slots = 1;
  FakeModel model(config, counters);
  const SequenceId gone = model.submit(ask("a", numbered(0, 30), 100));
  const SequenceId next = model.submit(ask("a", numbered(500, 30), 3));
  for (int i = 0; i < 10; ++i) model.step();
  const auto usage = model.batcher.cancel(gone);
  ASSERT_TRUE(usage.has_value());
  EXPECT_EQ(usage->prompt_tokens, 30U);
  EXPECT_EQ(usage->generated_tokens, 10U);
  EXPECT_FALSE(model.batcher.cancel(gone).has_value());
  model.step();
  ASSERT_EQ(model.last_items.size(), 1U);
  EXPECT_EQ(model.last_items[0].sequence, next);
  model.run();
}

TEST(Batcher, CancelledInTheMiddleOfItsPromptItIsMeteredForWhatWasComputed) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  const SequenceId gone = model.submit(ask("a", numbered(0, 400), 100));
  model.step();
  const auto usage = model.batcher.cancel(gone);
  EXPECT_EQ(usage->prompt_tokens, small().chunk_tokens);
  EXPECT_EQ(usage->generated_tokens, 0U);
}

TEST(Batcher, TenantsAreServedByWeight) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  for (int i = 0; i < 60; ++i) {
    SequenceRequest heavy = ask("heavy", numbered(1000 * i, 20), 20);
    heavy.weight = 3;
    model.submit(heavy);
    model.submit(ask("light", numbered(1000 * i + 500, 20), 20));
  }
  // While both have work, heavy gets three times light's tokens.
  std::map<std::string, double> served;
  for (int i = 0; i < 250; ++i) {
    model.step();
    for (const BatchItem& item : model.last_items) {
      served[item.sequence.value % 2 == 1 ? "heavy" : "light"] += item.tokens;
    }
  }
  EXPECT_NEAR(served["heavy"] / served["light"], 3.0, 0.6);
}

TEST(Batcher, HolesBetweenSlotsAreClosedByAMove) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  model.submit(ask("a", numbered(0, 20), 100));
  const SequenceId middle = model.submit(ask("a", numbered(100, 20), 100));
  model.submit(ask("a", numbered(200, 20), 100));
  for (int i = 0; i < 10; ++i) model.step();
  model.batcher.cancel(middle);
  EXPECT_EQ(model.batcher.load().fragmentation_permille, 333U);
  model.step();
  EXPECT_EQ(model.batcher.load().fragmentation_permille, 0U);
  EXPECT_EQ(model.batcher.load().compactions, 1U);
  model.run();
}

TEST(Batcher, WhatCannotFitIsRefusedAtOnceAndDisturbsNobody) {
  TokenCounters counters;
  FakeModel model(small(), counters);
  model.submit(ask("a", numbered(0, 20), 10));
  EXPECT_FALSE(model.batcher.submit(ask("a", numbered(0, 500), 13)).ok());
  EXPECT_FALSE(model.batcher.submit(ask("a", numbered(0, 20), 0)).ok());
  model.run();
  EXPECT_EQ(model.usage.size(), 1U);
}

// Random requests of several tenants with shared, public and private beginnings, cancels, classes;
// both memory layouts, scarce and ample host memory. FakeModel checks every row and every bound.
TEST(BatcherProperty, RandomTrafficIsServedWholeAndNothingForeignIsSeen) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    BatcherConfig config = small();
    config.slots = static_cast<std::uint32_t>(random.between(1, 8));
    config.unified = random.chance(500);
    config.cells_per_slot = 200;
    config.cells = static_cast<std::uint32_t>(random.between(200, 600));
    config.overcommit_permille = random.chance(500) ? 1000 : 2500;
    config.cache_bytes_max =
        random.chance(300) ? 0 : static_cast<std::uint64_t>(random.between(1, 60'000));
    config.chunk_tokens = static_cast<std::uint32_t>(random.between(1, 64));
    config.chunk_tokens_least = std::min(config.chunk_tokens, 8U);
    config.step_tokens_max = 80;
    config.fair = random.chance(800);
    config.share_prefixes = random.chance(800);
    TokenCounters counters;
    FakeModel model(config, counters);
    std::map<SequenceId, std::pair<std::uint32_t, std::uint32_t>> asked;
    std::vector<SequenceId> open;
    std::size_t cancelled = 0;
    for (int round = 0; round < 200; ++round) {
      if (asked.size() < 40 && random.chance(300)) {
        std::vector<Token> prompt = numbered(static_cast<Token>(random.below(2)), 40);
        prompt.resize(static_cast<std::size_t>(random.between(1, 40)));
        for (auto more = random.between(0, 60); more > 0; --more) {
          prompt.push_back(static_cast<Token>(random.below(3)));
        }
        SequenceRequest request = ask(random.chance(500) ? "a" : "b", prompt,
                                      static_cast<std::uint32_t>(random.between(1, 90)));
        if (random.chance(500))
          request.public_tokens = static_cast<std::uint32_t>(random.below(prompt.size() + 1));
        request.service_class = static_cast<ServiceClass>(random.below(3));
        request.weight = static_cast<std::uint32_t>(random.between(1, 3));
        const auto end_after =
            random.chance(500) ? static_cast<std::uint32_t>(random.between(1, 90)) : 0U;
        if (random.chance(200)) request = ask_embedding(request.tenant, std::move(prompt));
        const auto prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
        const auto tokens_max = request.tokens_max;
        const SequenceId id = model.submit(std::move(request), end_after);
        const std::uint32_t wanted = end_after == 0 ? tokens_max : std::min(tokens_max, end_after);
        asked[id] = {prompt_tokens, tokens_max == 0 ? 0 : wanted};
        open.push_back(id);
      }
      if (!open.empty() && random.chance(30)) {
        const SequenceId id = open[random.below(open.size())];
        if (model.batcher.cancel(id)) {
          asked.erase(id);
          ++cancelled;
        }
      }
      model.step();
      if (testing::Test::HasFatalFailure()) return;
    }
    model.run();
    if (testing::Test::HasFatalFailure()) return;
    for (const auto& [id, expected] : asked) {
      ASSERT_EQ(model.usage.count(id), 1U);
      const TokenUsage& usage = model.usage.at(id);
      EXPECT_EQ(usage.prompt_tokens, expected.first);
      EXPECT_EQ(usage.generated_tokens, expected.second);
      EXPECT_LE(usage.cached_tokens, usage.prompt_tokens);
    }
    EXPECT_EQ(model.batcher.load().running + model.batcher.load().swapped, 0U);
  }
}

}  // namespace
}  // namespace loam::infer
