// The part of the CUDA driver API that the guard touches: types, constants and the entries it puts
// itself in front of. Written from NVIDIA's public CUDA Driver API documentation (12 and 13); no
// header of NVIDIA's is used. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUgreenCtx = struct CUgreenCtx_st*;
using CUmodule = struct CUmod_st*;
using CUlibrary = struct CUlib_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUarray = struct CUarray_st*;
using CUmipmappedArray = struct CUmipmappedArray_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUexternalMemory = struct CUextMemory_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUmemGenericAllocationHandle = unsigned long long;

namespace loam::guard::cuda {

enum : CUresult {
  cuda_success = 0,
  cuda_invalid_value = 1,
  cuda_out_of_memory = 2,
  cuda_not_initialized = 3,
  cuda_no_device = 100,
  cuda_invalid_device = 101,
  cuda_invalid_context = 201,
  cuda_invalid_handle = 400,
  cuda_not_found = 500,
  cuda_not_ready = 600,
  cuda_not_permitted = 800,
  cuda_not_supported = 801,
  cuda_unknown = 999,
};

enum : int {
  location_device = 1,
  location_host = 2,
  location_host_numa = 3,
  location_host_numa_current = 4,
};

enum : int { memory_host = 1, memory_device = 2, memory_array = 3, memory_unified = 4 };

enum : int { capture_none = 0, capture_active = 1, capture_invalidated = 2 };
enum : int { capture_mode_global = 0, capture_mode_thread_local = 1, capture_mode_relaxed = 2 };

inline constexpr int pool_release_threshold = 4;
inline constexpr int pool_reserved_current = 5;
inline constexpr int pool_used_current = 7;
inline constexpr int graph_memory_used_current = 0;
inline constexpr int graph_memory_reserved_current = 2;
inline constexpr int node_kernel = 0;
inline constexpr int node_mem_alloc = 10;
inline constexpr unsigned array_layered = 0x01;
inline constexpr unsigned array_cubemap = 0x04;
inline constexpr unsigned array_sparse = 0x40;
inline constexpr unsigned array_deferred_mapping = 0x80;
inline constexpr unsigned event_blocking_sync = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr std::uint64_t proc_address_legacy_stream = 1;
inline constexpr std::uint64_t proc_address_per_thread_stream = 2;
inline constexpr int symbol_found = 0;
inline constexpr int symbol_not_found = 1;

struct Uuid {
  unsigned char bytes[16];
};

struct ArrayDescriptor {
  std::size_t width, height;
  int format;
  unsigned channels;
};
struct Array3dDescriptor {
  std::size_t width, height, depth;
  int format;
  unsigned channels;
  unsigned flags;
};

struct MemLocation {
  int type;
  int id;
};
struct MemAllocationProp {
  int type;
  int handle_types;
  MemLocation location;
  void* win32;
  unsigned char compression;
  unsigned char gpu_direct;
  unsigned short usage;
  unsigned char reserved[4];
};
static_assert(sizeof(MemAllocationProp) == 32);

struct MemAccessDesc {
  MemLocation location;
  int flags;
};
static_assert(sizeof(MemAccessDesc) == 12);
inline constexpr int access_read_write = 3;

struct MemPoolProps {
  int allocation_type;
  int handle_types;
  MemLocation location;
  void* win32;
  std::size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(MemPoolProps) == 88);

struct MemAllocNodeParams {
  MemPoolProps pool;
  const void* access;
  std::size_t access_count;
  std::size_t bytes;
  CUdeviceptr address;
};
static_assert(offsetof(MemAllocNodeParams, bytes) == 104);

// Of the union that follows, only the member of memory nodes is used.
struct GraphNodeParams {
  int type;
  int reserved0[3];
  union {
    long long reserved1[29];
    MemAllocNodeParams mem_alloc;
  };
  long long reserved2;
};
static_assert(offsetof(GraphNodeParams, mem_alloc) == 16 && sizeof(GraphNodeParams) == 256);

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  CUstream stream;
  void* attributes;
  unsigned attribute_count;
};
static_assert(offsetof(LaunchConfig, stream) == 32 && sizeof(LaunchConfig) == 56);

struct LaunchParams {
  CUfunction function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  CUstream stream;
  void** parameters;
};
static_assert(offsetof(LaunchParams, stream) == 40 && sizeof(LaunchParams) == 56);

struct Memcpy2d {
  std::size_t from_x, from_y;
  int from_type;
  const void* from_host;
  CUdeviceptr from_device;
  CUarray from_array;
  std::size_t from_pitch;
  std::size_t to_x, to_y;
  int to_type;
  void* to_host;
  CUdeviceptr to_device;
  CUarray to_array;
  std::size_t to_pitch;
  std::size_t width_bytes, height;
};
static_assert(sizeof(Memcpy2d) == 128);

// Also the layout of copies between peers, whose contexts lie where `reserved` is.
struct Memcpy3d {
  std::size_t from_x, from_y, from_z, from_level;
  int from_type;
  const void* from_host;
  CUdeviceptr from_device;
  CUarray from_array;
  void* from_reserved;
  std::size_t from_pitch, from_height;
  std::size_t to_x, to_y, to_z, to_level;
  int to_type;
  void* to_host;
  CUdeviceptr to_device;
  CUarray to_array;
  void* to_reserved;
  std::size_t to_pitch, to_height;
  std::size_t width_bytes, height, depth;
};
static_assert(sizeof(Memcpy3d) == 200);

struct Memcpy3dOperand {
  int type;
  std::uint64_t where[4];
};
struct Memcpy3dBatchOp {
  Memcpy3dOperand from, to;
  std::size_t width, height, depth;
  int access_order;
  unsigned flags;
};
static_assert(sizeof(Memcpy3dBatchOp) == 112);

struct ExternalMemoryDesc {
  int type;
  union {
    int fd;
    const void* pointers[2];
  };
  unsigned long long bytes;
  unsigned flags;
  unsigned reserved[16];
};
static_assert(offsetof(ExternalMemoryDesc, bytes) == 24);

struct IpcMemHandle {
  char reserved[64];
};

}  // namespace loam::guard::cuda
