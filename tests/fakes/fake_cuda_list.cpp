// A fake libcuda.so.1, only what device discovery asks. Says what the control panel tells it to.
// FAKE_WITHOUT_UUID lacks a required entry.
#include <cstdio>
#include <cstring>

#include "fakes/fake_nvidia.hpp"

namespace {
fakes::FakeNvidia panel;
}

extern "C" {

fakes::FakeNvidia* fake_nvidia() {
  return &panel;
}

int cuInit(unsigned) {
  ++panel.inits;
  return panel.init_code;
}

int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(panel.count);
  return panel.count_code;
}

int cuDeviceGet(int* device, int index) {
  if (index < 0 || static_cast<std::size_t>(index) >= panel.cards.size()) return 101;
  *device = index;
  return panel.cards[static_cast<std::size_t>(index)].handle_code;
}

int cuDeviceGetName(char* to, int length, int device) {
  std::snprintf(to, static_cast<std::size_t>(length), "%s",
                panel.cards[static_cast<std::size_t>(device)].name);
  return 0;
}

#ifndef FAKE_WITHOUT_UUID
int cuDeviceGetUuid(void* to, int device) {
  std::memcpy(to, panel.cards[static_cast<std::size_t>(device)].uuid_bytes.data(), 16);
  return panel.cards[static_cast<std::size_t>(device)].uuid_code;
}
#endif

int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  *bytes = panel.cards[static_cast<std::size_t>(device)].memory_bytes;
  return panel.cards[static_cast<std::size_t>(device)].memory_code;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const auto& card = panel.cards[static_cast<std::size_t>(device)];
  switch (attribute) {
    case 16:
      *value = card.multiprocessors;
      return 0;
    case 33:
      *value = static_cast<int>(card.bus);
      return 0;
    case 34:
      *value = static_cast<int>(card.device);
      return 0;
    case 50:
      *value = static_cast<int>(card.domain);
      return 0;
    default:
      return 1;
  }
}

int cuGetErrorName(int code, const char** name) {
  *name = code == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN";
  return 0;
}

}  // extern "C"
