// Apportioning: parts that sum to the whole by construction (largest remainder method). Pure.
#pragma once

#include <vector>

#include "base/money.hpp"

namespace loam::billing {

// `amount` split in proportion to `weights` into whole units that sum to it exactly. Each part is
// rounded toward zero; what is left over goes, unit by unit, to the largest remainders, ties to the
// earlier part. All weights zero: all parts zero but the first, which takes everything.
// Requires weights >= 0, at least one.
std::vector<Int128> split(Int128 amount, const std::vector<Int128>& weights);
// The same for money, at 12 decimals.
std::vector<Money> split(Money amount, const std::vector<Int128>& weights);

struct Settled {
  std::vector<Money> payable;  // in the currency's payable unit
  Money total;                 // their sum: the exact sum rounded once
};
// Rounds amounts so that the rounded ones sum to the rounded sum: each down to the payable unit,
// the units left over to the largest remainders, ties to the earlier amount.
Settled settle(const std::vector<Money>& exact, Currency currency,
               Rounding rounding = Rounding::half_even);

// 10^-exponent of a currency, in Money's units: the smallest amount that can be paid.
Int128 payable_unit(Currency currency);

}  // namespace loam::billing
