// Pool: the index of what is free, for devices and hosts together. It answers where a demand goes
// without looking at every device: nodes in equal states are one, a demand's scores are kept, and
// only states that are new since it was last asked are scored. The daemon and the simulator use
// this one. Pure; one thread.
//
//   Pool pool;
//   pool.refresh(NodeFigures{...});  pool.refresh(device);    // what there is, after every change
//   if (auto place = pool.find(demand)) pool.take(*place);    // find() changes nothing
//   pool.give_back(*place);
//
// What-if questions (gangs, victims, backfill) are asked of a Trial (schedule/trial.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/demand.hpp"
#include "schedule/placement/policy.hpp"
#include "schedule/placement/state_table.hpp"

namespace loam::schedule {

// A host and what leases hold of it. Devices are told apart, by refresh(Device).
struct NodeFigures {
  NodeId id;
  std::string region;
  std::vector<std::string> labels;
  MilliCpu cpu;
  Mebibytes memory;
  MilliCpu cpu_used;
  Mebibytes memory_used;
};

// How near devices are to each other, nearest first. Link groups and NUMA nodes are those of one
// node; a device of which they are unknown is in none.
enum class Nearness { one_link_group, one_numa_node, one_node, one_region, anywhere };

enum class MixSource {
  online,  // learnt from note_request()
  known,   // given by set_mix()
};

struct PoolOptions {
  PolicyOptions placement;
  MixSource mix = MixSource::online;
  // One slice never gets more than the device itself.
  Oversubscription oversubscription{};
  // States scored in one decision; what is beyond is scored only where nothing else fits. 0: no
  // bound, and then the answer depends on the figures of the pool alone. A bound keeps the longest
  // decision short on big pools.
  std::int64_t scored_max = 0;
};

class Pool {
 public:
  explicit Pool(PoolOptions options = {});
  Pool(Pool&&) noexcept;
  Pool& operator=(Pool&&) noexcept;
  ~Pool();

  // Take in present figures: when attached and after every change. `locked`: an exclusive lease
  // holds the device. A device may come before its node, which then has no CPU or memory yet.
  // Amortised O(slots of the node + log nodes).
  void refresh(const NodeFigures& node);
  void refresh(const Device& device, bool locked = false);

  // The best place under the policy: among device kinds the one of which least worth is taken,
  // then the policy's score, then its tie-break. Nothing where it does not fit now. The pool's
  // figures stay as they are; scores are remembered.
  // Several devices of a demand come before all that from a node where some link group has them
  // free, else where some NUMA node has. On the node they are taken from one link group, else one
  // NUMA node, else any: of those that hold them the one with the least free milli-device, then
  // the one with the lowest device id. Nodes are ranked as if any of their devices could be taken.
  std::optional<UnitPlacement> find(const Demand& demand) const;

  // The same, on this node only; for what another part chose.
  std::optional<UnitPlacement> find_on(NodeId node, const Demand& demand) const;

  // Book what find() gave and give it back. Require that it fits, and that it was taken.
  void take(const UnitPlacement& place);
  void give_back(const UnitPlacement& place);

  // What the demand takes of each kind of healthy device that could hold it when empty, drained
  // ones included. Empty: it fits nowhere, so it is refused instead of waiting for ever. Hosts
  // are looked at too: some node with such devices enough must have the CPU and memory, the
  // region and the labels. `needs` is of one slice. O(kinds + node shapes).
  struct Fit {
    Placement needs;  // device: only where the demand names one
    const DeviceFacts* facts = nullptr;
  };
  std::vector<Fit> fits_when_empty(const Demand& demand) const;

  // Whether no single device has the CE asked for, so that several would have to act as one.
  bool may_aggregate(const Demand& demand) const;

  // Whether devices that take leases now could hold the demand if they were empty.
  bool could_hold(const Demand& demand) const;

  // Every request that arrives, once: what the mix is learnt from. Does nothing where it is known.
  void note_request(const Demand& demand);
  void set_mix(Mix mix);

  struct Totals {
    std::int64_t devices = 0;     // that take leases
    std::int64_t free_milli = 0;  // on them
    std::int64_t idle_devices = 0;
    std::int64_t nodes = 0;
    std::int64_t states = 0;  // distinct ones
  };
  Totals totals() const;
  // Free milli-device and MiB of a device that is known, taking leases or not.
  MilliDevice free_of(DeviceId device) const;
  Mebibytes memory_free_of(DeviceId device) const;
  // CPU and memory that a known node has free.
  HostShare free_of(NodeId node) const;
  const PoolOptions& options() const;

 private:
  friend class Trial;
  friend class MoveSearch;
  friend class GangSearch;
  struct Inside;  // schedule/pool_inside.hpp
  std::unique_ptr<Inside> inside_;
};

}  // namespace loam::schedule
