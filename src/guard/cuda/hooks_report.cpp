// Hooks of the CUDA queries of memory: the process sees its slice.
#include <algorithm>

#include "guard/cuda/charge.hpp"
#include "guard/cuda/spill.hpp"

using namespace loam::guard;
using namespace loam::guard::cuda;

LOAM_GUARD_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const Driver* const real = driver();
  if (!real) return cuda_not_initialized;
  if (!real->cuMemGetInfo_v2) return cuda_not_supported;
  Page* const page = Page::of_process();
  if (!page) return cuda_no_device;
  // The driver's own answer first, also to null pointers and a missing context.
  const CUresult fault = real->cuMemGetInfo_v2(free, total);
  Here here;
  if (fault != cuda_success || find_here(*page, &here) != cuda_success) return fault;
  const std::uint64_t quota = loam_quota_bytes(&page->limits().device[here.entry]);
  const std::uint64_t used =
      __atomic_load_n(&page->counters().device[here.entry].memory.used, __ATOMIC_SEQ_CST);
  const std::uint64_t left = quota == LOAM_SLICE_NO_LIMIT ? quota : quota > used ? quota - used : 0;
  // Where others' memory can leave, what they hold now is no bound.
  const bool spills = loam_limits_have(&page->limits().device[here.entry], LOAM_LIMIT_SPILLS);
  if (free && spills && total)
    *free = std::min<std::uint64_t>(*total, left);
  else if (free)
    *free = std::min<std::uint64_t>(*free, left);
  if (total) *total = std::min<std::uint64_t>(*total, quota);
  return fault;
}

LOAM_GUARD_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  const Driver* const real = driver();
  if (!real) return cuda_not_initialized;
  if (!real->cuDeviceTotalMem_v2) return cuda_not_supported;
  const CUresult fault = real->cuDeviceTotalMem_v2(bytes, device);
  Page* const page = Page::of_process();
  if (fault != cuda_success || !bytes || !page) return fault;
  const int entry = page_entry(*page, device);
  if (entry == not_on_page) return fault;
  *bytes = std::min<std::uint64_t>(*bytes, loam_quota_bytes(&page->limits().device[entry]));
  return fault;
}

// Questions about addresses: the driver knows nothing of those whose memory is in the host's.
LOAM_GUARD_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes,
                                                   CUdeviceptr address) {
  LOAM_CUDA_REQUIRE(cuMemGetAddressRange_v2);
  return call_with_memory(address,
                          [&] { return real->cuMemGetAddressRange_v2(base, bytes, address); });
}

LOAM_GUARD_EXPORT CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr address) {
  LOAM_CUDA_REQUIRE(cuPointerGetAttribute);
  return call_with_memory(address,
                          [&] { return real->cuPointerGetAttribute(value, attribute, address); });
}

LOAM_GUARD_EXPORT CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                                  CUdeviceptr address) {
  LOAM_CUDA_REQUIRE(cuPointerGetAttributes);
  return call_with_memory(
      address, [&] { return real->cuPointerGetAttributes(count, attributes, values, address); });
}
