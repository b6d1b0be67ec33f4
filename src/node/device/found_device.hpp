// What a look for devices finds: the devices, and what was noticed on the way. Pure data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"

namespace loam::node {

// The programming interface through which a task reaches the device.
enum class Backend { opencl, cuda, rocm };
const char* name_of(Backend backend) noexcept;

enum class Health {
  healthy,
  degraded,  // works, but its driver reports a fault that wants attention
  failed,    // the driver has lost it, or says that it must be replaced or reset
  unknown,   // the driver says nothing about it
};
const char* name_of(Health health) noexcept;

// Where OpenCL lists a device: indices as `clinfo -l` counts them. They hold for one boot and one
// set of installed drivers; the UUID is what lasts.
struct OpenClPlace {
  std::uint32_t platform = 0;
  std::uint32_t device = 0;
  std::string platform_name;

  friend bool operator==(const OpenClPlace&, const OpenClPlace&) = default;
};

struct FoundDevice {
  // Lasts over reboots and driver upgrades. "GPU-…" where the driver gives one; "CL-…" made from
  // vendor, name, platform, index and machine where it does not.
  std::string uuid;
  Backend backend = Backend::opencl;
  std::string vendor;               // as the driver says: "NVIDIA", "Advanced Micro Devices, Inc."
  std::string name;                 // as the driver says: "NVIDIA H100 80GB HBM3"
  std::string driver_version;       // empty where unknown
  Mebibytes memory;                 // all of it, used or not
  std::uint32_t compute_units = 0;  // multiprocessors, compute units or cores; 0 = unknown
  bool is_cpu = false;              // an OpenCL driver that runs on the host's processor
  std::string pci_bus;              // "0000:3b:00.0"; empty for a CPU
  std::optional<std::int32_t> numa_node;
  // That of every device that a fast link joins it to, each with every other: the PCI address of
  // the first of them, or its UUID. Empty where it is joined to none, or its driver does not tell.
  std::string link_group;
  std::optional<bool> mig_enabled;  // nothing where the device has no such mode
  Health health = Health::unknown;
  std::string health_note;  // why it is not healthy, in the driver's words
  std::optional<OpenClPlace> opencl;
  std::vector<std::string> found_by;  // "nvml", "cuda", "rocm_smi", "opencl:PLATFORM", in order

  friend bool operator==(const FoundDevice&, const FoundDevice&) = default;
};

// Something a person may want to know about the look itself.
struct DiscoveryNote {
  enum class Severity {
    note,     // as expected on many machines: this library is not installed
    warning,  // a library is there and did not do its work
  };
  Severity severity = Severity::note;
  std::string source;  // "opencl", "nvidia", "amd"
  std::string text;    // with the driver's own code and words

  friend bool operator==(const DiscoveryNote&, const DiscoveryNote&) = default;
};

struct Finding {
  std::vector<FoundDevice> devices;
  std::vector<DiscoveryNote> notes;

  void note(std::string source, std::string text) {
    notes.push_back({DiscoveryNote::Severity::note, std::move(source), std::move(text)});
  }
  void warn(std::string source, std::string text) {
    notes.push_back({DiscoveryNote::Severity::warning, std::move(source), std::move(text)});
  }
};

}  // namespace loam::node
