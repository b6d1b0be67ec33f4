#include "guard/devices.hpp"

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

namespace loam::guard {

namespace {

// Root devices live as long as the process, so what was found about them stays true.
struct Known {
  cl_device_id device;
  int entry;
};
constexpr int known_max = 64;
std::mutex known_lock;
Known known[known_max];
int known_count = 0;

constexpr cl_uint devices_max = 64;

cl_device_id root_of(cl_device_id device) {
  for (;;) {
    cl_device_id parent = nullptr;
    const cl_int fault = driver().clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent,
                                                  static_cast<void*>(&parent), nullptr);
    if (fault != CL_SUCCESS || !parent) return device;
    device = parent;
  }
}

bool device_name(cl_device_id device, char* name, std::size_t bytes) {
  return driver().clGetDeviceInfo(device, CL_DEVICE_NAME, bytes, name, nullptr) == CL_SUCCESS;
}

int find_entry(const Page& page, cl_device_id device) {
  cl_platform_id platform = nullptr;
  char platform_name[256] = {};
  char name[256] = {};
  if (driver().clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform,
                               static_cast<void*>(&platform), nullptr) != CL_SUCCESS ||
      driver().clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name, platform_name,
                                 nullptr) != CL_SUCCESS ||
      !device_name(device, name, sizeof name))
    return not_on_page;
  cl_device_id all[devices_max];
  cl_uint count = 0;
  if (driver().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices_max, all, &count) != CL_SUCCESS)
    return not_on_page;
  unsigned ordinal = 0;
  for (cl_uint i = 0; i < count && i < devices_max && all[i] != device; ++i) {
    char other[256] = {};
    if (device_name(all[i], other, sizeof other) && std::strcmp(other, name) == 0) ++ordinal;
  }
  char identity[600];
  std::snprintf(identity, sizeof identity, "opencl:%s/%s/%u", platform_name, name, ordinal);
  const std::uint64_t key = loam_device_key(identity);
  for (std::uint32_t i = 0; i < page.device_count(); ++i)
    if (page.limits().device[i].device_key == key) return static_cast<int>(i);
  return not_on_page;
}

}  // namespace

int page_entry(const Page& page, cl_device_id device) {
  {
    const std::lock_guard<std::mutex> guard(known_lock);
    for (int i = 0; i < known_count; ++i)
      if (known[i].device == device) return known[i].entry;
  }
  const cl_device_id root = root_of(device);
  if (root != device) return page_entry(page, root);
  const int entry = find_entry(page, device);
  const std::lock_guard<std::mutex> guard(known_lock);
  if (known_count < known_max) known[known_count++] = Known{device, entry};
  return entry;
}

bool page_entries(const Page& page, cl_context context, std::uint32_t* entries, cl_int* fault) {
  *entries = 0;
  cl_device_id devices[devices_max];
  std::size_t bytes = 0;
  *fault = driver().clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices,
                                     static_cast<void*>(devices), &bytes);
  if (*fault != CL_SUCCESS) return false;
  for (std::size_t i = 0; i < bytes / sizeof devices[0]; ++i) {
    const int entry = page_entry(page, devices[i]);
    if (entry == not_on_page) {
      *fault = CL_OUT_OF_RESOURCES;
      return false;
    }
    *entries |= 1u << entry;
  }
  return true;
}

}  // namespace loam::guard
