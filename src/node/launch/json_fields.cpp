#include "node/launch/json_fields.hpp"

namespace loam::node {

namespace json = boost::json;

Result<JsonFields> JsonFields::parse(std::string_view text, std::string what) {
  boost::system::error_code fault;
  json::value value = json::parse(json::string_view(text.data(), text.size()), fault);
  if (fault) {
    return Error{ErrorKind::corrupt, what + " is not JSON: " + fault.message(), ""};
  }
  if (!value.is_object()) {
    return Error{ErrorKind::corrupt, what + " is not a JSON object", ""};
  }
  return JsonFields(std::move(value.get_object()), std::move(what));
}

JsonFields::JsonFields(json::object object, std::string what)
    : object_(std::move(object)), what_(std::move(what)) {}

const json::value* JsonFields::take(const char* name) {
  taken_.insert(name);
  return object_.if_contains(name);
}

void JsonFields::fault(const char* name, std::string_view trouble, const json::value& value) {
  if (fault_) return;
  std::string shown = json::serialize(value);
  constexpr std::size_t shown_max = 80;  // enough to recognise it in a log line
  if (shown.size() > shown_max) shown = shown.substr(0, shown_max) + "...";
  fault_ = Error{ErrorKind::corrupt,
                 what_ + ": field `" + name + "` " + std::string(trouble) + ": " + shown, ""};
}

void JsonFields::adopt(const Result<void>& other) {
  if (!fault_ && !other.ok()) fault_ = other.error();
}

void JsonFields::require(const char* name) {
  if (!fault_ && object_.if_contains(name) == nullptr) {
    fault_ = Error{ErrorKind::corrupt, what_ + ": field `" + name + "` is missing", ""};
  }
}

void JsonFields::read(const char* name, std::string& out) {
  const json::value* value = take(name);
  if (value == nullptr) return;
  if (!value->is_string()) return fault(name, "is not a text", *value);
  out = std::string(value->get_string());
}

void JsonFields::read(const char* name, bool& out) {
  const json::value* value = take(name);
  if (value == nullptr) return;
  if (!value->is_bool()) return fault(name, "is neither true nor false", *value);
  out = value->get_bool();
}

void JsonFields::read(const char* name, std::int64_t& out, std::int64_t min, std::int64_t max) {
  const json::value* value = take(name);
  if (value == nullptr) return;
  boost::system::error_code trouble;
  const auto number = value->to_number<std::int64_t>(trouble);
  if (trouble || value->is_double() || number < min || number > max) {
    return fault(name,
                 "is not a whole number from " + std::to_string(min) + " to " + std::to_string(max),
                 *value);
  }
  out = number;
}

void JsonFields::read(const char* name, std::uint64_t& out) {
  const json::value* value = take(name);
  if (value == nullptr) return;
  boost::system::error_code trouble;
  const auto number = value->to_number<std::uint64_t>(trouble);
  if (trouble || value->is_double()) {
    return fault(name, "is not a whole number from 0", *value);
  }
  out = number;
}

void JsonFields::read(const char* name, std::uint32_t& out) {
  std::int64_t wide = out;
  read(name, wide, 0, std::numeric_limits<std::uint32_t>::max());
  out = static_cast<std::uint32_t>(wide);
}

void JsonFields::read(const char* name, std::vector<std::string>& out) {
  const json::value* value = take(name);
  if (value == nullptr) return;
  if (!value->is_array()) return fault(name, "is not a list of texts", *value);
  out.clear();
  for (const json::value& element : value->get_array()) {
    if (!element.is_string()) return fault(name, "is not a list of texts", *value);
    out.emplace_back(element.get_string());
  }
}

void JsonFields::read(const char* name, std::optional<std::int64_t>& out) {
  const json::value* value = object_.if_contains(name);
  if (value != nullptr && value->is_null()) {
    taken_.insert(name);
    out.reset();
    return;
  }
  if (value == nullptr) return;
  std::int64_t number = 0;
  read(name, number, std::numeric_limits<std::int64_t>::min(),
       std::numeric_limits<std::int64_t>::max());
  out = number;
}

std::optional<JsonFields> JsonFields::object(const char* name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    fault(name, "is not an object", *value);
    return std::nullopt;
  }
  return JsonFields(value->get_object(), what_ + ": `" + name + "`");
}

std::vector<JsonFields> JsonFields::objects(const char* name) {
  std::vector<JsonFields> all;
  const json::value* value = take(name);
  if (value == nullptr) return all;
  if (!value->is_array()) {
    fault(name, "is not a list of objects", *value);
    return all;
  }
  for (const json::value& element : value->get_array()) {
    if (!element.is_object()) {
      fault(name, "is not a list of objects", *value);
      return all;
    }
    all.emplace_back(element.get_object(), what_ + ": `" + name + "`");
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> JsonFields::texts() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [name, value] : object_) {
    const std::string key(name);
    taken_.insert(key);
    if (!value.is_string()) {
      fault(key.c_str(), "is not a text", value);
      continue;
    }
    all.emplace_back(key, std::string(value.get_string()));
  }
  return all;
}

Result<void> JsonFields::finish() {
  if (fault_) return *fault_;
  for (const auto& [name, value] : object_) {
    if (!taken_.contains(std::string(name))) {
      return Error{ErrorKind::corrupt, what_ + ": unknown field `" + std::string(name) + "`",
                   "check the spelling, or the version of loam that wrote it"};
    }
  }
  return {};
}

Result<std::int64_t> read_version(JsonFields& fields, std::string_view what, std::int64_t newest) {
  std::int64_t version = 0;
  fields.require("version");
  fields.read("version", version, 1, std::numeric_limits<std::int64_t>::max());
  if (version > newest) {
    return Error{ErrorKind::unsupported,
                 std::string(what) + " has version " + std::to_string(version) +
                     ", this program reads up to " + std::to_string(newest),
                 "upgrade loam on this node"};
  }
  return version;
}

}  // namespace loam::node
