// PoolRoom: the pool's index as the scheduler's Room: a trial on top of the pool, so that a copy
// costs what was changed, not what there is. Pure; one thread, as the pool.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/gang.hpp"
#include "schedule/room.hpp"
#include "schedule/trial.hpp"

namespace loam::schedule {

// The pool's device types, each a kind, and which device is of which. Whoever attaches devices
// keeps it; 64 types at most, further ones share the last kind.
class PoolKinds {
 public:
  void note(DeviceId device, const std::string& type);

  const std::vector<std::string>& types() const { return types_; }
  // Requires a device that was noted.
  std::size_t kind_of(DeviceId device) const { return kind_of_device_.at(device.value - 1); }

 private:
  std::vector<std::string> types_;
  std::map<std::string, std::size_t, std::less<>> kind_of_type_;
  std::vector<std::size_t> kind_of_device_;
};

class PoolRoom final : public Room {
 public:
  // Both must outlive it and every copy, and must not change while one is used.
  PoolRoom(const Pool& pool, const PoolKinds& kinds) : kinds_(&kinds), trial_(pool) {}

  std::unique_ptr<Room> copy() const override;
  // One member as Trial::find, several as find_gang.
  std::optional<Place> find(const Ask& ask, Kinds barred) const override;
  // One member on one node: only the nodes of `freed` are looked at.
  std::optional<Place> find_after(const Ask& ask, Kinds barred, const Place& freed) const override;
  Kinds kinds(const Ask& ask) const override;
  Kinds kinds_of(const Place& place) const override;
  bool holds(const Place& place) const override;
  // A device may be taken twice over; then nothing fits it until that much is given back.
  void take(const Place& place) override;
  void give_back(const Place& place) override;

 private:
  using Change = std::pair<std::int64_t, std::int64_t>;  // milli and MiB given back in the trial

  // The demand on the kinds that are not barred; nothing where all are.
  std::optional<Demand> allowed(const Ask& ask, Kinds barred) const;
  void book(const Place& place, std::int64_t sign);

  const PoolKinds* kinds_;
  Trial trial_;
  std::map<DeviceId, Change> changes_;
  std::map<NodeId, Change> host_changes_;  // milli-CPU and MiB
};

}  // namespace loam::schedule
