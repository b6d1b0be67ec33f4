// Where members of a task, or of a reservation, lie. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <vector>

#include "base/quantity.hpp"
#include "domain/ids.hpp"

namespace loam {

struct PromisedSlice {
  DeviceId device;
  MilliDevice share;
  Mebibytes memory;
  MilliCe ce;
  MilliDevice unpromised{};  // as in Slice
  Mebibytes memory_unpromised{};

  friend bool operator==(const PromisedSlice&, const PromisedSlice&) = default;
};
BOOST_DESCRIBE_STRUCT(PromisedSlice, (), (device, share, memory, ce, unpromised, memory_unpromised))

// On one node.
struct PromisedMember {
  std::vector<PromisedSlice> slices;
  NodeId node;
  MilliCpu cpu;
  Mebibytes host_memory;

  friend bool operator==(const PromisedMember&, const PromisedMember&) = default;
};
BOOST_DESCRIBE_STRUCT(PromisedMember, (), (slices, node, cpu, host_memory))

}  // namespace loam
