// From measured or published figures to compute equivalents. Pure.
//
// CE of a device in a work class = 100 · c^w · b^(1−w), where c is its dense matrix throughput and
// b its memory bandwidth, each as a multiple of the reference card's (A100-SXM-80GB), and w says
// how far the class lives on compute: 0.8 train, 0.9 prefill, 0.1 decode, 0.5 general.
//
// c compares what large matrix products *reach*, on both sides: by peak an MI300X is 1.32 of an
// H100, measured it is 0.84, so pricing by peak would sell air. b compares published bandwidths,
// and a measured one with the reference's published one: no measured figure of the reference is in
// the catalogue, so a calibrated device comes out a little low in the memory-bound classes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "base/result.hpp"
#include "node/device/calibration.hpp"
#include "node/device/catalog.hpp"
#include "node/device/found_device.hpp"

namespace loam::node {

// CE of `gemm_tflops` and `bandwidth_gb_s`, rounded to milli-CE, each at least 1. Fails where a
// figure is not above 0 or beyond a million: no device is.
Result<MeasuredFactors> factors_from(double gemm_tflops, double bandwidth_gb_s);

// What a device is worth, and where that comes from.
struct DeviceWorth {
  std::string device_type;
  MeasuredFactors factors;
  enum class Origin {
    calibration,            // measured on this card
    catalogue,              // published
    catalogue_and_measured  // published compute, measured bandwidth
  };
  Origin origin = Origin::catalogue;
  bool doubtful = false;           // the catalogue marks its figures so
  std::vector<std::string> notes;  // what an operator should know of the figures
};
const char* name_of(DeviceWorth::Origin origin) noexcept;

// Decides which figures price the device: its calibration where that is comparable with the
// reference, else the catalogue. A calibration without the card's matrix units says nothing of its
// compute: then the catalogue's compute stands beside the measured bandwidth.
// Fails with unsupported, and the command to run, for a device of which nothing is known.
Result<DeviceWorth> worth_of(const FoundDevice& device, const Catalog& catalog,
                             const std::optional<Calibration>& calibration);

}  // namespace loam::node
