#include "schedule/room.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

auto key_of(const Ask& ask) {
  const Demand& d = ask.demand;
  return std::make_tuple(ask.count, d.ce, d.share, d.memory, d.device,
                         std::string_view(d.device_type), d.work_class);
}

}  // namespace

bool operator<(const Ask& a, const Ask& b) {
  return key_of(a) < key_of(b);
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

bool CountingRoom::admits(const Demand& demand, const Type& type) const {
  return demand.device_type.empty() || demand.device_type == type.name;
}

Placement CountingRoom::needs_of(const Demand& demand, const Type& type) const {
  DeviceFacts facts;
  facts.memory = type.memory;
  facts.factors = {type.worth, type.worth, type.worth, type.worth};
  return needs_on(demand, facts);
}

bool CountingRoom::place_on(const Ask& ask, std::size_t type, Place& place) const {
  const Placement needs = needs_of(ask.demand, types_[type]);
  const std::set<Level>& levels = levels_[type];
  auto at = levels.lower_bound({needs.share.value, 0});
  place.clear();
  for (; at != levels.end(); ++at) {
    if (ask.demand.device.valid() && ask.demand.device.value != at->second) continue;
    for (std::int64_t left = at->first; left >= needs.share.value; left -= needs.share.value) {
      Placement slice = needs;
      slice.device = DeviceId{at->second};
      place.push_back(slice);
      if (static_cast<std::int64_t>(place.size()) == ask.count) return true;
    }
  }
  return false;
}

std::optional<Place> CountingRoom::find(const Ask& ask, Kinds barred) const {
  LOAM_ASSERT(ask.count > 0);
  Place place;
  for (std::size_t type = 0; type < types_.size(); ++type) {
    if ((barred >> type & 1) != 0 || !admits(ask.demand, types_[type])) continue;
    if (place_on(ask, type, place)) return place;
  }
  return std::nullopt;
}

Kinds CountingRoom::kinds(const Ask& ask) const {
  Kinds kinds = 0;
  for (std::size_t type = 0; type < types_.size(); ++type) {
    if (types_[type].devices == 0 || !admits(ask.demand, types_[type])) continue;
    const Placement needs = needs_of(ask.demand, types_[type]);
    if (needs.share <= whole_device && needs.memory <= types_[type].memory)
      kinds |= Kinds{1} << type;
  }
  return kinds;
}

Kinds CountingRoom::kinds_of(const Place& place) const {
  Kinds kinds = 0;
  for (const Placement& slice : place) kinds |= Kinds{1} << type_of_[slice.device.value - 1];
  return kinds;
}

bool CountingRoom::holds(const Place& place) const {
  std::map<DeviceId, std::int64_t> wanted;
  for (const Placement& slice : place) wanted[slice.device] += slice.share.value;
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
  for (const Placement& slice : place) {
    const std::uint64_t device = slice.device.value;
    LOAM_ASSERT(device > 0 && device <= free_.size());
    set_free(device, std::max<std::int64_t>(0, free_[device - 1] - slice.share.value));
  }
}

void CountingRoom::give_back(const Place& place) {
  for (const Placement& slice : place) {
    const std::uint64_t device = slice.device.value;
    LOAM_ASSERT(device > 0 && device <= free_.size());
    set_free(device, std::min(whole_device.value, free_[device - 1] + slice.share.value));
  }
}

std::int64_t CountingRoom::free_milli() const {
  std::int64_t sum = 0;
  for (const std::int64_t milli : free_) sum += milli;
  return sum;
}

}  // namespace loam::schedule
