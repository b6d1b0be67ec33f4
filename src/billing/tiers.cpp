#include "billing/tiers.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::billing {

void add_tiered(ExactSum& sum, const std::vector<Tier>& tiers, TierMode mode, Int128 quantity,
                Int128 per_unit, Int128 weight) {
  LOAM_ASSERT(!tiers.empty() && quantity >= 0 && per_unit % 1000 == 0);
  const Int128 per_thousandth = per_unit / 1000;
  const auto bound = [&](std::size_t i) {
    return static_cast<Int128>(tiers[i].above_milli_ce_hours) * per_thousandth;
  };
  if (mode == TierMode::volume) {
    std::size_t reached = 0;
    while (reached + 1 < tiers.size() && quantity > bound(reached + 1)) ++reached;
    sum.add(tiers[reached].price.units(), quantity, weight);
    return;
  }
  for (std::size_t i = 0; i < tiers.size() && (i == 0 || quantity > bound(i)); ++i) {
    const Int128 top = i + 1 < tiers.size() ? std::min(quantity, bound(i + 1)) : quantity;
    sum.add(tiers[i].price.units(), top - bound(i), weight);
  }
}

}  // namespace loam::billing
