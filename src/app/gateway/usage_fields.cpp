#include "app/gateway/usage_fields.hpp"

#include "billing/attribution.hpp"

namespace loam::serving {

std::string text_of(const boost::json::object& line, std::string_view name) {
  const boost::json::value* value = line.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<std::map<std::string, std::string>> tags_of(const boost::json::object& line,
                                                          std::string_view name) {
  std::map<std::string, std::string> tags;
  const boost::json::value* value = line.if_contains(name);
  if (value == nullptr) return tags;
  if (!value->is_object()) return std::nullopt;
  for (const auto& [key, text] : value->get_object()) {
    if (!text.is_string()) return std::nullopt;
    tags.emplace(std::string(key), std::string(text.get_string()));
  }
  if (!billing::check(tags).ok()) return std::nullopt;
  return tags;
}

std::optional<std::int64_t> count_of(const boost::json::object& line, std::string_view name) {
  const boost::json::value* value = line.if_contains(name);
  const std::int64_t* number = value == nullptr ? nullptr : value->if_int64();
  if (number == nullptr || *number < 0) return std::nullopt;
  return *number;
}

}  // namespace loam::serving
