#include "schedule/spot/zones.hpp"

#include "base/assert.hpp"

namespace loam::schedule::spot {
namespace {

// spell >= egress / (2 (1 - ratio)), in integers.
bool worth_moving(const Terms& terms, Ticks spell) {
  return spell * 2 * (cost_scale - terms.spot_price_ppm) >= terms.egress_cost;
}

}  // namespace

Mode step_zones(const Terms& terms, ZonedState& state, std::span<const std::uint8_t> available) {
  LOAM_ASSERT(available.size() == state.spells.size() && state.zone < available.size());
  for (std::size_t zone = 0; zone < available.size(); ++zone)
    state.spells[zone] = available[zone] != 0 ? state.spells[zone] + 1 : 0;

  const bool here = available[state.zone] != 0;
  observe(state.task, here);
  state.task.spell = state.spells[state.zone];
  if (here) {
    const Mode mode = choose(Policy::reserve, terms, state.task, true);
    advance(terms, state.task, mode);
    return mode;
  }
  std::size_t best = state.zone;
  for (std::size_t zone = 0; zone < available.size(); ++zone)
    if (state.spells[zone] > state.spells[best]) best = zone;
  if (best != state.zone && worth_moving(terms, state.spells[best]) &&
      affords_spot(terms, state.task, terms.egress_cost)) {
    State there = state.task;
    there.spell = state.spells[best];
    if (choose(Policy::reserve, terms, there, true) == Mode::spot) {
      state.zone = best;
      ++state.moves;
      state.task.spell = there.spell;
      state.task.paid += terms.egress_cost;
      advance(terms, state.task, Mode::spot);
      return Mode::spot;
    }
  }
  const Mode mode = choose(Policy::reserve, terms, state.task, false);
  advance(terms, state.task, mode);
  return mode;
}

}  // namespace loam::schedule::spot
