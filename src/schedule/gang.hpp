// Gangs: members that start together or not at all, close to each other; and one logical unit
// made of several devices where no single one is big enough. Pure.
#pragma once

#include <optional>
#include <vector>

#include "schedule/pool.hpp"
#include "schedule/trial.hpp"

namespace loam::schedule {

struct GangPlacement {
  std::vector<UnitPlacement> members;      // in the order of the demands
  Nearness nearness = Nearness::anywhere;  // how near they came
};

struct GangOptions {
  // The farthest that is accepted.
  Nearness farthest = Nearness::anywhere;
  // Steps of the exact search where placing largest first fails; 0: none. A step places or takes
  // away one member.
  std::int64_t steps_max = 20'000;
};

// Places for all members, or nothing: on the devices of one link group if that can be, else of one
// NUMA node, else on one node, else on the fewest nodes of one region that the search finds, else
// anywhere. Of link groups, and of NUMA nodes, the one with the least free milli-device that holds
// all is taken, then the one with the lowest device id. For members on a handful of nodes the
// search is exact; it gives up after steps_max steps, and then a gang that would only just fit may
// be told to wait. Requires members.
std::optional<GangPlacement> find_gang(const Pool& pool, const std::vector<Demand>& members,
                                       const GangOptions& options = {});
std::optional<GangPlacement> find_gang(const Trial& trial, const std::vector<Demand>& members,
                                       const GangOptions& options = {});

// One slice's demand split over as few equal devices as hold it: of one node, else of one region.
// The CE add up to what was asked; CPU and host memory are rounded up for each device.
// Requires ce and one device.
std::optional<UnitPlacement> find_aggregated(const Pool& pool, const Demand& demand);
std::optional<UnitPlacement> find_aggregated(const Trial& trial, const Demand& demand);

}  // namespace loam::schedule
