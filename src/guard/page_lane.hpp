// One lane of one of the page's devices, as the layer of every driver sees it: its turn and its
// books, and how they are read, counted and waited for. Not pure: shared memory, futexes.
#pragma once

#include <cstdint>

#include "guard/page.hpp"

namespace loam::guard {

// A waiting thread asks for a turn again this often, in case the keeper was away when it rang.
inline constexpr std::uint64_t ask_again_ns = 100'000'000;
// After so long without a turn the program's user is told.
inline constexpr std::uint64_t say_after_ns = 10'000'000'000;
inline constexpr const char* no_turn_line =
    "no turn on the device for 10 s; still waiting (is loam-keeper running?)";

template <class Word>
Word load(const Word& word) {
  return __atomic_load_n(&word, __ATOMIC_SEQ_CST);
}
template <class Word>
void store(Word& word, Word value) {
  __atomic_store_n(&word, value, __ATOMIC_SEQ_CST);
}

struct PageLane {
  Page& page;
  std::uint32_t device;
  std::uint32_t lane;

  const loam_turn& turn() const { return page.counters().device[device].turn[lane]; }
  loam_usage& usage() const { return page.counters().device[device].usage[lane]; }
  loam_slot_lane& own() const { return page.own(device).lane[lane]; }
  const loam_device_limits& limits() const { return page.limits().device[device]; }
  // Of the lease's turns, whatever the page says: 0.1 ms to 1 s.
  std::uint64_t quantum_ns() const;
};

// Adds to the lease's books the time up to `now` in which any of its processes had work in flight
// and that none of them has counted yet. This process must still show its own as in flight.
// O(slots used).
void count_busy(const PageLane& place, std::uint64_t now);

bool turn_is_over(const loam_turn& turn, std::uint64_t now);

// Waits on the futex while it is `seen`, at most so long. `flags`: FUTEX_PRIVATE_FLAG or 0.
void sleep_on(const std::uint32_t& word, std::uint32_t seen, std::uint64_t most_ns, int flags);

}  // namespace loam::guard
