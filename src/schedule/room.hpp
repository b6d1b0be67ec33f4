// Room: what the scheduler needs to know of a pool's free capacity: where a request would go, and
// what would be if others came or left. CountingRoom is the simplest one: devices that differ by
// type alone. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/demand.hpp"

namespace loam::schedule {

// `count` logical units alike (the members of a gang), placed together or not at all.
struct Ask {
  Demand demand;
  std::int64_t count = 1;
};
BOOST_DESCRIBE_STRUCT(Ask, (), (demand, count))
// A strict order, so that equal requests can be grouped.
bool operator<(const Ask& a, const Ask& b);

using Place = std::vector<UnitPlacement>;  // one a member

// Whether they have a device in common.
bool touch(const Place& a, const Place& b);

// Whether they take of a host in common.
bool near(const Place& a, const Place& b);

// What of a place is on devices and hosts that the other one takes of, too.
Place part_beside(const Place& place, const Place& other);

// A set of kinds of device, one bit a kind; the room numbers them.
using Kinds = std::uint64_t;

// A scratch copy of what is free: changing it changes no pool.
class Room {
 public:
  virtual ~Room() = default;

  virtual std::unique_ptr<Room> copy() const = 0;
  // A place that is free, on no kind of `barred`; nothing where there is none.
  virtual std::optional<Place> find(const Ask& ask, Kinds barred) const = 0;
  // The same where it did not fit before `freed` was given back: looks there first, and nowhere
  // else where that is sure to be enough.
  virtual std::optional<Place> find_after(const Ask& ask, Kinds barred, const Place& freed) const {
    static_cast<void>(freed);
    return find(ask, barred);
  }
  // The kinds that could hold a member of it when empty.
  virtual Kinds kinds(const Ask& ask) const = 0;
  // The kinds of the devices it lies on.
  virtual Kinds kinds_of(const Place& place) const = 0;
  // Whether all of it is free.
  virtual bool holds(const Place& place) const = 0;
  // Takes it, also where less is free: then nothing fits there.
  virtual void take(const Place& place) = 0;
  virtual void give_back(const Place& place) = 0;
};

class CountingRoom final : public Room {
 public:
  struct Type {
    std::string name;
    std::int64_t devices = 0;
    Mebibytes memory{81'920};
    MilliCe worth{100'000};  // of one device, in any work class
  };

  // `devices` of one nameless type.
  explicit CountingRoom(std::int64_t devices);
  // Device ids run from 1 through the types in order. Requires at most 64 types.
  explicit CountingRoom(std::vector<Type> types);

  std::unique_ptr<Room> copy() const override;
  // The fullest devices that fit, types in order; ties by id. O(types + count · log devices).
  std::optional<Place> find(const Ask& ask, Kinds barred) const override;
  Kinds kinds(const Ask& ask) const override;
  Kinds kinds_of(const Place& place) const override;
  bool holds(const Place& place) const override;
  void take(const Place& place) override;
  void give_back(const Place& place) override;

  // Milli-device that is free in all.
  std::int64_t free_milli() const;

 private:
  using Level = std::pair<std::int64_t, std::uint64_t>;  // free milli, device id

  Placement needs_of(const Demand& demand, const Type& type) const;
  bool place_on(const Ask& ask, std::size_t type, Place& place) const;
  void set_free(std::uint64_t device, std::int64_t milli);

  std::vector<Type> types_;
  std::vector<std::uint32_t> type_of_;   // by device id - 1
  std::vector<std::int64_t> free_;       // milli, by device id - 1
  std::vector<std::set<Level>> levels_;  // by type
};

}  // namespace loam::schedule
