// Hooks of the CUDA entries that copy and fill. Copies between host and device take the turns of
// their direction's lane where the device has copy engines of its own; everything else is work
// within the device.
#include "guard/cuda/gate.hpp"

namespace loam::guard::cuda {

namespace {

// What is assumed of a copy of a size that was never seen: far below any card's, so that the first
// ones are not underrated.
constexpr std::uint64_t guess_host_bytes_per_us = 12'000;
constexpr std::uint64_t guess_device_bytes_per_us = 300'000;

enum class Way { within, to_device, from_device, fill };

// Copies of about one size, by powers of the square root of two, take equally long.
Kind copy_kind(Way way, std::uint64_t bytes) {
  std::uint64_t size = 0;
  if (bytes >= 2) {
    const auto power = static_cast<std::uint64_t>(63 - __builtin_clzll(bytes));
    size = power * 2 + (bytes >> (power - 1) & 1u);
  }
  const std::uint32_t place = kind_of(0xc0ull << 56 | static_cast<std::uint64_t>(way) << 32 | size);
  return Kind{place, place};
}

template <class Call>
CUresult move(Way way, std::uint64_t bytes, CUstream stream, bool per_thread, bool blocking,
              Call call) {
  Page* const page = Page::of_process();
  if (!page) return cuda_no_device;
  const int entry = entry_here(*page);
  if (entry == not_on_page) {
    Here here;
    const CUresult fault = find_here(*page, &here);
    return fault == cuda_success ? cuda_no_device : fault;
  }
  Command work;
  work.entry = static_cast<std::uint32_t>(entry);
  work.kind = copy_kind(way, bytes);
  work.stream = stream;
  work.per_thread = per_thread;
  // Copies within the device and fills return before they are over, whatever the entry is called.
  const bool crosses = way == Way::to_device || way == Way::from_device;
  work.blocking = blocking && crosses;
  work.guess_ns =
      bytes * 1000 / (crosses ? guess_host_bytes_per_us : guess_device_bytes_per_us) + 1;
  work.bytes = way == Way::fill ? 0 : bytes;
  work.what = way == Way::to_device     ? Work::to_device
              : way == Way::from_device ? Work::from_device
                                        : Work::transfer;
  work.lane = lane_of(*page, work.entry, work.what);
  if (is_capturing(stream, per_thread)) return call();  // only recorded: nothing to count
  const CUresult fault = submit(*page, work, call);
  if (fault == cuda_success && !work.blocking) count_work(*page, work.entry, work.what, work.bytes);
  return fault;
}

Way way_between(int from, int to) {
  if (from == memory_host && to != memory_host) return Way::to_device;
  if (to == memory_host && from != memory_host) return Way::from_device;
  return Way::within;
}

std::uint64_t bytes_of(const Memcpy2d* copy) {
  return copy ? std::uint64_t{copy->width_bytes} * copy->height : 0;
}
std::uint64_t bytes_of(const Memcpy3d* copy) {
  return copy ? std::uint64_t{copy->width_bytes} * copy->height * copy->depth : 0;
}
template <class Copy>
Way way_of(const Copy* copy) {
  return copy ? way_between(copy->from_type, copy->to_type) : Way::within;
}

std::uint64_t sum(const std::size_t* bytes, std::size_t count) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; bytes && i < count; ++i) total += bytes[i];
  return total;
}
std::uint64_t sum(const Memcpy3dBatchOp* list, std::size_t count) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; list && i < count; ++i)
    total += std::uint64_t{list[i].width} * list[i].height * list[i].depth;
  return total;
}

}  // namespace

}  // namespace loam::guard::cuda

using namespace loam::guard;
using namespace loam::guard::cuda;

// One hook: its way, its bytes, its stream, and whether it returns when it is over.
#define LOAM_CUDA_MOVE(symbol, way, bytes, stream, flavour, blocking, parameters, ...)             \
  LOAM_GUARD_EXPORT CUresult symbol parameters {                                                   \
    LOAM_CUDA_REQUIRE(symbol);                                                                     \
    return move(way, bytes, stream, flavour, blocking, [&] { return real->symbol(__VA_ARGS__); }); \
  }

