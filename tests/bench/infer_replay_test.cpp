// The replay of a trace in virtual time: what comes in is answered, time is accounted for, and the
// figures are those that can be worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.hpp"
#include "bench/infer_replay/replay.hpp"

namespace loam::bench::replay {
namespace {

infer::StepCost known_cost() {
  infer::StepCost cost(8);
  for (std::uint32_t streams = 1; streams <= 8; ++streams)
    cost.learn(streams, 0, 1'000 + 500 * streams);
  cost.learn(0, 1, 100);
  return cost;
}

Settings settings_of(std::uint32_t least, std::uint32_t most) {
  Settings settings;
  settings.batching.cells_per_slot = 2048;
  settings.batching.share_prefixes = false;
  settings.scaling.instances_min = least;
  settings.scaling.instances_max = most;
  settings.scaling.idle_after = Duration::seconds(30);
  settings.scaling.shrink_after = Duration::seconds(10);
  settings.start_time = Duration::seconds(2);
  return settings;
}

// A busy minute, a silent one, a busy one.
std::vector<Arrival> traffic() {
  Random random(3);
  std::vector<Arrival> arrivals;
  for (const std::int64_t begin_us : {std::int64_t{0}, std::int64_t{120'000'000}}) {
    for (std::int64_t at_us = begin_us; at_us < begin_us + 60'000'000;
         at_us += random.between(1, 100'000)) {
      arrivals.push_back({at_us, static_cast<std::uint32_t>(random.between(1, 600)),
                          static_cast<std::uint32_t>(random.between(1, 100))});
    }
  }
  return arrivals;
}

TEST(InferReplay, OneRequestTakesWhatItsStepsTake) {
  const Settings settings = settings_of(1, 1);
  const Outcome outcome = replay({{10'000'000, 64, 3}}, settings, known_cost());
  ASSERT_EQ(outcome.first_token_ms.size(), 1U);
  EXPECT_DOUBLE_EQ(outcome.first_token_ms[0], 6.4) << "two pieces of 32 tokens";
  EXPECT_EQ(outcome.gap_ms, (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(outcome.tokens, 67U);
  EXPECT_NEAR(outcome.busy_seconds, 0.0094, 1e-9);
}

TEST(InferReplay, AColdEndpointAnswersAfterAnInstanceHasStarted) {
  const Outcome outcome = replay({{10'000'000, 32, 1}}, settings_of(0, 4), known_cost());
  ASSERT_EQ(outcome.first_token_ms.size(), 1U);
  EXPECT_NEAR(outcome.first_token_ms[0], 2'003.2, 0.1);
  EXPECT_EQ(outcome.most_instances, 1U);
}

TEST(InferReplay, EverythingIsAnsweredAndTheElasticOneTakesLess) {
  const std::vector<Arrival> arrivals = traffic();
  std::uint64_t tokens = 0;
  for (const Arrival& arrival : arrivals)
    tokens += arrival.prompt_tokens + arrival.generated_tokens;
  const Outcome fixed = replay(arrivals, settings_of(4, 4), known_cost());
  const Outcome elastic = replay(arrivals, settings_of(0, 4), known_cost());
  for (const Outcome* outcome : {&fixed, &elastic}) {
    EXPECT_EQ(outcome->first_token_ms.size(), arrivals.size());
    EXPECT_EQ(outcome->tokens, tokens);
    EXPECT_EQ(outcome->unanswered, 0U);
    EXPECT_LE(outcome->busy_seconds, outcome->instance_seconds);
    EXPECT_LE(outcome->most_instances, 4U);
    EXPECT_GE(*std::min_element(outcome->gap_ms.begin(), outcome->gap_ms.end()), 1.5);
  }
  EXPECT_NEAR(fixed.instance_seconds, 4 * fixed.span_seconds, 4 * 0.5);
  EXPECT_LT(elastic.instance_seconds, 0.8 * fixed.instance_seconds);
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  EXPECT_GE(mean(elastic.first_token_ms), mean(fixed.first_token_ms));
}

TEST(InferReplay, TheSameInputGivesTheSameOutcome) {
  const std::vector<Arrival> arrivals = traffic();
  const Outcome one = replay(arrivals, settings_of(0, 3), known_cost());
  const Outcome two = replay(arrivals, settings_of(0, 3), known_cost());
  EXPECT_EQ(one.first_token_ms, two.first_token_ms);
  EXPECT_EQ(one.gap_ms, two.gap_ms);
  EXPECT_EQ(one.instance_seconds, two.instance_seconds);
}

TEST(InferReplay, TheCapacityIsThatOfFullSteps) {
  const std::vector<Arrival> arrivals(400, Arrival{0, 32, 50});
  const double per_second = capacity(arrivals, settings_of(0, 4), known_cost());
  // Eight at once: a step of 5 ms gives 8 tokens, and each prompt takes 3.2 ms beside it.
  EXPECT_NEAR(per_second, 8 / (50 * 0.005 + 8 * 0.0032), 3);
}

}  // namespace
}  // namespace loam::bench::replay
