#include "billing/rating.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t whole_bp = 10'000;
// milli-CE × ms in one CE-hour.
constexpr Int128 milli_ce_ms_per_ce_hour = static_cast<Int128>(1000) * 3'600'000;

}  // namespace

MilliCe billable_ce(MilliCe bought, Mebibytes memory, const RateCard& card) {
  const std::int64_t floor_milli =
      (memory.value * card.ce_per_gibibyte.value + one_gibibyte.value - 1) / one_gibibyte.value;
  return std::max(bought, MilliCe{floor_milli});
}

Amount rate(MilliCe ce, Duration length, Money price_per_ce_hour, BasisPoints discount) {
  LOAM_ASSERT(length.ms >= 0 && ce.value >= 0);
  LOAM_ASSERT(discount.value >= 0 && discount.value <= whole_bp);
  const Int128 quantity = static_cast<Int128>(ce.value) * length.ms;
  return {price_per_ce_hour.times_ratio(quantity, milli_ce_ms_per_ce_hour, Rounding::half_even),
          price_per_ce_hour.times_ratio(quantity * (whole_bp - discount.value),
                                        milli_ce_ms_per_ce_hour * whole_bp, Rounding::half_even)};
}

}  // namespace loam::billing
