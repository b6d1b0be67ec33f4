#include "schedule/placement/packing_value.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/assert.hpp"
#include "schedule/placement/cutting_stock.hpp"

namespace loam::schedule {
namespace {

constexpr std::int64_t grid = 10;  // milli-device; finer changes nothing that can be measured
// Above this ratio of CPU asked beside a device to CPU had, CPU decides what can be packed.
constexpr double scarce_ratio = 1.02;
// The largest node the sums were weighed on: 8 devices, 128 CPUs.
constexpr double node_devices = 8;
constexpr double node_cpu_milli = 128'000;

std::size_t steps(std::int64_t milli) {
  return static_cast<std::size_t>(milli / grid);
}

// goods · (1 + x_c^-β + x_m^-β)^(-1/β): close to the least of the goods and what CPU and memory
// allow, without a corner. `cpu_need`: what the mix asks beside that many goods. β = 2^halvings.
double soft_min(double goods, const NodeView& view, double cpu_need, double memory_need,
                int halvings) {
  if (goods <= 0) return 0;
  double sum = 1;
  for (const auto& [need, have] :
       {std::pair{cpu_need, view.cpu_milli}, std::pair{memory_need, view.memory_mib}}) {
    if (need <= 0) continue;
    if (have <= 0) return 0;
    double power = need / static_cast<double>(have);
    for (int i = 0; i < halvings; ++i) power *= power;
    sum += power;
  }
  for (int i = 0; i < halvings; ++i) sum = std::sqrt(sum);
  return goods / sum;
}

}  // namespace

PackingValue::KindValues PackingValue::values_of(const std::vector<ResolvedType>& all,
                                                 const std::vector<ResolvedType>& admitted,
                                                 const DeviceKind& kind) {
  KindValues values;
  const std::int64_t roll = steps(kind.milli_max) == 0 ? 1 : kind.milli_max / grid;
  std::map<std::int64_t, double> pieces;  // by size in grid steps
  double devices = 0;
  for (const ResolvedType& type : all) {
    const std::int64_t size = std::min<std::int64_t>((type.milli + grid - 1) / grid, roll);
    pieces[size] += type.share * type.devices;
    devices += type.share * type.devices * type.milli / 1000.0;
    values.cpu_milli += type.share * static_cast<double>(type.cpu_milli);
    values.memory_mib += type.share * static_cast<double>(type.memory_mib);
  }
  if (devices > 0) {
    values.cpu_milli /= devices;
    values.memory_mib /= devices;
  }
  std::vector<RollPiece> demand;
  std::vector<std::int64_t> sizes;
  for (const auto& [size, share] : pieces) {
    demand.push_back({size, share});
    sizes.push_back(size);
  }
  const CuttingStock cut = solve_cutting_stock(demand, roll);
  values.packed = knapsack_values(sizes, cut.duals, roll);

  values.single.assign(static_cast<std::size_t>(roll) + 1, 0.0);
  for (const ResolvedType& type : all) {
    if (type.devices != 1) continue;
    for (std::size_t f = 0; f < values.single.size(); ++f) {
      const auto milli = static_cast<std::int64_t>(f) * grid;
      const std::int64_t copies = milli / type.milli;
      values.single[f] += type.share * static_cast<double>(type.milli * copies);
    }
  }
  const double whole = values.single.back();
  if (whole > 0) {
    for (double& value : values.single) value /= whole;
  }
  for (const ResolvedType& type : admitted) {
    if (type.devices > 1) values.several.push_back(type);
  }
  return values;
}

PackingValue::PackingValue(const Mix& mix, const std::vector<DeviceKind>& kinds,
                           const PoolTotals& totals)
    : kinds_(kinds), table_(mix, kinds) {
  // Kinds on which every type has the same size share one solution.
  using Sizes = std::vector<std::pair<std::int32_t, std::int32_t>>;
  std::map<std::pair<Sizes, std::int64_t>, KindIndex> solved;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto kind = static_cast<KindIndex>(i);
    Sizes sizes;
    for (const ResolvedType& type : table_.all(kind)) sizes.emplace_back(type.milli, type.devices);
    const auto [at, fresh] = solved.try_emplace({std::move(sizes), kinds[i].milli_max}, kind);
    if (fresh) {
      values_.push_back(values_of(table_.all(kind), table_.types(kind), kinds[i]));
      continue;
    }
    KindValues values = values_[at->second];
    values.several.clear();
    for (const ResolvedType& type : table_.types(kind)) {
      if (type.devices > 1) values.several.push_back(type);
    }
    values_.push_back(std::move(values));
  }
  double asked = 0;
  for (const KindValues& values : values_) asked += values.cpu_milli;
  if (!values_.empty() && totals.cpu_milli > 0) {
    asked /= static_cast<double>(values_.size());
    const double had = static_cast<double>(totals.cpu_milli) /
                       static_cast<double>(std::max<std::int64_t>(1, totals.devices));
    cpu_is_scarce_ = asked >= scarce_ratio * had;
  }
}

