#include "schedule/deferral.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

// What the first slots cost at least, by how many of them were taken, and whether the last was.
// `never`: it cannot be.
constexpr Int128 never = Int128{1} << 120;

struct Best {
  Int128 idle = never;
  Int128 running = never;
};

}  // namespace

Int128 cost_over(std::span<const PriceStep> steps, Instant start, Duration run) {
  LOAM_ASSERT(!steps.empty() && steps.front().from <= start && run.ms >= 0);
  const Instant end = start + run;
  Int128 cost = 0;
  for (std::size_t i = 0; i < steps.size() && steps[i].from < end; ++i) {
    const Instant until = i + 1 < steps.size() ? std::min(steps[i + 1].from, end) : end;
    const Instant from = std::max(steps[i].from, start);
    if (until > from) cost += Int128{(until - from).ms} * steps[i].price;
  }
  return cost;
}

// The cost is linear in the start between those where an end of the run meets a step, so one of
// these, or an end of the window, is cheapest.
std::optional<Instant> cheapest_start(std::span<const PriceStep> steps, const Window& window,
                                      Duration run) {
  LOAM_ASSERT(run.ms > 0);
  if (window.deadline < window.earliest || window.deadline - window.earliest < run)
    return std::nullopt;
  const Instant latest = window.deadline - run;
  std::vector<Instant> starts{window.earliest, latest};
  for (const PriceStep& step : steps) {
    for (const Instant start : {step.from, step.from - run})
      if (start > window.earliest && start < latest) starts.push_back(start);
  }
  std::optional<Instant> best;
  Int128 least = 0;
  for (const Instant start : starts) {
    const Int128 cost = cost_over(steps, start, run);
    if (!best || cost < least || (cost == least && start < *best)) {
      best = start;
      least = cost;
    }
  }
  return best;
}

// Backwards over the slots, so that the choice can be read forwards, earlier slots first on ties.
std::vector<std::size_t> cheapest_slots(std::span<const std::int64_t> prices, std::size_t needed,
                                        std::int64_t restart_cost) {
  const std::size_t slots = prices.size();
  if (needed == 0 || needed > slots) return {};
  // to_go[slot][left]: from the slot on, having been idle or running in the slot before.
  std::vector<std::vector<Best>> to_go(slots + 1, std::vector<Best>(needed + 1));
  to_go[slots][0] = {0, 0};
  const auto run_cost = [&](std::size_t slot, std::size_t left, bool running) {
    if (left == 0) return never;
    return to_go[slot + 1][left - 1].running + prices[slot] + (running ? 0 : restart_cost);
  };
  for (std::size_t slot = slots; slot-- > 0;) {
    for (std::size_t left = 0; left <= std::min(needed, slots - slot); ++left) {
      const Int128 skip = to_go[slot + 1][left].idle;
      to_go[slot][left].idle = std::min(skip, run_cost(slot, left, false));
      to_go[slot][left].running = std::min(skip, run_cost(slot, left, true));
    }
  }
  std::vector<std::size_t> chosen;
  bool running = false;
  for (std::size_t slot = 0; chosen.size() < needed; ++slot) {
    const std::size_t left = needed - chosen.size();
    running = run_cost(slot, left, running) <= to_go[slot + 1][left].idle;
    if (running) chosen.push_back(slot);
  }
  return chosen;
}

}  // namespace loam::schedule
