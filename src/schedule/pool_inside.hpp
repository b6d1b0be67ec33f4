// What a Pool keeps: nodes, devices, states, and for each demand seen lately a heap of the states
// that could take it. For pool*.cpp and the parts that ask what-if questions. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "schedule/pool.hpp"

namespace loam::schedule {

struct DeviceEntry {
  std::shared_ptr<const DeviceFacts> facts;
  KindIndex kind = 0;
  std::uint64_t node = 0;
  std::int64_t used_milli = 0;  // promised to leases
  std::int64_t used_mib = 0;
  bool known = false;
  bool healthy = false;
  bool placeable = false;
  bool locked = false;

  DeviceSlot slot(const DeviceKind& of) const {
    if (locked) return {kind, 0, 0};
    return {kind, static_cast<std::int32_t>(std::max<std::int64_t>(0, of.milli_max - used_milli)),
            std::max<std::int64_t>(0, of.memory_max_mib - used_mib)};
  }
};

// What a node's devices and host amount to when empty: demands are refused by this.
struct NodeShape {
  std::uint32_t site = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  // By kind: how many are healthy, and how many of those take leases.
  std::vector<std::tuple<KindIndex, std::int32_t, std::int32_t>> devices;

  friend auto operator<=>(const NodeShape&, const NodeShape&) = default;
};

struct NodeEntry {
  std::uint32_t site = 0;
  std::int64_t cpu_milli = 0;  // free; below zero where the host shrank under its leases
  std::int64_t memory_mib = 0;
  std::vector<std::uint64_t> devices;  // ids, ascending
  NodeShape shape;                     // what it has
  bool counted = false;                // among the pool's shapes
  StateRef state;
  bool known = false;  // and in `state`
};

struct Site {
  std::string region;
  std::vector<std::string> labels;  // ascending

  friend auto operator<=>(const Site&, const Site&) = default;
};

// A device of one node as choices are made between them.
struct OpenSlot {
  DeviceSlot slot;
  std::uint64_t device = 0;

  friend auto operator<=>(const OpenSlot&, const OpenSlot&) = default;
};

// Open slots of one link group or one NUMA node.
struct NearSlots {
  std::vector<OpenSlot> slots;
  std::int64_t free_milli = 0;     // of all of them
  std::uint64_t first_device = 0;  // the lowest id
};
// Which of them is taken where both hold a demand.
inline bool fuller(const NearSlots& a, const NearSlots& b) {
  return std::pair(a.free_milli, a.first_device) < std::pair(b.free_milli, b.first_device);
}

// How good a place is; less is better.
struct PlaceRank {
  std::int64_t worth = 0;
  std::int64_t score = 0;
  std::int64_t remaining = 0;

  friend auto operator<=>(const PlaceRank&, const PlaceRank&) = default;
};

struct Candidate {
  PlaceRank rank;
  StateRef state;
};

// A demand that was asked lately, and what is known of the states for it.
struct Shape {
  Demand demand;
  std::vector<KindNeed> needs;      // by kind, as far as worked out
  std::vector<std::uint8_t> sites;  // by site: 1 allowed, 0 not
  std::vector<Candidate> heap;      // least rank on top; may hold dead states
  std::uint64_t cursor = 0;         // births before it are in the heap, or skipped
  bool skipped = false;             // some were skipped to bound a decision
  std::uint32_t epoch = 0;          // of the scorer that ranked the heap
  std::uint64_t asked_at = 0;
};

struct Pool::Inside {
  explicit Inside(PoolOptions given);

  // --- books (pool.cpp)
  KindIndex kind_of(const std::shared_ptr<const DeviceFacts>& facts);
  std::uint32_t site_of(const std::string& region, std::vector<std::string> labels);
  NodeEntry& node(std::uint64_t id);
  DeviceEntry& device(std::uint64_t id);
  void leave_state(std::uint64_t id);                              // before a node's figures change
  void enter_state(std::uint64_t id);                              // after
  void recount(std::uint64_t id, MilliCpu cpu, Mebibytes memory);  // the node's shape
  void book(const UnitPlacement& place, std::int64_t sign);
  void slots_of(const NodeEntry& node, std::vector<OpenSlot>& slots) const;

