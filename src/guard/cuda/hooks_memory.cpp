// Hooks of the CUDA entries that allocate and free device memory.
#include "guard/cuda/charge.hpp"
#include "guard/cuda/driver.hpp"
#include "guard/cuda/gate.hpp"
#include "guard/cuda/spill.hpp"

namespace loam::guard::cuda {

namespace {

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

// Drivers hand out memory in pieces of this size at least; asked bytes are charged rounded to it.
constexpr std::uint64_t piece_bytes = 512;
std::uint64_t rounded(std::uint64_t bytes) {
  return bytes > UINT64_MAX - piece_bytes ? UINT64_MAX
                                          : (bytes + piece_bytes - 1) / piece_bytes * piece_bytes;
}

// A page may ask that memory is cleared before the task sees it.
CUresult cleared(CUdeviceptr address, std::uint64_t bytes) {
  const Driver* const real = driver();
  const Page* const page = Page::of_process();
  const int entry = page ? entry_here(*page) : not_on_page;
  if (entry == not_on_page || !loam_limits_have(&page->limits().device[entry], LOAM_LIMIT_CLEAR))
      [[likely]]
    return cuda_success;
  return real->cuMemsetD8_v2 ? real->cuMemsetD8_v2(address, 0, bytes) : cuda_not_supported;
}

// Memory at an address that is not the thread's: the driver frees it.
CUresult allocate_address(CUdeviceptr* address, std::uint64_t bytes, std::uint32_t kind,
                          CUresult (*make)(void*), void* closure) {
  const CUresult fault = allocate(
      Held::address, rounded(bytes), kind, [&] { return make(closure); }, [&] { return *address; },
      [&] { driver()->cuMemFree_v2(*address); });
  if (fault != cuda_success) return fault;
  const CUresult clear = cleared(*address, bytes);
  if (clear == cuda_success) [[likely]]
    return cuda_success;
  release(Held::address, *address, [&] { return driver()->cuMemFree_v2(*address); });
  return clear;
}

template <class Make>
CUresult allocate_at(CUdeviceptr* address, std::uint64_t bytes, std::uint32_t kind, Make make) {
  return allocate_address(
      address, bytes, kind, [](void* closure) { return (*static_cast<Make*>(closure))(); }, &make);
}

// The pool of the stream's device, or the given one, and an allocation from it.
template <class Make>
CUresult allocate_from(CUdeviceptr* address, std::uint64_t bytes, CUmemoryPool pool,
                       CUstream stream, bool per_thread, Make make) {
  const Driver* const real = driver();
  Page* const page = real ? Page::of_process() : nullptr;
  if (!page) return cuda_no_device;
  if (!address || bytes == 0) return make();  // the driver says what is wrong with that
  Here here;
  if (const CUresult fault = find_here(*page, &here); fault != cuda_success) return fault;
  const auto entry = static_cast<std::uint32_t>(here.entry);
  if (is_capturing(stream, per_thread)) {
    if (!announce_graph_memory(*page, entry, here.device, bytes)) return cuda_out_of_memory;
    return make();
  }
  if (!pool &&
      (!real->cuDeviceGetMemPool || real->cuDeviceGetMemPool(&pool, here.device) != cuda_success))
    return cuda_not_supported;
  const CUresult fault = allocate_pooled(
      *page, pool, here.entry, bytes, address,
      [](void* closure) { return (*static_cast<Make*>(closure))(); }, &make);
  if (fault != cuda_success) return fault;
  Record record;
  record.other = reinterpret_cast<std::uint64_t>(pool);
  record.entry = static_cast<std::uint8_t>(entry);
  if (remember(Held::pooled, *address, record)) return cuda_success;
  return cuda_out_of_memory;
}

CUmemoryPool pool_of(CUdeviceptr address) {
  Record record;
  return forget(Held::pooled, address, &record) ? reinterpret_cast<CUmemoryPool>(record.other)
                                                : nullptr;
}

CUresult synchronize(CUstream stream, bool per_thread) {
  const Driver* const real = driver();
  const auto wait = per_thread ? real->cuStreamSynchronize_ptsz : real->cuStreamSynchronize;
  return wait ? wait(stream) : cuda_not_supported;
}

// An asynchronous free of pooled memory, or of a plain allocation.
template <class Free>
CUresult free_async(CUdeviceptr address, CUstream stream, bool per_thread, Free free) {
  if (const CUmemoryPool pool = pool_of(address)) {
    const CUresult fault = free();
    settle_pool(pool);
    return fault;
  }
  Record spillable;
  if (any_spillable() && find(Held::spillable, address, &spillable)) {
    // In the stream's order: after all that is on it.
    CUresult fault = synchronize(stream, per_thread);
    if (fault == cuda_success) free_spillable(address, &fault);
    return fault;
  }
  return release(Held::address, address, free);
}

// A handle of physical memory has lost a reference or a mapping.
void end_physical(CUmemGenericAllocationHandle handle, bool reference) {
  Page* const page = Page::of_process();
  Record ended;
  bool over = false;
  change(Held::physical, handle, [&](Record* record) {
    std::uint32_t& count = reference ? record->count : record->maps;
    if (count > 0) --count;
    over = record->count == 0 && record->maps == 0;
    ended = *record;
    return over;
  });
  if (over && page) give_back(*page, ended);
}

}  // namespace

}  // namespace loam::guard::cuda

