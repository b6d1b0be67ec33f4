// The OpenCL implementation behind the guard: its functions, found once; and the names that the
// guard puts itself in front of. Not pure: the dynamic linker.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>

#include "guard/lookup.hpp"

// Every function of the OpenCL API that the guard replaces.
#define LOAM_GUARD_HOOKS(X)                   \
  X(clGetDeviceIDs)                           \
  X(clGetDeviceInfo)                          \
  X(clCreateContext)                          \
  X(clCreateContextFromType)                  \
  X(clGetExtensionFunctionAddress)            \
  X(clGetExtensionFunctionAddressForPlatform) \
  X(clCreateBuffer)                           \
  X(clCreateBufferWithProperties)             \
  X(clCreateImage)                            \
  X(clCreateImageWithProperties)              \
  X(clCreateImage2D)                          \
  X(clCreateImage3D)                          \
  X(clCreatePipe)                             \
  X(clSVMAlloc)                               \
  X(clSVMFree)                                \
  X(clEnqueueSVMFree)                         \
  X(clEnqueueNDRangeKernel)                   \
  X(clEnqueueTask)                            \
  X(clEnqueueNativeKernel)                    \
  X(clEnqueueReadBuffer)                      \
  X(clEnqueueReadBufferRect)                  \
  X(clEnqueueWriteBuffer)                     \
  X(clEnqueueWriteBufferRect)                 \
  X(clEnqueueFillBuffer)                      \
  X(clEnqueueCopyBuffer)                      \
  X(clEnqueueCopyBufferRect)                  \
  X(clEnqueueReadImage)                       \
  X(clEnqueueWriteImage)                      \
  X(clEnqueueFillImage)                       \
  X(clEnqueueCopyImage)                       \
  X(clEnqueueCopyImageToBuffer)               \
  X(clEnqueueCopyBufferToImage)               \
  X(clEnqueueMapBuffer)                       \
  X(clEnqueueMapImage)                        \
  X(clEnqueueUnmapMemObject)                  \
  X(clEnqueueMigrateMemObjects)               \
  X(clEnqueueSVMMemcpy)                       \
  X(clEnqueueSVMMemFill)                      \
  X(clEnqueueSVMMap)                          \
  X(clEnqueueSVMUnmap)                        \
  X(clEnqueueMarker)                          \
  X(clEnqueueBarrier)                         \
  X(clEnqueueWaitForEvents)                   \
  X(clEnqueueMarkerWithWaitList)              \
  X(clEnqueueBarrierWithWaitList)             \
  X(clEnqueueSVMMigrateMem)                   \
  X(clSetUserEventStatus)

// What it only calls.
#define LOAM_GUARD_CALLS(X)           \
  X(clGetPlatformIDs)                 \
  X(clGetPlatformInfo)                \
  X(clGetContextInfo)                 \
  X(clGetCommandQueueInfo)            \
  X(clGetMemObjectInfo)               \
  X(clGetImageInfo)                   \
  X(clGetEventInfo)                   \
  X(clSetMemObjectDestructorCallback) \
  X(clReleaseMemObject)               \
  X(clReleaseEvent)                   \
  X(clRetainEvent)                    \
  X(clSetEventCallback)               \
  X(clWaitForEvents)                  \
  X(clCreateCommandQueue)             \
  X(clReleaseCommandQueue)            \
  X(clFlush)

namespace loam::guard {

// A function that the implementation lacks is null.
struct Driver {
#define LOAM_GUARD_MEMBER(name) decltype(&::name) name = nullptr;
  LOAM_GUARD_HOOKS(LOAM_GUARD_MEMBER)
  LOAM_GUARD_CALLS(LOAM_GUARD_MEMBER)
#undef LOAM_GUARD_MEMBER
  bool found = false;
};

// Found at the first call; where the process has no OpenCL implementation, `found` is false and the
// search is repeated at the next call.
const Driver& driver();

// The guard's function of that name; null for a name it does not replace.
void* hook_named(const char* name);

}  // namespace loam::guard
