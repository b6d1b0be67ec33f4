// Memory that can go to the host while the lease has no turn, and come back with it, so that leases
// whose memory does not fit a device together can take turns on it. A large plain allocation of a
// lease that may spill is made of addresses and physical memory apart (the driver's virtual memory
// management): the addresses stay, what is behind them goes and comes, and the program sees
// nothing of it. The keeper says when (loam_device_counters.leave); the clerk carries it out;
// whoever next gives work to the device brings everything back first. Not pure: driver, slice page,
// host memory.
#pragma once

#include <cstdint>

#include "guard/cuda/driver.hpp"
#include "guard/page.hpp"

struct futex_waitv;

namespace loam::guard::cuda {

// Whether an allocation of `bytes` on the entry is to be one that can spill.
bool is_to_spill(const Page& page, std::uint32_t entry, std::uint64_t bytes);
// An allocation in the thread's context, charged in the driver's steps (2 MiB as a rule). Waits for
// others' memory to leave the device where it has none within the quota, at most room_wait_ns.
CUresult allocate_spillable(Page& page, CUdeviceptr* address, std::uint64_t bytes);
// Frees what is at the address; false where that is nothing that can spill.
bool free_spillable(CUdeviceptr address, CUresult* fault);
void end_spillable_of(CUcontext context);
// Whether this process ever allocated such memory: else nothing here costs anything.
bool any_spillable();

// Whether memory of the process on the entry is in the host's. Asked before work is given to the
// device, in which bring_back() is called, with the lane open. False where there is no room on the
// device within room_wait_ns: what was saved is as it was.
bool is_away(std::uint32_t entry);
bool bring_back(Page& page, std::uint32_t entry);

// Calls the driver with the memory at the address on its device: for questions about an address.
// Takes a turn where it is away. O(live allocations that can spill).
using DriverCall = CUresult (*)(void* closure);
CUresult call_with_memory_through(CUdeviceptr address, DriverCall call, void* closure);
template <class Call>
CUresult call_with_memory(CUdeviceptr address, Call call) {
  if (!any_spillable()) [[likely]]
    return call();
  return call_with_memory_through(
      address, [](void* closure) { return (*static_cast<Call*>(closure))(); }, &call);
}

// The clerk's look: sends memory to the host where the keeper asks for it. Returns after how many
// nanoseconds to look again, 0: not before it is asked.
std::uint64_t look_after_memory();
// What to wait for to be asked; how many words.
int leave_words(futex_waitv* words, int most);

// How long memory is waited for that others are to give up.
inline constexpr std::uint64_t room_wait_ns = 30'000'000'000;

}  // namespace loam::guard::cuda
