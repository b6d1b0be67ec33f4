// The fake CUDA driver: memory of every kind.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iterator>

#include "fakes/fake_cuda_inside.hpp"

using namespace loam::fakes;

namespace {

std::mutex guard_of_objects;  // pools, handles, graph memory
std::map<CUmemGenericAllocationHandle, Physical> physicals;
std::map<CUdeviceptr, CUmemGenericAllocationHandle> mapped;
CUmemGenericAllocationHandle last_handle = 0;
std::map<CUdeviceptr, std::uint64_t> ranges;  // reserved addresses, and how many
std::map<int, CUmemoryPool> default_pools, current_pools;
std::set<CUmemoryPool> pools;
std::map<CUdeviceptr, CUmemoryPool> pool_of;
std::uint64_t graph_reserved[cuda_devices_max] = {};

constexpr std::uint64_t pool_step = 2u << 20;

CUresult allocate(CUdeviceptr* address, std::uint64_t bytes, Owner owner) {
  if (!address || bytes == 0) return cuda_invalid_value;
  const CUcontext context = current();
  if (!context) return cuda_invalid_context;
  if (breaks_capture()) return 900;
  if (!charge(context->device, bytes)) return cuda_out_of_memory;
  *address = place(context->device, bytes, owner, context);
  if (*address != 0) return cuda_success;
  credit(context->device, bytes);
  return cuda_out_of_memory;
}

CUresult allocate_from(CUmemoryPool pool, CUdeviceptr* address, std::uint64_t bytes,
                       CUstream stream) {
  if (!address || bytes == 0) return cuda_invalid_value;
  if (stream && stream->capture) {  // becomes a node
    auto* const node = new CUgraphNode_st;
    node->type = node_mem_alloc;
    node->bytes = bytes;
    stream->capture->nodes.push_back(node);
    *address = place(pool->device, bytes, Owner::reserved, nullptr);
    return cuda_success;
  }
  const std::lock_guard lock(guard_of_objects);
  if (pool->reserved - pool->used < bytes) {
    const std::uint64_t missing = bytes - (pool->reserved - pool->used);
    const std::uint64_t more = (missing + pool_step - 1) / pool_step * pool_step;
    if (pool->device >= 0 && !charge(pool->device, more)) return cuda_out_of_memory;
    pool->reserved += more;
  }
  pool->used += bytes;
  *address = place(pool->device < 0 ? 0 : pool->device, bytes, Owner::pool, nullptr);
  pool_of[*address] = pool;
  return cuda_success;
}

void shrink(CUmemoryPool pool, std::uint64_t keep) {
  const std::uint64_t target = pool->used > keep ? pool->used : keep;
  const std::uint64_t rounded = (target + pool_step - 1) / pool_step * pool_step;
  if (rounded >= pool->reserved) return;
  if (pool->device >= 0) credit(pool->device, pool->reserved - rounded);
  pool->reserved = rounded;
}

CUresult free_async(CUdeviceptr address, CUstream stream) {
  if (stream && stream->capture) return cuda_success;
  const std::lock_guard lock(guard_of_objects);
  const auto found = pool_of.find(address);
  if (found == pool_of.end()) {
    const Placed placed = find_placed(address);
    if (placed.owner != Owner::plain && placed.owner != Owner::managed) return cuda_invalid_value;
    credit(placed.device, placed.bytes);
    unplace(address);
    return cuda_success;
  }
  found->second->used -= find_placed(address).bytes;
  unplace(address);
  pool_of.erase(found);
  return cuda_success;
}

std::uint64_t format_bytes(int format) {
  switch (format) {
    case 0x01:
    case 0x08:
      return 1;
    case 0x02:
    case 0x09:
    case 0x10:
      return 2;
    default:
      return 4;
  }
}

// A driver pads rows; this one to 512 bytes, and the whole to 64 KiB.
std::uint64_t array_bytes(const Array3dDescriptor& d, unsigned levels) {
  std::uint64_t total = 0;
  std::uint64_t width = d.width, height = d.height ? d.height : 1, depth = d.depth ? d.depth : 1;
  for (unsigned level = 0; level < levels; ++level) {
    const std::uint64_t row = (width * format_bytes(d.format) * d.channels + 511) / 512 * 512;
    total += row * height * depth;
    width = width > 1 ? width / 2 : 1;
    height = height > 1 ? height / 2 : 1;
    if (!(d.flags & array_layered)) depth = depth > 1 ? depth / 2 : 1;
  }
  if (d.flags & (array_sparse | array_deferred_mapping)) return 0;
  return (total + 65535) / 65536 * 65536;
}

template <class Array>
CUresult make_array(Array** array, const Array3dDescriptor* descriptor, unsigned levels) {
  if (!array || !descriptor || descriptor->width == 0) return cuda_invalid_value;
  const CUcontext context = current();
  if (!context) return cuda_invalid_context;
  const std::uint64_t bytes = array_bytes(*descriptor, levels);
  if (!charge(context->device, bytes)) return cuda_out_of_memory;
  *array = new Array{context->device, bytes};
  return cuda_success;
}

template <class Array>
CUresult end_array(Array* array) {
  if (!array) return cuda_invalid_handle;
  credit(array->device, array->bytes);
  delete array;
  return cuda_success;
}

CUmemoryPool current_pool(int device) {
  const CUmemoryPool standard = default_pool(device);
  const std::lock_guard lock(guard_of_objects);
  const auto found = current_pools.find(device);
  return found == current_pools.end() ? standard : found->second;
}

// What an inter-process handle says.
struct Ticket {
  std::int32_t pid, device;
  CUdeviceptr address;
  std::uint64_t bytes;
};

void end_if_unused(CUmemGenericAllocationHandle handle) {
  const auto found = physicals.find(handle);
  if (found == physicals.end() || found->second.references > 0 || found->second.maps > 0) return;
  if (found->second.device >= 0) credit(found->second.device, found->second.bytes);
  physicals.erase(found);
}

}  // namespace

