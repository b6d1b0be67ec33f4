// Spot under a deadline: when a task that must end in time runs on spot, on demand or not at all,
// with the future of spot unknown. Three policies:
//   reserve           keeps as much slack in reserve as the task still needs to wait for spot, bets
//                     on a spell of availability as long as spells usually are, and never lets the
//                     bill pass a cap;
//   uniform_progress  keeps up with an even pace (Wu et al., "Can't Be Late", NSDI 2024);
//   greedy            waits for spot until only on-demand meets the deadline.
// Pure; integers. Time is counted in ticks, one look at spot's availability each.
//
// `reserve` and the others never miss a feasible deadline, whatever spot does: not on demand, the
// slack after a change to on-demand is never negative; idle ticks and pending spot ticks cost one
// tick of it and are taken only while it lasts, productive ones cost none. `reserve` never pays
// more than (1 + margin) * work + changeover on-demand ticks.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace loam::schedule::spot {

using Ticks = std::int64_t;

// Cost is counted in millionths of the on-demand price of one tick.
inline constexpr std::int64_t cost_scale = 1'000'000;

struct Terms {
  Ticks work = 0;                     // ticks of progress that the task needs, >= 1
  Ticks deadline = 0;                 // the tick by whose start it must have ended
  Ticks changeover = 1;               // ticks lost at every start, >= 1
  Duration tick;                      // length of one
  std::int64_t spot_price_ppm = 0;    // spot price / on-demand price, in (0, 1,000,000)
  std::int64_t margin_ppm = 100'000;  // of the work: what may be lost on top of on-demand
  std::int64_t egress_cost = 0;       // of a start in another zone, in cost units
  std::int64_t bet_ms = 6'480'000;    // spell of spot worth betting on, without changeovers;
                                      // 1.8 h: fitted on nine zones' availability

  // A task that starts on demand at once ends in time.
  bool feasible() const { return deadline - work >= changeover; }
  // What `reserve` never passes.
  std::int64_t cost_cap() const {
    return work * cost_scale + work * margin_ppm + changeover * cost_scale;
  }

  friend bool operator==(const Terms&, const Terms&) = default;
};
BOOST_DESCRIBE_STRUCT(Terms, (),
                      (work, deadline, changeover, tick, spot_price_ppm, margin_ppm, egress_cost,
                       bet_ms))

// Durations in ticks of length `tick`: work and changeover rounded up, the deadline down.
// invalid_argument for lengths that are not positive, a ratio outside (0, 1), more than 10 million
// ticks, and a deadline that even on-demand from the start would miss.
Result<Terms> terms_of(Duration work, Duration deadline, Duration changeover, Duration tick,
                       std::int64_t spot_price_ppm);

enum class Mode : std::uint8_t { idle, spot, on_demand };
enum class Policy : std::uint8_t { greedy, uniform_progress, reserve };

const char* name_of(Mode mode) noexcept;
const char* name_of(Policy policy) noexcept;
std::optional<Policy> policy_of(std::string_view name);

// Everything that a policy remembers of one task. Data: it can be stored and resumed.
struct State {
  Mode mode = Mode::idle;
  Ticks now = 0;
  Ticks done = 0;         // work
  Ticks pending = 0;      // of the present changeover
  Ticks spell = 0;        // ticks in a row with spot, the present one included
  std::int64_t paid = 0;  // in cost units
  std::int64_t starts = 0;

  bool finished(const Terms& terms) const { return done >= terms.work; }

  friend bool operator==(const State&, const State&) = default;
};

// One tick consists of the three below in turn; `step` does them all and returns the mode that the
// tick was spent in. O(1), no allocation. Require a state that is not finished.

// Spot is there or not: a spot instance is lost without it.
void observe(State& state, bool available);
// The mode for this tick. Requires observe() of the same tick. `spot` is left only for on-demand.
Mode choose(Policy policy, const Terms& terms, const State& state, bool available);
// Spends the tick in `mode`: a change pays its changeover first. In a live pool, where progress is
// measured, the caller may lower `done` afterwards; the deadline is then kept as far as measured
// progress allows, and no better.
void advance(const Terms& terms, State& state, Mode mode);

Mode step(Policy policy, const Terms& terms, State& state, bool available);

// Ticks that could be idled before on-demand is the only way left; negative only on demand.
inline Ticks slack(const Terms& terms, const State& state) {
  return terms.deadline - state.now - (terms.work - state.done) - terms.changeover;
}
// Whether starting on spot now, paying `entry_cost` beside, keeps within the cap whatever follows.
bool affords_spot(const Terms& terms, const State& state, std::int64_t entry_cost);

}  // namespace loam::schedule::spot
