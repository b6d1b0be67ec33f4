// The CUDA driver behind the guard: its functions, found once, and which of the guard's functions
// stands in front of which. Not pure: the dynamic linker.
#pragma once

#include <atomic>

#include "guard/cuda/signatures.hpp"
#include "guard/lookup.hpp"

// What the guard only calls.
#define LOAM_CUDA_CALLS(X)             \
  X(cuStreamCreate)                    \
  X(cuMemAddressReserve)               \
  X(cuMemAddressFree)                  \
  X(cuMemSetAccess)                    \
  X(cuMemGetAllocationGranularity)     \
  X(cuDeviceGetUuid)                   \
  X(cuDeviceGetUuid_v2)                \
  X(cuDeviceGetMemPool)                \
  X(cuDevicePrimaryCtxGetState)        \
  X(cuMemPoolGetAttribute)             \
  X(cuDeviceGetGraphMemAttribute)      \
  X(cuCtxGetCurrent)                   \
  X(cuCtxGetDevice)                    \
  X(cuStreamIsCapturing)               \
  X(cuStreamIsCapturing_ptsz)          \
  X(cuThreadExchangeStreamCaptureMode) \
  X(cuEventCreate)                     \
  X(cuEventDestroy_v2)                 \
  X(cuEventRecord)                     \
  X(cuEventRecord_ptsz)                \
  X(cuEventQuery)                      \
  X(cuEventElapsedTime)

namespace loam::guard::cuda {

// A function that the driver lacks is null.
struct Driver {
#define HOOK(symbol, since, kind) decltype(&::symbol) symbol = nullptr;
#define REFUSE(symbol, kind)
#define PASS(symbol, kind)
#include "guard/cuda/entries.def"
#undef HOOK
#define LOAM_CUDA_MEMBER(symbol) decltype(&::symbol) symbol = nullptr;
  LOAM_CUDA_CALLS(LOAM_CUDA_MEMBER)
#undef LOAM_CUDA_MEMBER
#undef REFUSE
#undef PASS
};

extern Driver found_driver;
extern std::atomic<bool> driver_is_found;
bool find_driver();

// Null where the process has no CUDA driver (yet).
inline const Driver* driver() {
  if (driver_is_found.load(std::memory_order_acquire)) [[likely]]
    return &found_driver;
  return find_driver() ? &found_driver : nullptr;
}

// A hook's first line: `real` is the driver, which must have the function behind the hook.
#define LOAM_CUDA_REQUIRE(symbol)                              \
  const ::loam::guard::cuda::Driver* const real = driver();    \
  if (!real) return ::loam::guard::cuda::cuda_not_initialized; \
  if (!real->symbol) return ::loam::guard::cuda::cuda_not_supported

// The guard's function of that exported name; null for a name it does not stand in front of.
void* hook_named(const char* symbol);
// Whether the table knows the exported name.
bool is_known_entry(const char* symbol);
// Whether an entry that the table does not know may allocate or launch, by its name.
bool may_evade(const char* symbol);

}  // namespace loam::guard::cuda
