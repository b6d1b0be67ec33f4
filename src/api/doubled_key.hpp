// Objects whose keys are not unique, of which RFC 8259 §4 says that software behaves unpredictably:
// here they are refused. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace loam::api {

// The first key that one object of `json` has twice. Nothing where there is none, or where the text
// is no JSON. O(length · log keys).
std::optional<std::string> doubled_key(std::string_view json);

}  // namespace loam::api
