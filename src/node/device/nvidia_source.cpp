// NVIDIA cards, through NVML (what the card is, its health, MIG) and the CUDA driver (its
// multiprocessors; the cards themselves where there is no NVML, as under WSL).
//
// The declarations are ours, written from NVIDIA's public NVML API reference and CUDA driver API
// documentation: only the entries that are needed, under the versioned names that the libraries
// export. Talks to drivers. Tested against fake libraries; no NVIDIA card was at hand.
#include <algorithm>
#include <array>

#include "node/device/discovery.hpp"
#include "node/device/identity.hpp"
#include "node/device/library.hpp"

namespace loam::node {
namespace {

constexpr const char* source_name = "nvidia";
constexpr unsigned devices_max = 256;  // far above any machine; a larger count is nonsense
constexpr std::uint64_t mebibyte = 1U << 20U;

// ---- NVML ----

using NvmlReturn = int;
using NvmlHandle = struct NvmlDeviceOpaque*;

constexpr NvmlReturn nvml_success = 0;
constexpr NvmlReturn nvml_gpu_is_lost = 15;
constexpr NvmlReturn nvml_reset_required = 16;
constexpr unsigned nvml_uncorrected = 1;     // nvmlMemoryErrorType_t
constexpr unsigned nvml_since_boot = 0;      // nvmlEccCounterType_t: volatile
constexpr int nvml_p2p_over_nvlink = 2;      // NVML_P2P_CAPS_INDEX_NVLINK
constexpr int nvml_p2p_works = 0;            // NVML_P2P_STATUS_OK
constexpr std::size_t nvml_text_bytes = 96;  // NVML_DEVICE_{NAME,UUID}_V2_BUFFER_SIZE

struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct NvmlPci {
  std::array<char, 16> bus_id_legacy;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  std::array<char, 32> bus_id;
};
static_assert(sizeof(NvmlMemory) == 24 && sizeof(NvmlPci) == 68);

struct Nvml {
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  NvmlReturn (*count)(unsigned*) = nullptr;
  NvmlReturn (*handle)(unsigned, NvmlHandle*) = nullptr;
  NvmlReturn (*uuid)(NvmlHandle, char*, unsigned) = nullptr;
  NvmlReturn (*name)(NvmlHandle, char*, unsigned) = nullptr;
  NvmlReturn (*memory)(NvmlHandle, NvmlMemory*) = nullptr;
  NvmlReturn (*pci)(NvmlHandle, NvmlPci*) = nullptr;
  // Any of these may be missing from an older library.
  const char* (*error_text)(NvmlReturn) = nullptr;
  NvmlReturn (*driver_version)(char*, unsigned) = nullptr;
  NvmlReturn (*mig_mode)(NvmlHandle, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*ecc_errors)(NvmlHandle, unsigned, unsigned, unsigned long long*) = nullptr;
  NvmlReturn (*remapped_rows)(NvmlHandle, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*p2p_status)(NvmlHandle, NvmlHandle, int, int*) = nullptr;

  // Names of required entries that the library lacks.
  std::vector<std::string> bind(const Library& library) {
    std::vector<std::string> missing;
    library.require("nvmlInit_v2", init, missing);
    library.require("nvmlShutdown", shutdown, missing);
    library.require("nvmlDeviceGetCount_v2", count, missing);
    library.require("nvmlDeviceGetHandleByIndex_v2", handle, missing);
    library.require("nvmlDeviceGetUUID", uuid, missing);
    library.require("nvmlDeviceGetName", name, missing);
    library.require("nvmlDeviceGetMemoryInfo", memory, missing);
    library.require("nvmlDeviceGetPciInfo_v3", pci, missing);
    library.find("nvmlErrorString", error_text);
    library.find("nvmlSystemGetDriverVersion", driver_version);
    library.find("nvmlDeviceGetMigMode", mig_mode);
    library.find("nvmlDeviceGetTotalEccErrors", ecc_errors);
    library.find("nvmlDeviceGetRemappedRows", remapped_rows);
    library.find("nvmlDeviceGetP2PStatus", p2p_status);
    return missing;
  }

