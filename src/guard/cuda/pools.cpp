// Memory that the driver keeps for the process beyond what it handed out: pools of asynchronous
// allocations and the memory of graphs. Both are charged by what the driver says it keeps.
#include <pthread.h>

#include <atomic>
#include <cstring>

#include "guard/cuda/charge.hpp"
#include "guard/lock.hpp"

namespace loam::guard::cuda {

namespace {

struct Pool {
  CUmemoryPool pool = nullptr;
  std::uint32_t entry = 0;
  std::uint64_t charged = 0;
};
constexpr int pools_max = 256;
pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
Pool pools[pools_max];
std::atomic<int> pool_count{0};

struct GraphMemory {
  std::atomic<bool> used{false};
  CUdevice device = -1;
  std::uint64_t charged = 0;
};
pthread_mutex_t graphs_lock = PTHREAD_MUTEX_INITIALIZER;
GraphMemory graphs[LOAM_SLICE_DEVICES_MAX];

void forget_in_child() {
  const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  std::memcpy(&pools_lock, &fresh, sizeof fresh);
  std::memcpy(&graphs_lock, &fresh, sizeof fresh);
  for (Pool& pool : pools) pool = Pool{};
  pool_count = 0;
  for (GraphMemory& graph : graphs) {
    graph.used = false;
    graph.charged = 0;
  }
}
[[gnu::constructor]] void forget_after_fork() {
  at_fork_in_child(&forget_in_child);
}

std::uint64_t attribute_of(CUmemoryPool pool, int attribute) {
  std::uint64_t value = 0;
  const Driver* const real = driver();
  if (real->cuMemPoolGetAttribute) real->cuMemPoolGetAttribute(pool, attribute, &value);
  return value;
}

// Under the pools' lock. Null where the table is full.
Pool* pool_place(CUmemoryPool pool, std::uint32_t entry) {
  Pool* empty = nullptr;
  for (Pool& known : pools) {
    if (known.pool == pool) return &known;
    if (!known.pool && !empty) empty = &known;
  }
  if (!empty) return nullptr;
  *empty = Pool{pool, entry, 0};
  ++pool_count;
  return empty;
}

// Under the pools' lock: charges what the driver keeps. False where it keeps more than the quota
// allows; then the charge stays as it was.
bool settle(Page& page, Pool& pool) {
  const std::uint64_t kept = attribute_of(pool.pool, pool_reserved_current);
  if (kept < pool.charged)
    take_off(page, pool.entry, pool.charged - kept, LOAM_MEMORY_POOL);
  else if (kept > pool.charged && !take(page, pool.entry, kept - pool.charged, LOAM_MEMORY_POOL))
    return false;
  pool.charged = kept;
  return true;
}

}  // namespace

bool any_pools() {
  return pool_count.load(std::memory_order_relaxed) > 0;
}

CUresult allocate_pooled(Page& page, CUmemoryPool pool, int entry, std::uint64_t bytes,
                         CUdeviceptr* address, PoolCall make, void* closure) {
  const Driver* const real = driver();
  const Locked locked(pools_lock);
  Pool* const known = pool_place(pool, static_cast<std::uint32_t>(entry));
  if (!known) return cuda_out_of_memory;
  // What the pool has free already is charged; the rest is reserved before the driver is asked.
  const std::uint64_t used = attribute_of(pool, pool_used_current);
  const std::uint64_t idle = known->charged > used ? known->charged - used : 0;
  const std::uint64_t more = bytes > idle ? bytes - idle : 0;
  if (more > 0 && !take(page, known->entry, more, LOAM_MEMORY_POOL)) return cuda_out_of_memory;
  known->charged += more;
  const CUresult fault = make(closure);
  if (settle(page, *known) || fault != cuda_success) return fault;
  // The driver took more than was asked, and the quota does not have it.
  if (real->cuMemFreeAsync) real->cuMemFreeAsync(*address, nullptr);
  if (real->cuCtxSynchronize) real->cuCtxSynchronize();
  if (real->cuMemPoolTrimTo) real->cuMemPoolTrimTo(pool, 0);
  settle(page, *known);
  *address = 0;
  return cuda_out_of_memory;
}

void settle_pools(Page& page, std::uint32_t entry) {
  const Locked locked(pools_lock);
  for (Pool& pool : pools)
    if (pool.pool && pool.entry == entry) settle(page, pool);
}

void settle_all_pools() {
  Page* const page = any_pools() ? Page::of_process() : nullptr;
  if (!page) return;
  const Locked locked(pools_lock);
  for (Pool& pool : pools)
    // A pool with nothing idle has nothing to give back.
    if (pool.pool && pool.charged > attribute_of(pool.pool, pool_used_current)) settle(*page, pool);
}

void settle_pool(CUmemoryPool wanted) {
  Page* const page = Page::of_process();
  if (!page) return;
  const Locked locked(pools_lock);
  for (Pool& pool : pools)
    if (pool.pool == wanted) settle(*page, pool);
}

void forget_pool(CUmemoryPool wanted) {
  Page* const page = Page::of_process();
  if (!page || !wanted) return;
  const Locked locked(pools_lock);
  for (Pool& pool : pools) {
    if (pool.pool != wanted) continue;
    take_off(*page, pool.entry, pool.charged, LOAM_MEMORY_POOL);
    pool = Pool{};
    --pool_count;
  }
}

bool reserve(Page& page, std::uint32_t entry, std::uint64_t bytes, std::uint32_t memory_kind) {
  if (any_pools()) [[unlikely]] {
    const std::uint64_t quota = loam_quota_bytes(&page.limits().device[entry]);
    const std::uint64_t used =
        __atomic_load_n(&page.counters().device[entry].memory.used, __ATOMIC_SEQ_CST);
    if (bytes > quota || used > quota - bytes) {
      const Locked locked(pools_lock);
      for (Pool& pool : pools) {
        if (!pool.pool || pool.entry != entry) continue;
        if (driver()->cuMemPoolTrimTo) driver()->cuMemPoolTrimTo(pool.pool, 0);
        settle(page, pool);
      }
    }
  }
  return take(page, entry, bytes, memory_kind);
}

bool announce_graph_memory(Page& page, std::uint32_t entry, CUdevice device, std::uint64_t bytes) {
  const std::uint64_t quota = loam_quota_bytes(&page.limits().device[entry]);
  const std::uint64_t used =
      __atomic_load_n(&page.counters().device[entry].memory.used, __ATOMIC_SEQ_CST);
  if (bytes > quota || used > quota - bytes) {
    __atomic_add_fetch(&page.counters().device[entry].memory.refusals, 1u, __ATOMIC_SEQ_CST);
    return false;
  }
  graphs[entry].device = device;
  graphs[entry].used.store(true, std::memory_order_release);
  return true;
}

void settle_graph_memory(Page& page, std::uint32_t entry) {
  GraphMemory& graph = graphs[entry];
  if (!graph.used.load(std::memory_order_acquire)) [[likely]]
    return;
  const Driver* const real = driver();
  if (!real->cuDeviceGetGraphMemAttribute) return;
  const Locked locked(graphs_lock);
  std::uint64_t kept = 0;
  if (real->cuDeviceGetGraphMemAttribute(graph.device, graph_memory_reserved_current, &kept) !=
      cuda_success)
    return;
  if (kept < graph.charged)
    take_off(page, entry, graph.charged - kept, LOAM_MEMORY_IMPLICIT);
  else if (kept > graph.charged && !take(page, entry, kept - graph.charged, LOAM_MEMORY_IMPLICIT))
    return;  // counted as a refusal; what follows is refused until it is given back
  graph.charged = kept;
}

}  // namespace loam::guard::cuda
