// A node as placement sees it: what is free, without names. Nodes whose figures are equal are
// interchangeable, so a policy scores a view and never a node. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "domain/device.hpp"
#include "schedule/demand.hpp"

namespace loam::schedule {

using KindIndex = std::uint32_t;

// Devices that cannot be told apart when empty: type, memory and worth are the same.
struct DeviceKind {
  DeviceFacts facts;                // of the first such device; uuid means nothing here
  std::int64_t milli_max = 1000;    // what may be promised of one
  std::int64_t memory_max_mib = 0;  // alike
  Oversubscription lent{};
};

// One device that takes leases now.
struct DeviceSlot {
  KindIndex kind = 0;
  std::int32_t free_milli = 0;
  std::int64_t free_mib = 0;

  friend auto operator<=>(const DeviceSlot&, const DeviceSlot&) = default;
};

// `slots` ascends: by kind, then the fullest first.
struct NodeView {
  std::int64_t cpu_milli = 0;   // free
  std::int64_t memory_mib = 0;  // free, of the host
  std::span<const DeviceSlot> slots;

  std::int64_t free_milli() const {
    std::int64_t sum = 0;
    for (const DeviceSlot& slot : slots) sum += slot.free_milli;
    return sum;
  }
};

// What a demand takes of a device of one kind.
struct KindNeed {
  bool possible = false;   // the kind is allowed and an empty device could hold it
  std::int32_t milli = 0;  // of one slice: what is promised to it
  std::int64_t mib = 0;
  std::int64_t ce = 0;     // milli-CE bought
  std::int64_t worth = 0;  // taken of the pool: milli × general milli-CE
  std::int32_t unpromised_milli = 0;
  std::int64_t unpromised_mib = 0;
};
KindNeed need_of(const Demand& demand, const DeviceKind& kind);
// A slice that needs so much, there.
Placement slice_of(const KindNeed& need, DeviceId device, NodeId node);

}  // namespace loam::schedule
