// The currencies that money is paid in: ISO 4217's list of codes and minor units, without metals,
// funds of testing and codes that have no minor unit. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "base/money.hpp"

namespace loam {

// Decimal digits of the smallest payable unit; nothing for a code that is not listed.
std::optional<int> listed_exponent(std::string_view code);
// The same, and 2 for a code that was stored and is not listed. Cost: of a few comparisons.
int exponent_of(std::string_view code);

// A code that is listed; the error names one that is near. For what people type: what was stored is
// read by Currency::parse(), which knows no list.
Result<Currency> listed_currency(std::string_view text);

// Whether the amount is a whole number of payable units: what can be paid.
bool is_payable(Money amount);
// The amount where it can be paid; else an error that names the ones around it.
Result<Money> payable(Money amount);

}  // namespace loam