using namespace loam::guard;
using namespace loam::guard::cuda;

LOAM_GUARD_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  LOAM_CUDA_REQUIRE(cuMemAlloc_v2);
  if (!address || bytes == 0) return real->cuMemAlloc_v2(address, bytes);
  if (Page* const page = Page::of_process()) [[likely]] {
    const int entry = entry_here(*page);
    if (entry != not_on_page && is_to_spill(*page, static_cast<std::uint32_t>(entry), bytes))
        [[unlikely]]
      return allocate_spillable(*page, address, bytes);
  }
  return allocate_at(address, bytes, LOAM_MEMORY_BUFFER,
                     [&] { return real->cuMemAlloc_v2(address, bytes); });
}

LOAM_GUARD_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch,
                                              std::size_t width, std::size_t height,
                                              unsigned element) {
  LOAM_CUDA_REQUIRE(cuMemAllocPitch_v2);
  if (!address || !pitch) return real->cuMemAllocPitch_v2(address, pitch, width, height, element);
  // The driver widens rows to at most this.
  constexpr std::uint64_t row_bytes = 512;
  const std::uint64_t row = (std::uint64_t{width} + row_bytes - 1) / row_bytes * row_bytes;
  return allocate_at(address, times(row, height), LOAM_MEMORY_BUFFER, [&] {
    return real->cuMemAllocPitch_v2(address, pitch, width, height, element);
  });
}

LOAM_GUARD_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes,
                                             unsigned flags) {
  LOAM_CUDA_REQUIRE(cuMemAllocManaged);
  if (!address || bytes == 0) return real->cuMemAllocManaged(address, bytes, flags);
  return allocate_at(address, bytes, LOAM_MEMORY_SHARED,
                     [&] { return real->cuMemAllocManaged(address, bytes, flags); });
}

LOAM_GUARD_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  LOAM_CUDA_REQUIRE(cuMemFree_v2);
  if (CUresult fault = cuda_success; free_spillable(address, &fault)) [[unlikely]]
    return fault;
  if (any_pools()) [[unlikely]]
    if (const CUmemoryPool pool = pool_of(address)) {
      const CUresult fault = real->cuMemFree_v2(address);
      settle_pool(pool);
      return fault;
    }
  return release(Held::address, address, [&] { return real->cuMemFree_v2(address); });
}

