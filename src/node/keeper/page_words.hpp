// The words of a slice page as the keeper's side reads, writes and rings them: sequentially
// consistent, futexes shared between processes. Not pure: shared memory, a system call.
#pragma once

#include <cstdint>

namespace loam::node {

template <class Word>
Word load(const Word& word) {
  return __atomic_load_n(&word, __ATOMIC_SEQ_CST);
}
template <class Word>
void store(Word& word, Word value) {
  __atomic_store_n(&word, value, __ATOMIC_SEQ_CST);
}

// Everybody who waits on it.
void wake(const std::uint32_t& word);
void count_up_and_wake(std::uint32_t& word);

}  // namespace loam::node
