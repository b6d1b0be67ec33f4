#include "schedule/pool_room.hpp"

#include <algorithm>
#include <set>

namespace loam::schedule {
namespace {

constexpr std::size_t kinds_max = 64;  // bits of Kinds

}  // namespace

void PoolKinds::note(DeviceId device, const std::string& type) {
  const auto known = kind_of_type_.find(type);
  std::size_t kind = known == kind_of_type_.end() ? types_.size() : known->second;
  if (known == kind_of_type_.end()) {
    types_.push_back(type);
    kind_of_type_[type] = kind = std::min(kind, kinds_max - 1);
  }
  if (kind_of_device_.size() < device.value) kind_of_device_.resize(device.value);
  kind_of_device_[device.value - 1] = kind;
}

std::unique_ptr<Room> PoolRoom::copy() const {
  return std::make_unique<PoolRoom>(*this);
}

std::optional<Demand> PoolRoom::allowed(const Ask& ask, Kinds barred) const {
  Demand demand = ask.demand;
  if (barred == 0 || demand.devices == 0) return demand;
  if (demand.device.valid() && (barred >> kinds_->kind_of(demand.device) & 1) != 0)
    return std::nullopt;
  std::vector<std::string> types;
  for (std::size_t i = 0; i < kinds_->types().size(); ++i) {
    const std::string& type = kinds_->types()[i];
    if ((barred >> std::min(i, kinds_max - 1) & 1) == 0 && admits(ask.demand, type))
      types.push_back(type);
  }
  if (types.empty()) return std::nullopt;
  demand.device_types = std::move(types);
  return demand;
}

std::optional<Place> PoolRoom::find_after(const Ask& ask, Kinds barred, const Place& freed) const {
  if (ask.count > 1 || trial_.pool().may_aggregate(ask.demand)) return find(ask, barred);
  const auto demand = allowed(ask, barred);
  if (!demand) return std::nullopt;
  std::set<NodeId> nodes;
  for (const UnitPlacement& unit : freed) {
    for (const Placement& slice : unit.slices) nodes.insert(slice.node);
    for (const HostShare& host : unit.hosts) nodes.insert(host.node);
  }
  for (const NodeId node : nodes) {
    if (auto unit = trial_.find_on(node, *demand)) return Place{std::move(*unit)};
  }
  return std::nullopt;
}

std::optional<Place> PoolRoom::find(const Ask& ask, Kinds barred) const {
  const auto demand = allowed(ask, barred);
  if (!demand) return std::nullopt;
  if (ask.count == 1) {
    auto unit = trial_.find(*demand);
    if (!unit) return std::nullopt;
    return Place{std::move(*unit)};
  }
  const std::vector<Demand> members(static_cast<std::size_t>(ask.count), *demand);
  auto gang = find_gang(trial_, members);
  if (!gang) return std::nullopt;
  return std::move(gang->members);
}

Kinds PoolRoom::kinds(const Ask& ask) const {
  if (ask.demand.devices == 0) return ~Kinds{0};  // any host
  Kinds found = 0;
  // What is drained may come back, but nobody is to wait behind those who want it.
  if (!trial_.pool().could_hold(ask.demand)) return found;
  for (const Pool::Fit& fit : trial_.pool().fits_when_empty(ask.demand)) {
    const auto type = std::find(kinds_->types().begin(), kinds_->types().end(), fit.facts->type);
    const auto at = static_cast<std::size_t>(type - kinds_->types().begin());
    if (type != kinds_->types().end()) found |= Kinds{1} << std::min(at, kinds_max - 1);
  }
  return found;
}

Kinds PoolRoom::kinds_of(const Place& place) const {
  Kinds found = 0;
  for (const UnitPlacement& unit : place) {
    if (unit.slices.empty()) return ~Kinds{0};
    for (const Placement& slice : unit.slices) found |= Kinds{1} << kinds_->kind_of(slice.device);
  }
  return found;
}

bool PoolRoom::holds(const Place& place) const {
  std::map<DeviceId, Change> wanted;
  std::map<NodeId, Change> wanted_of_hosts;
  for (const UnitPlacement& unit : place) {
    for (const Placement& slice : unit.slices) {
      wanted[slice.device].first += slice.promised().value;
      wanted[slice.device].second += slice.memory_promised().value;
    }
    for (const HostShare& host : unit.hosts) {
      wanted_of_hosts[host.node].first += host.cpu.value;
      wanted_of_hosts[host.node].second += host.memory.value;
    }
  }
  const Pool& pool = trial_.pool();
  const auto enough = [](const auto& changes, const auto& id, std::int64_t first,
                         std::int64_t second, const Change& want) {
    const auto changed = changes.find(id);
    const Change change = changed == changes.end() ? Change{} : changed->second;
    return first + change.first >= want.first && second + change.second >= want.second;
  };
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const auto& one) {
                       return enough(changes_, one.first, pool.free_of(one.first).value,
                                     pool.memory_free_of(one.first).value, one.second);
                     }) &&
         std::all_of(wanted_of_hosts.begin(), wanted_of_hosts.end(), [&](const auto& one) {
           const HostShare free = pool.free_of(one.first);
           return enough(host_changes_, one.first, free.cpu.value, free.memory.value, one.second);
         });
}

void PoolRoom::book(const Place& place, std::int64_t sign) {
  for (const UnitPlacement& unit : place) {
    for (const Placement& slice : unit.slices) {
      Change& change = changes_[slice.device];
      change.first -= sign * slice.promised().value;
      change.second -= sign * slice.memory_promised().value;
    }
    for (const HostShare& host : unit.hosts) {
      Change& change = host_changes_[host.node];
      change.first -= sign * host.cpu.value;
      change.second -= sign * host.memory.value;
    }
    if (sign > 0) {
      trial_.take(unit);
    } else {
      trial_.give_back(unit);
    }
  }
}

void PoolRoom::take(const Place& place) {
  book(place, 1);
}

void PoolRoom::give_back(const Place& place) {
  book(place, -1);
}

}  // namespace loam::schedule
