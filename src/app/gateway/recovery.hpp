// What requests used that a gateway did not live to write down: taken from the engines' own usage
// file at the next start, so that no token is missing on the bill. Shell (files).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "app/gateway/config.hpp"
#include "gateway/ports.hpp"

namespace loam::serving {

struct Recovery {
  std::size_t requests = 0;  // written down now
  std::size_t skipped = 0;   // lines of the engines' file that cannot be read
};

// The engines' usage file of this configuration.
std::string engine_usage_file(const Config& config);

// Looks at the engines' lines since the last recovery. A request that the gateway's usage file does
// not name is recorded with what engines say of it; one whose record was not the last word, with
// what they say beyond it. `owners`: by model. How far both files were read is kept beside the
// engines' file, after everything is recorded: interrupted, it is done again without a second
// effect. Call it while no request is in flight. Cost: the lines since the last time.
Result<Recovery> recover_usage(const Config& config,
                               const std::map<std::string, std::string>& owners, Instant now,
                               gateway::UsageSink& sink);

}  // namespace loam::serving
