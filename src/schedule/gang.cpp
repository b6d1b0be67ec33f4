#include "schedule/gang.hpp"

#include <set>

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"
#include "schedule/gang_search.hpp"
#include "schedule/pool_inside.hpp"

namespace loam::schedule {
namespace {

// Pieces that one unit is split into at most.
constexpr std::int64_t pieces_max = 1024;
// More pieces than needed may fit where the fewest do not: how many more are tried.
constexpr std::int64_t pieces_more = 7;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

UnitPlacement merged(const std::vector<UnitPlacement>& parts, MilliCe ce, bool exclusive) {
  UnitPlacement unit;
  unit.exclusive = exclusive;
  for (const UnitPlacement& part : parts) {
    unit.slices.insert(unit.slices.end(), part.slices.begin(), part.slices.end());
    for (const HostShare& host : part.hosts) {
      const auto at = std::find_if(unit.hosts.begin(), unit.hosts.end(),
                                   [&](const HostShare& have) { return have.node == host.node; });
      if (at == unit.hosts.end()) {
        unit.hosts.push_back(host);
      } else {
        at->cpu += host.cpu;
        at->memory += host.memory;
      }
    }
  }
  std::sort(unit.slices.begin(), unit.slices.end(), [](const Placement& a, const Placement& b) {
    return std::pair(a.node, a.device) < std::pair(b.node, b.device);
  });
  // The pieces were rounded up; what is bought is what was asked.
  const auto pieces = static_cast<std::int64_t>(unit.slices.size());
  for (std::int64_t i = 0; i < pieces; ++i) {
    unit.slices[static_cast<std::size_t>(i)].ce =
        MilliCe{ce.value / pieces + (i < ce.value % pieces ? 1 : 0)};
  }
  return unit;
}

}  // namespace

std::optional<GangPlacement> find_gang(const Trial& trial, const std::vector<Demand>& members,
                                       const GangOptions& options) {
  LOAM_ASSERT(!members.empty());
  return GangSearch(trial, members, options).run();
}

std::optional<GangPlacement> find_gang(const Pool& pool, const std::vector<Demand>& members,
                                       const GangOptions& options) {
  return find_gang(Trial(pool), members, options);
}

namespace {

bool on_devices_of_their_own(const std::vector<UnitPlacement>& members) {
  std::set<DeviceId> devices;
  for (const UnitPlacement& member : members) {
    for (const Placement& slice : member.slices) {
      if (!devices.insert(slice.device).second) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<UnitPlacement> find_aggregated(const Trial& trial, const Demand& demand) {
  LOAM_ASSERT(demand.ce.has_value() && demand.devices == 1);
  const std::int64_t fewest = GangSearch::fewest_pieces(trial.pool(), demand);
  if (fewest == 0 || fewest > pieces_max) return std::nullopt;
  for (const bool together : {true, false}) {
    for (std::int64_t pieces = fewest; pieces <= fewest + pieces_more; ++pieces) {
      Demand piece = demand;
      piece.ce = MilliCe{ceil_div(demand.ce->value, pieces)};
      if (demand.memory) piece.memory = Mebibytes{ceil_div(demand.memory->value, pieces)};
      if (together) {
        piece.devices = pieces;
        const auto found = trial.find(piece);
        if (found) return merged({*found}, *demand.ce, demand.exclusive);
        continue;
      }
      piece.cpu = MilliCpu{ceil_div(demand.cpu.value, pieces)};
      piece.host_memory = Mebibytes{ceil_div(demand.host_memory.value, pieces)};
      const std::vector<Demand> members(static_cast<std::size_t>(pieces), piece);
      GangOptions near;
      near.farthest = Nearness::one_region;
      const auto found = find_gang(trial, members, near);
      // Two pieces on one device are no gain: that device was too small for them to begin with.
      if (found && on_devices_of_their_own(found->members))
        return merged(found->members, *demand.ce, demand.exclusive);
    }
  }
  return std::nullopt;
}

std::optional<UnitPlacement> find_aggregated(const Pool& pool, const Demand& demand) {
  return find_aggregated(Trial(pool), demand);
}

}  // namespace loam::schedule
