// How the endpoints stand, as the operator's API tells it: one object for each, with what clients
// saw in the last minute. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/gateway/endpoints.hpp"

namespace loam::serving {

std::string standings_json(const std::vector<Endpoints::Standing>& standings);

}  // namespace loam::serving
