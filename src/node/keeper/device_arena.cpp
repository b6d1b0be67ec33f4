#include "node/keeper/device_arena.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "node/keeper/page_words.hpp"

namespace loam::node {

namespace {

// A woken guest may need this long to be scheduled on a busy machine before it uses its turn.
constexpr Nanoseconds first_use_ns = 4'000'000;
// How often a holder that is late is tested for being dead. A test is one system call a process.
constexpr Nanoseconds dead_check_ns = 20'000'000;
// A holder that idles while nobody else asks keeps its turn this long: a short pause costs it no
// question, and a long one saves up no credit, as a turn that is held does.
constexpr Nanoseconds idle_hold_ns = 50'000'000;
// While somebody else waits, a holder with work in flight is looked at four times a turn, at most
// this often, to find it idle before its turn is over.
constexpr Nanoseconds idle_check_min_ns = 1'000'000;

// A turn is renewed, where the next one is the holder's too, in its second half: a program that
// sees its turn's end come puts less and less on the device, and that time would be lost.
Nanoseconds renew_lead_ns(Nanoseconds quantum_ns) {
  constexpr Nanoseconds wake_up_ns = 300'000;  // what the keeper needs at least
  return std::max(quantum_ns / 2, wake_up_ns);
}

// Leases that overlap are looked at this often: so finely is the device's time divided.
constexpr Nanoseconds overlap_look_ns = 1'000'000;

// The next state word: the grant counter and the phase in the low bits.
std::uint32_t with_phase(std::uint32_t state, std::uint32_t phase) {
  return (state & ~std::uint32_t{LOAM_TURN_MASK}) | phase;
}

std::uint32_t slots_of(const loam_slice_counters& counters) {
  return std::min(load(counters.slots_used), LOAM_SLICE_SLOTS_MAX);
}

// Copies have a share of their own; everything else holds for every lane.
TurnTerms terms_of(const loam_device_limits& limits, std::uint32_t lane) {
  TurnTerms terms;
  const std::uint32_t share =
      load(lane == LOAM_LANE_COMPUTE ? limits.share_milli : limits.copy_share_milli);
  terms.share_milli = static_cast<std::int32_t>(std::min(share, 1000u));
  terms.weight =
      static_cast<std::int32_t>(std::clamp(load(limits.weight), std::uint32_t{1}, 1'000'000u));
  terms.cap_milli = static_cast<std::int32_t>(
      std::clamp(load(limits.cap_milli), std::uint32_t{1}, std::uint32_t{1000}));
  terms.strict = load(limits.mode) != LOAM_SLICE_BURSTABLE;
  terms.quantum_ns = static_cast<Nanoseconds>(
      std::clamp(load(limits.quantum_ns), std::uint64_t{100'000}, std::uint64_t{1'000'000'000}));
  terms.kind = load(limits.turns) == LOAM_TURNS_DYNAMIC ? schedule::TurnKind::dynamic
                                                        : schedule::TurnKind::fixed;
  terms.linger_ns =
      static_cast<Nanoseconds>(std::min(load(limits.linger_ns), std::uint64_t{1'000'000'000}));
  terms.service = load(limits.service) != 0;
  return terms;
}

}  // namespace

void DeviceArena::add(std::uint64_t lease, const MappedPage* page, std::uint32_t device,
                      Nanoseconds now) {
  Member member;
  member.page = page;
  member.device = device;
  member.lane = lane_;
  loam_turn& turn = member.turn();
  const std::uint32_t state = load(turn.state);
  if ((state & LOAM_TURN_MASK) != LOAM_TURN_NONE) {
    store(turn.state, with_phase(state, LOAM_TURN_REVOKED));
    member.draining = true;
  }
  book_.set_terms(lease, terms_of(member.limits(), lane_), now);
  members_[lease] = member;
}

void DeviceArena::remove(std::uint64_t lease) {
  members_.erase(lease);
  book_.remove(lease);
  overlaps_.remove(lease);
}

DeviceArena::Activity DeviceArena::activity_of(const Member& member) {
  const loam_slice_counters& counters = member.page->counters();
  Activity activity;
  for (std::uint32_t slot = 0; slot < slots_of(counters); ++slot) {
    const loam_slot_lane& process = counters.slot[slot].device[member.device].lane[member.lane];
    activity.in_flight += load(process.in_flight);
    activity.wanting += load(process.wanting);
    activity.idle_since_ns =
        std::max(activity.idle_since_ns, static_cast<Nanoseconds>(load(process.idle_since_ns)));
  }
  return activity;
}

void DeviceArena::refresh(Nanoseconds now) {
  for (auto& [lease, member] : members_) {
    book_.set_terms(lease, terms_of(member.limits(), lane_), now);
    const Activity activity = activity_of(member);
    member.works = activity.in_flight > 0;
    member.waits = activity.wanting > 0;
    book_.set_waiting(lease, member.waits && !held_back_.contains(lease), now);
  }
}

void DeviceArena::check_dead(const Member& member, Nanoseconds now) {
  checked_dead_ns_ = now;
  const std::uint64_t in_flight = activity_of(member).in_flight;
  // Who died while it only waited left nothing on the device that is not counted.
  if (member.page->reclaim_dead() && activity_of(member).in_flight < in_flight) holder_died_ = true;
}

// What the page shows of a process that died is not asked for by anybody: a turn that is to be
// given on is given to the living.
bool DeviceArena::goes_on(const Member& member, Nanoseconds now) {
  const auto asks = [&] {
    const Activity activity = activity_of(member);
    return activity.in_flight > 0 || activity.wanting > 0;
  };
  if (!asks()) return false;
  check_dead(member, now);
  return asks();
}

Nanoseconds DeviceArena::used_in_turn(Member& member, Nanoseconds now, bool died) {
  loam_usage& usage = member.usage();
  const Nanoseconds wall = now - granted_ns_;
  const auto counted = static_cast<Nanoseconds>(load(usage.busy_ns) - member.busy_at_grant);
  Nanoseconds used = std::clamp<Nanoseconds>(counted, 0, wall);
  const bool uncounted = loam_limits_have(&member.limits(), LOAM_LIMIT_CONCURRENT);
  if (died || (uncounted && lane_ == LOAM_LANE_COMPUTE)) {
    // What the dead had not yet counted; and leases that may overlap count nothing themselves.
    __atomic_add_fetch(&usage.busy_ns, static_cast<std::uint64_t>(wall - used), __ATOMIC_SEQ_CST);
    used = wall;
  }
  return used;
}

bool DeviceArena::renew_turn(Member& member, Nanoseconds now) {
  loam_turn& turn = member.turn();
  const Nanoseconds used = used_in_turn(member, now, false);
  // Kernels that outlast turns are not counted yet: who runs such goes through the queue, and pays.
  if (2 * used < now - granted_ns_) return false;
  const auto until = book_.renew(used, now);
  if (!until) return false;
  // What was counted beyond the turn so far belongs to the next one.
  member.busy_at_grant += static_cast<std::uint64_t>(used);
  granted_ns_ = now;
  deadline_ns_ = *until;
  store(turn.deadline_ns,
        *until == never_ns ? LOAM_SLICE_NO_DEADLINE : static_cast<std::uint64_t>(*until));
  __atomic_add_fetch(&turn.turns, 1u, __ATOMIC_SEQ_CST);
  // Somebody may have seen the old turn's end and gone to sleep.
  if (activity_of(member).wanting > 0) wake(turn.state);
  return true;
}

void DeviceArena::end_turn(Member& member, Nanoseconds idle_since, Nanoseconds now, bool died) {
  loam_turn& turn = member.turn();
  const Nanoseconds used = used_in_turn(member, now, died);
  store(turn.state, with_phase(load(turn.state), LOAM_TURN_NONE));
  book_.close(used, std::max(idle_since, granted_ns_), now);
  // A process that died while it waited still asks on its page, and would be granted turn after
  // turn.
  if (idle_since <= granted_ns_) check_dead(member, now);
}

Nanoseconds DeviceArena::watch_holder(Nanoseconds now) {
  Member& member = members_.at(*book_.holder());
  loam_turn& turn = member.turn();
  const Nanoseconds rival_ns = book_.rival_ready_ns(now);
  const bool served = book_.service_kept_waiting(now);
  const bool near_end = now >= renew_at_ns(member);
  if (near_end && !served && over_since_ns_ == never_ns &&
      (load(turn.state) & LOAM_TURN_MASK) == LOAM_TURN_GRANTED && goes_on(member, now) &&
      !holder_died_ && renew_turn(member, now))
    return watch_again_ns(member, now);
  Activity activity = activity_of(member);
  const bool expired = deadline_ns_ <= now || served;

  if (activity.in_flight == 0 && !expired) {
    const bool used = activity.idle_since_ns > granted_ns_;
    const Nanoseconds patience = rival_ns > now ? idle_hold_ns
                                 : used         ? book_.patience_ns(*book_.holder())
                                                : first_use_ns;
    const Nanoseconds until = (used ? activity.idle_since_ns : granted_ns_) + patience;
    // Whoever idles at its turn's end asks for the next one itself; only a rival has it taken back.
    if (now < until) return std::min(until, rival_ns > now ? rival_ns : deadline_ns_);
    if (!used) check_dead(member, now);
  }
  if (expired || activity.in_flight == 0) {
    // From here nothing new goes to the device; then what went there is counted once more.
    store(turn.state, with_phase(load(turn.state), LOAM_TURN_REVOKED));
    activity = activity_of(member);
    if (activity.in_flight == 0) {
      end_turn(member, activity.idle_since_ns, now, holder_died_);
      return now;
    }
  } else if (deadline_ns_ == never_ns) {
    if (rival_ns > now) return rival_ns;
    // An endless turn ends one quantum after somebody else asks for the device.
    const Nanoseconds until = now + book_.turn_ns(*book_.holder());
    deadline_ns_ = until;
    store(turn.deadline_ns, static_cast<std::uint64_t>(until));
    return std::min(until, now + dead_check_ns);
  }
  // Work is in flight. Its end rings the doorbell after the deadline; before, nobody asks unless
  // the holder falls idle, which the timer below finds.
  if (rival_ns > now && !expired) return rival_ns;
  if (now - checked_dead_ns_ >= dead_check_ns) {
    check_dead(member, now);
    if (activity_of(member).in_flight == 0) return now;
  }
  const Nanoseconds told_ns = expired ? watch_hung(member, now) : never_ns;
  return expired ? std::min(now + dead_check_ns, told_ns) : watch_again_ns(member, now);
}

// Work is in flight and the turn is not over: to find it idle, and before its end.
Nanoseconds DeviceArena::watch_again_ns(const Member& member, Nanoseconds now) const {
  const Nanoseconds pace =
      std::max<Nanoseconds>(terms_of(member.limits(), lane_).quantum_ns / 4, idle_check_min_ns);
  const Nanoseconds renewal = renew_at_ns(member);
  return std::min(now + pace, renewal > now ? renewal : deadline_ns_);
}

Nanoseconds DeviceArena::renew_at_ns(const Member& member) const {
  if (deadline_ns_ == never_ns) return never_ns;
  return deadline_ns_ - renew_lead_ns(terms_of(member.limits(), lane_).quantum_ns);
}

Nanoseconds DeviceArena::watch_hung(const Member& member, Nanoseconds now) {
  const auto patience = static_cast<Nanoseconds>(
      std::min(load(member.limits().hung_ns), std::uint64_t{3'600'000'000'000}));
  if (patience == 0 || hung_told_) return never_ns;
  if (over_since_ns_ == never_ns) over_since_ns_ = now;
  if (now < over_since_ns_ + patience) return over_since_ns_ + patience;
  hung_told_ = true;
  __atomic_add_fetch(&member.usage().hung, 1u, __ATOMIC_SEQ_CST);
  hung_.push_back(HungLease{*book_.holder(), now - over_since_ns_,
                            loam_limits_have(&member.limits(), LOAM_LIMIT_END_HUNG) != 0});
  return never_ns;
}

bool DeviceArena::serves(std::uint64_t lease, std::uint32_t device) const {
  const auto member = members_.find(lease);
  return member != members_.end() && member->second.device == device;
}

Standing DeviceArena::standing(std::uint64_t lease) const {
  const Member& member = members_.at(lease);
  const bool holds = book_.holder() == lease;
  Standing standing;
  standing.share_milli = terms_of(member.limits(), lane_).share_milli;
  standing.busy_ns = static_cast<Nanoseconds>(load(member.usage().busy_ns));
  standing.wants = member.works || member.waits;
  standing.kept_waiting = member.waits && book_.holder() && !holds;
  return standing;
}

Nanoseconds DeviceArena::grant_next(Nanoseconds now) {
  const TurnChoice choice = book_.choose(now);
  if (!choice.grant) return choice.look_again_ns;
  Member& member = members_.at(choice.grant->lease);
  member.busy_at_grant = load(member.usage().busy_ns);
  granted_ns_ = now;
  deadline_ns_ = choice.grant->until_ns;
  checked_dead_ns_ = now;
  over_since_ns_ = never_ns;
  hung_told_ = false;
  holder_died_ = false;
  grant(member, deadline_ns_, now);
  return watch_holder(now);
}

void DeviceArena::grant(Member& member, Nanoseconds until, Nanoseconds now) {
  loam_turn& turn = member.turn();
  store(turn.deadline_ns,
        until == never_ns ? LOAM_SLICE_NO_DEADLINE : static_cast<std::uint64_t>(until));
  store(turn.granted_ns, static_cast<std::uint64_t>(now));
  __atomic_add_fetch(&turn.turns, 1u, __ATOMIC_SEQ_CST);
  store(turn.state, with_phase(load(turn.state) + LOAM_TURN_MASK + 1, LOAM_TURN_GRANTED));
  wake(turn.state);
}

Nanoseconds DeviceArena::drain(Nanoseconds now) {
  bool drained = true;
  for (auto& [lease, member] : members_) {
    if (!member.draining) continue;
    member.page->reclaim_dead();
    if (activity_of(member).in_flight != 0) {
      drained = false;
      continue;
    }
    store(member.turn().state, with_phase(load(member.turn().state), LOAM_TURN_NONE));
    member.draining = false;
  }
  return drained ? never_ns : now + dead_check_ns;
}

bool DeviceArena::all_concurrent() const {
  return lane_ == LOAM_LANE_COMPUTE &&
         std::all_of(members_.begin(), members_.end(), [](const auto& entry) {
           return loam_limits_have(&entry.second.limits(), LOAM_LIMIT_CONCURRENT);
         });
}

// From one way of sharing to the other, through an empty device.
void DeviceArena::change_mode(Nanoseconds now) {
  concurrent_ = !concurrent_;
  if (book_.holder()) book_.close(0, now, now);
  for (auto& [lease, member] : members_) {
    loam_turn& turn = member.turn();
    if ((load(turn.state) & LOAM_TURN_MASK) == LOAM_TURN_NONE) continue;
    store(turn.state, with_phase(load(turn.state), LOAM_TURN_REVOKED));
    member.draining = true;
  }
}

void DeviceArena::admit_concurrent(std::uint64_t lease, Member& member, Nanoseconds now) {
  loam_turn& turn = member.turn();
  const std::uint32_t phase = load(turn.state) & LOAM_TURN_MASK;
  if (phase == LOAM_TURN_NONE) {
    if (member.waits && overlaps_.may_work(lease)) grant(member, never_ns, now);
    return;
  }
  // Who idles asks again; so nobody works unseen.
  const bool idle = !member.works && !member.waits;
  if (phase == LOAM_TURN_GRANTED && !idle && overlaps_.may_work(lease)) return;
  store(turn.state, with_phase(load(turn.state), LOAM_TURN_REVOKED));
  if (activity_of(member).in_flight == 0)
    store(turn.state, with_phase(load(turn.state), LOAM_TURN_NONE));
}

Nanoseconds DeviceArena::step_concurrent(Nanoseconds now) {
  overlaps_.pass(now);
  const bool look_for_dead = now - checked_dead_ns_ >= dead_check_ns;
  if (look_for_dead) checked_dead_ns_ = now;
  bool busy = false;
  for (auto& [lease, member] : members_) {
    overlaps_.set_terms(lease, terms_of(member.limits(), lane_), now);
    if (look_for_dead && member.works) member.page->reclaim_dead();
    const Activity activity = activity_of(member);
    member.works = activity.in_flight > 0;
    member.waits = activity.wanting > 0;
    overlaps_.set_state(lease, member.works, member.waits);
    busy = busy || member.works || member.waits;
    const Nanoseconds used = overlaps_.used_ns(lease);
    __atomic_add_fetch(&member.usage().busy_ns,
                       static_cast<std::uint64_t>(used - member.told_busy_ns), __ATOMIC_SEQ_CST);
    member.told_busy_ns = used;
  }
  for (auto& [lease, member] : members_) admit_concurrent(lease, member, now);
  return busy ? now + overlap_look_ns : never_ns;
}

Nanoseconds DeviceArena::step(Nanoseconds now) {
  const Nanoseconds drained = drain(now);
  if (drained != never_ns) return drained;
  if (all_concurrent() != concurrent_) {
    change_mode(now);
    return now;
  }
  if (concurrent_) return step_concurrent(now);
  refresh(now);
  if (book_.holder()) {
    const Nanoseconds next = watch_holder(now);
    if (book_.holder()) return next;
    refresh(now);  // the dead no longer wait
  }
  return grant_next(now);
}

}  // namespace loam::node
