#include "node/keeper/page_words.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace loam::node {

void wake(const std::uint32_t& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void count_up_and_wake(std::uint32_t& word) {
  __atomic_add_fetch(&word, 1u, __ATOMIC_SEQ_CST);
  wake(word);
}

}  // namespace loam::node
