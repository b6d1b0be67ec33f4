#include "guard/opencl/devices.hpp"

#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <new>

#include "guard/lock.hpp"

namespace loam::guard {

namespace {

// Root devices live as long as the process, so what was found about them stays true.
struct Known {
  cl_device_id device;
  int entry;
};
constexpr int known_max = 64;
pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
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

// Without the blanks around it; in place.
const char* trimmed(char* text) {
  while (*text == ' ') ++text;
  for (std::size_t length = std::strlen(text); length > 0 && text[length - 1] == ' ';)
    text[--length] = 0;
  return text;
}

// CL_DEVICE_UUID_KHR of cl_khr_device_uuid, not in every version of the headers.
constexpr cl_device_info device_uuid_query = 0x106A;

// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"; false where the driver gives none.
bool uuid_identity(cl_device_id device, char* identity, std::size_t bytes) {
  unsigned char uuid[16] = {};
  if (driver().clGetDeviceInfo(device, device_uuid_query, sizeof uuid, uuid, nullptr) != CL_SUCCESS)
    return false;
  char hex[33] = {};
  bool any = false;
  for (unsigned i = 0; i < 16; ++i) {
    std::snprintf(hex + 2 * i, 3, "%02x", static_cast<unsigned>(uuid[i]));
    any = any || uuid[i] != 0;
  }
  std::snprintf(identity, bytes, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                hex + 20);
  return any;
}

// "opencl:PLATFORM/NAME/INDEX".
bool place_identity(cl_device_id device, char* identity, std::size_t bytes) {
  cl_platform_id platform = nullptr;
  char platform_name[256] = {};
  char name[256] = {};
  const Driver& real = driver();
  if (real.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform,
                           static_cast<void*>(&platform), nullptr) != CL_SUCCESS ||
      real.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name - 1, platform_name,
                             nullptr) != CL_SUCCESS ||
      real.clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name - 1, name, nullptr) != CL_SUCCESS)
    return false;
  cl_device_id all[devices_max];
  cl_uint count = 0;
  if (real.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices_max, all, &count) != CL_SUCCESS)
    return false;
  cl_uint index = 0;
  while (index < count && index < devices_max && all[index] != device) ++index;
  std::snprintf(identity, bytes, "opencl:%s/%s/%u", trimmed(platform_name), trimmed(name), index);
  return true;
}

// A page may name a device either way.
int find_entry(const Page& page, cl_device_id device) {
  char identity[600];
  for (const auto identify : {&uuid_identity, &place_identity}) {
    if (!identify(device, identity, sizeof identity)) continue;
    const std::uint64_t key = loam_device_key(identity);
    for (std::uint32_t i = 0; i < page.device_count(); ++i)
      if (page.limits().device[i].device_key == key) return static_cast<int>(i);
  }
  return not_on_page;
}

}  // namespace

int page_entry(const Page& page, cl_device_id device) {
  {
    const Locked locked(known_lock);
    for (int i = 0; i < known_count; ++i)
      if (known[i].device == device) return known[i].entry;
  }
  const cl_device_id root = root_of(device);
  if (root != device) return page_entry(page, root);
  const int entry = find_entry(page, device);
  const Locked locked(known_lock);
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
