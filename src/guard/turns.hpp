// Turns inside a process of the task: device work is admitted only while the lease holds the turn,
// and only as much as the rest of the turn is expected to take. Not pure: the slice page, futexes.
#pragma once

#include <cstdint>

#include "guard/page.hpp"

namespace loam::guard {

// What a command is to the device. `transfer` is a copy or fill within it, or a map.
enum class Work : std::uint8_t { kernel, transfer, to_device, from_device, none };

// The lane whose turns such work takes on the page's device.
std::uint32_t lane_of(const Page& page, std::uint32_t device, Work work);

// One admitted command. Plain data.
struct Ticket {
  std::uint32_t device = 0;
  std::uint32_t lane = LOAM_LANE_COMPUTE;
  std::uint32_t kind = 0;         // which estimate it teaches
  std::uint64_t estimate_ns = 0;  // what it was expected to take
};

// Waits until the command may go to the device; returns at once while the lease has the turn.
// `similar`: commands with the same value are expected to take equally long.
Ticket admit(Page& page, std::uint32_t device, std::uint32_t lane, std::uint64_t similar);
// For a command that the driver already has but that could not run until now (it waited for an
// event of the program's own): waits for the turn, whatever is in flight.
Ticket admit_deferred(Page& page, std::uint32_t device, std::uint32_t lane);
// The same without waiting: false while the lease does not hold the turn.
bool admit_deferred_now(Page& page, std::uint32_t device, std::uint32_t lane, Ticket* ticket);

// The command is over (or the driver refused it: then nothing is learned from it).
void finish(Page& page, const Ticket& ticket, bool ran);

// Counts a command and the bytes that it moves.
void count_work(Page& page, std::uint32_t device, Work work, std::uint64_t bytes);

}  // namespace loam::guard
