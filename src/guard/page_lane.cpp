#include "guard/page_lane.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace loam::guard {

std::uint64_t PageLane::quantum_ns() const {
  return std::clamp<std::uint64_t>(load(limits().quantum_ns), 100'000, 1'000'000'000);
}

void count_busy(const PageLane& place, std::uint64_t now) {
  // Where leases may overlap, only the keeper sees who shared the device with whom.
  if (place.lane == LOAM_LANE_COMPUTE && loam_limits_have(&place.limits(), LOAM_LIMIT_CONCURRENT))
    return;
  const loam_slice_counters& counters = place.page.counters();
  std::uint64_t begin = now;
  const std::uint32_t slots = std::min(load(counters.slots_used), LOAM_SLICE_SLOTS_MAX);
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    const loam_slot_lane& process = counters.slot[slot].device[place.device].lane[place.lane];
    if (load(process.in_flight) > 0) begin = std::min(begin, load(process.busy_since_ns));
  }
  loam_usage& usage = place.usage();
  std::uint64_t until = load(usage.counted_until_ns);
  do {
    if (until >= now) return;
  } while (!__atomic_compare_exchange_n(&usage.counted_until_ns, &until, now, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  __atomic_add_fetch(&usage.busy_ns, now - std::max(begin, until), __ATOMIC_SEQ_CST);
}

bool turn_is_over(const loam_turn& turn, std::uint64_t now) {
  return (load(turn.state) & LOAM_TURN_MASK) != LOAM_TURN_GRANTED || now >= load(turn.deadline_ns);
}

void sleep_on(const std::uint32_t& word, std::uint32_t seen, std::uint64_t most_ns, int flags) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(most_ns / 1'000'000'000u);
  time.tv_nsec = static_cast<long>(most_ns % 1'000'000'000u);
  ::syscall(SYS_futex, &word, FUTEX_WAIT | flags, seen, &time, nullptr, 0);
}

}  // namespace loam::guard
