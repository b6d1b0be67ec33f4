// What a fake OpenCL device did, in a file that its processes and the test share. The file is named
// by LOAM_FAKE_OPENCL; without it a process has a device of its own.
#pragma once

#include <atomic>
#include <cstdint>

namespace loam::fakes {

inline constexpr const char* fake_platform_name = "Loam Fake Platform";
inline constexpr const char* fake_device_name = "Fake Device";

struct FakeDeviceBooks {
  std::atomic<std::uint64_t>
      allocated_bytes;  // by processes that live and by those that were killed
  std::atomic<std::uint64_t> allocations;
  std::atomic<std::uint64_t> kernels;
  std::atomic<std::uint64_t> busy_ns;   // summed over kernels
  std::atomic<std::uint64_t> owner;     // pid of the process whose kernel runs
  std::atomic<std::uint64_t> overlaps;  // kernels that began while another process's was running
  // What the buffer that was freed last held in its first word: the next one begins with it,
  // whoever makes it.
  std::atomic<std::uint64_t> remnant;
};

}  // namespace loam::fakes
