// Hooks of the calls that put work on a device. Each says what it is and goes through submit().
#include <cstdint>

#include "guard/opencl/deferred.hpp"
#include "guard/opencl/driver.hpp"
#include "guard/opencl/submit.hpp"
#include "guard/page.hpp"

namespace loam::guard {

namespace {

// Launches of one kernel with one size are expected to take equally long.
std::uint64_t launch_kind(cl_kernel kernel, cl_uint dimensions, const size_t* global) {
  auto kind = reinterpret_cast<std::uint64_t>(kernel);
  for (cl_uint i = 0; global && i < dimensions && i < 3; ++i)
    kind = (kind ^ global[i]) * 0x100000001b3ull;
  return kind;
}

// Transfers of about one size, by powers of two.
std::uint64_t transfer_kind(std::uint64_t bytes) {
  return bytes == 0 ? 1 : 64 - static_cast<std::uint64_t>(__builtin_clzll(bytes));
}

std::uint64_t volume(const size_t* region) {
  return region ? std::uint64_t{region[0]} * region[1] * region[2] : 0;
}

std::uint64_t image_volume(cl_mem image, const size_t* region) {
  std::size_t element = 0;
  if (!driver().clGetImageInfo ||
      driver().clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, nullptr) !=
          CL_SUCCESS)
    element = 4;
  return volume(region) * element;
}

Command transfer(cl_command_queue queue, std::uint64_t bytes, cl_uint wait_count,
                 const cl_event* wait_list, cl_event* event, bool blocking = false) {
  Command command;
  command.queue = queue;
  command.work = Work::transfer;
  command.bytes = bytes;
  command.similar = transfer_kind(bytes);
  command.wait_count = wait_count;
  command.wait_list = wait_list;
  command.event = event;
  command.blocking = blocking;
  return command;
}

Command to_device(Command command) {
  command.work = Work::to_device;
  return command;
}

Command from_device(Command command) {
  command.work = Work::from_device;
  return command;
}

// A map brings to the host what it does not promise to overwrite.
Command mapping(Command command, cl_map_flags flags) {
  const bool reads = (flags & CL_MAP_WRITE_INVALIDATE_REGION) == 0;
  if (reads) command.work = Work::from_device;
  return command;
}

Command launch(cl_command_queue queue, std::uint64_t similar, cl_uint wait_count,
               const cl_event* wait_list, cl_event* event) {
  Command command = transfer(queue, 0, wait_count, wait_list, event);
  command.work = Work::kernel;
  command.similar = similar;
  return command;
}

Command fence(cl_command_queue queue, bool is_barrier, cl_uint wait_count,
              const cl_event* wait_list, cl_event* event) {
  Command command = transfer(queue, 0, wait_count, wait_list, event);
  command.work = Work::none;
  command.is_barrier = is_barrier;
  return command;
}

}  // namespace

}  // namespace loam::guard

using loam::guard::driver;
using loam::guard::fence;
using loam::guard::from_device;
using loam::guard::image_volume;
using loam::guard::launch;
using loam::guard::launch_kind;
using loam::guard::mapping;
using loam::guard::submit;
using loam::guard::to_device;
using loam::guard::transfer;
using loam::guard::volume;

// The wait list and event that end every command, and what they are called here.
#define LOAM_GUARD_TAIL cl_uint waits, const cl_event *list, cl_event *event

