#include "node/keeper/torn_mapping.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <mutex>

namespace loam::node {

namespace {

constexpr std::size_t watched_max = 4096;
constexpr std::uintptr_t page_bytes = 4096;

std::array<WatchedMapping, watched_max> table;
std::mutex table_lock;
struct sigaction earlier;

// Only atomics and one system call: it may run at any instruction.
void on_bus_fault(int signal, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (WatchedMapping& watched : table) {
    const auto begin = reinterpret_cast<std::uintptr_t>(watched.begin.load());
    if (begin == 0 || at < begin || at >= begin + watched.bytes) continue;
    void* const page = reinterpret_cast<void*>(at & ~(page_bytes - 1));
    if (::mmap(page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0) == MAP_FAILED)
      break;
    watched.torn = true;
    return;
  }
  // Not ours: as it would have been without us. Returning repeats the fault.
  if ((earlier.sa_flags & SA_SIGINFO) != 0 && earlier.sa_sigaction) {
    earlier.sa_sigaction(signal, info, context);
    return;
  }
  ::sigaction(SIGBUS, &earlier, nullptr);
}

void install() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = &on_bus_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &earlier);
    return true;
  }();
  (void)installed;
}

}  // namespace

WatchedMapping* watch_mapping(void* begin, std::size_t bytes) {
  install();
  const std::lock_guard<std::mutex> guard(table_lock);
  for (WatchedMapping& watched : table) {
    if (watched.begin.load()) continue;
    watched.torn = false;
    watched.bytes = bytes;
    watched.begin = begin;
    return &watched;
  }
  return nullptr;
}

void unwatch_mapping(WatchedMapping* watched) {
  if (watched) watched->begin = nullptr;
}

}  // namespace loam::node
