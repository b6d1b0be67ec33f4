// The control panel of the fake ROCm SMI library.
#pragma once

#include <array>
#include <cstdint>

namespace fakes {

struct FakeAmdCard {
  const char* name = "";
  std::uint64_t unique_id = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t bus_id = 0;
  int unique_id_code = 0;
  int bus_id_code = 0;
  int memory_code = 0;
  unsigned links = 0;  // a bit for each card that XGMI joins it to, by place; else PCIe does
};

struct FakeAmd {
  std::array<FakeAmdCard, 8> cards;
  std::uint32_t count = 0;
  int init_code = 0;
  int count_code = 0;
};

}  // namespace fakes

extern "C" fakes::FakeAmd* fake_amd();
