// Tiers: what a quantity costs where the price depends on how much was used. Pure and exact.
#pragma once

#include <vector>

#include "billing/exact.hpp"
#include "domain/price.hpp"

namespace loam::billing {

// Adds the cost of `quantity` (in 1/`per_unit` of a unit, from the first unit on) times `weight` to
// `sum`, over the denominator per_unit × weight's own. graduated: each tier's price for what lies
// in it; exactly at a tier's bound the lower tier still holds. volume: the tier reached prices all
// of it. Tier bounds are in thousandths of a unit. Requires tiers that rise from 0 and per_unit a
// multiple of 1000.
void add_tiered(ExactSum& sum, const std::vector<Tier>& tiers, TierMode mode, Int128 quantity,
                Int128 per_unit, Int128 weight);

}  // namespace loam::billing
