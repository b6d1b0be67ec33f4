// Device, node and pool: what operators attach. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/ids.hpp"

namespace loam {

// How a task uses a device; sets the conversion from device to CE.
BOOST_DEFINE_ENUM_CLASS(WorkClass, general, train, prefill, decode)

// A device's worth in CE for each work class. All above zero.
struct CeFactors {
  MilliCe general;
  MilliCe train;
  MilliCe prefill;
  MilliCe decode;

  MilliCe of(WorkClass work_class) const;
  friend bool operator==(const CeFactors&, const CeFactors&) = default;
};
BOOST_DESCRIBE_STRUCT(CeFactors, (), (general, train, prefill, decode))

BOOST_DEFINE_ENUM_CLASS(Backend, simulated, opencl, cuda, rocm)

// What is fixed about a device while it is attached. Shared, never changed in place: a snapshot
// of the state copies pointers, not strings.
struct DeviceFacts {
  std::string uuid;
  std::string type;  // device type, as the catalogue names it
  Backend backend = Backend::simulated;
  std::string driver_version;
  Mebibytes memory;
  std::string factors_source;  // "measured 2026-03-02T…", "catalogue"
  CeFactors factors;
  // Devices of a node with the same link group are joined by a fast link (NVLink, XGMI), each with
  // every other. Empty: unknown, or joined to none.
  std::string link_group;
  // The host's NUMA node that it is attached to; nothing: unknown.
  std::optional<std::int64_t> numa_node;

  friend bool operator==(const DeviceFacts&, const DeviceFacts&) = default;
};
BOOST_DESCRIBE_STRUCT(DeviceFacts, (),
                      (uuid, type, backend, driver_version, memory, factors_source, factors,
                       link_group, numa_node))

BOOST_DEFINE_ENUM_CLASS(DeviceHealth, healthy, lost)

struct Device {
  DeviceId id;
  NodeId node;
  std::uint32_t index = 0;  // position on its node
  std::shared_ptr<const DeviceFacts> facts;
  DeviceHealth health = DeviceHealth::healthy;
  // When its health was last seen to change; while lost: its last sign of life, to which time is
  // billed.
  Instant seen_at;
  bool draining = false;  // takes no new leases
  // What active leases hold.
  MilliDevice used;  // may be more than the device, where it is oversubscribed
  Mebibytes memory_used;
  std::uint32_t leases = 0;
  MilliDevice unpromised;  // of what is used, as in Slice
  Mebibytes memory_unpromised;

  bool placeable() const { return health == DeviceHealth::healthy && !draining; }
  // Never more than the device.
  MilliDevice promised() const { return used - unpromised; }
  Mebibytes memory_promised() const { return memory_used - memory_unpromised; }
  // What may still be promised.
  MilliDevice free() const { return whole_device - promised(); }
  Mebibytes memory_free() const { return facts->memory - memory_promised(); }
};
BOOST_DESCRIBE_STRUCT(Device, (),
                      (id, node, index, facts, health, seen_at, draining, used, memory_used, leases,
                       unpromised, memory_unpromised))

struct Node {
  NodeId id;
  std::string name;
  std::string region;
  std::vector<std::string> labels;
  MilliCpu cpu;           // to be lent; 0: not stated, so not counted
  Mebibytes memory;       // host memory, likewise
  bool sandboxed = true;  // what runs on it is kept apart; else every slice of it is advisory
  std::vector<DeviceId> devices;
  // What active leases hold.
  MilliCpu cpu_used;
  Mebibytes memory_used;
  // Starts in a row that it was not able to make; after a few of them it is marked, and gets no
  // lease until then. 0: not marked.
  std::int64_t failures = 0;
  Instant marked_until;

  bool marked() const { return marked_until != Instant{}; }
};
BOOST_DESCRIBE_STRUCT(Node, (),
                      (id, name, region, labels, cpu, memory, sandboxed, devices, cpu_used,
                       memory_used, failures, marked_until))

// "n1/0": node name and index, how people point at a device besides its UUID.
std::string device_name(const Node& node, const Device& device);

// The milli-device that `wanted` takes of a device worth `device_ce`: rounded down, at least 1, so
// that demands which fit a device in CE always fit it in milli-device too; the shortfall is below
// a thousandth of the device. May be above 1000 where one device is not enough.
// Requires wanted > 0 and device_ce > 0.
MilliDevice share_for(MilliCe wanted, MilliCe device_ce);
// The CE that `share` of a device worth `device_ce` is, rounded down, at least 0.001 CE.
MilliCe ce_of(MilliDevice share, MilliCe device_ce);
// Device memory in proportion to `share`, rounded down, at least 1 MiB: the default where the
// tenant names none.
Mebibytes memory_of(MilliDevice share, Mebibytes device_memory);

}  // namespace loam