#define LOAM_CUDA_POOLS(suffix, per_thread)                                                      \
  LOAM_GUARD_EXPORT CUresult cuMemAllocAsync##suffix(CUdeviceptr* address, std::size_t bytes,    \
                                                     CUstream stream) {                          \
    LOAM_CUDA_REQUIRE(cuMemAllocAsync##suffix);                                                  \
    return allocate_from(address, bytes, nullptr, stream, per_thread,                            \
                         [&] { return real->cuMemAllocAsync##suffix(address, bytes, stream); }); \
  }                                                                                              \
  LOAM_GUARD_EXPORT CUresult cuMemAllocFromPoolAsync##suffix(                                    \
      CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool, CUstream stream) {             \
    LOAM_CUDA_REQUIRE(cuMemAllocFromPoolAsync##suffix);                                          \
    if (!pool) return real->cuMemAllocFromPoolAsync##suffix(address, bytes, pool, stream);       \
    return allocate_from(address, bytes, pool, stream, per_thread, [&] {                         \
      return real->cuMemAllocFromPoolAsync##suffix(address, bytes, pool, stream);                \
    });                                                                                          \
  }                                                                                              \
  LOAM_GUARD_EXPORT CUresult cuMemFreeAsync##suffix(CUdeviceptr address, CUstream stream) {      \
    LOAM_CUDA_REQUIRE(cuMemFreeAsync##suffix);                                                   \
    return free_async(address, stream, per_thread,                                               \
                      [&] { return real->cuMemFreeAsync##suffix(address, stream); });            \
  }
LOAM_CUDA_POOLS(, false)
LOAM_CUDA_POOLS(_ptsz, true)

LOAM_GUARD_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const MemPoolProps* props) {
  LOAM_CUDA_REQUIRE(cuMemPoolCreate);
  Page* const page = Page::of_process();
  if (!page) return cuda_no_device;
  if (props && props->location.type == location_device &&
      page_entry(*page, props->location.id) == not_on_page)
    return cuda_invalid_device;
  return real->cuMemPoolCreate(pool, props);
}

LOAM_GUARD_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  LOAM_CUDA_REQUIRE(cuMemPoolDestroy);
  const CUresult fault = real->cuMemPoolDestroy(pool);
  if (fault == cuda_success) forget_pool(pool);
  return fault;
}

LOAM_GUARD_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep) {
  LOAM_CUDA_REQUIRE(cuMemPoolTrimTo);
  const CUresult fault = real->cuMemPoolTrimTo(pool, keep);
  settle_pool(pool);
  return fault;
}

LOAM_GUARD_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value) {
  LOAM_CUDA_REQUIRE(cuMemPoolSetAttribute);
  const CUresult fault = real->cuMemPoolSetAttribute(pool, attribute, value);
  settle_pool(pool);
  return fault;
}

// ---- virtual memory: physical handles are what counts, addresses cost nothing ----

LOAM_GUARD_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                                       const MemAllocationProp* prop, unsigned long long flags) {
  LOAM_CUDA_REQUIRE(cuMemCreate);
  // Memory of the host is the host's.
  if (!handle || !prop || prop->location.type != location_device)
    return real->cuMemCreate(handle, bytes, prop, flags);
  Page* const page = Page::of_process();
  if (!page) return cuda_no_device;
  const int entry = page_entry(*page, prop->location.id);
  if (entry == not_on_page) return cuda_invalid_device;
  Record record;
  record.bytes = bytes;
  record.entry = static_cast<std::uint8_t>(entry);
  record.memory_kind = LOAM_MEMORY_VIRTUAL;
  if (!reserve(*page, record.entry, bytes, LOAM_MEMORY_VIRTUAL)) return cuda_out_of_memory;
  const CUresult fault = real->cuMemCreate(handle, bytes, prop, flags);
  if (fault == cuda_success && remember(Held::physical, *handle, record)) return cuda_success;
  if (fault == cuda_success && real->cuMemRelease) real->cuMemRelease(*handle);
  loam::guard::cuda::give_back(*page, record);
  return fault == cuda_success ? cuda_out_of_memory : fault;
}

LOAM_GUARD_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  LOAM_CUDA_REQUIRE(cuMemRelease);
  const CUresult fault = real->cuMemRelease(handle);
  if (fault == cuda_success) end_physical(handle, true);
  return fault;
}

LOAM_GUARD_EXPORT CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                                    CUmemGenericAllocationHandle handle, unsigned long long flags) {
  LOAM_CUDA_REQUIRE(cuMemMap);
  const CUresult fault = real->cuMemMap(address, bytes, offset, handle, flags);
  if (fault != cuda_success) return fault;
  const bool counted = change(Held::physical, handle, [](Record* record) {
    ++record->maps;
    return false;
  });
  if (counted) {
    Record mapping;
    mapping.bytes = bytes;
    mapping.other = handle;
    remember(Held::mapping, address, mapping);
  }
  return fault;
}

LOAM_GUARD_EXPORT CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  LOAM_CUDA_REQUIRE(cuMemUnmap);
  const CUresult fault = real->cuMemUnmap(address, bytes);
  if (fault != cuda_success) return fault;
  // One call may end several mappings that lie one behind the other.
  for (CUdeviceptr at = address; at < address + bytes;) {
    Record mapping;
    if (!forget(Held::mapping, at, &mapping) || mapping.bytes == 0) break;
    end_physical(mapping.other, false);
    at += mapping.bytes;
  }
  return fault;
}

LOAM_GUARD_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                       void* address) {
  LOAM_CUDA_REQUIRE(cuMemRetainAllocationHandle);
  const CUresult fault = real->cuMemRetainAllocationHandle(handle, address);
  if (fault == cuda_success)
    change(Held::physical, *handle, [](Record* record) {
      ++record->count;
      return false;
    });
  return fault;
}

// ---- memory that comes from elsewhere ----