  std::string failure(const std::string& what, NvmlReturn code) const {
    const char* words = error_text != nullptr ? error_text(code) : nullptr;
    return what + " failed with code " + std::to_string(code) + ": " +
           (words != nullptr ? words : "no text from the driver");
  }
};

// Fills `device`'s health from what the driver counts; the worst finding stands.
void examine_health(const Nvml& nvml, NvmlHandle handle, FoundDevice& device) {
  device.health = Health::healthy;
  unsigned long long uncorrected = 0;
  if (nvml.ecc_errors != nullptr &&
      nvml.ecc_errors(handle, nvml_uncorrected, nvml_since_boot, &uncorrected) == nvml_success &&
      uncorrected > 0) {
    device.health = Health::degraded;
    device.health_note =
        std::to_string(uncorrected) + " uncorrected memory errors since the driver was loaded";
  }
  unsigned corrected_rows = 0;
  unsigned uncorrected_rows = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  if (nvml.remapped_rows == nullptr ||
      nvml.remapped_rows(handle, &corrected_rows, &uncorrected_rows, &pending, &failed) !=
          nvml_success) {
    return;
  }
  if (pending != 0) {
    device.health = Health::degraded;
    device.health_note = "a memory row waits to be remapped: reset the card";
  }
  if (failed != 0) {
    device.health = Health::failed;
    device.health_note = "a memory row could not be remapped: replace the card";
  }
}

// A card that no longer answers: what is known of it is kept, so that an operator sees which.
void mark_lost(const Nvml& nvml, NvmlReturn code, const std::string& what, FoundDevice& device) {
  device.health = Health::failed;
  device.health_note = nvml.failure(what, code);
}

bool is_lost(NvmlReturn code) {
  return code == nvml_gpu_is_lost || code == nvml_reset_required;
}

// One card and its handle; nothing, with a warning, where it cannot be told which card it is.
std::optional<FoundDevice> read_card(const Nvml& nvml, unsigned index, NvmlHandle& handle,
                                     const DiscoveryPaths& paths, Finding& finding) {
  const std::string card = "card " + std::to_string(index) + ": ";
  if (const NvmlReturn code = nvml.handle(index, &handle); code != nvml_success) {
    finding.warn(source_name, card + nvml.failure("nvmlDeviceGetHandleByIndex_v2", code));
    return std::nullopt;
  }
  FoundDevice device;
  device.backend = Backend::cuda;
  device.vendor = "NVIDIA";
  device.found_by = {"nvml"};
  std::array<char, nvml_text_bytes> text{};
  if (const NvmlReturn code = nvml.uuid(handle, text.data(), text.size()); code != nvml_success) {
    finding.warn(source_name, card + nvml.failure("nvmlDeviceGetUUID", code));
    return std::nullopt;
  }
  text.back() = '\0';
  device.uuid = accepted_uuid(text.data());
  if (device.uuid.empty()) {
    finding.warn(source_name, card + "its UUID '" + driver_text(text) + "' is not one");
    return std::nullopt;
  }
  text.fill('\0');
  const NvmlReturn named = nvml.name(handle, text.data(), text.size());
  device.name = named == nvml_success ? driver_text(text) : "unnamed";
  NvmlPci pci{};
  if (nvml.pci(handle, &pci) == nvml_success) {
    device.pci_bus = pci_address(pci.domain, pci.bus, pci.device, 0);
    device.numa_node = numa_node_of(paths.pci_devices, device.pci_bus);
  }
  unsigned mig_now = 0;
  unsigned mig_after_reset = 0;
  if (nvml.mig_mode != nullptr &&
      nvml.mig_mode(handle, &mig_now, &mig_after_reset) == nvml_success) {
    device.mig_enabled = mig_now != 0;
  }
  examine_health(nvml, handle, device);
  NvmlMemory memory{};
  if (const NvmlReturn code = nvml.memory(handle, &memory); code == nvml_success) {
    device.memory = Mebibytes{static_cast<std::int64_t>(memory.total / mebibyte)};
  } else if (is_lost(code)) {
    mark_lost(nvml, code, "nvmlDeviceGetMemoryInfo", device);
  } else {
    finding.warn(source_name, card + nvml.failure("nvmlDeviceGetMemoryInfo", code));
    return std::nullopt;
  }
  return device;
}

void look_with_nvml(const Library& library, const DiscoveryPaths& paths, Finding& finding) {
  Nvml nvml;
  if (const auto missing = nvml.bind(library); !missing.empty()) {
    finding.warn(source_name, lacks_text(library, missing));
    return;
  }
  if (const NvmlReturn code = nvml.init(); code != nvml_success) {
    finding.warn(source_name, nvml.failure("nvmlInit_v2", code));
    return;
  }
  unsigned count = 0;
  if (const NvmlReturn code = nvml.count(&count); code != nvml_success) {
    finding.warn(source_name, nvml.failure("nvmlDeviceGetCount_v2", code));
    count = 0;
  }
  if (count > devices_max) {
    finding.warn(source_name, "nvmlDeviceGetCount_v2 counts " + std::to_string(count) +
                                  " cards, more than a machine can hold; none is used");
    count = 0;
  }
  std::array<char, nvml_text_bytes> version{};
  const bool versioned = nvml.driver_version != nullptr &&
                         nvml.driver_version(version.data(), version.size()) == nvml_success;
  std::vector<NvmlHandle> handles;  // as the devices found
  for (unsigned index = 0; index < count; ++index) {
    NvmlHandle handle = nullptr;
    auto device = read_card(nvml, index, handle, paths, finding);
    if (!device) continue;
    if (versioned) device->driver_version = driver_text(version);
    finding.devices.push_back(std::move(*device));
    handles.push_back(handle);
  }
  if (nvml.p2p_status != nullptr) {
    group_by_link(finding.devices, [&](std::size_t a, std::size_t b) {
      int status = nvml_p2p_works + 1;
      return nvml.p2p_status(handles[a], handles[b], nvml_p2p_over_nvlink, &status) ==
                 nvml_success &&
             status == nvml_p2p_works;
    });
  }
  nvml.shutdown();
}

// ---- CUDA driver ----

using CuResult = int;
using CuDevice = int;

constexpr CuResult cuda_success = 0;
constexpr CuResult cuda_no_device = 100;
constexpr int attribute_multiprocessors = 16;
constexpr int attribute_pci_bus = 33;
constexpr int attribute_pci_device = 34;
constexpr int attribute_pci_domain = 50;

struct CuUuid {
  std::array<unsigned char, 16> bytes;
};

struct Cuda {
  CuResult (*init)(unsigned) = nullptr;
  CuResult (*count)(int*) = nullptr;
  CuResult (*get)(CuDevice*, int) = nullptr;
  CuResult (*name)(char*, int, CuDevice) = nullptr;
  CuResult (*uuid)(CuUuid*, CuDevice) = nullptr;
  CuResult (*memory)(std::size_t*, CuDevice) = nullptr;
  CuResult (*attribute)(int*, int, CuDevice) = nullptr;
  CuResult (*error_name)(CuResult, const char**) = nullptr;  // may be missing

