// The fake CUDA driver's own insides: contexts, memory, streams. See fake_cuda.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "fakes/fake_cuda.hpp"
#include "guard/cuda/signatures.hpp"

struct CUctx_st {
  int device = 0;
  bool primary = false;
  bool green = false;
  int references = 1;
  std::uint64_t last_tail_ns = 0;  // of any stream
  std::uint64_t charged_bytes = 0;
};

struct CUgraphNode_st {
  int type = 0;
  std::uint64_t duration_ns = 0;
  std::uint64_t bytes = 0;
};
struct CUgraph_st {
  std::vector<CUgraphNode_st*> nodes;
};
struct CUgraphExec_st {
  std::uint64_t duration_ns = 0;
  std::uint64_t alloc_bytes = 0;
  std::uint32_t kernels = 0;
};

struct CUstream_st {
  CUcontext context = nullptr;
  std::uint64_t tail_ns = 0;
  CUgraph capture = nullptr;
  bool capture_broken = false;
  bool non_blocking = false;
};
struct CUevent_st {
  std::uint64_t at_ns = 0;  // when what was recorded before it is over
  bool recorded = false;
};
struct CUfunc_st {
  std::uint64_t duration_ns = 0;  // 0: its first parameter says
};
struct CUmod_st {
  int device = 0;
  std::uint64_t bytes = 0;
};
struct CUlib_st {
  int device = 0;
  std::uint64_t bytes = 0;
};
struct CUarray_st {
  int device = 0;
  std::uint64_t bytes = 0;
};
struct CUmipmappedArray_st {
  int device = 0;
  std::uint64_t bytes = 0;
};
struct CUmemPoolHandle_st {
  int device = -1;  // -1: of the host
  std::uint64_t reserved = 0, used = 0, threshold = 0;
};
struct CUextMemory_st {
  std::uint64_t bytes = 0;
};
struct CUgreenCtx_st {
  CUctx_st context;
};

namespace loam::fakes {

using namespace loam::guard::cuda;

struct Physical {  // a handle of virtual memory management
  int device = -1;
  std::uint64_t bytes = 0;
  int references = 1;
  int maps = 0;
};

enum class Owner : std::uint8_t { none, plain, managed, pool, reserved, imported };

std::uint64_t now_ns();
FakeCudaBooks& books();
extern std::uint64_t calls;  // torn increments between threads are of no matter

CUcontext current();
bool known_device(CUdevice device);
// Takes or gives device memory in the books; false where the device has not so much.
bool charge(int device, std::uint64_t bytes);
void credit(int device, std::uint64_t bytes);
// Device addresses are addresses of memory that nothing backs until it is touched.
CUdeviceptr place(int device, std::uint64_t bytes, Owner owner, CUcontext context);
struct Placed {
  int device = -1;
  std::uint64_t bytes = 0;
  Owner owner = Owner::none;
};
Placed find_placed(CUdeviceptr address);
void unplace(CUdeviceptr address);
// Frees what a context's allocations hold.
void unplace_all_of(CUcontext context);
CUmemoryPool default_pool(int device);
// Memory that pools keep beyond their threshold goes back when the device is waited for.
void release_idle_pools(int device);
// Whether the address lies in reserved addresses: then whether memory is behind it. What has none
// cannot be copied.
bool is_reserved(CUdeviceptr address, bool* has_memory);
void charge_graph_memory(int device, std::uint64_t bytes);
std::uint64_t graph_memory(int device);

// Whether a call that capturing forbids was made while somebody captures in global mode; if so the
// captures are broken, as the driver breaks them.
bool breaks_capture();
CUstream stream_or_default(CUstream stream, bool per_thread);
// Puts work of that length on the stream; returns its end.
std::uint64_t run(CUstream stream, std::uint64_t duration_ns, int engine);
// Lets the calling thread wait until then.
void wait_until(std::uint64_t at_ns);

}  // namespace loam::fakes

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))
#define FAKE_CALL() ++loam::fakes::calls
