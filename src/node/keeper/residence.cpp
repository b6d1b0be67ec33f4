#include "node/keeper/residence.hpp"

#include <algorithm>
#include <tuple>

#include "node/keeper/page_words.hpp"

namespace loam::node {

namespace {

// Who was asked is asked again after so long, if it is still needed: its work may not have ended.
constexpr Nanoseconds ask_again_ns = 100'000'000;
// Who did nothing for so long is in nobody's way.
constexpr Nanoseconds inactive_after_ns = 100'000'000;

}  // namespace

void Residence::add(std::uint64_t lease, const MappedPage* page, std::uint32_t device,
                    Nanoseconds now) {
  Member member;
  member.page = page;
  member.device = device;
  member.active_ns = now;
  // One that was there before the keeper need not stay on.
  member.came_ns = now - 3'600'000'000'000;
  member.asked_ns = member.came_ns;
  members_[lease] = member;
}

// Brings up to date what is known of the member; true if it is short of room.
bool Residence::look(Member& member, Nanoseconds now) {
  const loam_slice_counters& page = member.page->counters();
  std::uint64_t spilled = 0, busy = 0;
  for (std::uint32_t slot = 0; slot < std::min(load(page.slots_used), LOAM_SLICE_SLOTS_MAX);
       ++slot) {
    const loam_slot_device& process = page.slot[slot].device[member.device];
    spilled += load(process.spilled_bytes);
    for (const loam_slot_lane& lane : process.lane)
      busy += load(lane.in_flight) + load(lane.wanting);
  }
  bool holds = false;
  for (const loam_turn& turn : member.counters().turn)
    holds = holds || (load(turn.state) & LOAM_TURN_MASK) != LOAM_TURN_NONE;
  const std::uint64_t used = load(member.counters().memory.used);
  const std::uint64_t resident = used > spilled ? used - spilled : 0;
  // It came back, or got the room that it was short of.
  if (resident > member.resident_bytes && spilled == 0 &&
      (member.spilled_bytes > 0 || member.is_short))
    member.came_ns = now;
  // Room has come: those who wait need not wait for their time to ask again.
  const bool left = spilled > member.spilled_bytes;
  member.spilled_bytes = spilled;
  member.resident_bytes = resident;
  member.holds = holds;
  if (holds) member.had_turn_ns = now;
  if (busy > 0 || holds) member.active_ns = now;
  member.active = now - member.active_ns < inactive_after_ns;
  if (left)
    for (auto& [lease, other] : members_) count_up_and_wake(other.counters().memory.answers);
  const std::uint64_t lacks = __atomic_exchange_n(&member.counters().memory.short_bytes,
                                                  std::uint64_t{0}, __ATOMIC_SEQ_CST);
  if (lacks > 0 || spilled > 0 || holds) member.is_short = lacks > 0;
  return lacks > 0;
}

// Its part of twice the stay, by the two's shares of the device.
Nanoseconds Residence::stays_until(const Member& member, const Member& other) const {
  const auto weight = [](const Member& one) {
    const std::uint32_t share = std::min(load(one.limits().share_milli), 1000u);
    return static_cast<std::int64_t>(std::max(share, 10u));
  };
  const std::int64_t mine = weight(member), both = mine + weight(other);
  return member.came_ns + terms_.stay_ns * 2 * mine / both;
}

bool Residence::may_stay(const Member& member, const Member& other, Nanoseconds now) const {
  return member.spills && member.active && member.resident_bytes > 0 &&
         now < stays_until(member, other);
}

// Who is away waits until the others' stay is over, or they idle.
Nanoseconds Residence::hold_back(Nanoseconds now) {
  held_back_.clear();
  Nanoseconds next = schedule::never_ns;
  for (const auto& [lease, member] : members_) {
    if (!member.spills || member.spilled_bytes == 0 || member.holds) continue;
    for (const auto& [other_lease, other] : members_) {
      if (other_lease == lease || other.spilled_bytes > 0 || !may_stay(other, member, now))
        continue;
      held_back_.insert(lease);
      next = std::min({next, stays_until(other, member), now + inactive_after_ns});
    }
  }
  return next;
}

void Residence::ask_to_leave(Member& member, Nanoseconds now) {
  member.asked_ns = now;
  count_up_and_wake(member.counters().leave);
}

void Residence::park(std::uint64_t lease, bool parked) {
  const auto entry = members_.find(lease);
  if (entry == members_.end()) return;
  Member& member = entry->second;
  member.parked = parked;
  if (parked && member.spills && !member.holds && member.resident_bytes > 0)
    ask_to_leave(member, member.active_ns);
}

std::uint64_t Residence::resident_bytes(std::uint64_t lease) const {
  const auto entry = members_.find(lease);
  return entry == members_.end() ? 0 : entry->second.resident_bytes;
}

// Parked leases that came back for some work and are done with it.
Nanoseconds Residence::park_again(Nanoseconds now) {
  Nanoseconds next = schedule::never_ns;
  for (auto& [lease, member] : members_) {
    // Asked since it last did anything: what is still there cannot leave.
    if (!member.parked || !member.spills || member.asked_ns >= member.active_ns) continue;
    const Nanoseconds due = member.active_ns + terms_.park_again_ns;
    if (now < due || member.holds)
      next = std::min(next, std::max(due, now + ask_again_ns));
    else
      ask_to_leave(member, now);
  }
  return next;
}

void Residence::ask_one_to_leave(std::uint64_t for_whom, Nanoseconds now) {
  Member* chosen = nullptr;
  const auto rank = [](const Member& member) {
    const bool last = !loam_limits_have(&member.limits(), LOAM_LIMIT_LEAVES_FIRST);
    return std::tuple{last, member.active, member.had_turn_ns};
  };
  for (auto& [lease, member] : members_) {
    if (lease == for_whom || !member.spills || member.holds || member.resident_bytes == 0) continue;
    if (now - member.asked_ns < ask_again_ns) continue;
    if (may_stay(member, members_.at(for_whom), now) && !members_.at(for_whom).holds) continue;
    if (!chosen || rank(member) < rank(*chosen)) chosen = &member;
  }
  if (chosen) ask_to_leave(*chosen, now);
}

Nanoseconds Residence::step(Nanoseconds now) {
  bool any = false;
  for (auto& [lease, member] : members_) {
    member.spills = loam_limits_have(&member.limits(), LOAM_LIMIT_SPILLS);
    any = any || member.spills;
  }
  if (!any) {
    held_back_.clear();
    return schedule::never_ns;
  }
  std::set<std::uint64_t> short_of_room;
  for (auto& [lease, member] : members_)
    if (look(member, now)) short_of_room.insert(lease);
  const Nanoseconds next = hold_back(now);
  for (const std::uint64_t lease : short_of_room) ask_one_to_leave(lease, now);
  return std::min(next, park_again(now));
}

}  // namespace loam::node
