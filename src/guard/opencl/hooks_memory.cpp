// Hooks of the calls that allocate and free device memory. Reserve, allocate, tie the reservation
// to the object; whatever fails gives back what came before it.
#include <cstdlib>
#include <cstring>

#include "guard/opencl/driver.hpp"
#include "guard/opencl/objects.hpp"
#include "guard/page.hpp"

namespace loam::guard {

namespace {

void set(cl_int* fault, cl_int value) {
  if (fault) *fault = value;
}

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

// Whether a device of the holding is to give out cleared memory only.
bool must_clear(const Page& page, const Holding& holding) {
  for (std::uint32_t entry = 0; entry < page.device_count(); ++entry) {
    if ((holding.entries >> entry & 1u) != 0 &&
        loam_limits_have(&page.limits().device[entry], LOAM_LIMIT_CLEAR))
      return true;
  }
  return false;
}

// Runs `fill` on a queue of the context's first device and waits for it. The fill goes through the
// guard's own hook, so it takes a turn like any work of the lease.
template <class Fill>
cl_int clear_through(cl_context context, Fill fill) {
  const Driver& real = driver();
  if (!real.clCreateCommandQueue || !real.clReleaseCommandQueue) return CL_INVALID_OPERATION;
  cl_device_id devices[64];
  cl_int fault = real.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices,
                                       static_cast<void*>(devices), nullptr);
  if (fault != CL_SUCCESS) return fault;
  const cl_command_queue queue = real.clCreateCommandQueue(context, devices[0], 0, &fault);
  if (!queue) return fault;
  cl_event event = nullptr;
  fault = fill(queue, &event);
  if (fault == CL_SUCCESS) {
    fault = real.clWaitForEvents(1, &event);
    real.clReleaseEvent(event);
  }
  real.clReleaseCommandQueue(queue);
  return fault;
}

// Memory that somebody else may have used is cleared before the program sees it. What the host
// gives (a pointer to use or to copy from) is not what somebody left behind.
cl_int clear_object(cl_context context, cl_mem object, std::size_t bytes) {
  cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
  driver().clGetMemObjectInfo(object, CL_MEM_TYPE, sizeof type, &type, nullptr);
  if (type == CL_MEM_OBJECT_PIPE) return CL_SUCCESS;  // read only after it was written
  return clear_through(context, [&](cl_command_queue queue, cl_event* event) {
    if (type == CL_MEM_OBJECT_BUFFER) {
      // The widest pattern that divides the size.
      const unsigned char zeros[128] = {};
      std::size_t width = sizeof zeros;
      while (bytes % width != 0) width /= 2;
      return ::clEnqueueFillBuffer(queue, object, zeros, width, 0, bytes, 0, nullptr, event);
    }
    std::size_t region[3] = {1, 1, 1};
    const cl_image_info sides[3] = {CL_IMAGE_WIDTH, CL_IMAGE_HEIGHT, CL_IMAGE_DEPTH};
    for (int i = 0; i < 3 && driver().clGetImageInfo; ++i) {
      std::size_t length = 0;
      driver().clGetImageInfo(object, sides[i], sizeof length, &length, nullptr);
      if (length > 0) region[i] = length;
    }
    std::size_t layers = 0;
    if (driver().clGetImageInfo)
      driver().clGetImageInfo(object, CL_IMAGE_ARRAY_SIZE, sizeof layers, &layers, nullptr);
    if (layers > 0) region[type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? 1 : 2] = layers;
    const std::size_t origin[3] = {};
    const cl_uint black[4] = {};
    return ::clEnqueueFillImage(queue, object, black, origin, region, 0, nullptr, event);
  });
}

// Host memory that the driver uses in place takes none of the device's on a CPU, but the driver may
// copy it at any time: it counts, as its own kind.
std::uint32_t buffer_kind(cl_mem_flags flags) {
  return (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR)) != 0 ? LOAM_MEMORY_HOST
                                                                      : LOAM_MEMORY_BUFFER;
}

