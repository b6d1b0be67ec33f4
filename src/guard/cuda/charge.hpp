// Device memory taken through CUDA: reserved on the slice page first, then allocated, then
// recorded. Not pure: the slice page, the driver.
#pragma once

#include <cstdint>

#include "guard/cuda/places.hpp"
#include "guard/cuda/records.hpp"
#include "guard/memory.hpp"

namespace loam::guard::cuda {

// Takes `bytes` on the entry: lets the process's own idle pools go first where the quota would not
// allow it otherwise. False over the quota.
bool reserve(Page& page, std::uint32_t entry, std::uint64_t bytes, std::uint32_t memory_kind);

inline void give_back(Page& page, const Record& record) {
  if (record.bytes > 0) take_off(page, record.entry, record.bytes, record.memory_kind);
}

// Reserves `bytes` where the thread's context is, calls the driver through `make`, and records the
// handle that `made()` then returns. The result is the driver's, or cuda_out_of_memory over the
// quota.
template <class Make, class Made, class Unmake>
CUresult allocate(Held held, std::uint64_t bytes, std::uint32_t memory_kind, Make make, Made made,
                  Unmake unmake) {
  Page* const page = driver() ? Page::of_process() : nullptr;
  if (!page) return cuda_no_device;
  Here here;
  if (const CUresult fault = find_here(*page, &here); fault != cuda_success) return fault;
  Record record;
  record.bytes = bytes;
  record.context = here.context;
  record.entry = static_cast<std::uint8_t>(here.entry);
  record.memory_kind = static_cast<std::uint8_t>(memory_kind);
  if (!reserve(*page, record.entry, bytes, memory_kind)) return cuda_out_of_memory;
  const CUresult fault = make();
  if (fault == cuda_success && remember(held, made(), record)) [[likely]]
    return cuda_success;
  if (fault == cuda_success) unmake();
  give_back(*page, record);
  return fault == cuda_success ? cuda_out_of_memory : fault;
}

// Frees through `end` what the handle holds, wherever the thread's context is. A handle that is not
// known goes to the driver as it is.
template <class End>
CUresult release(Held held, std::uint64_t handle, End end) {
  Page* const page = Page::of_process();
  Record record;
  // Forgotten before the driver frees it: afterwards the handle may be another thread's.
  const bool known = forget(held, handle, &record);
  const CUresult fault = end();
  if (!known) return fault;
  if (fault != cuda_success)
    remember(held, handle, record);
  else if (page)
    give_back(*page, record);
  return fault;
}

// ---- pools and graph memory: what the driver keeps, not what it handed out ----

// An allocation of `bytes` from the pool, through `make`.
using PoolCall = CUresult (*)(void* closure);
CUresult allocate_pooled(Page& page, CUmemoryPool pool, int entry, std::uint64_t bytes,
                         CUdeviceptr* address, PoolCall make, void* closure);
// What the driver keeps in the process's pools on the entry may have changed.
void settle_pools(Page& page, std::uint32_t entry);
void settle_all_pools();
void settle_pool(CUmemoryPool pool);
void forget_pool(CUmemoryPool pool);
// Whether any pool is known: else settling costs nothing.
bool any_pools();

// A graph of this process allocates `bytes` when it runs: false where the quota has no room for it.
bool announce_graph_memory(Page& page, std::uint32_t entry, CUdevice device, std::uint64_t bytes);
// After a launch, a trim: charges what the driver keeps for graphs now. Costs a load where no graph
// of the process allocates.
void settle_graph_memory(Page& page, std::uint32_t entry);

}  // namespace loam::guard::cuda
