// Devices of every OpenCL driver, through the loader. PoCL makes the host's processor one of them.
//
// Identity comes from cl_khr_device_uuid and cl_khr_pci_bus_info or the vendors' own queries for
// the same (NVIDIA's cl_nv_device_attribute_query, AMD's cl_amd_device_attribute_query), whose
// values are from the Khronos registry. Talks to drivers.
#include <array>
#include <cstring>
#include <map>

#include "node/device/discovery.hpp"
#include "node/device/identity.hpp"
#include "node/device/opencl_binding.hpp"

namespace loam::node {
namespace {

constexpr const char* source_name = "opencl";
constexpr std::uint64_t mebibyte = 1U << 20U;

constexpr cl_device_info pci_bus_id_nv = 0x4008;
constexpr cl_device_info pci_slot_id_nv = 0x4009;
constexpr cl_device_info pci_domain_id_nv = 0x400A;

// A query of one fixed-size value; nothing where the driver does not answer it with that size.
template <class Value>
std::optional<Value> value_of(const OpenCl& cl, cl_device_id device, cl_device_info what) {
  Value value{};
  std::size_t bytes = 0;
  if (cl.get_device_info(device, what, sizeof value, &value, &bytes) != CL_SUCCESS) return {};
  if (bytes != sizeof value) return {};
  return value;
}

// CL_DEVICE_TOPOLOGY_AMD: type 1 is PCIe; the address is in the last three bytes.
std::string amd_pci_address(const OpenCl& cl, cl_device_id device) {
  using Topology = std::array<unsigned char, 24>;
  const auto topology = value_of<Topology>(cl, device, CL_DEVICE_TOPOLOGY_AMD);
  if (!topology) return {};
  cl_uint type = 0;
  std::memcpy(&type, topology->data(), sizeof type);
  if (type != 1) return {};
  return pci_address(0, (*topology)[21], (*topology)[22], (*topology)[23]);
}

std::string pci_address_of(const OpenCl& cl, cl_device_id device, const std::string& extensions) {
  if (has_extension(extensions, "cl_khr_pci_bus_info")) {
    const auto info = value_of<cl_device_pci_bus_info_khr>(cl, device, CL_DEVICE_PCI_BUS_INFO_KHR);
    if (info) {
      return pci_address(info->pci_domain, info->pci_bus, info->pci_device, info->pci_function);
    }
  }
  if (has_extension(extensions, "cl_nv_device_attribute_query")) {
    const auto bus = value_of<cl_uint>(cl, device, pci_bus_id_nv);
    const auto slot = value_of<cl_uint>(cl, device, pci_slot_id_nv);
    const auto domain = value_of<cl_uint>(cl, device, pci_domain_id_nv);
    if (bus && slot) return pci_address(domain.value_or(0), *bus, *slot >> 3U, *slot & 7U);
  }
  if (has_extension(extensions, "cl_amd_device_attribute_query")) {
    return amd_pci_address(cl, device);
  }
  return {};
}

std::string uuid_of(const OpenCl& cl, cl_device_id device, const std::string& extensions) {
  if (!has_extension(extensions, "cl_khr_device_uuid")) return {};
  using Bytes = std::array<unsigned char, CL_UUID_SIZE_KHR>;
  const auto bytes = value_of<Bytes>(cl, device, CL_DEVICE_UUID_KHR);
  return bytes ? gpu_uuid(*bytes) : std::string();
}

class OpenClSource final : public DeviceSource {
 public:
  explicit OpenClSource(DiscoveryPaths paths) : paths_(std::move(paths)) {}

  std::string name() const override { return source_name; }

  Finding find() override {
    Finding notes;
    const auto cl = OpenCl::open(paths_.opencl, false);
    if (!cl) {
      if (cl.error().kind == ErrorKind::not_found) {
        notes.note(source_name, "no " + paths_.opencl.front() + " on this machine");
      } else {
        notes.warn(source_name, cl.error().message);
      }
      return notes;
    }
    const std::string machine_id =
        paths_.machine_id.empty() ? this_machine_id() : paths_.machine_id;
    // A finding a platform, so that two drivers for one card are joined and two cards of one
    // driver never are.
    std::map<std::uint32_t, Finding> by_platform;
    for (const OpenClListed& listed : list_opencl(*cl, notes)) {
      Finding& finding = by_platform[listed.place.platform];
      if (auto device = read(*cl, listed, machine_id, finding)) {
        finding.devices.push_back(std::move(*device));
      }
    }
    std::vector<Finding> findings{std::move(notes)};
    for (auto& [platform, finding] : by_platform) findings.push_back(std::move(finding));
    return join(findings);
  }

 private:
  std::optional<FoundDevice> read(const OpenCl& cl, const OpenClListed& listed,
                                  const std::string& machine_id, Finding& finding) const {
    const cl_device_id handle = listed.device;
    const auto type = value_of<cl_device_type>(cl, handle, CL_DEVICE_TYPE);
    if (type && (*type & CL_DEVICE_TYPE_CUSTOM) != 0) return std::nullopt;
    const std::string where = "platform '" + listed.place.platform_name + "' device " +
                              std::to_string(listed.place.device) + ": ";
    const auto bytes = value_of<cl_ulong>(cl, handle, CL_DEVICE_GLOBAL_MEM_SIZE);
    if (!type || !bytes) {
      finding.warn(source_name, where + "the driver does not say its type or memory");
      return std::nullopt;
    }
    FoundDevice device;
    device.backend = Backend::opencl;
    device.vendor = opencl_text(cl, handle, CL_DEVICE_VENDOR);
    device.name = opencl_text(cl, handle, CL_DEVICE_NAME);
    if (device.name.empty()) device.name = "unnamed";
    device.driver_version = opencl_text(cl, handle, CL_DRIVER_VERSION);
    device.memory = Mebibytes{static_cast<std::int64_t>(*bytes / mebibyte)};
    device.compute_units = value_of<cl_uint>(cl, handle, CL_DEVICE_MAX_COMPUTE_UNITS).value_or(0);
    device.is_cpu = (*type & CL_DEVICE_TYPE_CPU) != 0;
    const std::string extensions = opencl_text(cl, handle, CL_DEVICE_EXTENSIONS);
    device.pci_bus = device.is_cpu ? "" : pci_address_of(cl, handle, extensions);
    device.numa_node = numa_node_of(paths_.pci_devices, device.pci_bus);
    device.uuid = device.is_cpu ? "" : uuid_of(cl, handle, extensions);
    if (device.uuid.empty()) {
      device.uuid = derived_uuid(
          {device.vendor, device.name, listed.place.platform_name,
           device.pci_bus.empty() ? std::to_string(listed.place.device) : device.pci_bus,
           machine_id});
    }
    const auto available = value_of<cl_bool>(cl, handle, CL_DEVICE_AVAILABLE);
    if (available && *available == CL_FALSE) {
      device.health = Health::failed;
      device.health_note = "the OpenCL driver says that it is not available";
    }
    device.opencl = listed.place;
    device.found_by = {"opencl:" + listed.place.platform_name};
    return device;
  }

  DiscoveryPaths paths_;
};

}  // namespace

std::unique_ptr<DeviceSource> make_opencl_source(const DiscoveryPaths& paths) {
  return std::make_unique<OpenClSource>(paths);
}

}  // namespace loam::node
