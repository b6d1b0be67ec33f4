#include "guard/memory.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "guard/devices.hpp"
#include "guard/lock.hpp"

namespace loam::guard {

namespace {

// One thread of the process at a time changes its slot. (The lease's other processes do not wait:
// they meet only in the page's compare-and-swap.)
pthread_mutex_t change_lock = PTHREAD_MUTEX_INITIALIZER;

struct SvmEntry {
  SvmEntry* next;
  void* address;
  Holding holding;
};
pthread_mutex_t svm_lock = PTHREAD_MUTEX_INITIALIZER;
constexpr std::size_t svm_buckets = 1024;
SvmEntry* svm_table[svm_buckets] = {};

// A forked child holds nothing: what its parent allocated is the parent's.
void forget_in_child() {
  const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  std::memcpy(&change_lock, &fresh, sizeof fresh);
  std::memcpy(&svm_lock, &fresh, sizeof fresh);
  std::memset(static_cast<void*>(svm_table), 0, sizeof svm_table);
}

bool add(Page& page, std::uint32_t device, std::uint64_t bytes) {
  const std::uint64_t limit =
      __atomic_load_n(&page.limits().device[device].memory_bytes, __ATOMIC_SEQ_CST);
  for (int attempt = 0; attempt < 2; ++attempt) {
    {
      const Locked locked(change_lock);
      const std::uint64_t held = loam_book_held(&page.counters(), device, page.slot());
      if (bytes <= UINT64_MAX - held &&
          loam_book_change(&page.counters(), device, page.slot(), held + bytes, limit))
        return true;
    }
    // Perhaps a killed process still stands in the book.
    if (attempt == 0) page.reclaim_dead();
  }
  __atomic_add_fetch(&page.counters().device[device].memory.refusals, 1u, __ATOMIC_SEQ_CST);
  return false;
}

void take_off(Page& page, std::uint32_t device, std::uint64_t bytes) {
  const Locked locked(change_lock);
  const std::uint64_t held = loam_book_held(&page.counters(), device, page.slot());
  loam_book_change(&page.counters(), device, page.slot(), held > bytes ? held - bytes : 0,
                   LOAM_SLICE_NO_LIMIT);
}

std::size_t bucket_of(const void* address) {
  return (reinterpret_cast<std::uintptr_t>(address) >> 6) % svm_buckets;
}

struct Tie {
  Holding holding;
  pid_t process;
};

void CL_CALLBACK object_gone(cl_mem, void* data) {
  Tie* const tie = static_cast<Tie*>(data);
  Page* const page = Page::of_process();
  // An object of the parent that dies in a forked child was never the child's.
  if (page && tie->process == ::getpid()) give_back(*page, tie->holding);
  std::free(tie);
}

}  // namespace

cl_int reserve(Page& page, cl_context context, std::uint64_t bytes, Holding* holding) {
  at_fork_in_child(&forget_in_child);
  *holding = Holding{0, bytes};
  std::uint32_t entries = 0;
  cl_int fault = CL_SUCCESS;
  if (!page_entries(page, context, &entries, &fault)) return fault;
  for (std::uint32_t device = 0; device < page.device_count(); ++device) {
    if (!(entries >> device & 1u)) continue;
    if (!add(page, device, bytes)) {
      give_back(page, *holding);
      return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    holding->entries |= 1u << device;
  }
  return CL_SUCCESS;
}

bool grow(Page& page, Holding* holding, std::uint64_t bytes) {
  if (bytes <= holding->bytes) return true;
  const Holding more{0, bytes - holding->bytes};
  Holding taken = more;
  for (std::uint32_t device = 0; device < page.device_count(); ++device) {
    if (!(holding->entries >> device & 1u)) continue;
    if (!add(page, device, more.bytes)) {
      give_back(page, taken);
      return false;
    }
    taken.entries |= 1u << device;
  }
  holding->bytes = bytes;
  return true;
}

void give_back(Page& page, const Holding& holding) {
  for (std::uint32_t device = 0; device < page.device_count(); ++device)
    if (holding.entries >> device & 1u) take_off(page, device, holding.bytes);
}

cl_int tie_to(Page& page, cl_mem object, const Holding& holding) {
  Tie* const tie = static_cast<Tie*>(std::malloc(sizeof(Tie)));
  cl_int fault = CL_OUT_OF_HOST_MEMORY;
  if (tie) {
    *tie = Tie{holding, ::getpid()};
    fault = driver().clSetMemObjectDestructorCallback
                ? driver().clSetMemObjectDestructorCallback(object, &object_gone, tie)
                : CL_OUT_OF_RESOURCES;
  }
  if (fault == CL_SUCCESS) return CL_SUCCESS;
  // An object that cannot be followed is not handed out.
  std::free(tie);
  driver().clReleaseMemObject(object);
  give_back(page, holding);
  return fault;
}

bool remember_svm(void* address, const Holding& holding) {
  SvmEntry* const entry = static_cast<SvmEntry*>(std::malloc(sizeof(SvmEntry)));
  if (!entry) return false;
  const Locked locked(svm_lock);
  SvmEntry*& head = svm_table[bucket_of(address)];
  *entry = SvmEntry{head, address, holding};
  head = entry;
  return true;
}

bool forget_svm(void* address, Holding* holding) {
  const Locked locked(svm_lock);
  for (SvmEntry** link = &svm_table[bucket_of(address)]; *link; link = &(*link)->next) {
    if ((*link)->address != address) continue;
    SvmEntry* const entry = *link;
    *holding = entry->holding;
    *link = entry->next;
    std::free(entry);
    return true;
  }
  return false;
}

}  // namespace loam::guard
