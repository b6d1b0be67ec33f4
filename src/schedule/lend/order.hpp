// Which devices a service takes, and which it gives back: the ones that cost least first. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.hpp"

namespace loam::schedule::lend {

// What a device that a service might take is at, cheapest first.
enum class Taking : std::uint8_t {
  own_draining,       // the service's own, on its way back
  free,               // nobody's
  saving_for_nobody,  // a task saves on it, and no service waits for it
  guest,              // a one-device task that stays as a guest: nothing is lost
  task,               // a task that must save, leave, and load elsewhere
};

struct TakeCandidate {
  std::uint64_t device = 0;
  Taking taking = Taking::free;
  std::int64_t gang = 1;   // devices of its task, all of which are lost to it
  Duration save_and_load;  // of its task
  Instant started;         // of its task
};

// The order of taking: by kind; among tasks, least gang * (save + load), then the youngest, then by
// device. Devices of one gang come one after another, since the first taken loses them all.
bool takes_before(const TakeCandidate& a, const TakeCandidate& b);
// The first `count` devices to take. O(n log n).
std::vector<std::uint64_t> take(std::vector<TakeCandidate> candidates, std::size_t count);

// What a device that a service holds is at, the first to go back first.
enum class Giving : std::uint8_t { guestless_idle, idle, busy };

struct GiveCandidate {
  std::uint64_t device = 0;
  Giving giving = Giving::idle;
};
// The first `count` devices to give back; busy ones drain first. Ties by device, the highest first,
// since requests fill a service's devices from the lowest.
std::vector<std::uint64_t> give(std::vector<GiveCandidate> candidates, std::size_t count);

}  // namespace loam::schedule::lend