  std::vector<std::string> bind(const Library& library) {
    std::vector<std::string> missing;
    library.require("cuInit", init, missing);
    library.require("cuDeviceGetCount", count, missing);
    library.require("cuDeviceGet", get, missing);
    library.require("cuDeviceGetName", name, missing);
    library.require("cuDeviceTotalMem_v2", memory, missing);
    library.require("cuDeviceGetAttribute", attribute, missing);
    // The second names a MIG instance by its own UUID; drivers before 11.4 have only the first.
    if (!library.find("cuDeviceGetUuid_v2", uuid)) {
      library.require("cuDeviceGetUuid", uuid, missing);
    }
    library.find("cuGetErrorName", error_name);
    return missing;
  }

  std::string failure(const std::string& what, CuResult code) const {
    const char* words = nullptr;
    if (error_name != nullptr) error_name(code, &words);
    return what + " failed with code " + std::to_string(code) + ": " +
           (words != nullptr ? words : "no text from the driver");
  }

  int attribute_of(CuDevice device, int which) const {
    int value = 0;
    return attribute(&value, which, device) == cuda_success ? value : 0;
  }
};

std::optional<FoundDevice> read_cuda_device(const Cuda& cuda, int index,
                                            const DiscoveryPaths& paths, Finding& finding) {
  const std::string card = "CUDA device " + std::to_string(index) + ": ";
  CuDevice handle = 0;
  if (const CuResult code = cuda.get(&handle, index); code != cuda_success) {
    finding.warn(source_name, card + cuda.failure("cuDeviceGet", code));
    return std::nullopt;
  }
  FoundDevice device;
  device.backend = Backend::cuda;
  device.vendor = "NVIDIA";
  device.found_by = {"cuda"};
  CuUuid uuid{};
  if (const CuResult code = cuda.uuid(&uuid, handle); code != cuda_success) {
    finding.warn(source_name, card + cuda.failure("cuDeviceGetUuid", code));
    return std::nullopt;
  }
  device.uuid = gpu_uuid(uuid.bytes);
  if (device.uuid.empty()) {
    finding.warn(source_name, card + "its UUID is all zero");
    return std::nullopt;
  }
  std::array<char, 256> name{};
  const CuResult named = cuda.name(name.data(), static_cast<int>(name.size()), handle);
  device.name = named == cuda_success ? driver_text(name) : "unnamed";
  std::size_t bytes = 0;
  if (const CuResult code = cuda.memory(&bytes, handle); code != cuda_success) {
    finding.warn(source_name, card + cuda.failure("cuDeviceTotalMem_v2", code));
    return std::nullopt;
  }
  device.memory = Mebibytes{static_cast<std::int64_t>(bytes / mebibyte)};
  device.compute_units =
      static_cast<std::uint32_t>(std::max(0, cuda.attribute_of(handle, attribute_multiprocessors)));
  const auto part = [&](int which) {
    return static_cast<std::uint64_t>(std::max(0, cuda.attribute_of(handle, which)));
  };
  device.pci_bus = pci_address(part(attribute_pci_domain), part(attribute_pci_bus),
                               part(attribute_pci_device), 0);
  device.numa_node = numa_node_of(paths.pci_devices, device.pci_bus);
  return device;
}

void look_with_cuda(const Library& library, const DiscoveryPaths& paths, Finding& finding) {
  Cuda cuda;
  if (const auto missing = cuda.bind(library); !missing.empty()) {
    finding.warn(source_name, lacks_text(library, missing));
    return;
  }
  if (const CuResult code = cuda.init(0); code == cuda_no_device) {
    finding.note(source_name, "the CUDA driver is installed and sees no device");
    return;
  } else if (code != cuda_success) {
    finding.warn(source_name, cuda.failure("cuInit", code));
    return;
  }
  int count = 0;
  if (const CuResult code = cuda.count(&count); code != cuda_success) {
    finding.warn(source_name, cuda.failure("cuDeviceGetCount", code));
    return;
  }
  if (count < 0 || count > static_cast<int>(devices_max)) {
    finding.warn(source_name, "cuDeviceGetCount counts " + std::to_string(count) +
                                  " devices, which no machine holds; none is used");
    return;
  }
  for (int index = 0; index < count; ++index) {
    if (auto device = read_cuda_device(cuda, index, paths, finding)) {
      finding.devices.push_back(std::move(*device));
    }
  }
}

class NvidiaSource final : public DeviceSource {
 public:
  explicit NvidiaSource(DiscoveryPaths paths) : paths_(std::move(paths)) {}

  std::string name() const override { return source_name; }

  Finding find() override {
    Finding by_nvml;
    if (const auto library = open(paths_.nvml, by_nvml)) {
      look_with_nvml(*library, paths_, by_nvml);
    }
    Finding by_cuda;
    if (const auto library = open(paths_.cuda, by_cuda)) {
      look_with_cuda(*library, paths_, by_cuda);
    }
    return join({by_nvml, by_cuda});
  }

 private:
  static std::optional<Library> open(const std::vector<std::string>& names, Finding& finding) {
    auto library = Library::open(names);
    if (library) return std::move(library).value();
    if (library.error().kind == ErrorKind::not_found) {
      finding.note(source_name, "no " + names.front() + " on this machine");
    } else {
      finding.warn(source_name, library.error().message);
    }
    return std::nullopt;
  }

  DiscoveryPaths paths_;
};

}  // namespace

std::unique_ptr<DeviceSource> make_nvidia_source(const DiscoveryPaths& paths) {
  return std::make_unique<NvidiaSource>(paths);
}

}  // namespace loam::node
