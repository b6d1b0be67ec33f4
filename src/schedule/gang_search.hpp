// The search behind find_gang(): one link group, one NUMA node, one node, one region, anywhere;
// greedily first, then exactly within a bound. Pure.
#pragma once

#include <string>
#include <vector>

#include "schedule/gang.hpp"
#include "schedule/pool_inside.hpp"

namespace loam::schedule {

class GangSearch {
 public:
  GangSearch(const Trial& trial, const std::vector<Demand>& members, const GangOptions& options);

  std::optional<GangPlacement> run();

  // The fewest devices of one kind that hold the demand together; 0: no kind is allowed.
  static std::int64_t fewest_pieces(const Pool& pool, const Demand& demand);

 private:
  // A node, or those of its devices that are in one link group or NUMA node.
  struct Node {
    std::uint64_t id = 0;
    std::uint32_t site = 0;
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
    std::vector<DeviceSlot> slots;
    std::vector<std::uint64_t> devices;  // as slots
    std::int64_t room = 0;               // members that may fit, by figures
    bool part = false;                   // of the node
  };
  // A member as the exact search sees it.
  struct Member {
    std::size_t at = 0;  // in members_
    Shape* shape = nullptr;
    bool as_before = false;  // the same demand as the one before it in order_
  };
  using Places = std::vector<std::optional<UnitPlacement>>;  // by place in members_

  void gather();
  static Node node_of(std::uint64_t id, const Trial::Host& host,
                      const std::vector<OpenSlot>& slots);
  void add_node(Node node);
  std::vector<Node> parts(Nearness by) const;
  std::int64_t room_for(const Node& node, std::size_t member) const;
  bool has_figures_for_all(const NodeView& view) const;
  bool may_hold_all(const Node& node) const;
  // Puts as many of the members that have no place as fit onto the node, largest first.
  std::size_t pack(Trial& trial, const Node& node, Places& places) const;
  // On the first of them that holds all.
  std::optional<Places> on_one_of(const std::vector<const Node*>& nodes);
  std::optional<Places> on_one_part(Nearness by);
  std::optional<Places> on_one_node();
  std::optional<Places> on_few_nodes(const std::vector<const Node*>& nodes);
  std::optional<Places> exactly(std::vector<const Node*> nodes);
  std::optional<Places> within(const std::vector<const Node*>& nodes);
  bool place_rest(std::vector<Node>& nodes, std::size_t depth,
                  std::pair<std::size_t, std::size_t> from, Places& places);
  static std::int64_t copies_on(const Shape& shape, const DeviceSlot& slot, const KindNeed& want);
  // Devices of the node, as places in node.slots: one way each that is worth trying.
  std::vector<std::vector<std::size_t>> ways_for_one(const Member& member, const Node& node,
                                                     std::size_t first_slot);
  std::vector<std::vector<std::size_t>> ways_for_several(Shape& shape, const Node& node);
  bool place_here(std::vector<Node>& nodes, std::size_t depth, std::size_t node,
                  std::size_t first_slot, Places& places);
  static std::size_t nodes_used(const Places& places);

  Trial trial_;
  Pool::Inside& in_;
  const std::vector<Demand>& members_;
  GangOptions options_;
  std::vector<Member> order_;  // largest first
  std::vector<Shape> shapes_;  // of the distinct demands
  std::vector<Node> nodes_;
  std::int64_t steps_left_ = 0;
};

}  // namespace loam::schedule
