// What the last runs of a task used of what they asked for: a suggestion for the next one.
#pragma once

#include <optional>
#include <string>

#include "api/backend.hpp"

namespace loam::api {

struct Suggestion {
  MilliCe ce;
  std::string words;  // "its last 5 runs used at most 9 of 40 CE: 10.8 CE would do"
};

// From what was measured of the tenant's last finished tasks of that name; nothing where none was
// measured, or what the task asks for is no more than they would need.
Result<std::optional<Suggestion>> suggest(Backend& backend, TenantId tenant, const TaskSpec& spec);

}  // namespace loam::api
