// When a task may start: at once, when it is next due, or in the cheapest hours that still meet its
// deadline. Decided when it is accepted. Pure, but for the zone that a recurrence names.
#pragma once

#include <optional>

#include "engine/decisions.hpp"

namespace loam::engine {

// The longest that a start is put off for a better price.
inline constexpr Duration deferral_max = Duration::hours(24 * 31);

struct StartAnswer {
  Instant not_before;  // 1970: at once
  std::optional<Reject> reject;
};
// A reject for a recurrence that cannot be read or never comes, and for a deadline that its limit
// does not meet. Requires a valid spec that is for sale. O(price changes before the deadline²).
StartAnswer start_of(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec);

// Accepts the next run of a recurring task that has just ended by itself. `use`: what the run that
// ends now used. Gives why there is none, in words; empty: there is, or it does not recur.
std::string accept_next(Draft& draft, const Task& ended, Money released,
                        const std::optional<RunUse>& use = std::nullopt);

}  // namespace loam::engine
