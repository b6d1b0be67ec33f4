// What a waiting task needs of a pool, in the scheduler's terms, and what it gets. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <optional>
#include <string>
#include <vector>

#include "domain/scheduling.hpp"
#include "domain/task.hpp"

namespace loam::schedule {

struct Demand {
  std::optional<MilliCe> ce;  // at most one of ce and share is set; both absent: devices = 0
  std::optional<MilliDevice> share;
  std::optional<Mebibytes> memory;  // absent: in proportion to the share
  DeviceId device;                  // a certain device; none: any
  std::string device_type;          // empty: any
  WorkClass work_class = WorkClass::general;

  // Slices, each on a device of its own, of one kind and one node; ce, share and memory are those
  // of one slice. 0: the host alone. One slice whose CE no single device has is split over several
  // devices instead ("aggregated").
  std::int64_t devices = 1;
  MilliCpu cpu;           // of the host, for all slices together
  Mebibytes host_memory;  // alike
  std::vector<std::string>
      device_types;                 // allowed ones; empty: any. device_type narrows it further
  std::string region;               // empty: any
  std::vector<std::string> labels;  // the node bears all of these
  bool exclusive = false;           // no neighbours on the devices taken
  bool oversubscribable = false;    // a part of it need not be promised: see Oversubscription

  friend bool operator==(const Demand&, const Demand&) = default;
};
BOOST_DESCRIBE_STRUCT(Demand, (),
                      (ce, share, memory, device, device_type, work_class, devices, cpu,
                       host_memory, device_types, region, labels, exclusive, oversubscribable))

// Where one slice goes and what it gets.
struct Placement {
  DeviceId device;
  MilliDevice share;
  Mebibytes memory;
  MilliCe ce;  // bought: what was asked, or the share's worth
  NodeId node;
  MilliDevice unpromised{};  // as in Slice
  Mebibytes memory_unpromised{};

  // What it takes of the device's room.
  MilliDevice promised() const { return share - unpromised; }
  Mebibytes memory_promised() const { return memory - memory_unpromised; }

  friend bool operator==(const Placement&, const Placement&) = default;
};
BOOST_DESCRIBE_STRUCT(Placement, (),
                      (device, share, memory, ce, node, unpromised, memory_unpromised))

// What a logical unit takes of one host besides devices.
struct HostShare {
  NodeId node;
  MilliCpu cpu;
  Mebibytes memory;

  friend bool operator==(const HostShare&, const HostShare&) = default;
};
BOOST_DESCRIBE_STRUCT(HostShare, (), (node, cpu, memory))

// A place for a whole logical unit: its slices, and the hosts they are on.
struct UnitPlacement {
  std::vector<Placement> slices;
  std::vector<HostShare> hosts;
  bool exclusive = false;

  friend bool operator==(const UnitPlacement&, const UnitPlacement&) = default;
};
BOOST_DESCRIBE_STRUCT(UnitPlacement, (), (slices, hosts, exclusive))

// What `demand` gets of a device of this kind when it is empty, and what of that is promised where
// devices are lent so many times; may be more than the device has. Requires that ce or share is
// set.
Placement needs_on(const Demand& demand, const DeviceFacts& facts,
                   const Oversubscription& lent = {});

// The factors for devices of these facts: memory is lent once where the driver keeps it in place.
Oversubscription lent_of(const Oversubscription& pool, const DeviceFacts& facts);

// Whether devices of `type` may serve the demand.
bool admits(const Demand& demand, const std::string& type);

}  // namespace loam::schedule
