// What the fake CUDA driver and its tests share: the node's books, a file that every process with
// the fake maps (named by LOAM_FAKE_CUDA; a process without it has books of its own). The driver
// keeps true books: memory by device and process, device time by engine, and what ran when.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace loam::fakes {

inline constexpr int cuda_devices_max = 8;
inline constexpr int cuda_processes_max = 64;
inline constexpr int cuda_engines = 3;  // kernels, copies to the device, copies from it
inline constexpr std::uint32_t cuda_log_max = 1u << 16;

// Something that ran. Times are CLOCK_MONOTONIC nanoseconds.
struct FakeCudaRun {
  std::uint64_t begin_ns, end_ns;
  std::int32_t pid;
  std::int32_t engine;
};

struct FakeCudaDevice {
  char name[64];
  unsigned char uuid[16];
  std::uint64_t total_bytes;
  std::uint32_t multiprocessors;
  std::uint32_t threads_per_multiprocessor;
  std::int32_t mig_parent;      // -1: a card; else the device whose slot this instance is
  std::uint64_t context_bytes;  // what a context takes
  std::uint64_t module_bytes;   // what a module takes
  std::uint64_t copy_bytes_per_s;
  std::atomic<std::uint64_t> used_bytes;
  std::array<std::atomic<std::uint64_t>, cuda_engines> free_at_ns;
  std::array<std::atomic<std::uint64_t>, cuda_engines> busy_ns;
  std::atomic<std::uint64_t> launches;
  std::atomic<std::uint32_t> runs;  // written to the log; it wraps
  std::array<FakeCudaRun, cuda_log_max> log;
};

struct FakeCudaProcess {
  std::atomic<std::int32_t> pid;
  std::uint64_t started_ticks;
  std::array<std::atomic<std::uint64_t>, cuda_devices_max> used_bytes;
};

struct FakeCudaBooks {
  std::uint32_t ready;         // 1 once the devices are written
  std::uint32_t device_count;  // all of them; cuDeviceGetCount says so
  std::uint32_t version;       // 13000
  std::uint32_t instant;       // 1: work takes no time and no clock is read
  std::array<FakeCudaDevice, cuda_devices_max> devices;
  std::array<FakeCudaProcess, cuda_processes_max> processes;
};

// Fills one device of the books. `number` makes its UUID.
inline void describe(FakeCudaDevice& device, int number, const char* name,
                     std::uint32_t multiprocessors, std::uint32_t threads, std::uint64_t bytes) {
  int i = 0;
  for (; name[i] && i < 63; ++i) device.name[i] = name[i];
  device.name[i] = 0;
  for (int byte = 0; byte < 16; ++byte)
    device.uuid[byte] = static_cast<unsigned char>(0x10 * (number + 1) + byte);
  device.total_bytes = bytes;
  device.multiprocessors = multiprocessors;
  device.threads_per_multiprocessor = threads;
  device.mig_parent = -1;
  device.context_bytes = 0;
  device.module_bytes = 0;
  device.copy_bytes_per_s = 25'000'000'000;
}

}  // namespace loam::fakes

// Exported by the fake, for tests that open it themselves.
extern "C" {
loam::fakes::FakeCudaBooks* fake_cuda_books();
// How many driver entries this process has called so far.
std::uint64_t fake_cuda_calls();
}
