// The control panel of the fake OpenCL loader, which only lists devices.
#pragma once

#include <array>
#include <cstdint>

namespace fakes {

struct FakeClDevice {
  const char* name = "";
  const char* vendor = "";
  const char* extensions = "";
  const char* driver_version = "1.0";
  std::uint64_t type = 4;  // CL_DEVICE_TYPE_GPU
  std::uint64_t memory_bytes = 0;
  std::uint32_t compute_units = 0;
  bool available = true;
  std::array<unsigned char, 16> uuid{};
  std::uint32_t domain = 0, bus = 0, device = 0;
};

struct FakeClPlatform {
  const char* name = "";
  std::array<FakeClDevice, 4> devices;
  std::uint32_t count = 0;  // may lie
  std::int32_t code = 0;    // of clGetDeviceIDs
};

struct FakeCl {
  std::array<FakeClPlatform, 4> platforms;
  std::uint32_t count = 0;
  std::int32_t code = 0;  // of clGetPlatformIDs
};

}  // namespace fakes

extern "C" fakes::FakeCl* fake_cl();