LOAM_GUARD_EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                cl_uint dimensions, const size_t* offset,
                                                const size_t* global, const size_t* local,
                                                LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueNDRangeKernel) return CL_INVALID_OPERATION;
  return submit(launch(queue, launch_kind(kernel, dimensions, global), waits, list, event),
                [&](cl_bool, cl_event* out) {
                  return driver().clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
                                                         local, waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueTask(cl_command_queue queue, cl_kernel kernel, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueTask) return CL_INVALID_OPERATION;
  return submit(launch(queue, launch_kind(kernel, 0, nullptr), waits, list, event),
                [&](cl_bool, cl_event* out) {
                  return driver().clEnqueueTask(queue, kernel, waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueNativeKernel(cl_command_queue queue,
                                               void(CL_CALLBACK* function)(void*), void* arguments,
                                               size_t size, cl_uint objects,
                                               const cl_mem* object_list, const void** places,
                                               LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueNativeKernel) return CL_INVALID_OPERATION;
  return submit(launch(queue, reinterpret_cast<std::uint64_t>(function), waits, list, event),
                [&](cl_bool, cl_event* out) {
                  return driver().clEnqueueNativeKernel(queue, function, arguments, size, objects,
                                                        object_list, places, waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer,
                                             cl_bool blocking, size_t offset, size_t size, void* to,
                                             LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueReadBuffer) return CL_INVALID_OPERATION;
  return submit(from_device(transfer(queue, size, waits, list, event, blocking == CL_TRUE)),
                [&](cl_bool blocking_now, cl_event* out) {
                  return driver().clEnqueueReadBuffer(queue, buffer, blocking_now, offset, size, to,
                                                      waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer,
                                                 cl_bool blocking, const size_t* buffer_origin,
                                                 const size_t* host_origin, const size_t* region,
                                                 size_t row, size_t slice, size_t host_row,
                                                 size_t host_slice, void* to, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueReadBufferRect) return CL_INVALID_OPERATION;
  return submit(
      from_device(transfer(queue, volume(region), waits, list, event, blocking == CL_TRUE)),
      [&](cl_bool blocking_now, cl_event* out) {
        return driver().clEnqueueReadBufferRect(queue, buffer, blocking_now, buffer_origin,
                                                host_origin, region, row, slice, host_row,
                                                host_slice, to, waits, list, out);
      });
}

LOAM_GUARD_EXPORT cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer,
                                              cl_bool blocking, size_t offset, size_t size,
                                              const void* from, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueWriteBuffer) return CL_INVALID_OPERATION;
  return submit(to_device(transfer(queue, size, waits, list, event, blocking == CL_TRUE)),
                [&](cl_bool blocking_now, cl_event* out) {
                  return driver().clEnqueueWriteBuffer(queue, buffer, blocking_now, offset, size,
                                                       from, waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer,
                                                  cl_bool blocking, const size_t* buffer_origin,
                                                  const size_t* host_origin, const size_t* region,
                                                  size_t row, size_t slice, size_t host_row,
                                                  size_t host_slice, const void* from,
                                                  LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueWriteBufferRect) return CL_INVALID_OPERATION;
  return submit(to_device(transfer(queue, volume(region), waits, list, event, blocking == CL_TRUE)),
                [&](cl_bool blocking_now, cl_event* out) {
                  return driver().clEnqueueWriteBufferRect(
                      queue, buffer, blocking_now, buffer_origin, host_origin, region, row, slice,
                      host_row, host_slice, from, waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer,
                                             const void* pattern, size_t pattern_size,
                                             size_t offset, size_t size, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueFillBuffer) return CL_INVALID_OPERATION;
  return submit(transfer(queue, size, waits, list, event), [&](cl_bool, cl_event* out) {
    return driver().clEnqueueFillBuffer(queue, buffer, pattern, pattern_size, offset, size, waits,
                                        list, out);
  });
}

LOAM_GUARD_EXPORT cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                             size_t from_offset, size_t to_offset, size_t size,
                                             LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueCopyBuffer) return CL_INVALID_OPERATION;
  return submit(transfer(queue, size, waits, list, event), [&](cl_bool, cl_event* out) {
    return driver().clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, size, waits, list,
                                        out);
  });
}

LOAM_GUARD_EXPORT cl_int clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem from, cl_mem to,
                                                 const size_t* from_origin, const size_t* to_origin,
                                                 const size_t* region, size_t from_row,
                                                 size_t from_slice, size_t to_row, size_t to_slice,
                                                 LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueCopyBufferRect) return CL_INVALID_OPERATION;
  return submit(transfer(queue, volume(region), waits, list, event), [&](cl_bool, cl_event* out) {
    return driver().clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin, region,
                                            from_row, from_slice, to_row, to_slice, waits, list,
                                            out);
  });
}

LOAM_GUARD_EXPORT cl_int clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                            const size_t* origin, const size_t* region, size_t row,
                                            size_t slice, void* to, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueReadImage) return CL_INVALID_OPERATION;
  return submit(from_device(transfer(queue, image_volume(image, region), waits, list, event,
                                     blocking == CL_TRUE)),
                [&](cl_bool blocking_now, cl_event* out) {
                  return driver().clEnqueueReadImage(queue, image, blocking_now, origin, region,
                                                     row, slice, to, waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                             const size_t* origin, const size_t* region, size_t row,
                                             size_t slice, const void* from, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueWriteImage) return CL_INVALID_OPERATION;
  return submit(to_device(transfer(queue, image_volume(image, region), waits, list, event,
                                   blocking == CL_TRUE)),
                [&](cl_bool blocking_now, cl_event* out) {
                  return driver().clEnqueueWriteImage(queue, image, blocking_now, origin, region,
                                                      row, slice, from, waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void* color,
                                            const size_t* origin, const size_t* region,
                                            LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueFillImage) return CL_INVALID_OPERATION;
  return submit(transfer(queue, image_volume(image, region), waits, list, event),
                [&](cl_bool, cl_event* out) {
                  return driver().clEnqueueFillImage(queue, image, color, origin, region, waits,
                                                     list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueCopyImage(cl_command_queue queue, cl_mem from, cl_mem to,
                                            const size_t* from_origin, const size_t* to_origin,
                                            const size_t* region, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueCopyImage) return CL_INVALID_OPERATION;
  return submit(transfer(queue, image_volume(from, region), waits, list, event),
                [&](cl_bool, cl_event* out) {
                  return driver().clEnqueueCopyImage(queue, from, to, from_origin, to_origin,
                                                     region, waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                                    const size_t* origin, const size_t* region,
                                                    size_t offset, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueCopyImageToBuffer) return CL_INVALID_OPERATION;
  return submit(transfer(queue, image_volume(from, region), waits, list, event),
                [&](cl_bool, cl_event* out) {
                  return driver().clEnqueueCopyImageToBuffer(queue, from, to, origin, region,
                                                             offset, waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem from, cl_mem to,
                                                    size_t offset, const size_t* origin,
                                                    const size_t* region, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueCopyBufferToImage) return CL_INVALID_OPERATION;
  return submit(transfer(queue, image_volume(to, region), waits, list, event),
                [&](cl_bool, cl_event* out) {
                  return driver().clEnqueueCopyBufferToImage(queue, from, to, offset, origin,
                                                             region, waits, list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem object,
                                                 void* address, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueUnmapMemObject) return CL_INVALID_OPERATION;
  return submit(transfer(queue, 0, waits, list, event), [&](cl_bool, cl_event* out) {
    return driver().clEnqueueUnmapMemObject(queue, object, address, waits, list, out);
  });
}

LOAM_GUARD_EXPORT cl_int clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count,
                                                    const cl_mem* objects,
                                                    cl_mem_migration_flags flags, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueMigrateMemObjects) return CL_INVALID_OPERATION;
  return submit(transfer(queue, 0, waits, list, event), [&](cl_bool, cl_event* out) {
    return driver().clEnqueueMigrateMemObjects(queue, count, objects, flags, waits, list, out);
  });
}

LOAM_GUARD_EXPORT cl_int clEnqueueSVMMemFill(cl_command_queue queue, void* to, const void* pattern,
                                             size_t pattern_size, size_t size, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueSVMMemFill) return CL_INVALID_OPERATION;
  return submit(transfer(queue, size, waits, list, event), [&](cl_bool, cl_event* out) {
    return driver().clEnqueueSVMMemFill(queue, to, pattern, pattern_size, size, waits, list, out);
  });
}

LOAM_GUARD_EXPORT cl_int clEnqueueSVMUnmap(cl_command_queue queue, void* address, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueSVMUnmap) return CL_INVALID_OPERATION;
  return submit(transfer(queue, 0, waits, list, event), [&](cl_bool, cl_event* out) {
    return driver().clEnqueueSVMUnmap(queue, address, waits, list, out);
  });
}

LOAM_GUARD_EXPORT cl_int clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count,
                                                const void** addresses, const size_t* sizes,
                                                cl_mem_migration_flags flags, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueSVMMigrateMem) return CL_INVALID_OPERATION;
  return submit(transfer(queue, 0, waits, list, event), [&](cl_bool, cl_event* out) {
    return driver().clEnqueueSVMMigrateMem(queue, count, addresses, sizes, flags, waits, list, out);
  });
}

// Here the blocking flag comes before the rest.
LOAM_GUARD_EXPORT cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void* to,
                                            const void* from, size_t size, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueSVMMemcpy) return CL_INVALID_OPERATION;
  return submit(transfer(queue, size, waits, list, event, blocking == CL_TRUE),
                [&](cl_bool blocking_now, cl_event* out) {
                  return driver().clEnqueueSVMMemcpy(queue, blocking_now, to, from, size, waits,
                                                     list, out);
                });
}

LOAM_GUARD_EXPORT cl_int clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking,
                                         cl_map_flags flags, void* address, size_t size,
                                         LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueSVMMap) return CL_INVALID_OPERATION;
  return submit(mapping(transfer(queue, size, waits, list, event, blocking == CL_TRUE), flags),
                [&](cl_bool blocking_now, cl_event* out) {
                  return driver().clEnqueueSVMMap(queue, blocking_now, flags, address, size, waits,
                                                  list, out);
                });
}

// The maps return an address and put the error aside.
LOAM_GUARD_EXPORT void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                           cl_map_flags flags, size_t offset, size_t size,
                                           LOAM_GUARD_TAIL, cl_int* fault) {
  void* address = nullptr;
  cl_int done = CL_INVALID_OPERATION;
  if (driver().clEnqueueMapBuffer)
    done = submit(mapping(transfer(queue, size, waits, list, event, blocking == CL_TRUE), flags),
                  [&](cl_bool blocking_now, cl_event* out) {
                    cl_int mapped = CL_SUCCESS;
                    address = driver().clEnqueueMapBuffer(queue, buffer, blocking_now, flags,
                                                          offset, size, waits, list, out, &mapped);
                    return mapped;
                  });
  if (fault) *fault = done;
  return done == CL_SUCCESS ? address : nullptr;
}

LOAM_GUARD_EXPORT void* clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                          cl_map_flags flags, const size_t* origin,
                                          const size_t* region, size_t* row, size_t* slice,
                                          LOAM_GUARD_TAIL, cl_int* fault) {
  void* address = nullptr;
  cl_int done = CL_INVALID_OPERATION;
  if (driver().clEnqueueMapImage)
    done = submit(
        mapping(
            transfer(queue, image_volume(image, region), waits, list, event, blocking == CL_TRUE),
            flags),
        [&](cl_bool blocking_now, cl_event* out) {
          cl_int mapped = CL_SUCCESS;
          address = driver().clEnqueueMapImage(queue, image, blocking_now, flags, origin, region,
                                               row, slice, waits, list, out, &mapped);
          return mapped;
        });
  if (fault) *fault = done;
  return done == CL_SUCCESS ? address : nullptr;
}

// Markers and barriers put nothing on the device, but what follows them may wait with them.
LOAM_GUARD_EXPORT cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueMarkerWithWaitList) return CL_INVALID_OPERATION;
  return submit(fence(queue, false, waits, list, event), [&](cl_bool, cl_event* out) {
    return driver().clEnqueueMarkerWithWaitList(queue, waits, list, out);
  });
}

LOAM_GUARD_EXPORT cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, LOAM_GUARD_TAIL) {
  if (!driver().clEnqueueBarrierWithWaitList) return CL_INVALID_OPERATION;
  return submit(fence(queue, true, waits, list, event), [&](cl_bool, cl_event* out) {
    return driver().clEnqueueBarrierWithWaitList(queue, waits, list, out);
  });
}

