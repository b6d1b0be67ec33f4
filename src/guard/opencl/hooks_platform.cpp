// Hooks of platform, device and context calls: the process sees the devices of its slice, with the
// slice's memory as theirs, and no entry that would lead around the guard.
#include <cstring>
#include <initializer_list>

#include "guard/opencl/devices.hpp"
#include "guard/opencl/driver.hpp"
#include "guard/page.hpp"

namespace loam::guard {

namespace {

constexpr cl_uint devices_max = 64;

// Extensions whose commands or allocations the guard does not count yet. They are not advertised,
// and their functions are not found.
const char* const hidden_extensions[] = {"cl_khr_command_buffer",
                                         "cl_khr_command_buffer_mutable_dispatch",
                                         "cl_khr_command_buffer_multi_device",
                                         "cl_intel_unified_shared_memory",
                                         "cl_arm_shared_virtual_memory",
                                         "cl_ext_buffer_device_address",
                                         "cl_pocl_command_buffer_svm"};

bool is_hidden(const char* name, std::size_t length) {
  for (const char* hidden : hidden_extensions)
    if (std::strlen(hidden) == length && std::memcmp(hidden, name, length) == 0) return true;
  return false;
}

// The list without the hidden names, in place; single blanks between names.
void strip_extensions(char* list) {
  char* out = list;
  const char* in = list;
  while (*in) {
    while (*in == ' ') ++in;
    const char* end = in;
    while (*end && *end != ' ') ++end;
    const auto length = static_cast<std::size_t>(end - in);
    if (length > 0 && !is_hidden(in, length)) {
      if (out != list) *out++ = ' ';
      std::memmove(out, in, length);
      out += length;
    }
    in = end;
  }
  *out = 0;
}

// The two ways in which the driver lists extensions.
cl_int extension_list(cl_device_id device, std::size_t size, void* value, std::size_t* size_ret) {
  constexpr std::size_t most = 16384;
  char list[most];
  std::size_t length = 0;
  const cl_int fault =
      driver().clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof list - 1, list, &length);
  if (fault != CL_SUCCESS) return fault;
  list[length < most ? length : most - 1] = 0;
  strip_extensions(list);
  const std::size_t bytes = std::strlen(list) + 1;
  if (size_ret) *size_ret = bytes;
  if (!value) return CL_SUCCESS;
  if (size < bytes) return CL_INVALID_VALUE;
  std::memcpy(value, list, bytes);
  return CL_SUCCESS;
}

cl_int extension_versions(cl_device_id device, std::size_t size, void* value,
                          std::size_t* size_ret) {
  constexpr std::size_t most = 256;
  cl_name_version list[most];
  std::size_t length = 0;
  const cl_int fault = driver().clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION,
                                                sizeof list, list, &length);
  if (fault != CL_SUCCESS) return fault;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < length / sizeof list[0]; ++i)
    if (!is_hidden(list[i].name, ::strnlen(list[i].name, sizeof list[i].name)))
      list[kept++] = list[i];
  const std::size_t bytes = kept * sizeof list[0];
  if (size_ret) *size_ret = bytes;
  if (!value) return CL_SUCCESS;
  if (size < bytes) return CL_INVALID_VALUE;
  std::memcpy(value, list, bytes);
  return CL_SUCCESS;
}

// What an extension lookup may still reach besides the hooks: calls that neither allocate device
// memory nor put work on a device.
bool is_harmless(const char* name) {
  for (const char* prefix :
       {"clGet", "clRelease", "clRetain", "clSet", "clIcd", "clLogMessages", "clCreateSubDevices",
        "clCreateProgram", "clCreateSampler", "clCreateContext", "clCreateCommandQueue",
        "clCreateEventFrom", "clTerminateContext", "clUnload", "clTrackLive", "clReport"})
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return true;
  return false;
}

}  // namespace

}  // namespace loam::guard

using loam::guard::driver;
using loam::guard::Page;

LOAM_GUARD_EXPORT cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type,
                                        cl_uint entries, cl_device_id* devices, cl_uint* count) {
  const auto& real = driver();
  if (!real.found) return CL_INVALID_PLATFORM;
  Page* const page = Page::of_process();
  if (!page) return CL_DEVICE_NOT_FOUND;
  cl_device_id all[loam::guard::devices_max];
  cl_uint found = 0;
  const cl_int fault = real.clGetDeviceIDs(platform, type, loam::guard::devices_max, all, &found);
  if (fault != CL_SUCCESS) return fault;
  if ((entries == 0 && devices) || (!devices && !count)) return CL_INVALID_VALUE;
  cl_uint kept = 0;
  for (cl_uint i = 0; i < found && i < loam::guard::devices_max; ++i) {
    if (loam::guard::page_entry(*page, all[i]) == loam::guard::not_on_page) continue;
    if (devices && kept < entries) devices[kept] = all[i];
    ++kept;
  }
  if (kept == 0) return CL_DEVICE_NOT_FOUND;
  if (count) *count = kept;
  return CL_SUCCESS;
}

