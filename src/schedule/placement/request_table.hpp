// The mix of requests resolved for each kind of device, laid out for scoring a node in well under a
// microsecond; and FGD's fragmentation, which is a sum over it. Pure.
#pragma once

#include <vector>

#include "schedule/placement/mix.hpp"
#include "schedule/placement/node_view.hpp"

namespace loam::schedule {

// Where the mix leaves device memory in proportion to the share, milli-device alone decides; else
// the scarcer of the two does. Both are expressed in milli-device.
std::int32_t effective_free(const DeviceSlot& slot, const DeviceKind& kind);

// One request type on one kind of device.
struct ResolvedType {
  std::int32_t milli = 0;  // of each device, memory included; 1000: a whole one
  std::int32_t devices = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  double share = 0;    // of the requests that need a device
  double typical = 0;  // weight among FGD's typical shapes
};

class RequestTable {
 public:
  RequestTable(const Mix& mix, const std::vector<DeviceKind>& kinds);

  // What can run on a node now, and what is of no use on it.
  struct Fit {
    double share = 0;     // Σ share of the types that fit
    double fragment = 0;  // FGD's F, in milli-device
  };
  // `free` holds effective_free of each slot. Of an empty mix: nothing. O(slots + types).
  Fit fit(const NodeView& view, const std::int32_t* free) const;

  // Types that the kind admits, by size, then devices, then CPU.
  const std::vector<ResolvedType>& types(KindIndex kind) const { return tables_[kind].types; }
  // Every type that needs a device whatever kinds it is allowed on, as if this kind were.
  const std::vector<ResolvedType>& all(KindIndex kind) const { return tables_[kind].all; }
  std::size_t kinds() const { return tables_.size(); }

 private:
  struct Table {
    std::vector<ResolvedType> types;
    std::vector<ResolvedType> all;
  };
  Fit fit_of_one_kind(const NodeView& view, const std::int32_t* free) const;
  Fit fit_of_mixed(const NodeView& view, const std::int32_t* free) const;

  // For nodes with devices of several kinds: the same type on each kind.
  struct Spread {
    std::int32_t devices = 0;
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
    double share = 0;
    double typical = 0;
    std::vector<std::int32_t> milli;  // by kind; -1: not there
  };
  std::vector<Table> tables_;
  std::vector<Spread> spread_;
  bool nothing_known_ = false;  // the mix is empty
};

}  // namespace loam::schedule
