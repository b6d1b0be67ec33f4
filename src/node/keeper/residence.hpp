// Residence: whose memory is on a device, where leases that may spill do not all fit. One that is
// short of room gets it by sending to the host what another holds that has no turn now: who asks
// for nothing first, then who had its turn longest ago. Who has just come back stays for a while in
// which those that are away are not served, so that memory does not go to and fro with every turn.
// Not pure: shared memory and futex wake-ups; the caller gives the time.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "node/keeper/slice_page.hpp"
#include "schedule/quantum.hpp"

namespace loam::node {

using schedule::Nanoseconds;

struct ResidenceTerms {
  // How long one that came back stays, of two with equal shares: long against copying its memory.
  Nanoseconds stay_ns = 2'000'000'000;
  // A parked lease that worked a little is parked again after so long without work.
  Nanoseconds park_again_ns = 30'000'000'000;
};

class Residence {
 public:
  explicit Residence(const ResidenceTerms& terms = {}) : terms_(terms) {}

  // `page` must stay alive until remove().
  void add(std::uint64_t lease, const MappedPage* page, std::uint32_t device, Nanoseconds now);
  void remove(std::uint64_t lease) { members_.erase(lease); }
  bool empty() const { return members_.empty(); }

  // The lease idles for long (or does not any more): what of its memory may spill goes to the host
  // now, and again whenever it was used and `park_again_ns` have passed without work.
  void park(std::uint64_t lease, bool parked);
  // Of its memory, what is on the device, as of the last step.
  std::uint64_t resident_bytes(std::uint64_t lease) const;

  // Does what is due; returns when to call again at the latest. Call before the device's arenas.
  // Cost: the leases on the device times their processes, where any of them may spill; else the
  // leases.
  Nanoseconds step(Nanoseconds now);
  // As of the last step: leases that are away and get no turns yet.
  const std::set<std::uint64_t>& held_back() const { return held_back_; }

 private:
  struct Member {
    const MappedPage* page = nullptr;
    std::uint32_t device = 0;
    bool spills = false, holds = false, active = false, is_short = false;  // at the last step
    std::uint64_t spilled_bytes = 0, resident_bytes = 0;
    bool parked = false;
    Nanoseconds came_ns = 0;  // back to the device
    Nanoseconds active_ns = 0;
    Nanoseconds had_turn_ns = 0;
    Nanoseconds asked_ns = 0;

    loam_device_counters& counters() const { return page->counters().device[device]; }
    const loam_device_limits& limits() const { return page->limits().device[device]; }
  };

  bool look(Member& member, Nanoseconds now);
  bool may_stay(const Member& member, const Member& other, Nanoseconds now) const;
  Nanoseconds stays_until(const Member& member, const Member& other) const;
  Nanoseconds hold_back(Nanoseconds now);
  Nanoseconds park_again(Nanoseconds now);
  static void ask_to_leave(Member& member, Nanoseconds now);
  void ask_one_to_leave(std::uint64_t for_whom, Nanoseconds now);

  ResidenceTerms terms_;
  std::map<std::uint64_t, Member> members_;
  std::set<std::uint64_t> held_back_;
};

}  // namespace loam::node
