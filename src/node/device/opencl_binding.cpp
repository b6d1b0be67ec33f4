#include "node/device/opencl_binding.hpp"

#include <algorithm>
#include <array>

#include "node/device/identity.hpp"
#include "node/device/library.hpp"

namespace loam::node {
namespace {

constexpr cl_uint listed_max = 256;  // platforms, or devices of one: more is nonsense
constexpr std::size_t text_bytes_max = 1U << 16U;
constexpr cl_int platform_not_found_khr = -1001;  // cl_khr_icd: the loader has no driver to load

template <class Subject, class Query>
std::string text_of(Query query, Subject subject, cl_uint what) {
  std::size_t bytes = 0;
  if (query(subject, what, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  if (bytes < 2 || bytes > text_bytes_max) return {};
  std::vector<char> text(bytes + 1, '\0');
  if (query(subject, what, bytes, text.data(), nullptr) != CL_SUCCESS) return {};
  if (text.front() == '\0') return {};
  return driver_text(text);
}

}  // namespace

Result<OpenCl> OpenCl::open(const std::vector<std::string>& names, bool with_compute) {
  LOAM_TRY(library, Library::open(names));
  OpenCl cl;
  cl.library_name = library.name();
  std::vector<std::string> missing;
  const auto bind = [&](const char* symbol, auto*& entry) {
    library.require(symbol, entry, missing);
  };
  bind("clGetPlatformIDs", cl.get_platform_ids);
  bind("clGetPlatformInfo", cl.get_platform_info);
  bind("clGetDeviceIDs", cl.get_device_ids);
  bind("clGetDeviceInfo", cl.get_device_info);
  if (with_compute) {
    bind("clCreateContext", cl.create_context);
    bind("clReleaseContext", cl.release_context);
    bind("clCreateCommandQueue", cl.create_command_queue);
    bind("clReleaseCommandQueue", cl.release_command_queue);
    bind("clCreateBuffer", cl.create_buffer);
    bind("clReleaseMemObject", cl.release_mem_object);
    bind("clCreateProgramWithSource", cl.create_program_with_source);
    bind("clBuildProgram", cl.build_program);
    bind("clGetProgramBuildInfo", cl.get_program_build_info);
    bind("clReleaseProgram", cl.release_program);
    bind("clCreateKernel", cl.create_kernel);
    bind("clReleaseKernel", cl.release_kernel);
    bind("clSetKernelArg", cl.set_kernel_arg);
    bind("clEnqueueNDRangeKernel", cl.enqueue_nd_range_kernel);
    bind("clEnqueueWriteBuffer", cl.enqueue_write_buffer);
    bind("clEnqueueReadBuffer", cl.enqueue_read_buffer);
    bind("clFinish", cl.finish);
  }
  if (!missing.empty()) {
    return Error{ErrorKind::unsupported, lacks_text(library, missing),
                 "install an OpenCL loader, for example ocl-icd-libopencl1"};
  }
  return cl;
}

std::string opencl_error_text(cl_int code) {
  struct Name {
    cl_int code;
    const char* text;
  };
  constexpr std::array names{
      Name{CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
      Name{CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
      Name{CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
      Name{CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      Name{CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
      Name{CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
      Name{CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
      Name{CL_INVALID_VALUE, "CL_INVALID_VALUE"},
      Name{CL_INVALID_DEVICE_TYPE, "CL_INVALID_DEVICE_TYPE"},
      Name{CL_INVALID_PLATFORM, "CL_INVALID_PLATFORM"},
      Name{CL_INVALID_DEVICE, "CL_INVALID_DEVICE"},
      Name{CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT"},
      Name{CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"},
      Name{CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
      Name{CL_INVALID_OPERATION, "CL_INVALID_OPERATION"},
      Name{CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
      Name{platform_not_found_khr, "CL_PLATFORM_NOT_FOUND_KHR"},
  };
  const auto* found =
      std::find_if(names.begin(), names.end(), [&](const Name& name) { return name.code == code; });
  if (found == names.end()) return "code " + std::to_string(code);
  return std::string(found->text) + " (" + std::to_string(code) + ")";
}

std::string opencl_text(const OpenCl& cl, cl_platform_id platform, cl_platform_info what) {
  return text_of(cl.get_platform_info, platform, what);
}

std::string opencl_text(const OpenCl& cl, cl_device_id device, cl_device_info what) {
  return text_of(cl.get_device_info, device, what);
}

bool has_extension(const std::string& extensions, std::string_view extension) {
  return (" " + extensions + " ").find(" " + std::string(extension) + " ") != std::string::npos;
}

std::vector<OpenClListed> list_opencl(const OpenCl& cl, Finding& notes) {
  constexpr const char* source = "opencl";
  cl_uint platform_count = 0;
  cl_int code = cl.get_platform_ids(0, nullptr, &platform_count);
  if (code == platform_not_found_khr || (code == CL_SUCCESS && platform_count == 0)) {
    notes.note(source, "an OpenCL loader is installed and finds no driver");
    return {};
  }
  if (code != CL_SUCCESS || platform_count > listed_max) {
    notes.warn(source, "clGetPlatformIDs: " + opencl_error_text(code) + ", " +
                           std::to_string(platform_count) + " platforms");
    return {};
  }
  std::vector<cl_platform_id> platforms(platform_count);
  code = cl.get_platform_ids(platform_count, platforms.data(), nullptr);
  if (code != CL_SUCCESS) {
    notes.warn(source, "clGetPlatformIDs: " + opencl_error_text(code));
    return {};
  }
  std::vector<OpenClListed> listed;
  for (cl_uint p = 0; p < platform_count; ++p) {
    const std::string name = opencl_text(cl, platforms[p], CL_PLATFORM_NAME);
    const std::string platform = "platform '" + name + "': clGetDeviceIDs: ";
    cl_uint count = 0;
    code = cl.get_device_ids(platforms[p], CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
    if (code == CL_DEVICE_NOT_FOUND || (code == CL_SUCCESS && count == 0)) {
      notes.note(source, "platform '" + name + "' has no device");
      continue;
    }
    std::vector<cl_device_id> devices(std::min(count, listed_max));
    if (code == CL_SUCCESS && count <= listed_max) {
      code = cl.get_device_ids(platforms[p], CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr);
    }
    if (code != CL_SUCCESS || count > listed_max) {
      notes.warn(source, platform + opencl_error_text(code) + ", " + std::to_string(count) +
                             " devices; none is used");
      continue;
    }
    for (cl_uint d = 0; d < count; ++d) {
      listed.push_back({OpenClPlace{p, d, name}, platforms[p], devices[d]});
    }
  }
  return listed;
}

}  // namespace loam::node