// Another process's: the process that made it is charged, as long as it lives.
LOAM_GUARD_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                                          void* shared, int type) {
  LOAM_CUDA_REQUIRE(cuMemImportFromShareableHandle);
  return real->cuMemImportFromShareableHandle(handle, shared, type);
}

LOAM_GUARD_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, IpcMemHandle handle,
                                                 unsigned flags) {
  LOAM_CUDA_REQUIRE(cuIpcOpenMemHandle_v2);
  return real->cuIpcOpenMemHandle_v2(address, handle, flags);
}

LOAM_GUARD_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr* address, IpcMemHandle handle,
                                              unsigned flags) {
  LOAM_CUDA_REQUIRE(cuIpcOpenMemHandle);
  return real->cuIpcOpenMemHandle(address, handle, flags);
}

LOAM_GUARD_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  LOAM_CUDA_REQUIRE(cuIpcCloseMemHandle);
  return real->cuIpcCloseMemHandle(address);
}

// A graphics interface's memory on the same device, which nothing else counts.
LOAM_GUARD_EXPORT CUresult cuImportExternalMemory(CUexternalMemory* memory,
                                                  const ExternalMemoryDesc* desc) {
  LOAM_CUDA_REQUIRE(cuImportExternalMemory);
  if (!memory || !desc) return real->cuImportExternalMemory(memory, desc);
  return allocate(
      Held::external, desc->bytes, LOAM_MEMORY_VIRTUAL,
      [&] { return real->cuImportExternalMemory(memory, desc); },
      [&] { return reinterpret_cast<std::uint64_t>(*memory); },
      [&] { real->cuDestroyExternalMemory(*memory); });
}

LOAM_GUARD_EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  LOAM_CUDA_REQUIRE(cuDestroyExternalMemory);
  return release(Held::external, reinterpret_cast<std::uint64_t>(memory),
                 [&] { return real->cuDestroyExternalMemory(memory); });
}

// ---- graphs that allocate ----

LOAM_GUARD_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph,
                                                  const CUgraphNode* after, std::size_t count,
                                                  MemAllocNodeParams* params) {
  LOAM_CUDA_REQUIRE(cuGraphAddMemAllocNode);
  Page* const page = Page::of_process();
  if (!page) return cuda_no_device;
  if (params) {
    const int entry = page_entry(*page, params->pool.location.id);
    if (entry == not_on_page) return cuda_invalid_device;
    if (!announce_graph_memory(*page, static_cast<std::uint32_t>(entry), params->pool.location.id,
                               params->bytes))
      return cuda_out_of_memory;
  }
  return real->cuGraphAddMemAllocNode(node, graph, after, count, params);
}

namespace {

// Whether the node may be added: one that allocates must fit the slice.
CUresult admit_node(const GraphNodeParams* params) {
  Page* const page = Page::of_process();
  if (!page) return cuda_no_device;
  if (!params || params->type != node_mem_alloc) return cuda_success;
  const MemAllocNodeParams& alloc = params->mem_alloc;
  const int entry = page_entry(*page, alloc.pool.location.id);
  if (entry == not_on_page) return cuda_invalid_device;
  return announce_graph_memory(*page, static_cast<std::uint32_t>(entry), alloc.pool.location.id,
                               alloc.bytes)
             ? cuda_success
             : cuda_out_of_memory;
}

}  // namespace

LOAM_GUARD_EXPORT CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph,
                                          const CUgraphNode* after, std::size_t count,
                                          GraphNodeParams* params) {
  LOAM_CUDA_REQUIRE(cuGraphAddNode);
  const CUresult refused = admit_node(params);
  return refused == cuda_success ? real->cuGraphAddNode(node, graph, after, count, params)
                                 : refused;
}

LOAM_GUARD_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph,
                                             const CUgraphNode* after, const void* data,
                                             std::size_t count, GraphNodeParams* params) {
  LOAM_CUDA_REQUIRE(cuGraphAddNode_v2);
  const CUresult refused = admit_node(params);
  return refused == cuda_success ? real->cuGraphAddNode_v2(node, graph, after, data, count, params)
                                 : refused;
}

LOAM_GUARD_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
  LOAM_CUDA_REQUIRE(cuDeviceGraphMemTrim);
  const CUresult fault = real->cuDeviceGraphMemTrim(device);
  Page* const page = Page::of_process();
  const int entry = page ? page_entry(*page, device) : not_on_page;
  if (entry != not_on_page) settle_graph_memory(*page, static_cast<std::uint32_t>(entry));
  return fault;
}
