// The OpenCL entries that loam uses, taken from the loader at run time, so that nothing links to
// it. Types come from the Khronos headers.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
// clCreateCommandQueue: the call that drivers of every version have.
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <string>
#include <vector>

#include "base/result.hpp"
#include "node/device/found_device.hpp"

namespace loam::node {

struct OpenCl {
  decltype(&clGetPlatformIDs) get_platform_ids = nullptr;
  decltype(&clGetPlatformInfo) get_platform_info = nullptr;
  decltype(&clGetDeviceIDs) get_device_ids = nullptr;
  decltype(&clGetDeviceInfo) get_device_info = nullptr;
  // For calibration; a loader that only lists may lack them.
  decltype(&clCreateContext) create_context = nullptr;
  decltype(&clReleaseContext) release_context = nullptr;
  decltype(&clCreateCommandQueue) create_command_queue = nullptr;
  decltype(&clReleaseCommandQueue) release_command_queue = nullptr;
  decltype(&clCreateBuffer) create_buffer = nullptr;
  decltype(&clReleaseMemObject) release_mem_object = nullptr;
  decltype(&clCreateProgramWithSource) create_program_with_source = nullptr;
  decltype(&clBuildProgram) build_program = nullptr;
  decltype(&clGetProgramBuildInfo) get_program_build_info = nullptr;
  decltype(&clReleaseProgram) release_program = nullptr;
  decltype(&clCreateKernel) create_kernel = nullptr;
  decltype(&clReleaseKernel) release_kernel = nullptr;
  decltype(&clSetKernelArg) set_kernel_arg = nullptr;
  decltype(&clEnqueueNDRangeKernel) enqueue_nd_range_kernel = nullptr;
  decltype(&clEnqueueWriteBuffer) enqueue_write_buffer = nullptr;
  decltype(&clEnqueueReadBuffer) enqueue_read_buffer = nullptr;
  decltype(&clFinish) finish = nullptr;

  std::string library_name;

  // Opens the first loader that opens. `with_compute` also requires the entries that run kernels.
  // not_found: none is installed; unsupported: one is there and is not what it should be.
  static Result<OpenCl> open(const std::vector<std::string>& names, bool with_compute);
};

// "CL_DEVICE_NOT_FOUND (-1)", or "code -9999" for codes that no specification names.
std::string opencl_error_text(cl_int code);

// A text that the driver gives about a platform or device; empty where it gives none.
std::string opencl_text(const OpenCl& cl, cl_platform_id platform, cl_platform_info what);
std::string opencl_text(const OpenCl& cl, cl_device_id device, cl_device_info what);

// True where the blank-separated list `extensions` holds `extension`.
bool has_extension(const std::string& extensions, std::string_view extension);

// Every platform's devices in the loader's order, without custom devices. A platform that fails
// is left out with a warning.
struct OpenClListed {
  OpenClPlace place;
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
};
std::vector<OpenClListed> list_opencl(const OpenCl& cl, Finding& notes);

}  // namespace loam::node