// Allocates through `make(fault)` what takes at least `bytes`.
template <class Make>
cl_mem allocate(cl_context context, cl_mem_flags flags, std::uint64_t bytes, std::uint32_t kind,
                cl_int* fault, Make make) {
  Page* const page = driver().found ? Page::of_process() : nullptr;
  if (!page) {
    set(fault, CL_OUT_OF_RESOURCES);
    return nullptr;
  }
  Holding holding;
  if (const cl_int refused = reserve(*page, context, bytes, kind, &holding);
      refused != CL_SUCCESS) {
    set(fault, refused);
    return nullptr;
  }
  cl_int made = CL_SUCCESS;
  const cl_mem object = make(&made);
  if (!object) {
    give_back(*page, holding);
    set(fault, made);
    return nullptr;
  }
  // Rows and planes may be padded: the driver knows what it took.
  std::size_t taken = 0;
  if (driver().clGetMemObjectInfo &&
      driver().clGetMemObjectInfo(object, CL_MEM_SIZE, sizeof taken, &taken, nullptr) ==
          CL_SUCCESS &&
      !grow(*page, &holding, taken)) {
    driver().clReleaseMemObject(object);
    give_back(*page, holding);
    set(fault, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    return nullptr;
  }
  if (const cl_int tied = tie_to(*page, object, holding); tied != CL_SUCCESS) {
    set(fault, tied);
    return nullptr;
  }
  constexpr cl_mem_flags of_host = CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR;
  if ((flags & of_host) == 0 && must_clear(*page, holding) &&
      clear_object(context, object, taken ? taken : bytes) != CL_SUCCESS) {
    driver().clReleaseMemObject(object);
    set(fault, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    return nullptr;
  }
  set(fault, CL_SUCCESS);
  return object;
}

std::uint64_t channel_bytes(cl_channel_type type) {
  switch (type) {
    case CL_SNORM_INT8:
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8:
      return 1;
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT:
      return 2;
    default:
      return 4;  // 32-bit channels, and packed types counted as a whole below
  }
}

std::uint64_t element_bytes(const cl_image_format& format) {
  switch (format.image_channel_data_type) {
    case CL_UNORM_SHORT_565:
    case CL_UNORM_SHORT_555:
      return 2;
    case CL_UNORM_INT_101010:
    case CL_UNORM_INT_101010_2:
      return 4;
    default:
      break;
  }
  std::uint64_t channels = 4;
  switch (format.image_channel_order) {
    case CL_R:
    case CL_A:
    case CL_Rx:
    case CL_INTENSITY:
    case CL_LUMINANCE:
    case CL_DEPTH:
      channels = 1;
      break;
    case CL_RG:
    case CL_RA:
    case CL_RGx:
      channels = 2;
      break;
    case CL_RGB:
    case CL_RGBx:
    case CL_sRGB:
    case CL_sRGBx:
      channels = 3;
      break;
    default:
      break;
  }
  return channels * channel_bytes(format.image_channel_data_type);
}

std::uint64_t image_bytes(const cl_image_format* format, const cl_image_desc* image) {
  if (!format || !image || image->mem_object) return 0;  // of another object: counted there
  std::uint64_t bytes = times(element_bytes(*format), image->image_width);
  if (image->image_row_pitch > bytes) bytes = image->image_row_pitch;
  switch (image->image_type) {
    case CL_MEM_OBJECT_IMAGE2D:
      return times(bytes, image->image_height);
    case CL_MEM_OBJECT_IMAGE3D:
      return times(times(bytes, image->image_height), image->image_depth);
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      return times(bytes, image->image_array_size);
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      return times(times(bytes, image->image_height), image->image_array_size);
    default:
      return bytes;
  }
}

// An image that lies in another object's memory takes none of its own.
template <class Make>
cl_mem allocate_image(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                      const cl_image_desc* image, cl_int* fault, Make make) {
  if (image && image->mem_object && Page::of_process()) return make(fault);
  return allocate(context, flags, image_bytes(format, image), LOAM_MEMORY_IMAGE, fault, make);
}

}  // namespace

}  // namespace loam::guard

using loam::guard::driver;
using loam::guard::Holding;
using loam::guard::Page;

