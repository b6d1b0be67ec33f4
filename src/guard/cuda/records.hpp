// What this process holds of a device, by handle: which page entry was charged, and how much. A
// table that grows; the cost of a call does not grow with what is live. Not pure: memory.
#pragma once

#include <cstdint>

#include "guard/cuda/api.hpp"

namespace loam::guard::cuda {

// What the handle is.
enum class Held : std::uint8_t {
  address,   // plain, pitched, managed
  array,     // also mipmapped
  physical,  // a handle of virtual memory; `count` references, `maps` mappings
  mapping,   // an address at which `other` is mapped
  pooled,    // an asynchronous allocation; `other` is its pool
  external,
  imported,  // another process's memory: charged there
  module,
  library,
  context,
  green,
  spillable,  // an address whose memory can go to the host; `other` is its block (spill.cpp)
};

struct Record {
  std::uint64_t bytes = 0;
  std::uint64_t other = 0;
  CUcontext context = nullptr;  // with which it ends; null: with none
  std::uint32_t count = 1;
  std::uint32_t maps = 0;
  std::uint8_t entry = 0;
  std::uint8_t memory_kind = 0;  // LOAM_MEMORY_...
};

// False where the process is out of memory.
bool remember(Held held, std::uint64_t handle, const Record& record);
// The record, forgotten by this call; false for a handle that is not known.
bool forget(Held held, std::uint64_t handle, Record* record);
bool find(Held held, std::uint64_t handle, Record* record);

// Calls `change(record)` under the table's lock; forgets the record where that returns true.
// False for a handle that is not known.
using Change = bool (*)(Record* record, void* closure);
bool change_through(Held held, std::uint64_t handle, Change change, void* closure);
template <class Function>
bool change(Held held, std::uint64_t handle, Function function) {
  return change_through(
      held, handle,
      [](Record* record, void* closure) { return (*static_cast<Function*>(closure))(record); },
      &function);
}

// Forgets everything that ends with the context and calls `ended` with each. Linear in what is
// live.
using Ended = void (*)(const Record& record, void* closure);
void forget_all_of(CUcontext context, Ended ended, void* closure);

}  // namespace loam::guard::cuda