namespace loam::fakes {

CUmemoryPool default_pool(int device) {
  const std::lock_guard lock(guard_of_objects);
  CUmemoryPool& pool = default_pools[device];
  if (!pool) {
    pool = new CUmemPoolHandle_st{device};
    pools.insert(pool);
  }
  return pool;
}

void release_idle_pools(int device) {
  const std::lock_guard lock(guard_of_objects);
  for (CUmemoryPool pool : pools)
    if (pool->device == device) shrink(pool, pool->threshold);
}

bool is_reserved(CUdeviceptr address, bool* has_memory) {
  const std::lock_guard lock(guard_of_objects);
  *has_memory = false;
  auto range = ranges.upper_bound(address);
  if (range == ranges.begin() || address >= std::prev(range)->first + std::prev(range)->second)
    return false;
  const auto at = mapped.upper_bound(address);
  if (at != mapped.begin()) {
    const auto& [begin, handle] = *std::prev(at);
    *has_memory = address < begin + physicals.at(handle).bytes;
  }
  return true;
}

void charge_graph_memory(int device, std::uint64_t bytes) {
  const std::lock_guard lock(guard_of_objects);
  if (bytes <= graph_reserved[device]) return;
  if (charge(device, bytes - graph_reserved[device])) graph_reserved[device] = bytes;
}

std::uint64_t graph_memory(int device) {
  const std::lock_guard lock(guard_of_objects);
  return graph_reserved[device];
}

}  // namespace loam::fakes

FAKE_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  FAKE_CALL();
  return allocate(address, bytes, Owner::plain);
}
FAKE_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width,
                                        std::size_t height, unsigned) {
  FAKE_CALL();
  if (!pitch || height == 0) return cuda_invalid_value;
  *pitch = (width + 511) / 512 * 512;
  return allocate(address, *pitch * height, Owner::plain);
}
FAKE_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned) {
  FAKE_CALL();
  return allocate(address, bytes, Owner::managed);
}
FAKE_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  FAKE_CALL();
  if (address == 0) return cuda_success;
  const Placed placed = find_placed(address);
  if (placed.owner == Owner::pool) return free_async(address, nullptr);
  if (placed.owner != Owner::plain && placed.owner != Owner::managed) return cuda_invalid_value;
  unplace(address);
  credit(placed.device, placed.bytes);
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemAllocHost_v2(void** address, std::size_t bytes) {
  FAKE_CALL();
  if (!address) return cuda_invalid_value;
  *address = std::calloc(1, bytes);
  return *address ? cuda_success : cuda_out_of_memory;
}
FAKE_EXPORT CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  return cuMemAllocHost_v2(address, bytes);
}
FAKE_EXPORT CUresult cuMemFreeHost(void* address) {
  FAKE_CALL();
  std::free(address);
  return cuda_success;
}

#define FAKE_POOLS(suffix, per_thread)                                                          \
  FAKE_EXPORT CUresult cuMemAllocAsync##suffix(CUdeviceptr* address, std::size_t bytes,         \
                                               CUstream stream) {                               \
    FAKE_CALL();                                                                                \
    const CUstream on = stream_or_default(stream, per_thread);                                  \
    if (!on) return cuda_invalid_context;                                                       \
    return allocate_from(current_pool(on->context->device), address, bytes, on);                \
  }                                                                                             \
  FAKE_EXPORT CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr* address, std::size_t bytes, \
                                                       CUmemoryPool pool, CUstream stream) {    \
    FAKE_CALL();                                                                                \
    if (!pool) return cuda_invalid_value;                                                       \
    return allocate_from(pool, address, bytes, stream_or_default(stream, per_thread));          \
  }                                                                                             \
  FAKE_EXPORT CUresult cuMemFreeAsync##suffix(CUdeviceptr address, CUstream stream) {           \
    FAKE_CALL();                                                                                \
    return free_async(address, stream_or_default(stream, per_thread));                          \
  }
