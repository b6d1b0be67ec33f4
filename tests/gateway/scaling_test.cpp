#include "infer/scaling.hpp"

#include <gtest/gtest.h>

namespace loam::infer {
namespace {

using State = ScaledInstance::State;
constexpr Instant start{10'000'000};

struct Endpoint {
  ScalingTerms terms{.instances_min = 0, .instances_max = 4};
  EndpointLoad load{.slots = 10};
  ScalingMemory memory;

  ScalingDecision decide(Duration after = {}) {
    return decide_scaling(terms, load, start + after, memory);
  }
  void serving(std::vector<std::uint32_t> in_flight) {
    load.instances.clear();
    load.in_flight = 0;
    for (const std::uint32_t count : in_flight) {
      load.instances.push_back({load.instances.size() + 1, State::serving, count});
      load.in_flight += count;
    }
  }
};

TEST(Scaling, AColdEndpointStaysColdUntilSomebodyAsks) {
  Endpoint endpoint;
  EXPECT_EQ(endpoint.decide().start, 0U);
  EXPECT_EQ(state_of(endpoint.load, endpoint.memory), EndpointState::cold);
  endpoint.load.waiting = 1;
  EXPECT_EQ(endpoint.decide().start, 1U);
}

TEST(Scaling, AMinimumIsStartedUnasked) {
  Endpoint endpoint;
  endpoint.terms.instances_min = 2;
  EXPECT_EQ(endpoint.decide().start, 2U);
}

TEST(Scaling, ItGrowsWithTheLoadUpToTheMaximum) {
  Endpoint endpoint;
  endpoint.serving({8});
  EXPECT_EQ(endpoint.decide().start, 0U);  // 8 of 10 slots is what one should have
  endpoint.load.waiting = 1;
  EXPECT_EQ(endpoint.decide().start, 1U);
  endpoint.load.waiting = 1000;
  EXPECT_EQ(endpoint.decide().start, 3U);
}

TEST(Scaling, WhatStartsIsCountedAndNotStartedAgain) {
  Endpoint endpoint;
  endpoint.load.waiting = 5;
  endpoint.load.instances = {{1, State::starting, 0}};
  EXPECT_EQ(endpoint.decide().start, 0U);
  EXPECT_EQ(state_of(endpoint.load, endpoint.memory), EndpointState::starting);
}

TEST(Scaling, TheForecastStartsInstancesBeforeTheLoadComes) {
  Endpoint endpoint;
  endpoint.serving({1});
  endpoint.load.last_request = start;
  endpoint.load.expected_milli = 16'001;
  EXPECT_EQ(endpoint.decide().start, 2U);
}

TEST(Scaling, ItShrinksOnlyAfterLessWasEnoughForAWhile) {
  Endpoint endpoint;
  endpoint.serving({3, 1, 2});
  endpoint.load.last_request = start + Duration::minutes(2);
  EXPECT_TRUE(endpoint.decide().drain.empty());
  EXPECT_TRUE(endpoint.decide(Duration::seconds(59)).drain.empty());
  // The two with the least to do.
  EXPECT_EQ(endpoint.decide(Duration::seconds(60)).drain, (std::vector<std::uint64_t>{2, 3}));
}

TEST(Scaling, ABurstInBetweenStartsTheWaitAnew) {
  Endpoint endpoint;
  endpoint.serving({1, 1});
  endpoint.load.last_request = start + Duration::minutes(2);
  endpoint.decide();
  endpoint.load.waiting = 10;
  EXPECT_TRUE(endpoint.decide(Duration::seconds(30)).drain.empty());
  endpoint.load.waiting = 0;
  EXPECT_TRUE(endpoint.decide(Duration::seconds(61)).drain.empty());
  EXPECT_FALSE(endpoint.decide(Duration::seconds(121)).drain.empty());
}

TEST(Scaling, TheLastInstanceGoesAfterALongSilence) {
  Endpoint endpoint;
  endpoint.serving({0});
  endpoint.load.last_request = start;
  EXPECT_TRUE(endpoint.decide(Duration::minutes(4)).drain.empty());
  EXPECT_TRUE(endpoint.decide(Duration::minutes(5)).drain.empty());
  EXPECT_EQ(endpoint.decide(Duration::minutes(6)).drain, (std::vector<std::uint64_t>{1}));
  // With requests in flight it stays, however long ago the last one came.
  endpoint.serving({1});
  EXPECT_TRUE(endpoint.decide(Duration::hours(1)).drain.empty());
}

TEST(Scaling, WhatDrainsStillTakesRoom) {
  Endpoint endpoint;
  endpoint.terms.instances_max = 2;
  endpoint.load.waiting = 100;
  endpoint.load.instances = {{1, State::draining, 3}, {2, State::serving, 10}};
  endpoint.load.in_flight = 13;
  EXPECT_EQ(endpoint.decide().start, 0U);
  endpoint.load.instances.erase(endpoint.load.instances.begin());
  EXPECT_EQ(endpoint.decide().start, 1U);
}

TEST(Scaling, FailedStartsWaitLongerEachTime) {
  Endpoint endpoint;
  endpoint.load.waiting = 1;
  note_failed_start(endpoint.memory, start);
  EXPECT_EQ(state_of(endpoint.load, endpoint.memory), EndpointState::failing);
  EXPECT_EQ(endpoint.decide().start, 0U);
  EXPECT_EQ(endpoint.decide(Duration::seconds(1)).start, 1U);
  for (int i = 0; i < 100; ++i) note_failed_start(endpoint.memory, start);
  EXPECT_EQ(endpoint.decide(Duration::minutes(5) - Duration{1}).start, 0U);
  EXPECT_EQ(endpoint.decide(Duration::minutes(5)).start, 1U);
  note_start(endpoint.memory);
  EXPECT_EQ(endpoint.decide().start, 1U);
}

TEST(Scaling, TheHottestModelTakesTheBiggestSliceThatHoldsIt) {
  const std::vector<ModelHeat> models{{1, 10, Mebibytes{10}},
                                      {2, 500, Mebibytes{40}},
                                      {3, 500, Mebibytes{90}},
                                      {4, 900, Mebibytes{10}},
                                      {5, 1, Mebibytes{999}}};
  const std::vector<SliceRoom> slices{{7, MilliCe{1000}, Mebibytes{100}},
                                      {8, MilliCe{5000}, Mebibytes{20}},
                                      {9, MilliCe{2000}, Mebibytes{50}}};
  EXPECT_EQ(assign_slices(models, slices), (std::vector<SlicePick>{{4, 8}, {2, 9}, {3, 7}}));
}

}  // namespace
}  // namespace loam::infer
