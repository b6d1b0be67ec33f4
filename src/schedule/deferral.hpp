// Deferral: a task with a deadline runs in the cheapest hours that still meet it. Pure; integers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/money.hpp"
#include "base/time.hpp"

namespace loam::schedule {

// From `from` until the next step an hour costs `price`, in whatever integer unit.
struct PriceStep {
  Instant from;
  std::int64_t price = 0;

  friend bool operator==(const PriceStep&, const PriceStep&) = default;
};

// The cost of [start, start + run) in price units * milliseconds / hour: exact, to compare by.
// Requires steps in rising order, the first at or before `start`; the last one has no end.
Int128 cost_over(std::span<const PriceStep> steps, Instant start, Duration run);

struct Window {
  Instant earliest;  // it may start from here on
  Instant deadline;  // and has ended by here
};

// The start that costs least for a task that runs in one piece; ties: the earliest. Nothing where
// `run` does not fit the window. Requires run > 0 and steps as above at `earliest`.
// O(steps^2) of those within the window.
std::optional<Instant> cheapest_start(std::span<const PriceStep> steps, const Window& window,
                                      Duration run);

// For a task that can be interrupted at the ends of equal slots (segments that end in a
// checkpoint): which slots to run in. `prices[i]` is what slot i costs, `restart_cost` what each
// start adds, the first included. The `needed` slots that cost least; ties: the earlier slots.
// Empty where there are fewer slots. O(slots * needed).
std::vector<std::size_t> cheapest_slots(std::span<const std::int64_t> prices, std::size_t needed,
                                        std::int64_t restart_cost);

}  // namespace loam::schedule