FAKE_POOLS(, false)
FAKE_POOLS(_ptsz, true)

FAKE_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const MemPoolProps* props) {
  FAKE_CALL();
  if (!pool || !props) return cuda_invalid_value;
  const bool on_device = props->location.type == location_device;
  *pool = new CUmemPoolHandle_st{on_device ? props->location.id : -1};
  const std::lock_guard lock(guard_of_objects);
  pools.insert(*pool);
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  if (pools.erase(pool) == 0) return cuda_invalid_value;
  if (pool->device >= 0) credit(pool->device, pool->reserved);
  delete pool;
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  shrink(pool, keep);
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value) {
  FAKE_CALL();
  if (attribute == pool_release_threshold) std::memcpy(&pool->threshold, value, 8);
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  if (attribute == pool_reserved_current) return std::memcpy(value, &pool->reserved, 8), 0;
  if (attribute == pool_used_current) return std::memcpy(value, &pool->used, 8), 0;
  if (attribute == pool_release_threshold) return std::memcpy(value, &pool->threshold, 8), 0;
  return cuda_invalid_value;
}
FAKE_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  FAKE_CALL();
  if (!pool || !known_device(device)) return cuda_invalid_value;
  *pool = current_pool(device);
  return cuda_success;
}
FAKE_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  FAKE_CALL();
  if (!pool || !known_device(device)) return cuda_invalid_value;
  *pool = default_pool(device);
  return cuda_success;
}
FAKE_EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  current_pools[device] = pool;
  return cuda_success;
}

// ---- virtual memory ----

FAKE_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                                 const MemAllocationProp* prop, unsigned long long) {
  FAKE_CALL();
  if (!handle || !prop || bytes == 0 || bytes % (2u << 20) != 0) return cuda_invalid_value;
  const bool on_device = prop->location.type == location_device;
  if (on_device && !known_device(prop->location.id)) return cuda_invalid_device;
  if (on_device && !charge(prop->location.id, bytes)) return cuda_out_of_memory;
  const std::lock_guard lock(guard_of_objects);
  *handle = ++last_handle;
  physicals[*handle] = Physical{on_device ? prop->location.id : -1, bytes, 1, 0};
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  const auto found = physicals.find(handle);
  if (found == physicals.end() || found->second.references == 0) return cuda_invalid_value;
  --found->second.references;
  end_if_unused(handle);
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t,
                                         CUdeviceptr, unsigned long long) {
  FAKE_CALL();
  if (!address) return cuda_invalid_value;
  *address = place(0, bytes, Owner::reserved, nullptr);
  if (!*address) return cuda_out_of_memory;
  const std::lock_guard lock(guard_of_objects);
  ranges[*address] = bytes;
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemAddressFree(CUdeviceptr address, std::size_t) {
  FAKE_CALL();
  {
    const std::lock_guard lock(guard_of_objects);
    if (ranges.erase(address) == 0 || mapped.count(address)) return cuda_invalid_value;
  }
  unplace(address);
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemSetAccess(CUdeviceptr address, std::size_t, const MemAccessDesc* access,
                                    std::size_t count) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  return access && count > 0 && mapped.count(address) ? cuda_success : cuda_invalid_value;
}
FAKE_EXPORT CUresult cuMemGetAllocationGranularity(std::size_t* bytes,
                                                   const MemAllocationProp* prop, int) {
  FAKE_CALL();
  if (!bytes || !prop) return cuda_invalid_value;
  *bytes = 2u << 20;
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemMap(CUdeviceptr address, std::size_t, std::size_t,
                              CUmemGenericAllocationHandle handle, unsigned long long) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  const auto found = physicals.find(handle);
  if (found == physicals.end() || mapped.count(address)) return cuda_invalid_value;
  ++found->second.maps;
  mapped[address] = handle;
  // A card's memory has no small pages to be found one by one.
  ::madvise(reinterpret_cast<void*>(address), found->second.bytes, MADV_HUGEPAGE);
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  bool any = false;
  for (auto at = mapped.lower_bound(address); at != mapped.end() && at->first < address + bytes;) {
    const auto handle = at->second;
    // What was in it is not at these addresses any more.
    ::madvise(reinterpret_cast<void*>(at->first), physicals.at(handle).bytes, MADV_DONTNEED);
    at = mapped.erase(at);
    --physicals.at(handle).maps;
    end_if_unused(handle);
    any = true;
  }
  return any ? cuda_success : cuda_invalid_value;
}
// ---- questions about addresses ----

namespace {
// A device's memory behind the address, as a driver knows it.
bool is_memory(CUdeviceptr address) {
  bool has_memory = false;
  if (is_reserved(address, &has_memory)) return has_memory;
  return find_placed(address).owner != Owner::none;
}
}  // namespace

FAKE_EXPORT CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr address) {
  FAKE_CALL();
  constexpr int memory_type = 2;
  if (!value || attribute != memory_type || !is_memory(address)) return cuda_invalid_value;
  const unsigned device_memory = memory_device;
  std::memcpy(value, &device_memory, sizeof device_memory);
  return cuda_success;
}
FAKE_EXPORT CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                            CUdeviceptr address) {
  for (unsigned i = 0; i < count; ++i)
    if (const CUresult fault = cuPointerGetAttribute(values[i], attributes[i], address); fault != 0)
      return fault;
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes,
                                             CUdeviceptr address) {
  FAKE_CALL();
  if (!is_memory(address)) return cuda_invalid_value;
  if (base) *base = address;
  if (bytes) *bytes = find_placed(address).bytes;
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                 void* address) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  const auto found = mapped.find(reinterpret_cast<CUdeviceptr>(address));
  if (!handle || found == mapped.end()) return cuda_invalid_value;
  ++physicals.at(found->second).references;
  *handle = found->second;
  return cuda_success;
}
FAKE_EXPORT CUresult cuMemExportToShareableHandle(void* shared, CUmemGenericAllocationHandle handle,
                                                  int, unsigned long long) {
  FAKE_CALL();
  std::memcpy(shared, &handle, sizeof(int));
  return cuda_success;
}
// The memory is another process's: it costs nothing here.
FAKE_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void*,
                                                    int) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  *handle = ++last_handle;
  physicals[*handle] = Physical{-1, 2u << 20, 1, 0};
  return cuda_success;
}
FAKE_EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle, const void*) {
  FAKE_CALL();
  const std::lock_guard lock(guard_of_objects);
  *handle = ++last_handle;
  physicals[*handle] = Physical{-1, 2u << 20, 1, 0};
  return cuda_success;
}

