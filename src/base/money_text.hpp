// Amounts of money appended to a text that grows: long documents are written without a string for
// every number. Pure.
#pragma once

#include <string>

#include "base/money.hpp"

namespace loam {

// What display_text() gives, behind what `text` holds already. Requires 0 to Money::decimals
// places.
void append_display_text(std::string& text, Money money, int places);

}  // namespace loam
