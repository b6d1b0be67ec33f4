#include "gateway/fields.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <cmath>

namespace loam::gateway {

namespace json = boost::json;

namespace {

// A value in an error message, cut where it is long.
std::string shown(const json::value& value) {
  constexpr std::size_t bytes_max = 60;
  std::string text = json::serialize(value);
  if (text.size() > bytes_max) text = text.substr(0, bytes_max) + "...";
  return text;
}

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return std::to_string(static_cast<std::int64_t>(value));
  std::string text = std::to_string(value);
  while (text.back() == '0') text.pop_back();
  return text;
}

}  // namespace

std::string_view type_name(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "a number";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      break;
  }
  return "an object";
}

const json::value* Fields::take(std::string_view name) {
  known_.push_back(name);
  const json::value* value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void Fields::fail(std::string_view name, std::string message, std::string_view code) {
  set_fault(fault_, bad_request(std::move(message), at(name), code));
}

void Fields::wrong_type(std::string_view name, std::string_view expected, const json::value& got) {
  fail(name,
       at(name) + " is " + std::string(type_name(got)) + "; give " + std::string(expected) + ".",
       "invalid_type");
}

void Fields::read(std::string_view name, bool& out) {
  const json::value* value = take(name);
  if (value == nullptr) return;
  if (!value->is_bool()) return wrong_type(name, "true or false", *value);
  out = value->get_bool();
}

void Fields::read(std::string_view name, std::string& out) {
  const json::value* value = take(name);
  if (value == nullptr) return;
  if (!value->is_string()) return wrong_type(name, "a string", *value);
  out = std::string(value->get_string());
}

void Fields::read(std::string_view name, float& out, double low, double high) {
  const json::value* value = take(name);
  if (value == nullptr) return;
  if (const auto number = read_number(*value, at(name), low, high, fault_))
    out = static_cast<float>(*number);
}

void Fields::read(std::string_view name, std::uint32_t& out, std::int64_t low, std::int64_t high) {
  const json::value* value = take(name);
  if (value == nullptr) return;
  if (const auto number = read_whole(*value, at(name), low, high, fault_))
    out = static_cast<std::uint32_t>(*number);
}

const json::object* Fields::object(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) wrong_type(name, "an object", *value);
  return value->if_object();
}

const json::array* Fields::array(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) wrong_type(name, "an array", *value);
  return value->if_array();
}

void Fields::unsupported(std::string_view name, std::string_view harmless) {
  const json::value* value = take(name);
  if (value == nullptr) return;
  if (value->is_bool() && !value->get_bool()) return;
  if (value->is_array() && value->get_array().empty()) return;
  if (value->is_object() && value->get_object().empty()) return;
  if (value->is_string() && !harmless.empty() && std::string_view(value->get_string()) == harmless)
    return;
  fail(name, at(name) + " is not offered by this server; leave it out.", "unsupported_parameter");
}

void Fields::refuse_the_rest() {
  for (const auto& [key, value] : object_) {
    const std::string_view name(key);
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string cut(name.substr(0, 60));
    fail(cut, at(cut) + " is not a known field; leave it out.", "unknown_parameter");
    return;
  }
}

std::optional<double> read_number(const json::value& value, const std::string& param, double low,
                                  double high, Fault& fault) {
  if (!value.is_number()) {
    set_fault(fault,
              bad_request(param + " is " + std::string(type_name(value)) + "; give a number from " +
                              number_text(low) + " to " + number_text(high) + ".",
                          param, "invalid_type"));
    return {};
  }
  const double number = value.to_number<double>();
  if (std::isfinite(number) && number >= low && number <= high) return number;
  set_fault(
      fault,
      bad_request(param + " is " + shown(value) + "; give a number from " + number_text(low) +
                      " to " + number_text(high) + ".",
                  param, number < low ? "decimal_below_min_value" : "decimal_above_max_value"));
  return {};
}

std::optional<std::int64_t> read_whole(const json::value& value, const std::string& param,
                                       std::int64_t low, std::int64_t high, Fault& fault) {
  std::optional<std::int64_t> whole;
  bool above = false;
  if (const auto* number = value.if_int64()) {
    whole = *number;
  } else if (value.is_uint64()) {
    above = true;  // beyond what an int64 holds
  } else if (const auto* real = value.if_double()) {
    constexpr double exact_max = 9007199254740992.0;  // 2^53
    if (*real == std::floor(*real) && std::abs(*real) <= exact_max)
      whole = static_cast<std::int64_t>(*real);
    above = *real > exact_max;
  }
  if (whole && *whole >= low && *whole <= high) return whole;
  const bool is_number = whole.has_value() || above;
  std::string message =
      param + " is " + (value.is_number() ? shown(value) : std::string(type_name(value))) +
      "; give a whole number from " + std::to_string(low) + " to " + std::to_string(high) + ".";
  set_fault(fault, bad_request(std::move(message), param,
                               !is_number               ? "invalid_type"
                               : above || *whole > high ? "integer_above_max_value"
                                                        : "integer_below_min_value"));
  return {};
}

}  // namespace loam::gateway