// ---- arrays, imports ----

FAKE_EXPORT CUresult cuArrayCreate_v2(CUarray* array, const ArrayDescriptor* descriptor) {
  FAKE_CALL();
  if (!descriptor) return cuda_invalid_value;
  const Array3dDescriptor whole{descriptor->width,  descriptor->height,   0,
                                descriptor->format, descriptor->channels, 0};
  return make_array(array, &whole, 1);
}
FAKE_EXPORT CUresult cuArray3DCreate_v2(CUarray* array, const Array3dDescriptor* descriptor) {
  FAKE_CALL();
  return make_array(array, descriptor, 1);
}
FAKE_EXPORT CUresult cuArrayDestroy(CUarray array) {
  FAKE_CALL();
  return end_array(array);
}
FAKE_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* array,
                                            const Array3dDescriptor* descriptor, unsigned levels) {
  FAKE_CALL();
  return make_array(array, descriptor, levels);
}
FAKE_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  FAKE_CALL();
  return end_array(array);
}
FAKE_EXPORT CUresult cuImportExternalMemory(CUexternalMemory* memory,
                                            const ExternalMemoryDesc* desc) {
  FAKE_CALL();
  if (!memory || !desc) return cuda_invalid_value;
  *memory = new CUextMemory_st{desc->bytes};
  return cuda_success;
}
FAKE_EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  FAKE_CALL();
  delete memory;
  return cuda_success;
}
FAKE_EXPORT CUresult cuIpcGetMemHandle(IpcMemHandle* handle, CUdeviceptr address) {
  FAKE_CALL();
  const Placed placed = find_placed(address);
  if (!handle || placed.owner != Owner::plain) return cuda_invalid_value;
  const Ticket ticket{::getpid(), placed.device, address, placed.bytes};
  std::memcpy(handle, &ticket, sizeof ticket);
  return cuda_success;
}
FAKE_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, IpcMemHandle handle, unsigned) {
  FAKE_CALL();
  Ticket ticket;
  std::memcpy(&ticket, &handle, sizeof ticket);
  if (!address || !known_device(ticket.device)) return cuda_invalid_value;
  *address = place(ticket.device, ticket.bytes, Owner::imported, current());
  return cuda_success;
}
FAKE_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr* address, IpcMemHandle handle, unsigned flags) {
  return cuIpcOpenMemHandle_v2(address, handle, flags);
}
FAKE_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  FAKE_CALL();
  if (find_placed(address).owner != Owner::imported) return cuda_invalid_value;
  unplace(address);
  return cuda_success;
}
