// A barrier in every thread of the process, paid for by who asks (membarrier(2), the "expedited"
// kind): what lets everybody else do without locked instructions. Not pure: a system call.
#pragma once

#include <atomic>

namespace loam::guard {

// False where the kernel has none: then nothing may rely on barrier_in_all_threads().
extern bool barriers_work;

void barrier_in_all_threads();

// For code that relies on it, in a thread that does not ask: orders what is before and after it
// against who asks. Costs nothing.
[[gnu::always_inline]] inline void paired_with_barrier() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace loam::guard
