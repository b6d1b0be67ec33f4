// The control panel of the fake NVML and fake CUDA driver: a test opens the shared object itself,
// asks for the panel and sets what the driver will say.
#pragma once

#include <array>
#include <cstdint>

namespace fakes {

struct FakeNvidiaCard {
  const char* uuid = "";                       // as NVML spells it
  std::array<unsigned char, 16> uuid_bytes{};  // as CUDA gives it
  const char* name = "";
  std::uint64_t memory_bytes = 0;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  int multiprocessors = 0;
  int mig = -1;  // -1: has no such mode
  std::uint64_t uncorrected_errors = 0;
  unsigned remap_pending = 0;
  unsigned remap_failed = 0;
  unsigned links = 0;  // a bit for each card that NVLink joins it to, by place
  // Codes that the entries of this card return; 0 is success.
  int handle_code = 0;
  int uuid_code = 0;
  int memory_code = 0;
  int p2p_code = 0;
};

struct FakeNvidia {
  std::array<FakeNvidiaCard, 8> cards;
  std::uint32_t count = 0;  // may lie
  int init_code = 0;
  int count_code = 0;
  const char* driver_version = "570.86.10";
  bool crash_on_init = false;
  bool hang_on_init = false;
  int inits = 0;
  int shutdowns = 0;
};

}  // namespace fakes

// Every fake NVIDIA library exports this.
extern "C" fakes::FakeNvidia* fake_nvidia();
