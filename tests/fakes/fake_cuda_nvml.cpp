// A fake libnvidia-ml.so.1 over the fake CUDA driver's books: what is in use, by everybody. Lists a
// neighbour's process, which the guard must not show.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fakes/fake_cuda.hpp"

namespace {

using loam::fakes::FakeCudaBooks;
using loam::fakes::FakeCudaDevice;

FakeCudaBooks* books() {
  static FakeCudaBooks* const mapped = [] {
    const char* const path = std::getenv("LOAM_FAKE_CUDA");
    const int fd = path ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return static_cast<FakeCudaBooks*>(nullptr);
    void* const address =
        ::mmap(nullptr, sizeof(FakeCudaBooks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    return address == MAP_FAILED ? nullptr : static_cast<FakeCudaBooks*>(address);
  }();
  return mapped;
}

void spell(const FakeCudaDevice& device, char* text, std::size_t bytes) {
  char hex[33] = {};
  for (int i = 0; i < 16; ++i)
    std::snprintf(hex + 2 * i, 3, "%02x", static_cast<unsigned>(device.uuid[i]));
  std::snprintf(text, bytes, "%s-%.8s-%.4s-%.4s-%.4s-%.12s", device.mig_parent < 0 ? "GPU" : "MIG",
                hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

struct Memory {
  unsigned long long total, free, used;
};
struct Memory2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

}  // namespace

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

FAKE_EXPORT int nvmlInit_v2() {
  return books() ? 0 : 9;
}
FAKE_EXPORT int nvmlShutdown() {
  return 0;
}
FAKE_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = books()->device_count;
  return 0;
}
FAKE_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index >= books()->device_count) return 2;
  *handle = &books()->devices[index];
  return 0;
}
FAKE_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  for (unsigned i = 0; i < books()->device_count; ++i) {
    char text[96];
    spell(books()->devices[i], text, sizeof text);
    if (std::strcmp(text, uuid) != 0) continue;
    *handle = &books()->devices[i];
    return 0;
  }
  return 6;
}
FAKE_EXPORT int nvmlDeviceGetUUID(void* handle, char* text, unsigned bytes) {
  spell(*static_cast<FakeCudaDevice*>(handle), text, bytes);
  return 0;
}
FAKE_EXPORT int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
  if (!memory) return 2;
  const auto& device = *static_cast<FakeCudaDevice*>(handle);
  *memory = {device.total_bytes, device.total_bytes - device.used_bytes, device.used_bytes};
  return 0;
}
FAKE_EXPORT int nvmlDeviceGetMemoryInfo_v2(void* handle, Memory2* memory) {
  if (!memory) return 2;
  const auto& device = *static_cast<FakeCudaDevice*>(handle);
  *memory = {memory->version, device.total_bytes, 0, device.total_bytes - device.used_bytes,
             device.used_bytes};
  return 0;
}
FAKE_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* list) {
  if (*count > 0 && list) list[0] = Process{1, 1u << 30, 0, 0};
  *count = 1;
  return 0;
}