  // --- decisions (pool_find.cpp)
  using Touched = std::set<std::uint64_t>;  // nodes to pass over
  struct Best {
    PlaceRank rank;
    std::uint64_t node = 0;
    Nearness near = Nearness::one_link_group;  // comes before the rank
  };
  std::optional<UnitPlacement> find(const Demand& demand);
  std::optional<Best> best(const Demand& demand, const Touched& touched);
  Shape& shape_of(const Demand& demand);
  void make_scorer_ready();
  bool site_allowed(Shape& shape, std::uint32_t site);
  const KindNeed& need(Shape& shape, KindIndex kind);
  bool has_room(const Shape& shape, const DeviceSlot& slot, const KindNeed& need) const;
  // The rank of the best choice of devices in a state, and their places in view.slots.
  std::optional<PlaceRank> choose(Shape& shape, std::uint32_t site, const NodeView& view,
                                  double value_before, std::vector<std::uint32_t>& chosen);
  std::optional<UnitPlacement> place_on(Shape& shape, std::uint64_t node_id, std::uint32_t site,
                                        std::int64_t cpu_milli, std::int64_t memory_mib,
                                        const std::vector<OpenSlot>& slots);
  std::optional<UnitPlacement> place_on(Shape& shape, std::uint64_t node_id);
  // On this certain device.
  std::optional<UnitPlacement> certain(const Demand& demand, std::uint64_t node_id,
                                       std::uint32_t site, std::int64_t cpu_milli,
                                       std::int64_t memory_mib, const std::vector<OpenSlot>& slots);
  bool needs_several(const Demand& demand);  // no single device is big enough
  double value_of(const NodeView& view);

  // --- nearness (pool_near.cpp)
  struct Nearest {
    Nearness near = Nearness::one_link_group;
    std::vector<OpenSlot> slots;  // none: all of them
  };
  // Whether places for it may differ in nearness: several devices, and something is known of some.
  bool tells_nearness(const Demand& demand) const { return demand.devices > 1 && topology_known; }
  // The slots by link group or by NUMA node, the fullest first; those of none are left out.
  std::vector<NearSlots> near_slots(const std::vector<OpenSlot>& slots, Nearness by) const;
  bool holds_slices(Shape& shape, const std::vector<OpenSlot>& slots);  // all of the demand's
  // The nearest of a node's slots that hold all slices together; their order is kept.
  Nearest nearest(Shape& shape, const std::vector<OpenSlot>& slots);
  Nearness nearness_on(Shape& shape, std::uint64_t node_id);

  bool holds_when_empty(const Demand& demand, bool drained_too);

  PoolOptions options;
  std::vector<DeviceKind> kinds;
  std::map<std::tuple<std::string, std::int64_t, std::array<std::int64_t, 4>, std::int64_t>,
           KindIndex>
      kinds_by_key;
  std::vector<Site> sites;
  std::map<Site, std::uint32_t> sites_by_key;
  std::vector<DeviceEntry> devices;  // by id - 1
  std::vector<NodeEntry> nodes;      // by id - 1
  std::map<NodeShape, std::int64_t> shapes_of_nodes;
  StateTable states;
  Pool::Totals totals;
  PoolTotals totals_for_scores;
  std::uint64_t changes = 0;
  bool topology_known = false;  // a link group or NUMA node of some device, now or before

  Mix mix;
  MixEstimator estimator;
  std::unique_ptr<Scorer> scorer;
  std::uint32_t epoch = 0;  // of the scorer; 0: none yet
  bool scorer_is_stale = true;
  bool coarse = false;  // scores in their published form

  std::map<std::string, Shape> asked;
  std::uint64_t asks = 0;

 private:
  struct Scored {
    std::uint64_t hash = 0;
    std::uint32_t epoch = 0;
    double value = 0;
  };
  struct Option {
    std::int64_t worth = 0;
    double cost = 0;
  };
  std::optional<PlaceRank> choose_one(Shape& shape, const NodeView& view, double before,
                                      std::vector<std::uint32_t>& chosen);
  std::optional<PlaceRank> choose_several(Shape& shape, const NodeView& view, double before,
                                          std::vector<std::uint32_t>& chosen);
  double cost_of(const Shape& shape, const NodeView& view, double before, std::int64_t milli);
  PlaceRank rank_of(const NodeView& view, std::int64_t worth, double cost) const;
  void bring_up_to_date(Shape& shape);
  bool push(Shape& shape, StateRef ref);  // true: it was scored
  void take_all(Shape& shape);
  std::optional<Best> top(Shape& shape, const Touched& touched);
  std::optional<Best> drawn(Shape& shape, const Touched& touched);
  bool same_worth(Shape& shape);  // whatever kind is taken

  std::vector<Scored> scored_;  // direct-mapped by hash: values of states that were only thought of
  std::vector<DeviceSlot> after_;
  std::vector<std::uint32_t> chosen_;
};

}  // namespace loam::schedule