LOAM_GUARD_EXPORT cl_int clEnqueueMarker(cl_command_queue queue, cl_event* event) {
  if (!driver().clEnqueueMarker) return CL_INVALID_OPERATION;
  return submit(fence(queue, false, 0, nullptr, event),
                [&](cl_bool, cl_event* out) { return driver().clEnqueueMarker(queue, out); });
}

// These two have no event of their own; their successors with one do the same.
LOAM_GUARD_EXPORT cl_int clEnqueueBarrier(cl_command_queue queue) {
  if (!driver().clEnqueueBarrierWithWaitList)
    return driver().clEnqueueBarrier ? driver().clEnqueueBarrier(queue) : CL_INVALID_OPERATION;
  return clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr);
}

LOAM_GUARD_EXPORT cl_int clEnqueueWaitForEvents(cl_command_queue queue, cl_uint waits,
                                                const cl_event* list) {
  if (waits == 0 || !list) return CL_INVALID_VALUE;
  if (!driver().clEnqueueBarrierWithWaitList)
    return driver().clEnqueueWaitForEvents ? driver().clEnqueueWaitForEvents(queue, waits, list)
                                           : CL_INVALID_OPERATION;
  return clEnqueueBarrierWithWaitList(queue, waits, list, nullptr);
}

LOAM_GUARD_EXPORT cl_int clSetUserEventStatus(cl_event event, cl_int status) {
  if (!driver().clSetUserEventStatus) return CL_INVALID_OPERATION;
  return loam::guard::set_user_event(event, status);
}
