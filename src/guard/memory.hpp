// Device memory of this process: reserved on the slice page before it is allocated, given back when
// the object is gone. Knows no driver. Not pure: the slice page.
#pragma once

#include <cstdint>

#include "guard/page.hpp"

namespace loam::guard {

// What one object holds. Plain data.
struct Holding {
  std::uint32_t entries = 0;  // bits: the page's devices it is charged to
  std::uint32_t kind = LOAM_MEMORY_BUFFER;
  std::uint64_t bytes = 0;  // on each of them
};

// Takes `bytes` on the page's device `entry`; false over the quota (counted as a refusal). One
// locked instruction while there is room; only a refusal looks for dead processes first, and waits
// for what the lease has lent or may borrow, at most reclaim_wait_ns.
bool take(Page& page, std::uint32_t entry, std::uint64_t bytes, std::uint32_t kind);
// Gives back what was taken. Always succeeds.
void take_off(Page& page, std::uint32_t entry, std::uint64_t bytes, std::uint32_t kind);

// Takes `holding.bytes` on every device in `entries`, or on none: false.
bool take_all(Page& page, std::uint32_t entries, Holding* holding);
// Raises a holding to `bytes`; false over the quota.
bool grow(Page& page, Holding* holding, std::uint64_t bytes);
void give_back(Page& page, const Holding& holding);

// How long an owner waits for its lent memory before it is refused: the borrower's notice and grace
// fit in.
inline constexpr std::uint64_t reclaim_wait_ns = 45'000'000'000;
// How long a borrower waits for the keeper to answer.
inline constexpr std::uint64_t borrow_wait_ns = 200'000'000;

// Holdings by address, for what has no handle to tie them to. O(1), allocates now and then.
bool remember(void* address, const Holding& holding);
// The holding of an address, forgotten by this call; false for an address that is not known.
bool forget(void* address, Holding* holding);

}  // namespace loam::guard
