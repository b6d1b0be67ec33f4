// Joining what the sources saw. The child processes are in discovery_apart.cpp.
#include "node/device/discovery.hpp"

#include <algorithm>

namespace loam::node {
namespace {

// Two views of one card.
bool same_device(const FoundDevice& a, const FoundDevice& b) {
  if (a.uuid == b.uuid) return true;
  if (!a.pci_bus.empty() && a.pci_bus == b.pci_bus) return true;
  return a.is_cpu && b.is_cpu;
}

// `known` keeps what it says; `other` fills the gaps, and a worse state of health stands.
void add_view(FoundDevice& known, const FoundDevice& other) {
  if (known.name == "unnamed") known.name = other.name;
  if (known.vendor.empty()) known.vendor = other.vendor;
  if (known.driver_version.empty()) known.driver_version = other.driver_version;
  if (known.memory.value == 0) known.memory = other.memory;
  if (known.compute_units == 0) known.compute_units = other.compute_units;
  if (known.pci_bus.empty()) known.pci_bus = other.pci_bus;
  if (!known.numa_node) known.numa_node = other.numa_node;
  if (known.link_group.empty()) known.link_group = other.link_group;
  if (!known.mig_enabled) known.mig_enabled = other.mig_enabled;
  if (!known.opencl) known.opencl = other.opencl;
  const auto badness = [](Health health) {
    return health == Health::unknown ? -1 : static_cast<int>(health);
  };
  if (badness(other.health) > badness(known.health)) {
    known.health = other.health;
    known.health_note = other.health_note;
  }
  known.found_by.insert(known.found_by.end(), other.found_by.begin(), other.found_by.end());
}

// Why a device cannot be offered at all; empty where it can.
std::string unusable(const FoundDevice& device) {
  if (device.memory.value > mebibytes_max.value || device.memory.value < 0) {
    return "its driver claims " + std::to_string(device.memory.value) + " MiB of memory";
  }
  if (device.memory.value == 0 && device.health != Health::failed) {
    return "its driver claims no memory at all";
  }
  return {};
}

// The place of a note that join() itself makes.
std::string source_of(const FoundDevice& device) {
  switch (device.backend) {
    case Backend::cuda:
      return "nvidia";
    case Backend::rocm:
      return "amd";
    case Backend::opencl:
      return "opencl";
  }
  return "opencl";
}

void join_one(const Finding& finding, Finding& joined) {
  const std::size_t earlier = joined.devices.size();
  std::vector<bool> seen(earlier, false);  // which earlier devices this finding already spoke of
  for (const FoundDevice& device : finding.devices) {
    const std::string who = "'" + device.name + "' (" + device.uuid + "): ";
    if (const std::string why = unusable(device); !why.empty()) {
      joined.warn(source_of(device), who + why + "; it is not used");
      continue;
    }
    const auto end = joined.devices.begin() + static_cast<std::ptrdiff_t>(earlier);
    auto known = joined.devices.begin();
    while (known != end && (seen[static_cast<std::size_t>(known - joined.devices.begin())] ||
                            !same_device(*known, device))) {
      ++known;
    }
    if (known != end) {
      seen[static_cast<std::size_t>(known - joined.devices.begin())] = true;
      add_view(*known, device);
      continue;
    }
    const bool taken =
        std::any_of(joined.devices.begin(), joined.devices.end(),
                    [&](const FoundDevice& other) { return other.uuid == device.uuid; });
    if (taken) {
      joined.warn(source_of(device),
                  who + "the driver gives this UUID to two devices; the second is not used");
      continue;
    }
    joined.devices.push_back(device);
  }
  joined.notes.insert(joined.notes.end(), finding.notes.begin(), finding.notes.end());
}

}  // namespace

const char* name_of(Backend backend) noexcept {
  switch (backend) {
    case Backend::opencl:
      return "opencl";
    case Backend::cuda:
      return "cuda";
    case Backend::rocm:
      return "rocm";
  }
  return "opencl";
}

const char* name_of(Health health) noexcept {
  switch (health) {
    case Health::healthy:
      return "healthy";
    case Health::degraded:
      return "degraded";
    case Health::failed:
      return "failed";
    case Health::unknown:
      return "unknown";
  }
  return "unknown";
}

std::vector<std::unique_ptr<DeviceSource>> default_sources(const DiscoveryPaths& paths) {
  std::vector<std::unique_ptr<DeviceSource>> sources;
  sources.push_back(make_nvidia_source(paths));
  sources.push_back(make_amd_source(paths));
  sources.push_back(make_opencl_source(paths));
  return sources;
}

Finding discover(const std::vector<std::unique_ptr<DeviceSource>>& sources) {
  std::vector<Finding> findings;
  findings.reserve(sources.size());
  for (const auto& source : sources) findings.push_back(source->find());
  return join(findings);
}

Finding join(const std::vector<Finding>& findings) {
  Finding joined;
  for (const Finding& finding : findings) join_one(finding, joined);
  return joined;
}

void group_by_link(std::vector<FoundDevice>& devices,
                   const std::function<bool(std::size_t, std::size_t)>& linked) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& members) {
      return std::all_of(members.begin(), members.end(),
                         [&](std::size_t member) { return linked(member, i); });
    });
    if (group != groups.end()) {
      group->push_back(i);
    } else {
      groups.push_back({i});
    }
  }
  for (const std::vector<std::size_t>& members : groups) {
    if (members.size() < 2) continue;
    const FoundDevice& first = devices[members.front()];
    const std::string name = first.pci_bus.empty() ? first.uuid : first.pci_bus;
    for (const std::size_t member : members) devices[member].link_group = name;
  }
}

}  // namespace loam::node
