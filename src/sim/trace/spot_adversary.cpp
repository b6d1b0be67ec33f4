#include "sim/trace/spot_adversary.hpp"

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "schedule/spot/zones.hpp"

namespace loam::sim {
namespace {

using namespace schedule::spot;

Terms random_terms(Random& random) {
  Terms terms;
  terms.changeover = random.between(1, 8);
  terms.work = random.chance(300) ? random.between(1, 12) : random.between(1, 120);
  const Ticks loose =
      random.chance(500) ? random.between(0, 3 * terms.changeover) : random.between(0, 120);
  terms.deadline = terms.work + terms.changeover + loose;
  terms.tick = Duration::seconds(random.between(1, 1200));
  terms.spot_price_ppm = random.between(1, cost_scale - 1);
  terms.margin_ppm = random.chance(200) ? 0 : random.between(0, 300'000);
  terms.egress_cost = random.between(0, 4 * cost_scale);
  return terms;
}

// How a run's availability is made; the last ones look at the state.
enum class Plan : std::uint8_t {
  coins,
  spells,
  before_changeover_ends,
  after_on_demand,
  at_thresholds,
  dearest,
};
constexpr std::uint64_t random_plans = 2;
constexpr std::uint64_t targeted_plans = 4;

class Adversary {
 public:
  Adversary(Policy policy, const Terms& terms, Random& random)
      : policy_(policy), terms_(terms), random_(random) {
    const bool targeted = random.chance(500);
    plan_ = static_cast<Plan>(targeted ? random_plans + random.below(targeted_plans)
                                       : random.below(random_plans));
    permille_ = random.below(1001);
    noise_ = random.chance(300) ? random.below(200) : 0;
  }

  bool offers(const State& state) {
    const bool meant = plan(state);
    return random_.chance(noise_) ? !meant : meant;
  }

 private:
  bool plan(const State& state) {
    switch (plan_) {
      case Plan::coins:
        return random_.chance(permille_);
      case Plan::spells:
        if (left_-- <= 0) {
          there_ = !there_;
          left_ = random_.between(1, 4 * terms_.changeover + 1);
        }
        return there_;
      case Plan::before_changeover_ends:
        // Spot as soon as it is wanted; it leaves in the changeover's last tick, or the first
        // after.
        if (state.mode != Mode::spot) return true;
        return state.pending > static_cast<Ticks>(random_.below(2));
      case Plan::after_on_demand:
        // Nothing until on-demand runs, then just long enough to lure the task away from it.
        if (state.mode == Mode::idle) return random_.chance(100);
        if (state.mode == Mode::on_demand) return true;
        return state.pending > 1;
      case Plan::at_thresholds: {
        const Ticks left = slack(terms_, state);
        return left <= terms_.changeover + 1 ? state.mode != Mode::spot : random_.chance(permille_);
      }
      case Plan::dearest:
        break;
    }
    return worst(state, true, 3) >= worst(state, false, 3);
  }

  // The most that finishing on demand can cost after `depth` more ticks, the first with `offer`;
  // lateness counts above all.
  std::int64_t worst(State state, bool offer, int depth) const {
    step(policy_, terms_, state, offer);
    if (state.finished(terms_)) return state.paid;
    if (depth > 0) return std::max(worst(state, true, depth - 1), worst(state, false, depth - 1));
    const Ticks start = state.mode == Mode::on_demand ? state.pending : terms_.changeover;
    const Ticks left = terms_.work - state.done + start;
    const bool late = state.now + left > terms_.deadline;
    return state.paid + left * cost_scale + (late ? 1'000'000 * cost_scale : 0);
  }

  Policy policy_;
  const Terms& terms_;
  Random& random_;
  Plan plan_ = Plan::coins;
  std::uint64_t permille_ = 0;
  std::uint64_t noise_ = 0;
  std::int64_t left_ = 0;
  bool there_ = false;
};

State play(Policy policy, const Terms& terms, Random& random) {
  Adversary adversary(policy, terms, random);
  State state;
  while (!state.finished(terms) && state.now < terms.deadline)
    step(policy, terms, state, adversary.offers(state));
  return state;
}

State play_zones(const Terms& terms, Random& random) {
  std::vector<std::uint8_t> available(static_cast<std::size_t>(random.between(2, 5)));
  Adversary adversary(Policy::reserve, terms, random);
  const std::uint64_t permille = random.below(1001);
  ZonedState state(available.size());
  while (!state.task.finished(terms) && state.task.now < terms.deadline) {
    for (std::uint8_t& there : available) there = random.chance(permille) ? 1 : 0;
    available[state.zone] = adversary.offers(state.task) ? 1 : 0;
    step_zones(terms, state, available);
  }
  return state.task;
}

std::string describe(std::uint64_t seed, const Terms& terms, const State& state) {
  return "seed " + std::to_string(seed) + ": work " + std::to_string(terms.work) + ", deadline " +
         std::to_string(terms.deadline) + ", changeover " + std::to_string(terms.changeover) +
         ", ratio " + std::to_string(terms.spot_price_ppm) + " ppm: did " +
         std::to_string(state.done) + " by " + std::to_string(state.now) + ", paid " +
         std::to_string(state.paid) + " of " + std::to_string(terms.cost_cap());
}

}  // namespace

AdversaryReport run_adversary(Policy policy, std::uint64_t seed, std::uint64_t runs) {
  constexpr std::uint64_t stride = 0xd1342543de82ef95ULL;  // odd: seeds of runs do not repeat
  AdversaryReport report;
  for (std::uint64_t run = 0; run < runs; ++run) {
    const std::uint64_t run_seed = seed + run * stride;
    Random random(run_seed);
    const Terms terms = random_terms(random);
    const bool zones = policy == Policy::reserve && run % 8 == 7;
    const State state = zones ? play_zones(terms, random) : play(policy, terms, random);
    ++report.runs;
    report.zone_runs += zones ? 1 : 0;
    const bool missed = !state.finished(terms);
    const bool dear = policy == Policy::reserve && state.paid > terms.cost_cap();
    report.missed += missed ? 1 : 0;
    report.over_cap += dear ? 1 : 0;
    if ((missed || dear) && report.first_fault.empty())
      report.first_fault = describe(run_seed, terms, state);
  }
  return report;
}

}  // namespace loam::sim
