// Spot under a deadline: what is promised whatever spot does, and how close to the optimum.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "schedule/spot/deadline.hpp"
#include "schedule/spot/optimum.hpp"
#include "schedule/spot/zones.hpp"
#include "sim/trace/spot.hpp"
#include "sim/trace/spot_adversary.hpp"

namespace loam::schedule::spot {
namespace {

constexpr Policy policies[] = {Policy::greedy, Policy::uniform_progress, Policy::reserve};

Terms small(Ticks work, Ticks deadline, Ticks changeover, std::int64_t ratio = 317'000) {
  Terms terms;
  terms.work = work;
  terms.deadline = deadline;
  terms.changeover = changeover;
  terms.tick = Duration::seconds(195);
  terms.spot_price_ppm = ratio;
  return terms;
}

using Key = std::tuple<Mode, Ticks, Ticks, Ticks, std::int64_t>;

// Every state that any availability can lead to within the deadline.
template <class Check>
void visit_all(Policy policy, const Terms& terms, const Check& check) {
  std::set<Key> seen{{Mode::idle, 0, 0, 0, 0}};
  std::vector<State> layer{State{}};
  while (!layer.empty()) {
    std::vector<State> next;
    seen.clear();
    for (const State& state : layer) {
      check(state);
      if (state.finished(terms) || state.now >= terms.deadline) continue;
      for (const bool available : {false, true}) {
        State after = state;
        step(policy, terms, after, available);
        if (seen.insert({after.mode, after.done, after.pending, after.spell, after.paid}).second)
          next.push_back(after);
      }
    }
    layer = std::move(next);
  }
}

TEST(SpotDeadline, WhateverSpotDoesEveryPolicyMeetsAFeasibleDeadline) {
  for (const Policy policy : policies)
    for (const Ticks changeover : {1, 2, 3})
      for (const Ticks loose : {0, 1, 3, 7}) {
        const Terms terms = small(6, 6 + changeover + loose, changeover);
        visit_all(policy, terms, [&](const State& state) {
          if (state.now == terms.deadline) {
            ASSERT_TRUE(state.finished(terms)) << name_of(policy) << " did " << state.done;
          }
        });
      }
}

TEST(SpotDeadline, WhateverSpotDoesReserveKeepsWithinItsCap) {
  for (const std::int64_t ratio : {1'000, 317'000, 600'000, 950'000, 999'999})
    for (const std::int64_t margin : {0, 100'000}) {
      Terms terms = small(6, 14, 2, ratio);
      terms.margin_ppm = margin;
      visit_all(Policy::reserve, terms,
                [&](const State& state) { ASSERT_LE(state.paid, terms.cost_cap()); });
    }
}

TEST(SpotDeadline, TheSlackInvariantHoldsAtEveryTick) {
  EXPECT_TRUE(rc::check("slack never negative off demand; on demand the rest fits", [] {
    Terms terms = small(*rc::gen::inRange<Ticks>(1, 200), 0, *rc::gen::inRange<Ticks>(1, 12),
                        *rc::gen::inRange<std::int64_t>(1, cost_scale));
    terms.deadline = terms.work + terms.changeover + *rc::gen::inRange<Ticks>(0, 200);
    const auto availability = *rc::gen::container<std::vector<std::uint8_t>>(
        static_cast<std::size_t>(terms.deadline), rc::gen::inRange<std::uint8_t>(0, 2));
    State state;
    for (const std::uint8_t there : availability) {
      if (state.finished(terms)) break;
      const Ticks slack_before = slack(terms, state);
      const Ticks done_before = state.done;
      const Mode mode = step(Policy::reserve, terms, state, there != 0);
      RC_ASSERT(mode != Mode::spot || there != 0);
      if (mode == Mode::on_demand) {
        RC_ASSERT(terms.deadline - state.now - (terms.work - state.done) >= state.pending);
      } else {
        RC_ASSERT(slack(terms, state) >= 0);
        // An idle or pending tick costs exactly one, a productive one none.
        RC_ASSERT(slack(terms, state) == slack_before - (state.done == done_before ? 1 : 0));
      }
      RC_ASSERT(state.paid <= terms.cost_cap());
    }
    RC_ASSERT(state.finished(terms));
  }));
}

TEST(SpotDeadline, AdversariesFindNoMissedDeadlineAndNoCostOverTheCap) {
  for (const Policy policy : policies) {
    const auto report = sim::run_adversary(policy, 20'260'301, 4'000);
    EXPECT_EQ(report.missed, 0u) << report.first_fault;
    EXPECT_EQ(report.over_cap, 0u) << report.first_fault;
    EXPECT_EQ(report.runs, 4'000u);
  }
}

// Every plan by hand: each tick idle, on spot where it is there, or on demand.
std::int64_t cheapest_by_hand(const Terms& terms, const std::vector<std::uint8_t>& available,
                              State state) {
  constexpr std::int64_t never = std::int64_t{1} << 60;
  if (state.finished(terms)) return state.paid;
  if (state.now == terms.deadline) return never;
  const bool there = available[static_cast<std::size_t>(state.now)] != 0;
  observe(state, there);
  std::int64_t best = never;
  for (const Mode mode : {Mode::idle, Mode::spot, Mode::on_demand}) {
    if (mode == Mode::spot && !there) continue;
    State after = state;
    advance(terms, after, mode);
    best = std::min(best, cheapest_by_hand(terms, available, after));
  }
  return best;
}

TEST(SpotOptimum, EqualsEveryPlanTriedByHand) {
  Random random(7);
  for (int round = 0; round < 40; ++round) {
    const Ticks changeover = random.between(1, 2);
    const Terms terms = small(random.between(1, 4), 0, changeover,
                              random.chance(500) ? 317'000 : random.between(1, cost_scale - 1));
    Terms with_deadline = terms;
    with_deadline.deadline = terms.work + changeover + random.between(0, 4);
    std::vector<std::uint8_t> available(static_cast<std::size_t>(with_deadline.deadline));
    for (auto& there : available) there = random.chance(600) ? 1 : 0;
    const auto best = optimal_cost(with_deadline, available);
    ASSERT_TRUE(best);
    EXPECT_EQ(*best, cheapest_by_hand(with_deadline, available, State{})) << "round " << round;
  }
}

TEST(SpotOptimum, IsABoundForEveryPolicy) {
  EXPECT_TRUE(rc::check([] {
    Terms terms = small(*rc::gen::inRange<Ticks>(1, 60), 0, *rc::gen::inRange<Ticks>(1, 6));
    terms.deadline = terms.work + terms.changeover + *rc::gen::inRange<Ticks>(0, 60);
    const auto availability = *rc::gen::container<std::vector<std::uint8_t>>(
        static_cast<std::size_t>(terms.deadline), rc::gen::inRange<std::uint8_t>(0, 2));
    const auto best = optimal_cost(terms, availability);
    RC_ASSERT(best.has_value());
    for (const Policy policy : policies) {
      const auto outcome = sim::run_spot(policy, terms, availability, 0);
      RC_ASSERT(outcome.ok());
      RC_ASSERT(outcome->cost >= *best);
    }
  }));
}

TEST(SpotOptimum, AnInfeasibleDeadlineHasNone) {
  EXPECT_FALSE(optimal_cost(small(5, 5, 1), std::vector<std::uint8_t>(5, 1)));
  EXPECT_EQ(optimal_cost(small(5, 6, 1), std::vector<std::uint8_t>(6, 1)), 6 * 317'000);
}

TEST(SpotDeadline, ReserveClosesMoreOfTheGapThanUniformProgress) {
  // Spells of about 4 h with spot and 1 h without.
  const auto model = sim::parse_availability_model("model", "1 1\n0.986 0.014\n0.055 0.945\n");
  ASSERT_TRUE(model.ok());
  for (const Ticks changeover : {1, 4}) {
    const Terms terms = small(443, 554, changeover);
    double greedy = 0, uniform = 0, reserve = 0, best = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const auto trace = sim::generate_availability(*model, 554, seed);
      greedy += sim::run_spot(Policy::greedy, terms, trace, 0)->cost_fraction(terms);
      uniform += sim::run_spot(Policy::uniform_progress, terms, trace, 0)->cost_fraction(terms);
      reserve += sim::run_spot(Policy::reserve, terms, trace, 0)->cost_fraction(terms);
      best += static_cast<double>(*optimal_cost(terms, trace)) / 443e6;
    }
    EXPECT_LT(reserve, uniform);
    EXPECT_GT(greedy - reserve, 1.3 * (greedy - uniform));
    EXPECT_GE(reserve, best);
  }
}

TEST(SpotDeadline, StateIsDataARunResumesFromIt) {
  const Terms terms = small(50, 80, 3);
  Random random(3);
  State whole, parts;
  for (int tick = 0; tick < 80 && !whole.finished(terms); ++tick) {
    const bool there = random.chance(600);
    step(Policy::reserve, terms, whole, there);
    State stored = parts;
    step(Policy::reserve, terms, stored, there);
    parts = stored;
    ASSERT_EQ(whole, parts);
  }
}

TEST(SpotTerms, RoundSafelyAndRefuseWhatCannotBeMet) {
  const auto terms = terms_of(Duration::hours(48), Duration::hours(60), Duration::minutes(3),
                              Duration::seconds(195), 317'000);
  ASSERT_TRUE(terms.ok());
  EXPECT_EQ(terms->work, 887);
  EXPECT_EQ(terms->deadline, 1107);
  EXPECT_EQ(terms->changeover, 1);

  const auto refused = [](Duration work, Duration deadline, Duration changeover, Duration tick,
                          std::int64_t ratio) {
    const auto bad = terms_of(work, deadline, changeover, tick, ratio);
    return !bad.ok() && bad.error().kind == ErrorKind::invalid_argument &&
           !bad.error().message.empty();
  };
  const Duration hour = Duration::hours(1), second = Duration::seconds(1);
  EXPECT_TRUE(refused(hour, hour, second, second, 317'000));
  EXPECT_TRUE(refused(hour, Duration{-5}, second, second, 317'000));
  EXPECT_TRUE(refused(Duration{}, hour, second, second, 317'000));
  EXPECT_TRUE(refused(hour, hour * 2, Duration{-1}, second, 317'000));
  EXPECT_TRUE(refused(hour, hour * 2, second, Duration{}, 317'000));
  EXPECT_TRUE(refused(hour, hour * 2, second, second, 0));
  EXPECT_TRUE(refused(hour, hour * 2, second, second, cost_scale));
  EXPECT_TRUE(refused(hour * 800'000, hour * 870'000, second, second, 317'000));
  EXPECT_FALSE(refused(hour, hour + second, second, second, 317'000));
}

TEST(SpotZones, StartWhereSpotHasBeenLongest) {
  Terms terms = small(100, 200, 1);
  terms.egress_cost = 0;
  ZonedState state(3);
  const auto tick = [&](std::vector<std::uint8_t> there) {
    return step_zones(terms, state, there);
  };
  EXPECT_EQ(tick({1, 0, 1}), Mode::spot);
  EXPECT_EQ(state.zone, 0u);
  tick({1, 1, 1});
  EXPECT_EQ(tick({0, 1, 1}), Mode::spot);
  EXPECT_EQ(state.zone, 2u);
  EXPECT_EQ(state.moves, 1);
}

TEST(SpotZones, EgressIsPaidOnlyForASpellThatIsWorthIt) {
  Terms terms = small(100, 200, 1);
  terms.egress_cost = 4 * cost_scale;  // worth it from 4 / (2 * 0.683) = 2.93 ticks on
  ZonedState state(2);
  for (int tick = 0; tick < 2; ++tick) step_zones(terms, state, std::vector<std::uint8_t>{0, 1});
  EXPECT_EQ(state.moves, 0);
  EXPECT_EQ(step_zones(terms, state, std::vector<std::uint8_t>{0, 1}), Mode::spot);
  EXPECT_EQ(state.moves, 1);
  EXPECT_EQ(state.task.paid, 4 * cost_scale + 317'000);
}

TEST(SpotZones, MoreZonesCostLessOnTheWhole) {
  const auto model = sim::parse_availability_model("model", "1 1\n0.97 0.03\n0.03 0.97\n");
  ASSERT_TRUE(model.ok());
  Terms terms = small(300, 400, 1);
  terms.egress_cost = cost_scale / 2;
  std::int64_t one = 0, many = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<std::vector<std::uint8_t>> zones;
    for (std::uint64_t zone = 0; zone < 5; ++zone)
      zones.push_back(sim::generate_availability(*model, 400, seed * 8 + zone));
    one += sim::run_spot(Policy::reserve, terms, zones[0], 0)->cost;
    many += sim::run_spot_zones(terms, zones, 0)->task.cost;
  }
  EXPECT_LT(many, one * 8 / 10);
}

}  // namespace
}  // namespace loam::schedule::spot
