#include "app/gateway/usage_fields.hpp"

namespace loam::serving {

std::string text_of(const boost::json::object& line, std::string_view name) {
  const boost::json::value* value = line.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<std::int64_t> count_of(const boost::json::object& line, std::string_view name) {
  const boost::json::value* value = line.if_contains(name);
  const std::int64_t* number = value == nullptr ? nullptr : value->if_int64();
  if (number == nullptr || *number < 0) return std::nullopt;
  return *number;
}

}  // namespace loam::serving
