#include "schedule/spot/deadline.hpp"

#include <algorithm>
#include <string>

namespace loam::schedule::spot {
namespace {

__extension__ typedef __int128 Wide;

constexpr Ticks ticks_max = 10'000'000;
// On-demand is not left for spot before this many changeovers of spot in a row, at most.
constexpr double patience_max_changeovers = 8;

Ticks remaining(const Terms& terms, const State& state) {
  return terms.work - state.done;
}

// tau, in milliseconds: a spell of spot that is worth a changeover.
std::int64_t bet_length_ms(const Terms& terms) {
  return terms.bet_ms + 4 * terms.changeover * terms.tick.ms;
}

// For how many ticks in a row spot must have been there before a task leaves on-demand for it: the
// scarcer the slack, and the dearer spot, the longer.
double patience_ticks(const Terms& terms, const State& state, Ticks slack_now) {
  const auto d = static_cast<double>(terms.changeover);
  const double bets = static_cast<double>(remaining(terms, state) * terms.tick.ms) /
                      static_cast<double>(bet_length_ms(terms));
  const double ratio = static_cast<double>(terms.spot_price_ppm) / static_cast<double>(cost_scale);
  const double scarce = 2 * d * bets / static_cast<double>(std::max<Ticks>(slack_now, 1)) - 1;
  const double dear = (1 + ratio) / (1 - ratio) - 2;
  return std::min(patience_max_changeovers * d,
                  2 * d * std::max(0.0, scarce) + 0.5 * d * std::max(0.0, dear));
}

// Whether an idle task may wait on: s > 2d(N + 1), in integers.
bool reserve_lasts(const Terms& terms, const State& state, Ticks slack_now) {
  const Wide bet = bet_length_ms(terms);
  const Wide left = Wide{remaining(terms, state)} * terms.tick.ms;
  return slack_now >= 1 && slack_now * bet > 2 * terms.changeover * (left + bet);
}

Mode choose_reserve(const Terms& terms, const State& state, bool available) {
  const Ticks slack_now = slack(terms, state);
  if (state.mode == Mode::spot)
    return state.pending == 0 || slack_now >= 1 ? Mode::spot : Mode::on_demand;
  if (!available) {
    if (state.mode == Mode::on_demand) return Mode::on_demand;
    return reserve_lasts(terms, state, slack_now) ? Mode::idle : Mode::on_demand;
  }
  if (slack_now < terms.changeover || !affords_spot(terms, state, 0)) return Mode::on_demand;
  if (state.mode == Mode::idle) return Mode::spot;
  return static_cast<double>(state.spell) > patience_ticks(terms, state, slack_now)
             ? Mode::spot
             : Mode::on_demand;
}

// Slack before a changeover; at 2d or less only on-demand to the end is safe.
bool must_hurry(const Terms& terms, const State& state) {
  return slack(terms, state) <= terms.changeover;
}

Mode choose_greedy(const Terms& terms, const State& state, bool available) {
  if (state.mode != Mode::idle) return state.mode;
  if (must_hurry(terms, state)) return Mode::on_demand;
  return available ? Mode::spot : Mode::idle;
}

Mode choose_uniform(const Terms& terms, const State& state, bool available) {
  if (state.mode == Mode::spot) return Mode::spot;
  if (must_hurry(terms, state)) return Mode::on_demand;
  if (state.mode == Mode::on_demand &&
      state.done * terms.deadline < terms.work * (state.now + 2 * terms.changeover))
    return Mode::on_demand;
  if (available) return Mode::spot;
  const bool behind = state.done * terms.deadline < terms.work * state.now;
  return behind ? Mode::on_demand : Mode::idle;
}

}  // namespace

Result<Terms> terms_of(Duration work, Duration deadline, Duration changeover, Duration tick,
                       std::int64_t spot_price_ppm) {
  if (tick.ms <= 0) return invalid("a tick of " + to_text(tick) + " has no length");
  if (work.ms <= 0) return invalid("there is no work in " + to_text(work), "give it as 48h");
  if (changeover.ms < 0) return invalid("a changeover takes no negative time", "give it as 3m");
  if (spot_price_ppm <= 0 || spot_price_ppm >= cost_scale)
    return invalid("the spot price must be between 0 and 1 on-demand prices",
                   "give it as 0.317; at 1 or more, run on demand");
  const auto up = [&](Duration length) { return (length.ms + tick.ms - 1) / tick.ms; };
  Terms terms;
  if (std::max({work.ms, deadline.ms, changeover.ms}) / tick.ms >= ticks_max)
    return invalid("more than " + std::to_string(ticks_max) + " ticks of " + to_text(tick),
                   "choose longer ticks");
  terms.work = up(work);
  terms.deadline = deadline.ms < 0 ? -1 : deadline.ms / tick.ms;
  terms.changeover = std::max<Ticks>(up(changeover), 1);
  terms.tick = tick;
  terms.spot_price_ppm = spot_price_ppm;
  if (!terms.feasible()) {
    const Duration least = tick * (terms.work + terms.changeover);
    return invalid("the deadline of " + to_text(deadline) +
                       " cannot be met: on-demand alone takes " + to_text(least) + " in ticks of " +
                       to_text(tick),
                   "give a deadline of at least " + to_text(least));
  }
  return terms;
}

const char* name_of(Mode mode) noexcept {
  switch (mode) {
    case Mode::idle:
      return "idle";
    case Mode::spot:
      return "spot";
    case Mode::on_demand:
      break;
  }
  return "on_demand";
}

const char* name_of(Policy policy) noexcept {
  switch (policy) {
    case Policy::greedy:
      return "greedy";
    case Policy::uniform_progress:
      return "uniform_progress";
    case Policy::reserve:
      break;
  }
  return "reserve";
}

std::optional<Policy> policy_of(std::string_view name) {
  for (const Policy policy : {Policy::greedy, Policy::uniform_progress, Policy::reserve})
    if (name == name_of(policy)) return policy;
  return std::nullopt;
}

bool affords_spot(const Terms& terms, const State& state, std::int64_t entry_cost) {
  // Worst case: spot is lost at the end of its changeover, and the rest is done on demand.
  const Ticks on_demand_left =
      remaining(terms, state) + (state.mode == Mode::on_demand ? state.pending : terms.changeover);
  const Ticks again = state.mode == Mode::on_demand ? terms.changeover - state.pending : 0;
  return state.paid + (on_demand_left + again) * cost_scale +
             terms.spot_price_ppm * terms.changeover + entry_cost <=
         terms.cost_cap();
}

void observe(State& state, bool available) {
  state.spell = available ? state.spell + 1 : 0;
  if (state.mode == Mode::spot && !available) {
    state.mode = Mode::idle;
    state.pending = 0;
  }
}

Mode choose(Policy policy, const Terms& terms, const State& state, bool available) {
  LOAM_ASSERT(!state.finished(terms));
  switch (policy) {
    case Policy::greedy:
      return choose_greedy(terms, state, available);
    case Policy::uniform_progress:
      return choose_uniform(terms, state, available);
    case Policy::reserve:
      break;
  }
  return choose_reserve(terms, state, available);
}

void advance(const Terms& terms, State& state, Mode mode) {
  if (mode != state.mode) {
    state.mode = mode;
    state.pending = mode == Mode::idle ? 0 : terms.changeover;
    if (mode != Mode::idle) ++state.starts;
  }
  ++state.now;
  if (mode == Mode::idle) return;
  state.paid += mode == Mode::spot ? terms.spot_price_ppm : cost_scale;
  if (state.pending > 0) {
    --state.pending;
  } else {
    ++state.done;
  }
}

Mode step(Policy policy, const Terms& terms, State& state, bool available) {
  observe(state, available);
  const Mode mode = choose(policy, terms, state, available);
  advance(terms, state, mode);
  return mode;
}

}  // namespace loam::schedule::spot
