// Files that a task may write to can be cut short by it while they are mapped here; touching what
// is gone raises SIGBUS. A watched mapping gets empty memory in place of what is gone and is noted
// as torn, so that no task can end the keeper or the daemon. Not pure: a process-wide signal
// handler, which passes on every fault outside the watched mappings.
#pragma once

#include <atomic>
#include <cstddef>

namespace loam::node {

// A place in the table of watched mappings.
struct WatchedMapping {
  std::atomic<void*> begin = nullptr;
  std::atomic<std::size_t> bytes = 0;
  std::atomic<bool> torn = false;
};

// Watches [begin, begin + bytes) until unwatch(). Null when the table (4,096 places) is full.
WatchedMapping* watch_mapping(void* begin, std::size_t bytes);
// Call before unmapping. Null is allowed.
void unwatch_mapping(WatchedMapping* watched);

}  // namespace loam::node
