#include "app/gateway/endpoint_json.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace loam::serving {
namespace {

namespace json = boost::json;

Result<std::string> text_of(const json::value& value, std::string_view name) {
  if (!value.is_string()) return invalid(std::string(name) + " is no text");
  return std::string(value.get_string());
}

Result<std::int64_t> number_of(const json::value& value, std::string_view name, std::int64_t low,
                               std::int64_t high) {
  const std::int64_t* number = value.if_int64();
  if (number == nullptr || *number < low || *number > high) {
    return invalid(
        std::string(name) + " is " + json::serialize(value).substr(0, 40),
        "give a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return *number;
}

// The field of that name; null where it is none of text.
std::string* text_field(EndpointConfig& out, std::string_view name) {
  const std::pair<std::string_view, std::string*> fields[] = {
      {"model", &out.model},
      {"file", &out.file},
      {"owner", &out.owner},
      {"ce", &out.ce},
      {"share", &out.share},
      {"project", &out.project},
      {"environment", &out.environment},
      {"purchase_model", &out.purchase_model},
      {"tariff", &out.tariff},
      {"service_class", &out.service_class},
  };
  for (const auto& [field, target] : fields) {
    if (field == name) return target;
  }
  return nullptr;
}

Duration* length_field(EndpointConfig& out, std::string_view name) {
  const std::pair<std::string_view, Duration*> fields[] = {
      {"idle_after", &out.scaling.idle_after},
      {"shrink_after", &out.scaling.shrink_after},
      {"time", &out.time},
      {"grace", &out.grace},
  };
  for (const auto& [field, target] : fields) {
    if (field == name) return target;
  }
  return nullptr;
}

Result<void> read_field(EndpointConfig& out, std::string_view name, const json::value& value) {
  constexpr std::int64_t instances_max = 64;
  if (std::string* target = text_field(out, name)) {
    LOAM_TRY(text, text_of(value, name));
    *target = std::move(text);
  } else if (name == "callers" || name == "arguments") {
    if (!value.is_array()) return invalid(std::string(name) + " is no list");
    for (const json::value& entry : value.get_array()) {
      LOAM_TRY(text, text_of(entry, name));
      (name == "callers" ? out.callers : out.arguments).push_back(std::move(text));
    }
  } else if (name == "tiers" || name == "tags") {
    if (!value.is_object()) return invalid(std::string(name) + " is no object");
    for (const auto& [key, entry] : value.get_object()) {
      LOAM_TRY(text, text_of(entry, name));
      (name == "tiers" ? out.tiers : out.tags).emplace(std::string(key), std::move(text));
    }
  } else if (name == "min") {
    LOAM_TRY(number, number_of(value, name, 0, instances_max));
    out.scaling.instances_min = static_cast<std::uint32_t>(number);
  } else if (name == "max") {
    LOAM_TRY(number, number_of(value, name, 1, instances_max));
    out.scaling.instances_max = static_cast<std::uint32_t>(number);
  } else if (name == "memory_mib") {
    LOAM_TRY(number, number_of(value, name, 0, 1'000'000'000));
    out.memory_mib = number;
  } else if (name == "slots") {
    LOAM_TRY(number, number_of(value, name, 1, 4096));
    out.slots = number;
  } else if (Duration* target = length_field(out, name)) {
    LOAM_TRY(text, text_of(value, name));
    LOAM_TRY(length, parse_duration(text));
    *target = length;
  } else {
    return invalid("\"" + std::string(name.substr(0, 40)) + "\" is no field of an endpoint");
  }
  return {};
}

Result<EndpointConfig> endpoint_of(const json::value& value) {
  if (!value.is_object()) return invalid("an endpoint is no object");
  EndpointConfig endpoint;
  for (const auto& [key, field] : value.get_object())
    LOAM_CHECK(read_field(endpoint, std::string_view(key), field));
  if (endpoint.model.empty()) return invalid("the endpoint has no model", "give it a name");
  if (endpoint.file.empty()) return invalid("the endpoint has no file", "name a GGUF file");
  if (endpoint.scaling.instances_min > endpoint.scaling.instances_max) {
    return invalid("min is " + std::to_string(endpoint.scaling.instances_min) + " and max " +
                       std::to_string(endpoint.scaling.instances_max),
                   "give a min up to max");
  }
  LOAM_CHECK(check_attribution(endpoint));
  LOAM_CHECK(check_tiers(endpoint));
  return endpoint;
}

Error cannot_write(const std::string& path) {
  return {ErrorKind::unavailable, "cannot write " + path + ": " + std::strerror(errno),
          "check the folder and the space on its disk"};
}

}  // namespace

Result<EndpointConfig> parse_endpoint(std::string_view body) {
  boost::system::error_code fault;
  const json::value value = json::parse(body, fault);
  if (fault) return invalid("the body is not valid JSON: " + fault.message());
  return endpoint_of(value);
}

std::string to_json(const EndpointConfig& endpoint) {
  const auto list = [](const std::vector<std::string>& texts) {
    json::array array;
    for (const std::string& text : texts) array.emplace_back(text);
    return array;
  };
  const auto texts = [](const std::map<std::string, std::string>& values) {
    json::object object;
    for (const auto& [key, value] : values) object[key] = value;
    return object;
  };
  return json::serialize(json::object{{"model", endpoint.model},
                                      {"tiers", texts(endpoint.tiers)},
                                      {"file", endpoint.file},
                                      {"owner", endpoint.owner},
                                      {"callers", list(endpoint.callers)},
                                      {"arguments", list(endpoint.arguments)},
                                      {"min", endpoint.scaling.instances_min},
                                      {"max", endpoint.scaling.instances_max},
                                      {"slots", endpoint.slots},
                                      {"memory_mib", endpoint.memory_mib},
                                      {"ce", endpoint.ce},
                                      {"share", endpoint.share},
                                      {"project", endpoint.project},
                                      {"environment", endpoint.environment},
                                      {"tags", texts(endpoint.tags)},
                                      {"purchase_model", endpoint.purchase_model},
                                      {"tariff", endpoint.tariff},
                                      {"service_class", endpoint.service_class},
                                      {"time", to_text(endpoint.time)},
                                      {"grace", to_text(endpoint.grace)},
                                      {"idle_after", to_text(endpoint.scaling.idle_after)},
                                      {"shrink_after", to_text(endpoint.scaling.shrink_after)}});
}

Result<std::vector<EndpointConfig>> load_endpoints(const std::string& path) {
  std::vector<EndpointConfig> endpoints;
  std::ifstream in(path, std::ios::binary);
  if (!in) return endpoints;
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  boost::system::error_code fault;
  const json::value value = json::parse(text, fault);
  if (fault || !value.is_array())
    return Error{ErrorKind::corrupt, path + " is no list of endpoints", "move it away or mend it"};
  for (const json::value& entry : value.get_array()) {
    auto endpoint = endpoint_of(entry);
    if (!endpoint.ok())
      return Error{ErrorKind::corrupt, path + ": " + endpoint.error().message, "mend it"};
    endpoints.push_back(std::move(endpoint).value());
  }
  return endpoints;
}

Result<void> save_endpoints(const std::string& path, const std::vector<EndpointConfig>& endpoints) {
  std::string text = "[";
  for (const EndpointConfig& endpoint : endpoints)
    text += (text.size() > 1 ? ",\n" : "\n") + to_json(endpoint);
  text += "\n]\n";
  const std::string draft = path + ".new";
  const int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (fd < 0) return cannot_write(draft);
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  const Error fault = cannot_write(draft);
  ::close(fd);
  if (!written) return fault;
  if (::rename(draft.c_str(), path.c_str()) != 0) return cannot_write(path);
  return {};
}

}  // namespace loam::serving