PackingValue::Sums PackingValue::sums_of(const NodeView& view, const std::int32_t* free) const {
  Sums sums;
  std::int32_t whole = 0;  // idle devices of the kind at hand
  for (std::size_t i = 0; i < view.slots.size(); ++i) {
    const KindIndex kind = view.slots[i].kind;
    const KindValues& values = values_[kind];
    LOAM_ASSERT(free[i] <= kinds_[kind].milli_max);
    const double packed = values.packed[steps(free[i])];
    sums.packed += packed;
    sums.cpu += packed * values.cpu_milli;
    sums.memory += packed * values.memory_mib;
    sums.idle += free[i] / 1000.0;
    const bool idle = free[i] == kinds_[kind].milli_max;
    if (idle) ++whole;
    if (!idle && free[i] > 0) sums.partly += 1;
    if (cpu_is_scarce_) {
      const double single = values.single[steps(free[i])];
      sums.single += single;
      sums.cpu_single += single * values.cpu_milli;
      sums.memory_single += single * values.memory_mib;
    }
    if (i + 1 < view.slots.size() && view.slots[i + 1].kind == kind) continue;
    for (const ResolvedType& type : values.several) {
      if (whole < type.devices) continue;
      std::int64_t copies = whole / type.devices;
      if (type.cpu_milli > 0) copies = std::min(copies, view.cpu_milli / type.cpu_milli);
      if (type.memory_mib > 0) copies = std::min(copies, view.memory_mib / type.memory_mib);
      sums.several += type.share * type.devices * static_cast<double>(copies);
    }
    whole = 0;
  }
  return sums;
}

double PackingValue::plain(const NodeView& view, const Sums& sums,
                           const RequestTable::Fit& fit) const {
  const double soft = soft_min(sums.packed, view, sums.cpu, sums.memory, 3);
  return 0.4 * sums.packed + 0.3 * soft + 0.15 * sums.several +
         0.1 * sums.packed * sums.packed / (node_devices * node_devices) +
         0.05 * sums.idle * fit.share - 0.05 * fit.fragment / 1000;
}

double PackingValue::scarce(const NodeView& view, const Sums& sums,
                            const RequestTable::Fit& fit) const {
  const auto soft = [&](double kappa, int halvings) {
    return soft_min(sums.packed, view, kappa * sums.cpu, kappa * sums.memory, halvings);
  };
  const double single =
      soft_min(sums.single, view, 1.3 * sums.cpu_single, 1.3 * sums.memory_single, 1);
  const double with_cpu =
      sums.idle * static_cast<double>(view.cpu_milli) / (node_devices * node_cpu_milli);
  return 0.06 * with_cpu + 0.05 * sums.several + 0.05 * sums.idle * fit.share + 0.1 * single +
         0.15 * sums.packed * fit.share +
         0.03 * sums.packed * sums.packed / (node_devices * node_devices) + 0.15 * soft(0.8, 2) +
         0.15 * soft(1.6, 2) - 0.12 * sums.partly / node_devices;
}

double PackingValue::value(const NodeView& view) const {
  if (view.slots.empty()) return 0;
  constexpr std::size_t slots_on_stack = 64;
  std::int32_t near[slots_on_stack];
  std::vector<std::int32_t> far;
  std::int32_t* free = near;
  if (view.slots.size() > slots_on_stack) {
    far.resize(view.slots.size());
    free = far.data();
  }
  for (std::size_t i = 0; i < view.slots.size(); ++i) {
    free[i] = effective_free(view.slots[i], kinds_[view.slots[i].kind]);
  }
  const Sums sums = sums_of(view, free);
  const RequestTable::Fit fit = table_.fit(view, free);
  return cpu_is_scarce_ ? scarce(view, sums, fit) : plain(view, sums, fit);
}

std::int64_t PackingValue::published(double cost) const {
  return static_cast<std::int64_t>(std::floor(cost * 100));
}

}  // namespace loam::schedule
