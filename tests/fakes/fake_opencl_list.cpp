// A fake libOpenCL.so.1 that lists what the control panel tells it to.
#include "fakes/fake_opencl_list.hpp"

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <cstring>

namespace {

fakes::FakeCl panel;

cl_int give(const void* from, std::size_t bytes, std::size_t room, void* to, std::size_t* needed) {
  if (needed != nullptr) *needed = bytes;
  if (to == nullptr) return CL_SUCCESS;
  if (room < bytes) return CL_INVALID_VALUE;
  std::memcpy(to, from, bytes);
  return CL_SUCCESS;
}

cl_int give_text(const char* text, std::size_t room, void* to, std::size_t* needed) {
  return give(text, std::strlen(text) + 1, room, to, needed);
}

template <class Value>
cl_int give_value(Value value, std::size_t room, void* to, std::size_t* needed) {
  return give(&value, sizeof value, room, to, needed);
}

}  // namespace

extern "C" {

fakes::FakeCl* fake_cl() {
  return &panel;
}

cl_int CL_API_CALL clGetPlatformIDs(cl_uint room, cl_platform_id* to, cl_uint* count) {
  if (panel.code != CL_SUCCESS) return panel.code;
  if (count != nullptr) *count = panel.count;
  for (cl_uint i = 0; to != nullptr && i < room && i < panel.platforms.size(); ++i) {
    to[i] = reinterpret_cast<cl_platform_id>(&panel.platforms[i]);
  }
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id id, cl_platform_info what, std::size_t room,
                                     void* to, std::size_t* needed) {
  const auto* platform = reinterpret_cast<const fakes::FakeClPlatform*>(id);
  if (what == CL_PLATFORM_NAME) return give_text(platform->name, room, to, needed);
  return CL_INVALID_VALUE;
}

cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id id, cl_device_type, cl_uint room, cl_device_id* to,
                                  cl_uint* count) {
  auto* platform = reinterpret_cast<fakes::FakeClPlatform*>(id);
  if (platform->code != CL_SUCCESS) return platform->code;
  if (count != nullptr) *count = platform->count;
  for (cl_uint i = 0; to != nullptr && i < room && i < platform->devices.size(); ++i) {
    to[i] = reinterpret_cast<cl_device_id>(&platform->devices[i]);
  }
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetDeviceInfo(cl_device_id id, cl_device_info what, std::size_t room, void* to,
                                   std::size_t* needed) {
  const auto* device = reinterpret_cast<const fakes::FakeClDevice*>(id);
  switch (what) {
    case CL_DEVICE_NAME:
      return give_text(device->name, room, to, needed);
    case CL_DEVICE_VENDOR:
      return give_text(device->vendor, room, to, needed);
    case CL_DRIVER_VERSION:
      return give_text(device->driver_version, room, to, needed);
    case CL_DEVICE_EXTENSIONS:
      return give_text(device->extensions, room, to, needed);
    case CL_DEVICE_TYPE:
      return give_value<cl_device_type>(device->type, room, to, needed);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
      return give_value<cl_ulong>(device->memory_bytes, room, to, needed);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return give_value<cl_uint>(device->compute_units, room, to, needed);
    case CL_DEVICE_AVAILABLE:
      return give_value<cl_bool>(device->available ? CL_TRUE : CL_FALSE, room, to, needed);
    case CL_DEVICE_UUID_KHR:
      return give(device->uuid.data(), device->uuid.size(), room, to, needed);
    case CL_DEVICE_PCI_BUS_INFO_KHR:
      return give_value(cl_device_pci_bus_info_khr{device->domain, device->bus, device->device, 0},
                        room, to, needed);
    case 0x4008:  // NVIDIA: bus
      return give_value<cl_uint>(device->bus, room, to, needed);
    case 0x4009:  // NVIDIA: slot
      return give_value<cl_uint>(device->device << 3U, room, to, needed);
    case 0x400A:  // NVIDIA: domain
      return give_value<cl_uint>(device->domain, room, to, needed);
    case CL_DEVICE_TOPOLOGY_AMD: {
      std::array<unsigned char, 24> topology{};
      topology[0] = 1;
      topology[21] = static_cast<unsigned char>(device->bus);
      topology[22] = static_cast<unsigned char>(device->device);
      return give(topology.data(), topology.size(), room, to, needed);
    }
    default:
      return CL_INVALID_VALUE;
  }
}

}  // extern "C"
