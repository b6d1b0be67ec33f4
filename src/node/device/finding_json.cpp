// Findings as JSON, both ways. Pure.
#include <boost/json.hpp>

#include "node/device/discovery.hpp"

namespace loam::node {
namespace {

namespace json = boost::json;

json::object object_of(const FoundDevice& device) {
  json::object out{
      {"uuid", device.uuid},
      {"backend", name_of(device.backend)},
      {"vendor", device.vendor},
      {"name", device.name},
      {"driver_version", device.driver_version},
      {"memory_mib", device.memory.value},
      {"compute_units", device.compute_units},
      {"is_cpu", device.is_cpu},
      {"pci_bus", device.pci_bus},
      {"link_group", device.link_group},
      {"health", name_of(device.health)},
      {"health_note", device.health_note},
  };
  out["numa_node"] = device.numa_node ? json::value(*device.numa_node) : json::value(nullptr);
  out["mig_enabled"] = device.mig_enabled ? json::value(*device.mig_enabled) : json::value(nullptr);
  out["opencl"] = nullptr;
  if (device.opencl) {
    out["opencl"] = json::object{{"platform", device.opencl->platform},
                                 {"device", device.opencl->device},
                                 {"platform_name", device.opencl->platform_name}};
  }
  json::array found_by;
  for (const std::string& source : device.found_by) found_by.emplace_back(source);
  out["found_by"] = std::move(found_by);
  return out;
}

template <class Enum>
Enum enum_of(const json::value& value, std::initializer_list<Enum> all) {
  const std::string_view text = value.as_string();
  for (const Enum candidate : all) {
    if (text == name_of(candidate)) return candidate;
  }
  throw std::invalid_argument("'" + std::string(text) + "' is no known name");
}

std::string text_at(const json::object& in, const char* key) {
  return std::string(std::string_view(in.at(key).as_string()));
}

FoundDevice device_from(const json::object& in) {
  FoundDevice device;
  device.uuid = text_at(in, "uuid");
  device.backend = enum_of(in.at("backend"), {Backend::opencl, Backend::cuda, Backend::rocm});
  device.vendor = text_at(in, "vendor");
  device.name = text_at(in, "name");
  device.driver_version = text_at(in, "driver_version");
  device.memory = Mebibytes{in.at("memory_mib").as_int64()};
  device.compute_units = in.at("compute_units").to_number<std::uint32_t>();
  device.is_cpu = in.at("is_cpu").as_bool();
  device.pci_bus = text_at(in, "pci_bus");
  device.link_group = text_at(in, "link_group");
  device.health = enum_of(in.at("health"),
                          {Health::healthy, Health::degraded, Health::failed, Health::unknown});
  device.health_note = text_at(in, "health_note");
  if (!in.at("numa_node").is_null()) {
    device.numa_node = in.at("numa_node").to_number<std::int32_t>();
  }
  if (!in.at("mig_enabled").is_null()) device.mig_enabled = in.at("mig_enabled").as_bool();
  if (!in.at("opencl").is_null()) {
    const json::object& place = in.at("opencl").as_object();
    device.opencl =
        OpenClPlace{place.at("platform").to_number<std::uint32_t>(),
                    place.at("device").to_number<std::uint32_t>(), text_at(place, "platform_name")};
  }
  for (const json::value& source : in.at("found_by").as_array()) {
    device.found_by.emplace_back(std::string_view(source.as_string()));
  }
  return device;
}

const char* name_of_severity(DiscoveryNote::Severity severity) {
  return severity == DiscoveryNote::Severity::warning ? "warning" : "note";
}

}  // namespace

std::string to_json(const FoundDevice& device) {
  return json::serialize(object_of(device));
}

std::string to_json(const Finding& finding) {
  json::array devices;
  for (const FoundDevice& device : finding.devices) devices.push_back(object_of(device));
  json::array notes;
  for (const DiscoveryNote& note : finding.notes) {
    notes.push_back(json::object{{"severity", name_of_severity(note.severity)},
                                 {"source", note.source},
                                 {"text", note.text}});
  }
  return json::serialize(json::object{{"devices", devices}, {"notes", notes}});
}

Result<Finding> parse_finding(std::string_view text) {
  // Boost.JSON speaks in exceptions; they end here.
  try {
    const json::value document = json::parse(json::string_view(text.data(), text.size()));
    Finding finding;
    for (const json::value& device : document.as_object().at("devices").as_array()) {
      finding.devices.push_back(device_from(device.as_object()));
    }
    for (const json::value& note : document.as_object().at("notes").as_array()) {
      const json::object& in = note.as_object();
      const std::string severity = text_at(in, "severity");
      if (severity != "warning" && severity != "note") {
        throw std::invalid_argument("'" + severity + "' is no severity");
      }
      finding.notes.push_back(
          {severity == "warning" ? DiscoveryNote::Severity::warning : DiscoveryNote::Severity::note,
           text_at(in, "source"), text_at(in, "text")});
    }
    return finding;
  } catch (const std::exception& fault) {
    return Error{ErrorKind::corrupt, std::string("not a list of found devices: ") + fault.what(),
                 "look for devices again"};
  }
}

}  // namespace loam::node
