// Measuring a device: a large dense matrix product, the bandwidth of its memory, and copies to and
// from the host. Through OpenCL, whatever the vendor.
//
// Without access to tensor cores and their like, which OpenCL does not reach, the product says
// nothing of such a card's full compute; the result says so and worth_of() heeds it.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.hpp"
#include "node/device/calibration.hpp"
#include "node/device/discovery.hpp"

namespace loam::node {

struct CalibrationOptions {
  // A short run (about 2 s on a 2-core processor instead of 8): for tests.
  bool brief = false;
  enum class Kernel {
    automatic,  // wide registers on a CPU, local-memory tiles elsewhere
    wide,
    tiled,
  };
  Kernel kernel = Kernel::automatic;
  DiscoveryPaths paths;  // the OpenCL loader
};

// Called before each step with its name and how many of how many steps are done.
using CalibrationProgress =
    std::function<void(std::string_view step, std::int32_t done, std::int32_t of)>;

// Measures `device`, which must have been found by OpenCL (its `opencl` place): unsupported where
// it was not. The device should be idle; where repeats differ by more than a fifth the result
// carries a warning. Fails with internal where the device computes a wrong product, and with
// unavailable, in the driver's words, where it does not work. Takes up to about 10 s plus the
// driver's compiling, up to 4 × 256 MiB of device memory and as much again on the host; loads
// drivers into this process.
Result<Calibration> calibrate(const FoundDevice& device, const CalibrationOptions& options = {},
                              const CalibrationProgress& progress = {});

}  // namespace loam::node