#define LOAM_GUARD_REQUIRE(name)                     \
  do {                                               \
    if (!driver().name) {                            \
      loam::guard::set(fault, CL_INVALID_OPERATION); \
      return nullptr;                                \
    }                                                \
  } while (false)

LOAM_GUARD_EXPORT cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                        void* host, cl_int* fault) {
  LOAM_GUARD_REQUIRE(clCreateBuffer);
  return loam::guard::allocate(
      context, flags, size, loam::guard::buffer_kind(flags), fault,
      [&](cl_int* made) { return driver().clCreateBuffer(context, flags, size, host, made); });
}

LOAM_GUARD_EXPORT cl_mem clCreateBufferWithProperties(cl_context context,
                                                      const cl_mem_properties* properties,
                                                      cl_mem_flags flags, size_t size, void* host,
                                                      cl_int* fault) {
  LOAM_GUARD_REQUIRE(clCreateBufferWithProperties);
  return loam::guard::allocate(
      context, flags, size, loam::guard::buffer_kind(flags), fault, [&](cl_int* made) {
        return driver().clCreateBufferWithProperties(context, properties, flags, size, host, made);
      });
}

LOAM_GUARD_EXPORT cl_mem clCreateImage(cl_context context, cl_mem_flags flags,
                                       const cl_image_format* format, const cl_image_desc* image,
                                       void* host, cl_int* fault) {
  LOAM_GUARD_REQUIRE(clCreateImage);
  return loam::guard::allocate_image(context, flags, format, image, fault, [&](cl_int* made) {
    return driver().clCreateImage(context, flags, format, image, host, made);
  });
}

LOAM_GUARD_EXPORT cl_mem clCreateImageWithProperties(
    cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
    const cl_image_format* format, const cl_image_desc* image, void* host, cl_int* fault) {
  LOAM_GUARD_REQUIRE(clCreateImageWithProperties);
  return loam::guard::allocate_image(context, flags, format, image, fault, [&](cl_int* made) {
    return driver().clCreateImageWithProperties(context, properties, flags, format, image, host,
                                                made);
  });
}

LOAM_GUARD_EXPORT cl_mem clCreateImage2D(cl_context context, cl_mem_flags flags,
                                         const cl_image_format* format, size_t width, size_t height,
                                         size_t row_pitch, void* host, cl_int* fault) {
  LOAM_GUARD_REQUIRE(clCreateImage2D);
  cl_image_desc image{};
  image.image_type = CL_MEM_OBJECT_IMAGE2D;
  image.image_width = width;
  image.image_height = height;
  image.image_row_pitch = row_pitch;
  return loam::guard::allocate_image(context, flags, format, &image, fault, [&](cl_int* made) {
    return driver().clCreateImage2D(context, flags, format, width, height, row_pitch, host, made);
  });
}

LOAM_GUARD_EXPORT cl_mem clCreateImage3D(cl_context context, cl_mem_flags flags,
                                         const cl_image_format* format, size_t width, size_t height,
                                         size_t depth, size_t row_pitch, size_t slice_pitch,
                                         void* host, cl_int* fault) {
  LOAM_GUARD_REQUIRE(clCreateImage3D);
  cl_image_desc image{};
  image.image_type = CL_MEM_OBJECT_IMAGE3D;
  image.image_width = width;
  image.image_height = height;
  image.image_depth = depth;
  image.image_row_pitch = row_pitch;
  return loam::guard::allocate_image(context, flags, format, &image, fault, [&](cl_int* made) {
    return driver().clCreateImage3D(context, flags, format, width, height, depth, row_pitch,
                                    slice_pitch, host, made);
  });
}

LOAM_GUARD_EXPORT cl_mem clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet_size,
                                      cl_uint packets, const cl_pipe_properties* properties,
                                      cl_int* fault) {
  LOAM_GUARD_REQUIRE(clCreatePipe);
  return loam::guard::allocate(context, flags, loam::guard::times(packet_size, packets),
                               LOAM_MEMORY_POOL, fault, [&](cl_int* made) {
                                 return driver().clCreatePipe(context, flags, packet_size, packets,
                                                              properties, made);
                               });
}

