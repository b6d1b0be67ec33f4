// What to buy, as a table, as JSON and as a picture. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "billing/advice.hpp"

namespace loam::cli {

// What an hour costs besides its price, by name.
using HiddenCosts = std::vector<std::pair<std::string, Money>>;

std::string advice_text(const billing::Advice& advice, const billing::AdviceRequest& request,
                        const HiddenCosts& hidden, bool colour, std::size_t width);
// One object; amounts are decimal numbers written exactly.
std::string advice_json(const billing::Advice& advice, const billing::AdviceRequest& request,
                        const HiddenCosts& hidden);
// An SVG picture: the usage over time, what is committed below the line, what stays on demand
// above.
std::string advice_svg(const std::vector<billing::UsageStep>& usage, const billing::Advice& advice);

}  // namespace loam::cli
