// DeviceArena: one lane of a device and the leases that share it: carries out on the shared memory
// what the TurnBook decides. Not pure: shared memory and futex wake-ups; the caller gives the time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "guard/slice_page.h"
#include "node/keeper/slice_page.hpp"
#include "schedule/turns.hpp"

namespace loam::node {

using schedule::Nanoseconds;
using schedule::never_ns;
using schedule::TurnBook;
using schedule::TurnChoice;
using schedule::TurnTerms;

class DeviceArena {
 public:
  // `lane`: LOAM_LANE_COMPUTE and so on.
  explicit DeviceArena(std::uint32_t lane) : lane_(lane) {}

  // `page` must stay alive until remove(); `device` is the entry's index on the page. A turn that
  // an earlier keeper granted is taken back first.
  void add(std::uint64_t lease, const MappedPage* page, std::uint32_t device, Nanoseconds now);
  void remove(std::uint64_t lease);
  bool empty() const { return members_.empty(); }

  // Does everything that is due; returns when to call again at the latest (never_ns: only when a
  // doorbell rings). Cost: the leases on the device times their processes.
  Nanoseconds step(Nanoseconds now);

 private:
  struct Member {
    const MappedPage* page = nullptr;
    std::uint32_t device = 0;
    std::uint32_t lane = 0;
    std::uint64_t busy_at_grant = 0;
    bool draining = false;  // a turn of an earlier keeper that has work in flight

    loam_turn& turn() const { return page->counters().device[device].turn[lane]; }
    loam_usage& usage() const { return page->counters().device[device].usage[lane]; }
    const loam_device_limits& limits() const { return page->limits().device[device]; }
  };
  struct Activity {
    std::uint64_t in_flight = 0;
    std::uint64_t wanting = 0;
    Nanoseconds idle_since_ns = 0;
  };

  static Activity activity_of(const Member& member);
  void refresh(Nanoseconds now);
  // Both return when to look again.
  Nanoseconds watch_holder(Nanoseconds now);
  Nanoseconds grant_next(Nanoseconds now);
  Nanoseconds drain(Nanoseconds now);
  void end_turn(Member& member, Nanoseconds idle_since, Nanoseconds now, bool died);
  void check_dead(const Member& member, Nanoseconds now);

  std::uint32_t lane_;
  TurnBook book_;
  std::map<std::uint64_t, Member> members_;
  // The holder's; what the guests' memory says of it is for the guests.
  Nanoseconds granted_ns_ = 0;
  Nanoseconds deadline_ns_ = never_ns;
  Nanoseconds checked_dead_ns_ = 0;
  bool holder_died_ = false;
};

}  // namespace loam::node
