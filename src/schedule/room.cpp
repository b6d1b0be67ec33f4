#include "schedule/room.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

auto key_of(const Ask& ask) {
  const Demand& d = ask.demand;
  return std::make_tuple(ask.count, d.ce, d.share, d.memory, d.device,
                         std::string_view(d.device_type), d.work_class, d.devices, d.cpu,
                         d.host_memory, std::cref(d.device_types), std::string_view(d.region),
                         std::cref(d.labels), d.exclusive, d.oversubscribable);
}

}  // namespace

bool operator<(const Ask& a, const Ask& b) {
  return key_of(a) < key_of(b);
}

bool touch(const Place& a, const Place& b) {
  for (const UnitPlacement& one : a) {
    for (const Placement& slice : one.slices) {
      for (const UnitPlacement& other : b) {
        if (std::any_of(other.slices.begin(), other.slices.end(),
                        [&](const Placement& part) { return part.device == slice.device; })) {
          return true;
        }
      }
    }
  }
  return false;
}

bool near(const Place& a, const Place& b) {
  const auto on = [](const Place& place, auto&& each) {
    for (const UnitPlacement& unit : place) {
      for (const HostShare& host : unit.hosts) each(host.node);
    }
  };
  bool found = false;
  on(a, [&](NodeId one) {
    if (!found) on(b, [&](NodeId other) { found = found || one == other; });
  });
  return found;
}

Place part_beside(const Place& place, const Place& other) {
  std::set<DeviceId> devices;
  std::set<NodeId> hosts;
  for (const UnitPlacement& unit : other) {
    for (const Placement& slice : unit.slices) devices.insert(slice.device);
    for (const HostShare& host : unit.hosts) hosts.insert(host.node);
  }
  Place part = place;
  for (UnitPlacement& unit : part) {
    std::erase_if(unit.slices,
                  [&](const Placement& slice) { return devices.count(slice.device) == 0; });
    std::erase_if(unit.hosts, [&](const HostShare& host) { return hosts.count(host.node) == 0; });
  }
  return part;
}

CountingRoom::CountingRoom(std::int64_t devices) : CountingRoom(std::vector<Type>{{"", devices}}) {}

CountingRoom::CountingRoom(std::vector<Type> types) : types_(std::move(types)) {
  LOAM_ASSERT(types_.size() <= 64);
  levels_.resize(types_.size());
  for (std::size_t type = 0; type < types_.size(); ++type) {
    LOAM_ASSERT(types_[type].devices >= 0);
    for (std::int64_t i = 0; i < types_[type].devices; ++i) {
      type_of_.push_back(static_cast<std::uint32_t>(type));
      free_.push_back(whole_device.value);
      levels_[type].insert({whole_device.value, free_.size()});
    }
  }
}

std::unique_ptr<Room> CountingRoom::copy() const {
  return std::make_unique<CountingRoom>(*this);
}

Placement CountingRoom::needs_of(const Demand& demand, const Type& type) const {
  DeviceFacts facts;
  facts.memory = type.memory;
  facts.factors = {type.worth, type.worth, type.worth, type.worth};
  return needs_on(demand, facts);
}

bool CountingRoom::place_on(const Ask& ask, std::size_t type, Place& place) const {
  place.assign(1, {});
  if (ask.demand.devices == 0) {
    place.resize(static_cast<std::size_t>(ask.count));
    return true;
  }
  const Placement needs = needs_of(ask.demand, types_[type]);
  const auto slices = static_cast<std::size_t>(ask.demand.devices);
  const std::set<Level>& levels = levels_[type];
  for (auto at = levels.lower_bound({needs.share.value, 0}); at != levels.end(); ++at) {
    if (ask.demand.device.valid() && ask.demand.device.value != at->second) continue;
    for (std::int64_t left = at->first; left >= needs.share.value; left -= needs.share.value) {
      if (place.back().slices.size() == slices) place.emplace_back();
      place.back().slices.push_back(needs);
      place.back().slices.back().device = DeviceId{at->second};
      const bool whole = place.back().slices.size() == slices;
      if (whole && static_cast<std::int64_t>(place.size()) == ask.count) return true;
    }
  }
  return false;
}

std::optional<Place> CountingRoom::find(const Ask& ask, Kinds barred) const {
  LOAM_ASSERT(ask.count > 0);
  Place place;
  for (std::size_t type = 0; type < types_.size(); ++type) {
    if ((barred >> type & 1) != 0 || !admits(ask.demand, types_[type].name)) continue;
    if (place_on(ask, type, place)) return place;
  }
  return std::nullopt;
}

Kinds CountingRoom::kinds(const Ask& ask) const {
  Kinds kinds = 0;
  for (std::size_t type = 0; type < types_.size(); ++type) {
    if (types_[type].devices == 0 || !admits(ask.demand, types_[type].name)) continue;
    const Placement needs = needs_of(ask.demand, types_[type]);
    if (needs.share <= whole_device && needs.memory <= types_[type].memory)
      kinds |= Kinds{1} << type;
  }
  return kinds;
}

Kinds CountingRoom::kinds_of(const Place& place) const {
  Kinds kinds = 0;
  for (const UnitPlacement& unit : place) {
    for (const Placement& slice : unit.slices)
      kinds |= Kinds{1} << type_of_[slice.device.value - 1];
  }
  return kinds;
}

bool CountingRoom::holds(const Place& place) const {
  std::map<DeviceId, std::int64_t> wanted;
  for (const UnitPlacement& unit : place) {
    for (const Placement& slice : unit.slices) wanted[slice.device] += slice.share.value;
  }
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const auto& one) { return free_[one.first.value - 1] >= one.second; });
}

void CountingRoom::set_free(std::uint64_t device, std::int64_t milli) {
  std::int64_t& free = free_[device - 1];
  std::set<Level>& levels = levels_[type_of_[device - 1]];
  auto level = levels.extract({free, device});
  free = milli;
  level.value() = {free, device};
  levels.insert(std::move(level));
}

void CountingRoom::take(const Place& place) {
  for (const UnitPlacement& unit : place) {
    for (const Placement& slice : unit.slices) {
      const std::uint64_t device = slice.device.value;
      LOAM_ASSERT(device > 0 && device <= free_.size());
      set_free(device, std::max<std::int64_t>(0, free_[device - 1] - slice.share.value));
    }
  }
}

void CountingRoom::give_back(const Place& place) {
  for (const UnitPlacement& unit : place) {
    for (const Placement& slice : unit.slices) {
      const std::uint64_t device = slice.device.value;
      LOAM_ASSERT(device > 0 && device <= free_.size());
      set_free(device, std::min(whole_device.value, free_[device - 1] + slice.share.value));
    }
  }
}

std::int64_t CountingRoom::free_milli() const {
  std::int64_t sum = 0;
  for (const std::int64_t milli : free_) sum += milli;
  return sum;
}

}  // namespace loam::schedule
