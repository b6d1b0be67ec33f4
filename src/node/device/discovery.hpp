// Finding the machine's devices: every source looks, and what several of them see is one device.
//
// Drivers are opened at run time; none is needed to build or to run. A missing library is a note,
// a failing one a warning with the driver's own code and words; neither is an error.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "node/device/found_device.hpp"

namespace loam::node {

// One family of drivers.
class DeviceSource {
 public:
  virtual ~DeviceSource() = default;
  // "opencl", "nvidia", "amd": the source of its notes.
  virtual std::string name() const = 0;
  // Opens the drivers and asks. May take seconds, start threads and keep memory in this process:
  // a daemon calls discover_apart instead. Never throws.
  virtual Finding find() = 0;
};

// What differs between machines, and between a machine and a test.
struct DiscoveryPaths {
  // Tried in order; the first that opens is used.
  std::vector<std::string> opencl{"libOpenCL.so.1", "libOpenCL.so"};
  std::vector<std::string> nvml{"libnvidia-ml.so.1"};
  std::vector<std::string> cuda{"libcuda.so.1"};
  std::vector<std::string> rocm_smi{"librocm_smi64.so.7", "librocm_smi64.so.6",
                                    "librocm_smi64.so.5", "librocm_smi64.so.1", "librocm_smi64.so"};
  std::string pci_devices = "/sys/bus/pci/devices";  // for the NUMA node of a card
  // Salt of the identities made for devices whose driver gives none, so that two machines with
  // the same processor have two devices. Read from /etc/machine-id when empty.
  std::string machine_id;
};

std::unique_ptr<DeviceSource> make_opencl_source(const DiscoveryPaths& paths = {});
std::unique_ptr<DeviceSource> make_nvidia_source(const DiscoveryPaths& paths = {});
std::unique_ptr<DeviceSource> make_amd_source(const DiscoveryPaths& paths = {});
// NVIDIA, AMD, OpenCL: a vendor's own library knows more of a card than OpenCL does, so it is
// asked first and its identity stands.
std::vector<std::unique_ptr<DeviceSource>> default_sources(const DiscoveryPaths& paths = {});

// Asks every source in this process, in the order given, and joins what they saw.
Finding discover(const std::vector<std::unique_ptr<DeviceSource>>& sources);

// The same, each source in a child process of its own: a driver that crashes, hangs or keeps
// hundreds of MiB does so there. A child still silent after `patience` is killed; that and a
// crash are warnings. Forks: call it while this process has one thread.
Finding discover_apart(const std::vector<std::unique_ptr<DeviceSource>>& sources,
                       Duration patience = Duration::seconds(30));

// Joins findings in order: a device whose UUID or PCI address an earlier source already saw adds
// what it knows to that one; CPUs seen by several OpenCL drivers are one CPU. Devices of one and
// the same source are never joined: a second with the same UUID is left out with a warning.
Finding join(const std::vector<Finding>& findings);

// Puts the devices into link groups: each, in order, into the first group with all of whose members
// it is `linked`, else into one of its own. Groups of one stay without a name. `linked` is asked
// for places in `devices`, the lower first. O(devices²) questions.
void group_by_link(std::vector<FoundDevice>& devices,
                   const std::function<bool(std::size_t, std::size_t)>& linked);

// One JSON object, {"devices": […], "notes": […]}, and back; the reader is strict.
std::string to_json(const Finding& finding);
Result<Finding> parse_finding(std::string_view json);
// One device as a JSON object.
std::string to_json(const FoundDevice& device);

}  // namespace loam::node
