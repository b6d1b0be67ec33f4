// What a calibration measured of one device, and its JSON. Pure data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "base/result.hpp"

namespace loam::node {

// The reference card, A100-SXM-80GB: 100 CE in every class, by definition. The figures are its
// catalogue entry's; a test holds the two together.
inline constexpr double reference_gemm_tflops = 271.2;    // large bf16 product, measured
inline constexpr double reference_bandwidth_gb_s = 2039;  // published

// CE of one whole device per work class.
struct MeasuredFactors {
  MilliCe general;
  MilliCe train;
  MilliCe prefill;
  MilliCe decode;

  friend bool operator==(const MeasuredFactors&, const MeasuredFactors&) = default;
};

// Several measurements of one thing.
struct Figure {
  double median = 0;
  double lowest = 0;
  double highest = 0;
  std::int32_t repeats = 0;

  // (highest − lowest) / median, in percent.
  double spread_percent() const { return median > 0 ? 100 * (highest - lowest) / median : 0; }
  friend bool operator==(const Figure&, const Figure&) = default;
};

// The median, lowest and highest of at least one value, each rounded to a millionth: as exact as
// what is stored, so that a figure read back is the figure that was measured.
Figure figure_of(std::vector<double> values);

struct Calibration {
  std::string uuid;
  std::string device_name;
  std::string driver_version;  // figures hold for this driver
  std::string method;          // "opencl"
  std::string precision;       // "fp32", "fp16": what the matrix product was computed in
  bool matrix_units = false;   // whether it could use tensor cores or their like
  bool is_cpu = false;
  bool brief = false;  // a short run, good enough for a test only
  std::int64_t matrix_size = 0;
  Figure gemm_tflops;     // 10^12 operations a second; an n×n product is 2n³
  Figure bandwidth_gb_s;  // 10^9 bytes a second, read and written, within the device
  Figure to_device_gb_s;  // from ordinary (pageable) host memory
  Figure from_device_gb_s;
  MeasuredFactors factors;
  double elapsed_s = 0;
  std::vector<std::string> warnings;

  friend bool operator==(const Calibration&, const Calibration&) = default;
};

// Figures as integers: 10^6 operations a second, 10^3 bytes a second; times in milliseconds.
std::string to_json(const Calibration& calibration);
// Strict; fails with corrupt on anything that to_json did not write, absurd figures included.
Result<Calibration> parse_calibration(std::string_view json);

}  // namespace loam::node