LOAM_GUARD_EXPORT void* clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                                   cl_uint alignment) {
  Page* const page = driver().clSVMAlloc && driver().clSVMFree ? Page::of_process() : nullptr;
  Holding holding;
  if (!page ||
      loam::guard::reserve(*page, context, size, LOAM_MEMORY_SHARED, &holding) != CL_SUCCESS)
    return nullptr;
  void* const address = driver().clSVMAlloc(context, flags, size, alignment);
  const bool clean =
      !address || !loam::guard::must_clear(*page, holding) ||
      loam::guard::clear_through(context, [&](cl_command_queue queue, cl_event* event) {
        const unsigned char zero = 0;
        return ::clEnqueueSVMMemFill(queue, address, &zero, 1, size, 0, nullptr, event);
      }) == CL_SUCCESS;
  if (address && clean && loam::guard::remember(address, holding)) return address;
  if (address) driver().clSVMFree(context, address);
  loam::guard::give_back(*page, holding);
  return nullptr;
}

LOAM_GUARD_EXPORT void clSVMFree(cl_context context, void* address) {
  if (!driver().clSVMFree) return;
  Page* const page = Page::of_process();
  Holding holding;
  // Forgotten before the free: afterwards the address may be another thread's.
  const bool known = page && address && loam::guard::forget(address, &holding);
  driver().clSVMFree(context, address);
  if (known) loam::guard::give_back(*page, holding);
}

namespace loam::guard {

namespace {

// What a queued free will give back when it has run.
struct QueuedFree {
  cl_event own_event;
  std::uint32_t count;
  Holding holdings[1];  // `count` of them
};

void CL_CALLBACK free_has_run(cl_event, cl_int, void* data) {
  QueuedFree* const freed = static_cast<QueuedFree*>(data);
  if (Page* const page = Page::of_process())
    for (std::uint32_t i = 0; i < freed->count; ++i) give_back(*page, freed->holdings[i]);
  if (freed->own_event) driver().clReleaseEvent(freed->own_event);
  std::free(freed);
}

}  // namespace

}  // namespace loam::guard

LOAM_GUARD_EXPORT cl_int clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void* addresses[],
                                          void(CL_CALLBACK* free_function)(cl_command_queue,
                                                                           cl_uint, void*[], void*),
                                          void* data, cl_uint waits, const cl_event* list,
                                          cl_event* event) {
  using namespace loam::guard;
  const Driver& real = driver();
  if (!real.clEnqueueSVMFree || !real.clSetEventCallback) return CL_INVALID_OPERATION;
  Page* const page = Page::of_process();
  if (!page) return CL_OUT_OF_RESOURCES;
  // A function of the program's own frees through clSVMFree, which counts.
  if (free_function || count == 0 || !addresses)
    return real.clEnqueueSVMFree(queue, count, addresses, free_function, data, waits, list, event);
  QueuedFree* const freed =
      static_cast<QueuedFree*>(std::malloc(sizeof(QueuedFree) + count * sizeof(Holding)));
  if (!freed) return CL_OUT_OF_HOST_MEMORY;
  freed->count = 0;
  for (cl_uint i = 0; i < count; ++i)
    if (forget(addresses[i], &freed->holdings[freed->count])) ++freed->count;
  cl_event ended = nullptr;
  const cl_int fault =
      real.clEnqueueSVMFree(queue, count, addresses, nullptr, nullptr, waits, list, &ended);
  if (fault != CL_SUCCESS || !ended) {
    // Nothing was freed: the addresses stay charged until the process ends.
    std::free(freed);
    return fault;
  }
  freed->own_event = event ? nullptr : ended;
  if (event) *event = ended;
  if (real.clSetEventCallback(ended, CL_COMPLETE, &free_has_run, freed) != CL_SUCCESS) {
    real.clWaitForEvents(1, &ended);
    free_has_run(ended, CL_COMPLETE, freed);
  }
  return CL_SUCCESS;
}
