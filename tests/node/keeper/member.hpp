// A process of a lease as the slice page sees it: its own opening of the file, its slot locked.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "node/keeper/slice_page.hpp"

namespace loam::node {

inline bool take_slot(int fd, std::uint32_t slot) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

struct Member {
  MappedPage page;
  std::uint32_t slot;
  int fd;
  Member(const std::string& root, const char* lease, std::uint32_t own_slot)
      : page(MappedPage::open(root, lease).value()), slot(own_slot) {
    fd = ::open((page_prefix(root, lease) + ".counters").c_str(), O_RDWR | O_CLOEXEC);
    if (!take_slot(fd, slot)) std::abort();
    loam_raise_slots();
  }
  ~Member() { ::close(fd); }
  void loam_raise_slots() {
    loam_slice_counters& counters = page.counters();
    std::uint32_t used = counters.slots_used;
    while (used < slot + 1 &&
           !__atomic_compare_exchange_n(&counters.slots_used, &used, slot + 1, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
  }
  bool change(std::uint64_t after, std::uint64_t limit) {
    return loam_book_change(&page.counters(), 0, slot, after, limit) == 1;
  }
  std::uint64_t held() { return loam_book_held(&page.counters(), 0, slot); }
};

}  // namespace loam::node
