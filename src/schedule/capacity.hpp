// Capacity: the index of what is free, kept up to date with every lease, so that finding a place
// costs the same on ten devices as on a hundred thousand. The policy seam (filter and score) is
// here: today best fit on milli-device and MiB. Pure.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "domain/device.hpp"
#include "schedule/demand.hpp"

namespace loam::schedule {

class Capacity {
 public:
  Capacity() = default;
  // Not copied: entries point into the kinds beside them.
  Capacity(const Capacity&) = delete;
  Capacity& operator=(const Capacity&) = delete;
  Capacity(Capacity&&) = default;
  Capacity& operator=(Capacity&&) = default;

  // Takes in a device's present figures: call after it is attached and after every change to it.
  // Amortised O(log devices).
  void refresh(const Device& device);

  // The placement that wastes least: of the device types that meet the demand, least worth taken
  // beyond what was asked; then the fullest device that still fits; ties by id.
  // O(types · 1000 · log devices) at worst, a handful of look-ups usually.
  std::optional<Placement> best_fit(const Demand& demand) const;

  // What the demand would take of each kind of attached, healthy device that could hold it when
  // empty, drained ones included. Empty: it fits nowhere, so it is refused instead of waiting for
  // ever. The pointers live until the next refresh(). O(kinds).
  struct Fit {
    Placement needs;  // device: only where the demand names one
    const DeviceFacts* facts = nullptr;
  };
  std::vector<Fit> fits_when_empty(const Demand& demand) const;

  // Whether some device that takes leases now (healthy, not drained) could hold the demand if it
  // were empty. O(kinds).
  bool could_hold(const Demand& demand) const;

 private:
  // Devices of one kind (type, memory, worth) by how full they are; only placeable ones.
  using Level = std::tuple<std::int64_t, std::int64_t, std::uint64_t>;  // free milli, free MiB, id
  struct Kind {
    DeviceFacts facts;  // of the first device of this kind; uuid means nothing here
    std::set<Level> levels;
    std::int64_t healthy = 0;
  };
  using KindKey = std::tuple<std::string, std::int64_t, std::array<std::int64_t, 4>>;
  struct Entry {
    std::shared_ptr<const DeviceFacts> facts;  // those that `kind` was found by
    Kind* kind = nullptr;                      // in kinds_, whose elements stay where they are
    Level level;
    bool placeable = false;
    bool healthy = false;
    bool known = false;
  };

  static KindKey key_of(const DeviceFacts& facts);
  void forget(Entry& entry);
  std::optional<Placement> best_of_kind(const Kind& kind, const Demand& demand) const;

  std::map<KindKey, Kind> kinds_;
  std::vector<Entry> entries_;  // by device id - 1
};

}  // namespace loam::schedule
