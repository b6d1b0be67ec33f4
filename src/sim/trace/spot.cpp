#include "sim/trace/spot.hpp"

#include "base/random.hpp"
#include "schedule/spot/zones.hpp"

namespace loam::sim {
namespace {

using namespace schedule::spot;

constexpr int mixing_steps = 4096;  // power iteration: far past the slowest state's 700 steps

double uniform(Random& random) {
  return static_cast<double>(random.next() >> 11) * 0x1p-53;
}

std::size_t draw(Random& random, std::span<const double> weights) {
  double left = uniform(random);
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return i;
  }
  return weights.size() - 1;
}

Error too_short(std::size_t samples, std::size_t start, Ticks ran) {
  return invalid("the availability ends at sample " + std::to_string(samples) + ", " +
                     std::to_string(ran) + " ticks after --start " + std::to_string(start) +
                     " and before the task does",
                 "start earlier, or give a longer file");
}

SpotOutcome outcome_of(const Terms& terms, const State& state) {
  return {state.paid, state.starts, state.now, !state.finished(terms)};
}

}  // namespace

std::vector<double> AvailabilityModel::stationary() const {
  const std::size_t n = states();
  std::vector<double> share(n, 1.0 / static_cast<double>(n));
  for (int step = 0; step < mixing_steps; ++step) {
    std::vector<double> next(n, 0.0);
    for (std::size_t from = 0; from < n; ++from)
      for (std::size_t to = 0; to < n; ++to) next[to] += share[from] * transitions[from * n + to];
    share = std::move(next);
  }
  return share;
}

std::vector<std::uint8_t> generate_availability(const AvailabilityModel& model, std::size_t ticks,
                                                std::uint64_t seed) {
  Random random(seed);
  const std::size_t n = model.states();
  std::size_t state = draw(random, model.stationary());
  std::vector<std::uint8_t> available(ticks);
  for (std::uint8_t& there : available) {
    there = state < model.with_spot ? 1 : 0;
    state = draw(random, std::span(model.transitions).subspan(state * n, n));
  }
  return available;
}

Result<SpotOutcome> run_spot(Policy policy, const Terms& terms,
                             std::span<const std::uint8_t> available, std::size_t start,
                             const std::function<void(const State&)>& each) {
  State state;
  while (!state.finished(terms) && state.now < terms.deadline) {
    const std::size_t at = start + static_cast<std::size_t>(state.now);
    if (at >= available.size()) return too_short(available.size(), start, state.now);
    step(policy, terms, state, available[at] != 0);
    if (each) each(state);
  }
  return outcome_of(terms, state);
}

Result<ZonesOutcome> run_spot_zones(const Terms& terms,
                                    const std::vector<std::vector<std::uint8_t>>& zones,
                                    std::size_t start) {
  ZonedState state(zones.size());
  std::vector<std::uint8_t> now(zones.size());
  while (!state.task.finished(terms) && state.task.now < terms.deadline) {
    const std::size_t at = start + static_cast<std::size_t>(state.task.now);
    for (std::size_t zone = 0; zone < zones.size(); ++zone) {
      if (at >= zones[zone].size()) return too_short(zones[zone].size(), start, state.task.now);
      now[zone] = zones[zone][at];
    }
    step_zones(terms, state, now);
  }
  return ZonesOutcome{outcome_of(terms, state.task), state.moves};
}

}  // namespace loam::sim
