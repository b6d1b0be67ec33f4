#include "guard/turns.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "guard/lock.hpp"
#include "guard/page_lane.hpp"

namespace loam::guard {

namespace {

constexpr std::uint32_t kinds = 256;
// Bounds what a driver must queue; with kernels this short the launch path is the limit anyway.
constexpr std::uint32_t in_flight_max = 512;

// What this process has on one lane of a device. Guarded by `lock`.
struct LaneTurns {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  std::uint32_t in_flight = 0;
  std::uint64_t outstanding_ns = 0;  // the estimates of what is in flight
  std::uint64_t counted_until_ns = 0;
  std::uint32_t completions = 0;  // a futex: threads wait here for room
  std::uint32_t local_waiters = 0;
  std::uint64_t estimate_ns[kinds] = {};  // 0: never seen
};
LaneTurns all_turns[LOAM_SLICE_DEVICES_MAX][LOAM_LANES];

// One lane of one of the page's devices with what this process has on it.
struct Place : PageLane {
  LaneTurns& turns() const { return all_turns[device][lane]; }
};

void forget_in_child() {
  for (auto& lanes : all_turns)
    for (LaneTurns& turns : lanes) {
      const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
      std::memcpy(&turns.lock, &fresh, sizeof fresh);
      turns.in_flight = 0;
      turns.outstanding_ns = 0;
      turns.local_waiters = 0;
    }
}
[[gnu::constructor]] void forget_after_fork() {
  at_fork_in_child(&forget_in_child);
}

// Nothing of this process is on the device: if the turn is over, the keeper waits to hear of it.
void fell_idle(const Place& place, std::uint64_t now) {
  store(place.own().in_flight, 0u);
  if (turn_is_over(place.turn(), now)) place.page.ring();
}

enum class Answer { admitted, no_turn, no_room, try_again };

// Under the device's lock. Counting the command first and looking at the turn afterwards is what
// keeps the keeper and the process from missing each other: the keeper takes the turn first and
// looks at the count afterwards.
Answer try_admit(const Place& place, std::uint64_t estimate, bool whatever_room,
                 std::uint32_t state, std::uint64_t now) {
  const loam_turn& turn = place.turn();
  LaneTurns& turns = place.turns();
  const std::uint64_t deadline = load(turn.deadline_ns);
  if ((state & LOAM_TURN_MASK) != LOAM_TURN_GRANTED || now >= deadline) return Answer::no_turn;
  const std::uint64_t left = std::min(place.quantum_ns(), deadline - now);
  const bool room =
      turns.in_flight == 0 || (turns.in_flight < in_flight_max && turns.outstanding_ns <= left);
  if (!room && !whatever_room) return Answer::no_room;

  loam_slot_lane& own = place.own();
  if (turns.in_flight == 0) store(own.busy_since_ns, now);
  store(own.in_flight, turns.in_flight + 1);
  if (load(turn.state) != state) {
    if (turns.in_flight == 0)
      fell_idle(place, now);
    else
      store(own.in_flight, turns.in_flight);
    return Answer::try_again;
  }
  if (turns.in_flight == 0) turns.counted_until_ns = now;
  ++turns.in_flight;
  turns.outstanding_ns += estimate;
  return Answer::admitted;
}

// No room: waits for a command of this process to end, or for the turn's end.
void wait_for_room(const Place& place, std::uint32_t completions, std::uint64_t now) {
  LaneTurns& turns = place.turns();
  const std::uint64_t deadline = load(place.turn().deadline_ns);
  const std::uint64_t most =
      deadline > now ? std::min(deadline - now, ask_again_ns) : std::uint64_t{1};
  sleep_on(turns.completions, completions, most, FUTEX_PRIVATE_FLAG);
  const Locked locked(turns.lock);
  --turns.local_waiters;
}

Ticket admit_when_possible(const Place& place, std::uint32_t kind, bool whatever_room) {
  LaneTurns& turns = place.turns();
  loam_slot_lane& own = place.own();
  std::uint64_t began = 0;
  bool wanting = false, said = false;
  Ticket ticket{place.device, place.lane, kind, 0};
  for (;;) {
    const std::uint32_t state = load(place.turn().state);
    const std::uint64_t now = now_ns();
    std::uint32_t completions = 0;
    Answer answer;
    {
      const Locked locked(turns.lock);
      // A command never seen before is taken to fill a turn, so that it goes alone.
      ticket.estimate_ns = turns.estimate_ns[kind] ? turns.estimate_ns[kind] : place.quantum_ns();
      answer = try_admit(place, ticket.estimate_ns, whatever_room, state, now);
      completions = turns.completions;
      if (answer == Answer::no_room) ++turns.local_waiters;
    }
    if (wanting && answer != Answer::no_turn) {
      __atomic_sub_fetch(&own.wanting, 1u, __ATOMIC_SEQ_CST);
      wanting = false;
    }
    if (answer == Answer::admitted) {
      if (began != 0) __atomic_add_fetch(&place.usage().waiting_ns, now - began, __ATOMIC_SEQ_CST);
      return ticket;
    }
    if (answer == Answer::try_again) continue;
    if (began == 0) began = now;
    if (answer == Answer::no_room) {
      wait_for_room(place, completions, now);
      continue;
    }
    if (!wanting) __atomic_add_fetch(&own.wanting, 1u, __ATOMIC_SEQ_CST);
    wanting = true;
    place.page.ring();
    sleep_on(place.turn().state, state, ask_again_ns, 0);
    if (!said && now - began > say_after_ns) {
      say(no_turn_line);
      said = true;
    }
  }
}

}  // namespace

std::uint32_t lane_of(const Page& page, std::uint32_t device, Work work) {
  std::uint32_t lane = LOAM_LANE_COMPUTE;
  if (work == Work::to_device) lane = LOAM_LANE_TO_DEVICE;
  if (work == Work::from_device) lane = LOAM_LANE_FROM_DEVICE;
  return loam_lane_of(&page.limits().device[device], lane);
}

Ticket admit(Page& page, std::uint32_t device, std::uint32_t lane, std::uint64_t similar) {
  // Fibonacci hashing spreads addresses, whose low bits are alike.
  const auto kind = static_cast<std::uint32_t>(similar * 0x9e3779b97f4a7c15ull >> 56);
  return admit_when_possible(Place{page, device, lane}, kind % kinds, false);
}

Ticket admit_deferred(Page& page, std::uint32_t device, std::uint32_t lane) {
  return admit_when_possible(Place{page, device, lane}, 0, true);
}

bool admit_deferred_now(Page& page, std::uint32_t device, std::uint32_t lane, Ticket* ticket) {
  const Place place{page, device, lane};
  LaneTurns& turns = place.turns();
  const Locked locked(turns.lock);
  *ticket =
      Ticket{device, lane, 0, turns.estimate_ns[0] ? turns.estimate_ns[0] : place.quantum_ns()};
  const std::uint32_t state = load(place.turn().state);
  return try_admit(place, ticket->estimate_ns, true, state, now_ns()) == Answer::admitted;
}

void finish(Page& page, const Ticket& ticket, bool ran) {
  const Place place{page, ticket.device, ticket.lane};
  LaneTurns& turns = place.turns();
  const std::uint64_t now = now_ns();
  bool wake = false;
  {
    const Locked locked(turns.lock);
    if (turns.in_flight == 0) return;  // a forked child hears of its parent's command
    const std::uint64_t took = now > turns.counted_until_ns ? now - turns.counted_until_ns : 0;
    if (ran) {
      turns.counted_until_ns = std::max(now, turns.counted_until_ns);
      std::uint64_t& estimate = turns.estimate_ns[ticket.kind];
      // The mean of late values; never 0, which means unknown.
      estimate = std::max<std::uint64_t>(estimate == 0 ? took : (3 * estimate + took) / 4, 1);
      count_busy(place, now);
    }
    turns.outstanding_ns -= std::min(turns.outstanding_ns, ticket.estimate_ns);
    --turns.in_flight;
    if (turns.in_flight == 0) {
      turns.outstanding_ns = 0;
      if (ran) store(place.own().idle_since_ns, now);
      fell_idle(place, now);
    } else {
      store(place.own().in_flight, turns.in_flight);
    }
    ++turns.completions;
    wake = turns.local_waiters > 0;
  }
  if (wake)
    ::syscall(SYS_futex, &turns.completions, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr,
              nullptr, 0);
}

void count_work(Page& page, std::uint32_t device, Work work, std::uint64_t bytes) {
  if (work == Work::none) return;
  // By what it is, whichever lane's turn it takes.
  const bool directed = work == Work::to_device || work == Work::from_device;
  const std::uint32_t lane = work == Work::to_device     ? LOAM_LANE_TO_DEVICE
                             : work == Work::from_device ? LOAM_LANE_FROM_DEVICE
                                                         : LOAM_LANE_COMPUTE;
  loam_usage& usage = page.counters().device[device].usage[lane];
  const bool counts_as_command = work == Work::kernel || directed;
  __atomic_add_fetch(counts_as_command ? &usage.commands : &usage.transfers, 1u, __ATOMIC_RELAXED);
  if (bytes) __atomic_add_fetch(&usage.bytes_copied, bytes, __ATOMIC_RELAXED);
}

}  // namespace loam::guard
