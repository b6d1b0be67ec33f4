#include "infer/scaling.hpp"

#include <gtest/gtest.h>

#include "infer/token_rate.hpp"

namespace loam::infer {
namespace {

using State = ScaledInstance::State;
constexpr Instant at_first{10'000'000};

struct Endpoint {
  ScalingTerms terms{.instances_min = 0, .instances_max = 4};
  EndpointLoad load{.slots = 10};
  ScalingMemory memory;

  ScalingDecision decide(Duration after = {}) {
    return decide_scaling(terms, load, at_first + after, memory);
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
  endpoint.load.last_request = at_first;
  endpoint.load.expected_milli = 16'001;
  EXPECT_EQ(endpoint.decide().start, 2U);
}

TEST(Scaling, ItShrinksOnlyAfterLessWasEnoughForAWhile) {
  Endpoint endpoint;
  endpoint.serving({3, 1, 2});
  endpoint.load.last_request = at_first + Duration::minutes(2);
  EXPECT_TRUE(endpoint.decide().drain.empty());
  EXPECT_TRUE(endpoint.decide(Duration::seconds(59)).drain.empty());
  // The two with the least to do.
  EXPECT_EQ(endpoint.decide(Duration::seconds(60)).drain, (std::vector<std::uint64_t>{2, 3}));
}

TEST(Scaling, ABurstInBetweenStartsTheWaitAnew) {
  Endpoint endpoint;
  endpoint.serving({1, 1});
  endpoint.load.last_request = at_first + Duration::minutes(2);
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
  endpoint.load.last_request = at_first;
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
  note_failed_start(endpoint.memory, at_first);
  EXPECT_EQ(state_of(endpoint.load, endpoint.memory), EndpointState::failing);
  EXPECT_EQ(endpoint.decide().start, 0U);
  EXPECT_EQ(endpoint.decide(Duration::seconds(1)).start, 1U);
  for (int i = 0; i < 100; ++i) note_failed_start(endpoint.memory, at_first);
  EXPECT_EQ(endpoint.decide(Duration::minutes(5) - Duration{1}).start, 0U);
  EXPECT_EQ(endpoint.decide(Duration::minutes(5)).start, 1U);
  note_start(endpoint.memory);
  EXPECT_EQ(endpoint.decide().start, 1U);
}

constexpr Duration turn = Duration::seconds(10);
constexpr TurnTerms turns{.turn_min = turn, .start_max = Duration::minutes(5)};

RoomAsk asking(std::uint64_t endpoint, std::int64_t waiting_ms) {
  RoomAsk ask;
  ask.endpoint = endpoint;
  ask.memory = Mebibytes{100};
  ask.start = 1;
  ask.waiting_since = at_first + Duration{waiting_ms};
  return ask;
}
RoomAsk serving(std::uint64_t endpoint, std::uint32_t in_flight) {
  RoomAsk ask;
  ask.endpoint = endpoint;
  ask.memory = Mebibytes{100};
  ask.serving = 1;
  ask.in_flight = in_flight;
  ask.turn_began = at_first;
  return ask;
}

TEST(Room, WhoWaitsLongestIsFirst) {
  const RoomDecision decision =
      decide_room(Mebibytes{100}, turns, {asking(1, 5), asking(2, 3)}, at_first + turn);
  EXPECT_EQ(decision, (RoomDecision{{2}, {}}));
}

TEST(Room, AnIdleModelGivesWayAtOnceAndABusyOneAfterItsTurn) {
  const Instant soon = at_first + Duration::seconds(2);
  EXPECT_EQ(decide_room(Mebibytes{100}, turns, {serving(1, 0), asking(2, 0)}, soon),
            (RoomDecision{{}, {1}}));
  EXPECT_EQ(decide_room(Mebibytes{100}, turns, {serving(1, 3), asking(2, 0)}, soon),
            (RoomDecision{}));
  EXPECT_EQ(decide_room(Mebibytes{100}, turns, {serving(1, 3), asking(2, 0)}, at_first + turn),
            (RoomDecision{{}, {1}}));
}

TEST(Room, WhatDrainsAlreadyIsNotAskedForTwice) {
  RoomAsk leaving = serving(1, 2);
  leaving.serving = 0;
  leaving.draining = 1;
  EXPECT_EQ(
      decide_room(Mebibytes{200}, turns, {leaving, serving(3, 1), asking(2, 0)}, at_first + turn),
      (RoomDecision{}));
}

TEST(Room, GrowthTakesOnlyWhatNobodyWaitsFor) {
  RoomAsk growing = serving(1, 9);
  growing.start = 3;
  EXPECT_EQ(decide_room(Mebibytes{300}, turns, {growing, asking(2, 0)}, at_first),
            (RoomDecision{{2, 1}, {}}));
  RoomAsk large = asking(2, 0);
  large.memory = Mebibytes{250};
  EXPECT_EQ(decide_room(Mebibytes{300}, turns, {growing, large}, at_first), (RoomDecision{}));
}

TEST(Room, AModelLargerThanTheRoomHoldsNobodyUp) {
  RoomAsk large = asking(1, 0);
  large.memory = Mebibytes{500};
  EXPECT_EQ(decide_room(Mebibytes{100}, turns, {large, asking(2, 1)}, at_first),
            (RoomDecision{{2}, {}}));
}

TEST(Room, WhatStillStartsIsNotDisplacedHoweverLongItTakes) {
  RoomAsk starts = serving(1, 0);
  starts.turn_began.reset();
  starts.starts_since = at_first;
  for (const bool is_asked_for : {true, false}) {
    starts.waiting_since = is_asked_for ? std::optional(at_first) : std::nullopt;
    for (const Duration after : {turn, Duration::minutes(5) - Duration{1}})
      EXPECT_EQ(decide_room(Mebibytes{100}, turns, {starts, asking(2, 0)}, at_first + after),
                (RoomDecision{}));
    // Until it is taken for stuck.
    EXPECT_EQ(
        decide_room(Mebibytes{100}, turns, {starts, asking(2, 0)}, at_first + Duration::minutes(5)),
        (RoomDecision{{}, {1}}));
  }
}

TEST(Room, ATurnIsCountedFromWhenItServes) {
  RoomAsk came_up = serving(1, 2);
  came_up.starts_since = at_first;
  came_up.turn_began = at_first + Duration::minutes(1);
  const auto at = [&](Duration after) {
    return decide_room(Mebibytes{100}, turns, {came_up, asking(2, 0)}, at_first + after);
  };
  EXPECT_EQ(at(Duration::minutes(1) + turn - Duration{1}), (RoomDecision{}));
  EXPECT_EQ(at(Duration::minutes(1) + turn), (RoomDecision{{}, {1}}));
}

TEST(Room, OneWithRequestsThatWaitForItIsNotIdle) {
  RoomAsk came_up = serving(1, 0);
  came_up.waiting_since = at_first;
  const Instant soon = at_first + Duration::seconds(2);
  EXPECT_EQ(decide_room(Mebibytes{100}, turns, {came_up, asking(2, 0)}, soon), (RoomDecision{}));
}

// Two busy models, room for one: simulated second by second.
TEST(Room, TwoModelsWithRoomForOneAreServedInTurn) {
  std::vector<RoomAsk> models{asking(0, 0), asking(1, 1)};
  std::uint32_t served_s[2] = {0, 0};
  std::uint32_t longest_wait_s = 0;
  for (std::int64_t second = 0; second < 600; ++second) {
    const Instant now = at_first + Duration::seconds(second);
    for (RoomAsk& model : models) {
      model.draining = 0;  // what drained is gone after a second
      const bool serves = model.serving > 0;
      model.in_flight = serves ? 5 : 0;
      model.start = serves ? 0 : 1;
      if (serves) {
        model.waiting_since.reset();
        ++served_s[model.endpoint];
      } else {
        if (!model.waiting_since) model.waiting_since = now;
        longest_wait_s = std::max(
            longest_wait_s, static_cast<std::uint32_t>((now - *model.waiting_since).ms / 1000));
      }
    }
    const RoomDecision decision = decide_room(Mebibytes{100}, turns, models, now);
    for (const std::uint64_t id : decision.drain) {
      --models[id].serving;
      ++models[id].draining;
    }
    for (const std::uint64_t id : decision.start) {
      ++models[id].serving;
      models[id].turn_began = now;
    }
    ASSERT_LE(models[0].serving + models[0].draining + models[1].serving + models[1].draining, 1U);
  }
  EXPECT_GT(served_s[0], 250U);
  EXPECT_GT(served_s[1], 250U);
  EXPECT_LE(longest_wait_s, 12U);
}

TEST(TokenRate, IsOfTheLastHourAndSurvivesACounterThatBeginsAnew) {
  TokenRate rate;
  rate.note(1'000'000, at_first);  // what was before is nobody's heat
  EXPECT_EQ(rate.per_minute(at_first), 0U);
  rate.note(1'000'600, at_first + Duration::seconds(10));
  rate.note(1'001'200, at_first + Duration::minutes(30));
  EXPECT_EQ(rate.per_minute(at_first + Duration::minutes(30)), 20U);
  rate.note(60, at_first + Duration::minutes(31));
  EXPECT_EQ(rate.per_minute(at_first + Duration::minutes(31)), 21U);
  EXPECT_EQ(rate.per_minute(at_first + Duration::minutes(61)), 11U);
  EXPECT_EQ(rate.per_minute(at_first + Duration::hours(5)), 0U);
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
