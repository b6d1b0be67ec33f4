// What to buy, as a table, as JSON and as a picture. Pure.
#pragma once

#include <string>
#include <vector>

#include "billing/advice.hpp"

namespace loam::cli {

std::string advice_text(const billing::Advice& advice, const billing::AdviceRequest& request,
                        bool colour, std::size_t width);
// One object; amounts are decimal numbers written exactly.
std::string advice_json(const billing::Advice& advice, const billing::AdviceRequest& request);
// An SVG picture: the usage over time, what is committed below the line, what stays on demand
// above.
std::string advice_svg(const std::vector<billing::UsageStep>& usage, const billing::Advice& advice);

}  // namespace loam::cli
