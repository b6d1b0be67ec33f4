#include "guard/barrier.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "guard/page.hpp"

namespace loam::guard {

bool barriers_work = false;

namespace {

// linux/membarrier.h; older headers lack them.
constexpr int membarrier_register = 16, membarrier_private = 8;

// A forked child is another process, and not registered.
void register_process() {
  barriers_work = ::syscall(SYS_membarrier, membarrier_register, 0, 0) == 0;
}
[[gnu::constructor]] void begin() {
  register_process();
  at_fork_in_child(&register_process);
}

}  // namespace

void barrier_in_all_threads() {
  if (barriers_work)
    ::syscall(SYS_membarrier, membarrier_private, 0, 0);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace loam::guard
