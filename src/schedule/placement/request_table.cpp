#include "schedule/placement/request_table.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace loam::schedule {
namespace {

// FGD looks at the most frequent shapes that make up this share of all requests.
constexpr double typical_share = 0.95;

// The weights of the typical shapes, host-only ones included; they sum to 1.
std::vector<double> typical_weights(const Mix& mix) {
  std::vector<std::size_t> order(mix.types.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return mix.types[a].count > mix.types[b].count;
  });
  std::vector<double> weights(mix.types.size(), 0.0);
  const auto total = static_cast<double>(mix.total());
  double covered = 0;
  for (const std::size_t i : order) {
    if (covered >= typical_share * total) break;
    weights[i] = static_cast<double>(mix.types[i].count);
    covered += weights[i];
  }
  for (double& weight : weights) weight = covered > 0 ? weight / covered : 0;
  return weights;
}

bool smaller(const ResolvedType& a, const ResolvedType& b) {
  return std::tie(a.milli, a.devices, a.cpu_milli, a.memory_mib) <
         std::tie(b.milli, b.devices, b.cpu_milli, b.memory_mib);
}

// The demand's size on the kind in milli-device, memory counted where it asks for more than its
// share; 0 where an empty device cannot hold it.
std::int32_t size_on(const Demand& demand, const DeviceKind& kind) {
  const Placement needs = needs_on(demand, kind.facts, kind.lent);
  if (needs.share > whole_device || needs.memory.value > kind.memory_max_mib) return 0;
  std::int64_t milli = demand.exclusive ? kind.milli_max : needs.promised().value;
  const std::int64_t memory_max = kind.memory_max_mib;
  // In proportion to the share it is no more, but where the two are lent by different factors.
  if ((demand.memory || needs.unpromised.value > 0) && memory_max > 0) {
    const std::int64_t scaled =
        (needs.memory_promised().value * kind.milli_max + memory_max - 1) / memory_max;
    milli = std::max(milli, scaled);
  }
  return static_cast<std::int32_t>(milli);
}

}  // namespace

std::int32_t effective_free(const DeviceSlot& slot, const DeviceKind& kind) {
  if (slot.free_mib >= kind.memory_max_mib) return slot.free_milli;
  const std::int64_t by_memory = slot.free_mib * kind.milli_max / kind.memory_max_mib;
  return std::min(slot.free_milli, static_cast<std::int32_t>(by_memory));
}

RequestTable::RequestTable(const Mix& mix, const std::vector<DeviceKind>& kinds)
    : tables_(kinds.size()), nothing_known_(mix.types.empty()) {
  const std::vector<double> typical = typical_weights(mix);
  double with_device = 0;
  for (const RequestType& type : mix.types) {
    if (type.demand.devices > 0) with_device += static_cast<double>(type.count);
  }
  for (std::size_t i = 0; i < mix.types.size(); ++i) {
    const Demand& demand = mix.types[i].demand;
    if (demand.devices == 0) continue;  // host-only: everything idle is of no use to it
    ResolvedType type;
    type.devices = static_cast<std::int32_t>(demand.devices);
    type.cpu_milli = demand.cpu.value;
    type.memory_mib = demand.host_memory.value;
    type.share = static_cast<double>(mix.types[i].count) / with_device;
    type.typical = typical[i];
    Spread spread{type.devices, type.cpu_milli, type.memory_mib, type.share, type.typical, {}};
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      type.milli = size_on(demand, kinds[kind]);
      const bool allowed = type.milli > 0 && admits(demand, kinds[kind].facts.type);
      spread.milli.push_back(allowed ? type.milli : -1);
      if (type.milli > 0) tables_[kind].all.push_back(type);
      if (allowed) tables_[kind].types.push_back(type);
    }
    spread_.push_back(std::move(spread));
  }
  for (Table& table : tables_) {
    std::sort(table.types.begin(), table.types.end(), smaller);
    std::sort(table.all.begin(), table.all.end(), smaller);
  }
}

RequestTable::Fit RequestTable::fit(const NodeView& view, const std::int32_t* free) const {
  if (view.slots.empty() || nothing_known_) return {};
  const bool one_kind = view.slots.front().kind == view.slots.back().kind;
  return one_kind ? fit_of_one_kind(view, free) : fit_of_mixed(view, free);
}

RequestTable::Fit RequestTable::fit_of_one_kind(const NodeView& view,
                                                const std::int32_t* free) const {
  const std::vector<ResolvedType>& types = tables_[view.slots.front().kind].types;
  const auto count = static_cast<std::int32_t>(view.slots.size());
  const double idle = static_cast<double>(std::accumulate(free, free + count, std::int64_t{0}));
  double fitting_weight = 0;
  Fit found;
  // Types ascend by size: the devices below the size, and the idle milli on them, grow with it.
  std::int32_t below = 0;
  std::int64_t sliver = 0;
  // Memory can disturb the order of `free`; sorted again it is what "how many are at least" needs.
  std::int32_t sorted[64];
  const std::int32_t* levels = free;
  if (!std::is_sorted(free, free + count) && count <= 64) {
    std::copy(free, free + count, sorted);
    std::sort(sorted, sorted + count);
    levels = sorted;
  }
  for (const ResolvedType& type : types) {
    while (below < count && levels[below] < type.milli) sliver += levels[below++];
    if (below == count) break;
    if (type.devices > count - below) continue;
    if (type.cpu_milli > view.cpu_milli || type.memory_mib > view.memory_mib) continue;
    found.share += type.share;
    fitting_weight += type.typical;
    found.fragment += type.typical * static_cast<double>(sliver);
  }
  found.fragment += (1 - fitting_weight) * idle;
  return found;
}

RequestTable::Fit RequestTable::fit_of_mixed(const NodeView& view, const std::int32_t* free) const {
  const std::size_t count = view.slots.size();
  const double idle = static_cast<double>(std::accumulate(free, free + count, std::int64_t{0}));
  double fitting_weight = 0;
  Fit found;
  for (const Spread& type : spread_) {
    if (type.cpu_milli > view.cpu_milli || type.memory_mib > view.memory_mib) continue;
    std::int32_t room = 0;
    std::int64_t sliver = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t milli = type.milli[view.slots[i].kind];
      if (milli > 0 && free[i] >= milli) {
        ++room;
      } else {
        sliver += free[i];
      }
    }
    if (room < type.devices) continue;
    found.share += type.share;
    fitting_weight += type.typical;
    found.fragment += type.typical * static_cast<double>(sliver);
  }
  found.fragment += (1 - fitting_weight) * idle;
  return found;
}

}  // namespace loam::schedule