LOAM_GUARD_EXPORT cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size,
                                         void* value, size_t* size_ret) {
  const auto& real = driver();
  if (!real.found) return CL_INVALID_DEVICE;
  if (what == CL_DEVICE_EXTENSIONS)
    return loam::guard::extension_list(device, size, value, size_ret);
  if (what == CL_DEVICE_EXTENSIONS_WITH_VERSION)
    return loam::guard::extension_versions(device, size, value, size_ret);
  const cl_int fault = real.clGetDeviceInfo(device, what, size, value, size_ret);
  const bool of_memory = what == CL_DEVICE_GLOBAL_MEM_SIZE || what == CL_DEVICE_MAX_MEM_ALLOC_SIZE;
  if (fault != CL_SUCCESS || !of_memory || !value || size < sizeof(cl_ulong)) return fault;
  Page* const page = Page::of_process();
  const int entry = page ? loam::guard::page_entry(*page, device) : loam::guard::not_on_page;
  const std::uint64_t limit =
      entry == loam::guard::not_on_page
          ? 0
          : __atomic_load_n(&page->limits().device[entry].memory_bytes, __ATOMIC_SEQ_CST);
  cl_ulong bytes = 0;
  std::memcpy(&bytes, value, sizeof bytes);
  if (limit < bytes) bytes = limit;
  std::memcpy(value, &bytes, sizeof bytes);
  return CL_SUCCESS;
}

LOAM_GUARD_EXPORT cl_context clCreateContext(
    const cl_context_properties* properties, cl_uint count, const cl_device_id* devices,
    void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* data, cl_int* fault) {
  const auto& real = driver();
  Page* const page = real.clCreateContext ? Page::of_process() : nullptr;
  bool allowed = page != nullptr;
  for (cl_uint i = 0; allowed && devices && i < count; ++i)
    allowed = loam::guard::page_entry(*page, devices[i]) != loam::guard::not_on_page;
  if (!allowed) {
    if (fault) *fault = CL_DEVICE_NOT_AVAILABLE;
    return nullptr;
  }
  return real.clCreateContext(properties, count, devices, notify, data, fault);
}

LOAM_GUARD_EXPORT cl_context clCreateContextFromType(
    const cl_context_properties* properties, cl_device_type type,
    void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* data, cl_int* fault) {
  // The driver would put every device of the type into it; the slice has its own.
  cl_platform_id platform = nullptr;
  for (const cl_context_properties* p = properties; p && p[0] != 0; p += 2)
    if (p[0] == CL_CONTEXT_PLATFORM) platform = reinterpret_cast<cl_platform_id>(p[1]);
  if (!platform && driver().found) driver().clGetPlatformIDs(1, &platform, nullptr);
  cl_device_id devices[loam::guard::devices_max];
  cl_uint count = 0;
  const cl_int found = ::clGetDeviceIDs(platform, type, loam::guard::devices_max, devices, &count);
  if (found != CL_SUCCESS) {
    if (fault) *fault = found;
    return nullptr;
  }
  return ::clCreateContext(properties, count, devices, notify, data, fault);
}

LOAM_GUARD_EXPORT void* clGetExtensionFunctionAddress(const char* name) {
  const auto& real = driver();
  if (!name || !real.clGetExtensionFunctionAddress) return nullptr;
  void* const found = real.clGetExtensionFunctionAddress(name);
  if (void* const hook = loam::guard::hook_named(name)) return found ? hook : nullptr;
  return loam::guard::is_harmless(name) ? found : nullptr;
}

LOAM_GUARD_EXPORT void* clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                                 const char* name) {
  const auto& real = driver();
  if (!name || !real.clGetExtensionFunctionAddressForPlatform) return nullptr;
  void* const found = real.clGetExtensionFunctionAddressForPlatform(platform, name);
  if (void* const hook = loam::guard::hook_named(name)) return found ? hook : nullptr;
  return loam::guard::is_harmless(name) ? found : nullptr;
}
