// What the pool's devices could give over a time, as the daemon knows it. Not pure: asks the
// daemon.
#pragma once

#include <vector>

#include "api/client.hpp"
#include "billing/efficiency.hpp"

namespace loam::cli {

// Those that were in service in the period, as far as it is past. Requires one that has begun.
Result<std::vector<billing::DeviceCapacity>> capacity_of(api::Client& client,
                                                         const billing::Period& period);

}  // namespace loam::cli
