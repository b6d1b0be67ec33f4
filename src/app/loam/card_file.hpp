// A rate card as a file: TOML as people write it, or JSON as the API takes it. Pure.
#pragma once

#include <string>
#include <string_view>

#include "api/money_types.hpp"
#include "base/result.hpp"

namespace loam::cli {

// Reads and checks the card as the daemon will. An error names the file, the line and the reason.
Result<api::RateRequest> read_card(const std::string& name, std::string_view text);

}  // namespace loam::cli
