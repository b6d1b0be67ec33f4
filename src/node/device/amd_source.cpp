// AMD cards, through ROCm SMI.
//
// The declarations are ours, written from AMD's public ROCm SMI library documentation: only the
// entries that are needed. Talks to drivers. Tested against a fake library; no AMD card was at
// hand.
#include <array>
#include <cstdio>

#include "node/device/discovery.hpp"
#include "node/device/identity.hpp"
#include "node/device/library.hpp"

namespace loam::node {
namespace {

constexpr const char* source_name = "amd";
constexpr std::uint32_t devices_max = 256;  // far above any machine; a larger count is nonsense
constexpr std::uint64_t mebibyte = 1U << 20U;

using RsmiStatus = int;
constexpr RsmiStatus rsmi_success = 0;
constexpr int rsmi_memory_vram = 0;       // rsmi_memory_type_t
constexpr int rsmi_component_driver = 0;  // rsmi_sw_component_t
constexpr int rsmi_link_xgmi = 2;         // RSMI_IO_LINK_TYPE

struct RocmSmi {
  RsmiStatus (*init)(std::uint64_t) = nullptr;
  RsmiStatus (*shut_down)() = nullptr;
  RsmiStatus (*count)(std::uint32_t*) = nullptr;
  RsmiStatus (*name)(std::uint32_t, char*, std::size_t) = nullptr;
  RsmiStatus (*memory_total)(std::uint32_t, int, std::uint64_t*) = nullptr;
  RsmiStatus (*pci_id)(std::uint32_t, std::uint64_t*) = nullptr;
  // Any of these may be missing from an older library.
  RsmiStatus (*unique_id)(std::uint32_t, std::uint64_t*) = nullptr;
  RsmiStatus (*status_text)(RsmiStatus, const char**) = nullptr;
  RsmiStatus (*version)(int, char*, std::uint32_t) = nullptr;
  RsmiStatus (*link_type)(std::uint32_t, std::uint32_t, std::uint64_t*, int*) = nullptr;

  std::vector<std::string> bind(const Library& library) {
    std::vector<std::string> missing;
    library.require("rsmi_init", init, missing);
    library.require("rsmi_shut_down", shut_down, missing);
    library.require("rsmi_num_monitor_devices", count, missing);
    library.require("rsmi_dev_name_get", name, missing);
    library.require("rsmi_dev_memory_total_get", memory_total, missing);
    library.require("rsmi_dev_pci_id_get", pci_id, missing);
    library.find("rsmi_dev_unique_id_get", unique_id);
    library.find("rsmi_status_string", status_text);
    library.find("rsmi_version_str_get", version);
    library.find("rsmi_topo_get_link_type", link_type);
    return missing;
  }

  std::string failure(const std::string& what, RsmiStatus code) const {
    const char* words = nullptr;
    if (status_text != nullptr) status_text(code, &words);
    return what + " failed with code " + std::to_string(code) + ": " +
           (words != nullptr ? words : "no text from the driver");
  }
};

// The spelling that ROCm's own tools and ROCR_VISIBLE_DEVICES use.
std::string rocm_uuid(std::uint64_t unique_id) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "GPU-%016llx",
                static_cast<unsigned long long>(unique_id));
  return text.data();
}

