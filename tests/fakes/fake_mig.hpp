// The control panel of the fake NVML that cuts cards: a test opens the shared object itself, asks
// for the panel, and sees what is cut.
#pragma once

#include <array>
#include <cstdint>

namespace loam::fakes {

struct FakeMigInstance {
  bool taken = false;
  unsigned id = 0;
  unsigned profile = 0;
  unsigned start = 0, size = 0;
  bool computes = false;  // has its compute instance
  bool busy = false;      // something runs in it
};

struct FakeMig {
  unsigned mode = 1, mode_after_reset = 1;
  std::array<FakeMigInstance, 8> instances;
  unsigned last_id = 0;
  // Codes that the entries return; 0 is success.
  int create_code = 0;
  int create_compute_code = 0;
  int destroy_code = 0;
  bool nameless = false;  // a new slice has no MIG device
  int creations = 0, destructions = 0;
};

}  // namespace loam::fakes

extern "C" loam::fakes::FakeMig* fake_mig();