// The synchronous entries, in both flavours of default stream.
#define LOAM_CUDA_SYNC(symbol, way, bytes, parameters, ...)                         \
  LOAM_CUDA_MOVE(symbol, way, bytes, nullptr, false, true, parameters, __VA_ARGS__) \
  LOAM_CUDA_MOVE(symbol##_ptds, way, bytes, nullptr, true, true, parameters, __VA_ARGS__)
#define LOAM_CUDA_ASYNC(symbol, way, bytes, parameters, ...)                        \
  LOAM_CUDA_MOVE(symbol, way, bytes, stream, false, false, parameters, __VA_ARGS__) \
  LOAM_CUDA_MOVE(symbol##_ptsz, way, bytes, stream, true, false, parameters, __VA_ARGS__)

LOAM_CUDA_SYNC(cuMemcpy, Way::within, bytes, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes),
               to, from, bytes)
LOAM_CUDA_SYNC(cuMemcpyPeer, Way::within, bytes,
               (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                std::size_t bytes),
               to, to_context, from, from_context, bytes)
LOAM_CUDA_SYNC(cuMemcpyHtoD_v2, Way::to_device, bytes,
               (CUdeviceptr to, const void* from, std::size_t bytes), to, from, bytes)
LOAM_CUDA_SYNC(cuMemcpyDtoH_v2, Way::from_device, bytes,
               (void* to, CUdeviceptr from, std::size_t bytes), to, from, bytes)
LOAM_CUDA_SYNC(cuMemcpyDtoD_v2, Way::within, bytes,
               (CUdeviceptr to, CUdeviceptr from, std::size_t bytes), to, from, bytes)
LOAM_CUDA_SYNC(cuMemcpyDtoA_v2, Way::within, bytes,
               (CUarray to, std::size_t offset, CUdeviceptr from, std::size_t bytes), to, offset,
               from, bytes)
LOAM_CUDA_SYNC(cuMemcpyAtoD_v2, Way::within, bytes,
               (CUdeviceptr to, CUarray from, std::size_t offset, std::size_t bytes), to, from,
               offset, bytes)
LOAM_CUDA_SYNC(cuMemcpyHtoA_v2, Way::to_device, bytes,
               (CUarray to, std::size_t offset, const void* from, std::size_t bytes), to, offset,
               from, bytes)
LOAM_CUDA_SYNC(cuMemcpyAtoH_v2, Way::from_device, bytes,
               (void* to, CUarray from, std::size_t offset, std::size_t bytes), to, from, offset,
               bytes)
LOAM_CUDA_SYNC(cuMemcpyAtoA_v2, Way::within, bytes,
               (CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                std::size_t bytes),
               to, to_offset, from, from_offset, bytes)
LOAM_CUDA_SYNC(cuMemcpy2D_v2, way_of(copy), bytes_of(copy), (const Memcpy2d* copy), copy)
LOAM_CUDA_SYNC(cuMemcpy2DUnaligned_v2, way_of(copy), bytes_of(copy), (const Memcpy2d* copy), copy)
LOAM_CUDA_SYNC(cuMemcpy3D_v2, way_of(copy), bytes_of(copy), (const Memcpy3d* copy), copy)
LOAM_CUDA_SYNC(cuMemcpy3DPeer, Way::within, bytes_of(copy), (const Memcpy3d* copy), copy)

LOAM_CUDA_ASYNC(cuMemcpyAsync, Way::within, bytes,
                (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream), to, from,
                bytes, stream)
LOAM_CUDA_ASYNC(cuMemcpyPeerAsync, Way::within, bytes,
                (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                 std::size_t bytes, CUstream stream),
                to, to_context, from, from_context, bytes, stream)
LOAM_CUDA_ASYNC(cuMemcpyHtoDAsync_v2, Way::to_device, bytes,
                (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream), to, from,
                bytes, stream)
LOAM_CUDA_ASYNC(cuMemcpyDtoHAsync_v2, Way::from_device, bytes,
                (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream), to, from, bytes,
                stream)
LOAM_CUDA_ASYNC(cuMemcpyDtoDAsync_v2, Way::within, bytes,
                (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream), to, from,
                bytes, stream)
LOAM_CUDA_ASYNC(cuMemcpyHtoAAsync_v2, Way::to_device, bytes,
                (CUarray to, std::size_t offset, const void* from, std::size_t bytes,
                 CUstream stream),
                to, offset, from, bytes, stream)
LOAM_CUDA_ASYNC(cuMemcpyAtoHAsync_v2, Way::from_device, bytes,
                (void* to, CUarray from, std::size_t offset, std::size_t bytes, CUstream stream),
                to, from, offset, bytes, stream)
LOAM_CUDA_ASYNC(cuMemcpy2DAsync_v2, way_of(copy), bytes_of(copy),
                (const Memcpy2d* copy, CUstream stream), copy, stream)
LOAM_CUDA_ASYNC(cuMemcpy3DAsync_v2, way_of(copy), bytes_of(copy),
                (const Memcpy3d* copy, CUstream stream), copy, stream)
LOAM_CUDA_ASYNC(cuMemcpy3DPeerAsync, Way::within, bytes_of(copy),
                (const Memcpy3d* copy, CUstream stream), copy, stream)
LOAM_CUDA_ASYNC(cuMemcpyBatchAsync, Way::within, sum(bytes, count),
                (CUdeviceptr * to, CUdeviceptr* from, std::size_t* bytes, std::size_t count,
                 void* attributes, std::size_t* indices, std::size_t attribute_count,
                 std::size_t* failed, CUstream stream),
                to, from, bytes, count, attributes, indices, attribute_count, failed, stream)
LOAM_CUDA_ASYNC(cuMemcpyBatchAsync_v2, Way::within, sum(bytes, count),
                (CUdeviceptr * to, CUdeviceptr* from, std::size_t* bytes, std::size_t count,
                 void* attributes, std::size_t* indices, std::size_t attribute_count,
                 CUstream stream),
                to, from, bytes, count, attributes, indices, attribute_count, stream)
LOAM_CUDA_ASYNC(cuMemcpy3DBatchAsync, Way::within, sum(list, count),
                (std::size_t count, Memcpy3dBatchOp* list, std::size_t* failed,
                 unsigned long long flags, CUstream stream),
                count, list, failed, flags, stream)
LOAM_CUDA_ASYNC(cuMemcpy3DBatchAsync_v2, Way::within, sum(list, count),
                (std::size_t count, Memcpy3dBatchOp* list, unsigned long long flags,
                 CUstream stream),
                count, list, flags, stream)
LOAM_CUDA_ASYNC(cuMemPrefetchAsync, Way::to_device, bytes,
                (CUdeviceptr address, std::size_t bytes, CUdevice device, CUstream stream), address,
                bytes, device, stream)
LOAM_CUDA_ASYNC(cuMemPrefetchAsync_v2, Way::to_device, bytes,
                (CUdeviceptr address, std::size_t bytes, MemLocation location, unsigned flags,
                 CUstream stream),
                address, bytes, location, flags, stream)

LOAM_CUDA_SYNC(cuMemsetD8_v2, Way::fill, count,
               (CUdeviceptr to, unsigned char value, std::size_t count), to, value, count)
LOAM_CUDA_SYNC(cuMemsetD16_v2, Way::fill, count * 2,
               (CUdeviceptr to, unsigned short value, std::size_t count), to, value, count)
LOAM_CUDA_SYNC(cuMemsetD32_v2, Way::fill, count * 4,
               (CUdeviceptr to, unsigned value, std::size_t count), to, value, count)
LOAM_CUDA_SYNC(cuMemsetD2D8_v2, Way::fill, width* height,
               (CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                std::size_t height),
               to, pitch, value, width, height)
LOAM_CUDA_SYNC(cuMemsetD2D16_v2, Way::fill, width* height * 2,
               (CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                std::size_t height),
               to, pitch, value, width, height)
LOAM_CUDA_SYNC(cuMemsetD2D32_v2, Way::fill, width* height * 4,
               (CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                std::size_t height),
               to, pitch, value, width, height)
LOAM_CUDA_ASYNC(cuMemsetD8Async, Way::fill, count,
                (CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream), to,
                value, count, stream)
LOAM_CUDA_ASYNC(cuMemsetD16Async, Way::fill, count * 2,
                (CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream), to,
                value, count, stream)
LOAM_CUDA_ASYNC(cuMemsetD32Async, Way::fill, count * 4,
                (CUdeviceptr to, unsigned value, std::size_t count, CUstream stream), to, value,
                count, stream)
LOAM_CUDA_ASYNC(cuMemsetD2D8Async, Way::fill, width* height,
                (CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                 std::size_t height, CUstream stream),
                to, pitch, value, width, height, stream)
LOAM_CUDA_ASYNC(cuMemsetD2D16Async, Way::fill, width* height * 2,
                (CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                 std::size_t height, CUstream stream),
                to, pitch, value, width, height, stream)
LOAM_CUDA_ASYNC(cuMemsetD2D32Async, Way::fill, width* height * 4,
                (CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                 std::size_t height, CUstream stream),
                to, pitch, value, width, height, stream)
