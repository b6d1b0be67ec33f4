// DeviceArena: one lane of a device and the leases that share it: carries out on the shared memory
// what the TurnBook decides. Not pure: shared memory and futex wake-ups; the caller gives the time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "guard/slice_page.h"
#include "node/keeper/concurrent_book.hpp"
#include "node/keeper/slice_page.hpp"
#include "schedule/turns.hpp"

namespace loam::node {

using schedule::Nanoseconds;
using schedule::never_ns;
using schedule::TurnBook;
using schedule::TurnChoice;
using schedule::TurnTerms;

// What one lease does on a lane at present.
struct Standing {
  std::int32_t share_milli = 0;
  Nanoseconds busy_ns = 0;    // all device time it ever had
  bool wants = false;         // has work in flight, or waits
  bool kept_waiting = false;  // waits, and another lease has the device
};

// A lease whose work has not ended long after its turn.
struct HungLease {
  std::uint64_t lease = 0;
  Nanoseconds overdue_ns = 0;  // since its turn was over
  bool end = false;            // its task is to be ended
};

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

  // Leases that get no turns whatever they ask for, from the next step on.
  void hold_back(const std::set<std::uint64_t>& leases) { held_back_ = leases; }

  // Whether the lease is here by this entry of its page.
  bool serves(std::uint64_t lease, std::uint32_t device) const;
  std::uint32_t device_of(std::uint64_t lease) const { return members_.at(lease).device; }
  // As of the last step. Requires a lease of this lane.
  Standing standing(std::uint64_t lease) const;
  // Those that hung since the last call; each turn is told once.
  std::vector<HungLease> take_hung() { return std::exchange(hung_, {}); }

 private:
  struct Member {
    const MappedPage* page = nullptr;
    std::uint32_t device = 0;
    std::uint32_t lane = 0;
    std::uint64_t busy_at_grant = 0;
    bool works = false, waits = false;  // at the last step
    Nanoseconds told_busy_ns = 0;       // of what leases that overlap were given
    bool draining = false;              // a turn of an earlier keeper that has work in flight

    loam_turn& turn() const { return page->counters().device[device].turn[lane]; }
    loam_usage& usage() const { return page->counters().device[device].usage[lane]; }
    const loam_device_limits& limits() const { return page->limits().device[device]; }
  };
  struct Activity {
    std::uint64_t in_flight = 0;
    std::uint64_t wanting = 0;
    Nanoseconds idle_since_ns = 0;
  };

  // Where every lease allows it, all may work at the same time, as long as their accounts do.
  bool all_concurrent() const;
  void change_mode(Nanoseconds now);
  Nanoseconds step_concurrent(Nanoseconds now);
  void admit_concurrent(std::uint64_t lease, Member& member, Nanoseconds now);
  static void grant(Member& member, Nanoseconds until, Nanoseconds now);

  static Activity activity_of(const Member& member);
  void refresh(Nanoseconds now);
  Nanoseconds renew_at_ns(const Member& member) const;
  Nanoseconds watch_again_ns(const Member& member, Nanoseconds now) const;
  // Both return when to look again.
  Nanoseconds watch_holder(Nanoseconds now);
  Nanoseconds grant_next(Nanoseconds now);
  Nanoseconds drain(Nanoseconds now);
  // Device time of the holder's turn so far; also of what counts nothing itself.
  Nanoseconds used_in_turn(Member& member, Nanoseconds now, bool died);
  // Just before the turn's end: whether the holder goes on.
  bool renew_turn(Member& member, Nanoseconds now);
  void end_turn(Member& member, Nanoseconds idle_since, Nanoseconds now, bool died);
  void check_dead(const Member& member, Nanoseconds now);
  // Whether a living process of the holder has work in flight or waits. Cost: a system call a
  // process where somebody does.
  bool goes_on(const Member& member, Nanoseconds now);
  // The holder's turn is over and its work is not: whether that is long enough to be told. Returns
  // when it will be.
  Nanoseconds watch_hung(const Member& member, Nanoseconds now);

  std::uint32_t lane_;
  TurnBook book_;
  ConcurrentBook overlaps_;
  bool concurrent_ = false;
  std::map<std::uint64_t, Member> members_;
  std::set<std::uint64_t> held_back_;
  // The holder's; what the guests' memory says of it is for the guests.
  Nanoseconds granted_ns_ = 0;
  Nanoseconds deadline_ns_ = never_ns;
  Nanoseconds checked_dead_ns_ = 0;
  Nanoseconds over_since_ns_ = never_ns;  // when its turn was over with work in flight
  bool hung_told_ = false;
  bool holder_died_ = false;
  std::vector<HungLease> hung_;
};

}  // namespace loam::node
