// The cheapest way to meet a deadline for one who knows when spot will be there: the bound that
// online policies are measured against. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "schedule/spot/deadline.hpp"

namespace loam::schedule::spot {

// Cost in cost units over the first `terms.deadline` ticks; `available[t]` is not 0 where spot is
// there in tick t. Ticks beyond its end have no spot. Nothing where no plan meets the deadline.
// Dynamic program over (tick, ticks not worked): O(deadline * (deadline - work)) time,
// O(changeover * (deadline - work)) memory.
std::optional<std::int64_t> optimal_cost(const Terms& terms,
                                         std::span<const std::uint8_t> available);

}  // namespace loam::schedule::spot
