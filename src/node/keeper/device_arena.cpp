#include "node/keeper/device_arena.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "base/assert.hpp"

namespace loam::node {

namespace {

// A woken guest may need this long to be scheduled on a busy machine before it uses its turn.
constexpr Nanoseconds first_use_ns = 4'000'000;
// How often a holder that is late is tested for being dead. A test is one system call a process.
constexpr Nanoseconds dead_check_ns = 20'000'000;
// While somebody else waits, a holder with work in flight is looked at four times a turn, at most
// this often, to find it idle before its turn is over.
constexpr Nanoseconds idle_check_min_ns = 1'000'000;

template <class Word>
Word load(const Word& word) {
  return __atomic_load_n(&word, __ATOMIC_SEQ_CST);
}
template <class Word>
void store(Word& word, Word value) {
  __atomic_store_n(&word, value, __ATOMIC_SEQ_CST);
}

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
    book_.set_waiting(lease, activity_of(member).wanting > 0, now);
  }
}

void DeviceArena::check_dead(const Member& member, Nanoseconds now) {
  checked_dead_ns_ = now;
  if (member.page->reclaim_dead()) holder_died_ = true;
}

void DeviceArena::end_turn(Member& member, Nanoseconds idle_since, Nanoseconds now, bool died) {
  loam_usage& usage = member.usage();
  loam_turn& turn = member.turn();
  const Nanoseconds wall = now - granted_ns_;
  const auto counted = static_cast<Nanoseconds>(load(usage.busy_ns) - member.busy_at_grant);
  Nanoseconds used = std::clamp<Nanoseconds>(counted, 0, wall);
  if (died) {
    // What the dead process had not yet counted.
    __atomic_add_fetch(&usage.busy_ns, static_cast<std::uint64_t>(wall - used), __ATOMIC_SEQ_CST);
    used = wall;
  }
  store(turn.state, with_phase(load(turn.state), LOAM_TURN_NONE));
  book_.close(used, std::max(idle_since, granted_ns_), now);
}

Nanoseconds DeviceArena::watch_holder(Nanoseconds now) {
  Member& member = members_.at(*book_.holder());
  loam_turn& turn = member.turn();
  const bool expired = deadline_ns_ <= now || book_.service_kept_waiting(now);
  const Nanoseconds rival_ns = book_.rival_ready_ns(now);
  Activity activity = activity_of(member);

  if (activity.in_flight == 0 && !expired) {
    if (rival_ns > now) return rival_ns;
    const bool used = activity.idle_since_ns > granted_ns_;
    const Nanoseconds patience = used ? book_.patience_ns(*book_.holder()) : first_use_ns;
    const Nanoseconds until = (used ? activity.idle_since_ns : granted_ns_) + patience;
    if (now < until) return until;
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
  const Nanoseconds pace =
      expired ? dead_check_ns
              : std::max<Nanoseconds>(terms_of(member.limits(), lane_).quantum_ns / 4,
                                      idle_check_min_ns);
  return now + pace;
}

Nanoseconds DeviceArena::grant_next(Nanoseconds now) {
  const TurnChoice choice = book_.choose(now);
  if (!choice.grant) return choice.look_again_ns;
  Member& member = members_.at(choice.grant->lease);
  loam_turn& turn = member.turn();
  member.busy_at_grant = load(member.usage().busy_ns);
  granted_ns_ = now;
  deadline_ns_ = choice.grant->until_ns;
  checked_dead_ns_ = now;
  holder_died_ = false;
  store(turn.deadline_ns, deadline_ns_ == never_ns ? LOAM_SLICE_NO_DEADLINE
                                                   : static_cast<std::uint64_t>(deadline_ns_));
  store(turn.granted_ns, static_cast<std::uint64_t>(now));
  __atomic_add_fetch(&turn.turns, 1u, __ATOMIC_SEQ_CST);
  store(turn.state, with_phase(load(turn.state) + LOAM_TURN_MASK + 1, LOAM_TURN_GRANTED));
  ::syscall(SYS_futex, &turn.state, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return watch_holder(now);
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

Nanoseconds DeviceArena::step(Nanoseconds now) {
  const Nanoseconds drained = drain(now);
  if (drained != never_ns) return drained;
  refresh(now);
  if (book_.holder()) {
    const Nanoseconds next = watch_holder(now);
    if (book_.holder()) return next;
    refresh(now);  // the dead no longer wait
  }
  return grant_next(now);
}

}  // namespace loam::node
