// Endpoints made at run time, as JSON: the body of POST /endpoints and the file that keeps them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/gateway/config.hpp"

namespace loam::serving {

// {"model":"tiny","file":"/models/tiny.gguf","owner":"acme","callers":[...],"min":0,"max":4,
// "slots":8,"idle_after":"5m"}: model and file are needed, an unknown field is an error.
Result<EndpointConfig> parse_endpoint(std::string_view body);
std::string to_json(const EndpointConfig& endpoint);

// A list of them. A file that is not there holds none.
Result<std::vector<EndpointConfig>> load_endpoints(const std::string& path);
// Replaced as a whole, durable on return.
Result<void> save_endpoints(const std::string& path, const std::vector<EndpointConfig>& endpoints);

}  // namespace loam::serving
