// Fields of a line of a usage file (JSON), which gateway and engine write. Pure.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace loam::serving {

// Empty where it is absent or no text.
std::string text_of(const boost::json::object& line, std::string_view name);
// An object of texts; empty where it is absent. Nothing where it is anything else, or no tags.
std::optional<std::map<std::string, std::string>> tags_of(const boost::json::object& line,
                                                          std::string_view name);
// Nothing where it is absent, no integer or below zero.
std::optional<std::int64_t> count_of(const boost::json::object& line, std::string_view name);

}  // namespace loam::serving
