// Hooks of the CUDA entries that make and end arrays. What an array takes is computed from its
// shape; how a driver tiles it is its own affair, so the fall of the device's free memory is looked
// at too and the larger of the two is charged.
#include <algorithm>

#include "guard/cuda/charge.hpp"

namespace loam::guard::cuda {

namespace {

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

// Bytes of one row of one element's height; block-compressed formats hold 4 x 4 elements a block.
std::uint64_t row_bytes(int format, unsigned channels, std::uint64_t width) {
  switch (format) {
    case 0x01:  // unsigned and signed 8 bits
    case 0x08:
      return times(width, channels);
    case 0x02:  // unsigned, signed and floating 16 bits
    case 0x09:
    case 0x10:
      return times(times(width, 2), channels);
    case 0x03:  // unsigned, signed and floating 32 bits
    case 0x0a:
    case 0x20:
      return times(times(width, 4), channels);
    default:
      // Planar and compressed formats: at most 8 bytes an element.
      return times(width, 8);
  }
}

std::uint64_t array_bytes(const Array3dDescriptor& shape, unsigned levels) {
  // Memory that is mapped later is counted by the handle that is mapped.
  if (shape.flags & (array_sparse | array_deferred_mapping)) return 0;
  std::uint64_t total = 0;
  std::uint64_t width = shape.width;
  std::uint64_t height = std::max<std::uint64_t>(shape.height, 1);
  std::uint64_t depth = std::max<std::uint64_t>(shape.depth, 1);
  for (unsigned level = 0; level < std::max(levels, 1u); ++level) {
    const std::uint64_t bytes =
        times(times(row_bytes(shape.format, shape.channels, width), height), depth);
    total = total > UINT64_MAX - bytes ? UINT64_MAX : total + bytes;
    width = std::max<std::uint64_t>(width / 2, 1);
    height = std::max<std::uint64_t>(height / 2, 1);
    if (!(shape.flags & (array_layered | array_cubemap)))
      depth = std::max<std::uint64_t>(depth / 2, 1);
  }
  return total;
}

// Raises what the array is charged to what the device lost when it was made, within reason: others
// allocate at the same time.
constexpr std::uint64_t padding_max = 4u << 20;

bool charge_padding(std::uint64_t handle, std::uint64_t free_before) {
  Page* const page = Page::of_process();
  std::size_t free_now = 0, total = 0;
  Record record;
  if (!page || free_before == 0 || !find(Held::array, handle, &record) ||
      driver()->cuMemGetInfo_v2(&free_now, &total) != cuda_success || free_now >= free_before)
    return true;
  const std::uint64_t lost = free_before - free_now;
  const std::uint64_t most = record.bytes + record.bytes / 2 + padding_max;
  if (lost <= record.bytes || lost > most) return true;
  if (!reserve(*page, record.entry, lost - record.bytes, LOAM_MEMORY_IMAGE)) return false;
  return change(Held::array, handle, [&](Record* known) {
    known->bytes = lost;
    return false;
  });
}

template <class Array, class Make, class End>
CUresult make_array(Array* array, std::uint64_t bytes, Make make, End end) {
  std::size_t free_before = 0, total = 0;
  if (driver()->cuMemGetInfo_v2) driver()->cuMemGetInfo_v2(&free_before, &total);
  const auto handle = [&] { return reinterpret_cast<std::uint64_t>(*array); };
  const CUresult fault =
      allocate(Held::array, bytes, LOAM_MEMORY_IMAGE, make, handle, [&] { end(*array); });
  if (fault != cuda_success || charge_padding(handle(), free_before)) return fault;
  release(Held::array, handle(), [&] { return end(*array); });
  return cuda_out_of_memory;
}

}  // namespace

}  // namespace loam::guard::cuda

using namespace loam::guard;
using namespace loam::guard::cuda;

LOAM_GUARD_EXPORT CUresult cuArrayCreate_v2(CUarray* array, const ArrayDescriptor* shape) {
  LOAM_CUDA_REQUIRE(cuArrayCreate_v2);
  if (!array || !shape) return real->cuArrayCreate_v2(array, shape);
  const Array3dDescriptor whole{shape->width, shape->height, 0, shape->format, shape->channels, 0};
  return make_array(
      array, array_bytes(whole, 1), [&] { return real->cuArrayCreate_v2(array, shape); },
      [&](CUarray made) { return real->cuArrayDestroy(made); });
}

LOAM_GUARD_EXPORT CUresult cuArray3DCreate_v2(CUarray* array, const Array3dDescriptor* shape) {
  LOAM_CUDA_REQUIRE(cuArray3DCreate_v2);
  if (!array || !shape) return real->cuArray3DCreate_v2(array, shape);
  return make_array(
      array, array_bytes(*shape, 1), [&] { return real->cuArray3DCreate_v2(array, shape); },
      [&](CUarray made) { return real->cuArrayDestroy(made); });
}

LOAM_GUARD_EXPORT CUresult cuArrayDestroy(CUarray array) {
  LOAM_CUDA_REQUIRE(cuArrayDestroy);
  return release(Held::array, reinterpret_cast<std::uint64_t>(array),
                 [&] { return real->cuArrayDestroy(array); });
}

LOAM_GUARD_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* array,
                                                  const Array3dDescriptor* shape, unsigned levels) {
  LOAM_CUDA_REQUIRE(cuMipmappedArrayCreate);
  if (!array || !shape) return real->cuMipmappedArrayCreate(array, shape, levels);
  return make_array(
      array, array_bytes(*shape, levels),
      [&] { return real->cuMipmappedArrayCreate(array, shape, levels); },
      [&](CUmipmappedArray made) { return real->cuMipmappedArrayDestroy(made); });
}

LOAM_GUARD_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  LOAM_CUDA_REQUIRE(cuMipmappedArrayDestroy);
  return release(Held::array, reinterpret_cast<std::uint64_t>(array),
                 [&] { return real->cuMipmappedArrayDestroy(array); });
}