std::optional<FoundDevice> read_card(const RocmSmi& smi, std::uint32_t index,
                                     const DiscoveryPaths& paths, const std::string& machine_id,
                                     Finding& finding) {
  const std::string card = "card " + std::to_string(index) + ": ";
  FoundDevice device;
  device.backend = Backend::rocm;
  device.vendor = "AMD";
  device.found_by = {"rocm_smi"};
  std::array<char, 256> name{};
  const RsmiStatus named = smi.name(index, name.data(), name.size() - 1);
  device.name = named == rsmi_success ? driver_text(name) : "unnamed";
  std::uint64_t bus_id = 0;
  if (const RsmiStatus code = smi.pci_id(index, &bus_id); code == rsmi_success) {
    // Documented as domain << 32 | bus << 8 | device << 3 | function.
    device.pci_bus = pci_address(bus_id >> 32U, bus_id >> 8U, bus_id >> 3U, bus_id);
    device.numa_node = numa_node_of(paths.pci_devices, device.pci_bus);
  }
  std::uint64_t unique_id = 0;
  const bool identified = smi.unique_id != nullptr &&
                          smi.unique_id(index, &unique_id) == rsmi_success && unique_id != 0;
  if (identified) {
    device.uuid = rocm_uuid(unique_id);
  } else if (!device.pci_bus.empty()) {
    device.uuid = derived_uuid({"amd", device.name, device.pci_bus, machine_id});
    finding.note(source_name, card + "the driver gives no unique id; named by its PCI address " +
                                  device.pci_bus);
  } else {
    finding.warn(source_name, card + "neither a unique id nor a PCI address: it is not used");
    return std::nullopt;
  }
  std::uint64_t bytes = 0;
  if (const RsmiStatus code = smi.memory_total(index, rsmi_memory_vram, &bytes);
      code != rsmi_success) {
    finding.warn(source_name, card + smi.failure("rsmi_dev_memory_total_get", code));
    return std::nullopt;
  }
  device.memory = Mebibytes{static_cast<std::int64_t>(bytes / mebibyte)};
  device.health = Health::unknown;
  return device;
}

void look_with_smi(const Library& library, const DiscoveryPaths& paths, Finding& finding) {
  RocmSmi smi;
  if (const auto missing = smi.bind(library); !missing.empty()) {
    finding.warn(source_name, lacks_text(library, missing));
    return;
  }
  if (const RsmiStatus code = smi.init(0); code != rsmi_success) {
    finding.warn(source_name, smi.failure("rsmi_init", code));
    return;
  }
  std::uint32_t count = 0;
  if (const RsmiStatus code = smi.count(&count); code != rsmi_success) {
    finding.warn(source_name, smi.failure("rsmi_num_monitor_devices", code));
    count = 0;
  }
  if (count > devices_max) {
    finding.warn(source_name, "rsmi_num_monitor_devices counts " + std::to_string(count) +
                                  " cards, more than a machine can hold; none is used");
    count = 0;
  }
  std::array<char, 128> version{};
  const bool versioned =
      smi.version != nullptr &&
      smi.version(rsmi_component_driver, version.data(), version.size()) == rsmi_success;
  const std::string machine_id = paths.machine_id.empty() ? this_machine_id() : paths.machine_id;
  std::vector<std::uint32_t> indices;  // as the devices found
  for (std::uint32_t index = 0; index < count; ++index) {
    auto device = read_card(smi, index, paths, machine_id, finding);
    if (!device) continue;
    if (versioned) device->driver_version = driver_text(version);
    finding.devices.push_back(std::move(*device));
    indices.push_back(index);
  }
  if (smi.link_type != nullptr) {
    group_by_link(finding.devices, [&](std::size_t a, std::size_t b) {
      std::uint64_t hops = 0;
      int type = 0;
      return smi.link_type(indices[a], indices[b], &hops, &type) == rsmi_success &&
             type == rsmi_link_xgmi;
    });
  }
  smi.shut_down();
}

class AmdSource final : public DeviceSource {
 public:
  explicit AmdSource(DiscoveryPaths paths) : paths_(std::move(paths)) {}

  std::string name() const override { return source_name; }

  Finding find() override {
    Finding finding;
    auto library = Library::open(paths_.rocm_smi);
    if (library) {
      look_with_smi(*library, paths_, finding);
    } else if (library.error().kind == ErrorKind::not_found) {
      finding.note(source_name, "no " + paths_.rocm_smi.back() + " on this machine");
    } else {
      finding.warn(source_name, library.error().message);
    }
    return join({finding});
  }

 private:
  DiscoveryPaths paths_;
};

}  // namespace

std::unique_ptr<DeviceSource> make_amd_source(const DiscoveryPaths& paths) {
  return std::make_unique<AmdSource>(paths);
}

}  // namespace loam::node
