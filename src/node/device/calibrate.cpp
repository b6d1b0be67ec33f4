// The measurements themselves. Wall time around batches that end in clFinish: what a user of the
// device would see, and the same meaning with every driver.
#include "node/device/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "node/device/calibrate_session.hpp"
#include "node/device/factors.hpp"

namespace loam::node {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double spread_percent_max = 20;  // beyond it something else was using the device
constexpr std::size_t mebibyte = 1U << 20U;
constexpr std::int64_t matrix_size_first = 256;
constexpr std::int64_t matrix_size_max = 8192;

// real: what is multiplied. Sums over k are kept in float, over tiles of 16 in `real`.
constexpr const char* kernel_source = R"CL(
#ifdef HALF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half real;
#else
typedef float real;
#endif

#ifndef HALF
/* A CPU's: each item keeps 4 rows x 16 columns in wide registers. */
__kernel void product_wide(__global const float* a, __global const float* b, __global float* c,
                           int n) {
  const int column = get_global_id(0) * 16;
  const int row = get_global_id(1) * 4;
  float8 sum[4][2];
  for (int r = 0; r < 4; ++r) sum[r][0] = sum[r][1] = (float8)(0.0f);
  for (int k = 0; k < n; ++k) {
    const float8 left = vload8(0, b + (size_t)k * n + column);
    const float8 right = vload8(0, b + (size_t)k * n + column + 8);
    for (int r = 0; r < 4; ++r) {
      const float8 factor = (float8)(a[(size_t)(row + r) * n + k]);
      sum[r][0] = fma(factor, left, sum[r][0]);
      sum[r][1] = fma(factor, right, sum[r][1]);
    }
  }
  for (int r = 0; r < 4; ++r) {
    vstore8(sum[r][0], 0, c + (size_t)(row + r) * n + column);
    vstore8(sum[r][1], 0, c + (size_t)(row + r) * n + column + 8);
  }
}
#endif

/* A GPU's: a group of 16x16 items makes a 64x64 tile, 4x4 an item, through local memory. */
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void product_tiled(__global const real* a, __global const real* b, __global float* c, int n) {
  __local real tile_a[16][65];
  __local real tile_b[16][64];
  const int x = get_local_id(0);
  const int y = get_local_id(1);
  const int column0 = get_group_id(0) * 64;
  const int row0 = get_group_id(1) * 64;
  float sum[4][4];
  for (int r = 0; r < 4; ++r)
    for (int q = 0; q < 4; ++q) sum[r][q] = 0.0f;
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int i = 0; i < 4; ++i) {
      tile_a[x][y + 16 * i] = a[(size_t)(row0 + y + 16 * i) * n + k0 + x];
      tile_b[y][x + 16 * i] = b[(size_t)(k0 + y) * n + column0 + x + 16 * i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    real part[4][4];
    for (int r = 0; r < 4; ++r)
      for (int q = 0; q < 4; ++q) part[r][q] = (real)0;
    for (int k = 0; k < 16; ++k) {
      real left[4], right[4];
      for (int i = 0; i < 4; ++i) {
        left[i] = tile_a[k][y + 16 * i];
        right[i] = tile_b[k][x + 16 * i];
      }
      for (int r = 0; r < 4; ++r)
        for (int q = 0; q < 4; ++q) part[r][q] = fma(left[r], right[q], part[r][q]);
    }
    for (int r = 0; r < 4; ++r)
      for (int q = 0; q < 4; ++q) sum[r][q] += (float)part[r][q];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int r = 0; r < 4; ++r)
    for (int q = 0; q < 4; ++q)
      c[(size_t)(row0 + y + 16 * r) * n + column0 + x + 16 * q] = sum[r][q];
}

/* Two reads and a write an element: the triad of the STREAM benchmark. */
__kernel void triad(__global float4* a, __global const float4* b, __global const float4* c,
                    float factor) {
  const size_t i = get_global_id(0);
  a[i] = b[i] + factor * c[i];
}

/* The multiplicands, exactly representable in half: small integers. */
__kernel void fill(__global real* to, int step) {
  const size_t i = get_global_id(0);
  to[i] = (real)((int)((i * step) % 7) - 3);
}
)CL";

// Small integers over 256 and more terms: the products and sums are exact in every precision.
std::int64_t fill_value(std::int64_t index, std::int64_t step) {
  return (index * step) % 7 - 3;
}
constexpr cl_int fill_step_a = 5;
constexpr cl_int fill_step_b = 3;

struct Plan {
  std::int32_t repeats;
  double batch_s;            // a repeat lasts at least this long
  std::size_t stream_bytes;  // of each of the three buffers
};

Plan plan_for(const FoundDevice& device, const CalibrationOptions& options,
              const CalibrateSession& session) {
  Plan plan{7, 0.12, device.is_cpu ? 64 * mebibyte : 256 * mebibyte};
  if (options.brief) plan = Plan{3, 0.03, 8 * mebibyte};
  // Never more than an eighth of the memory in one buffer: the card may not be empty.
  const std::uint64_t fits = std::min(session.allocation_bytes_max(), session.memory_bytes() / 8);
  plan.stream_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(plan.stream_bytes, fits));
  plan.stream_bytes -= plan.stream_bytes % 4096;
  return plan;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Runs `work` (which enqueues once) in batches until `plan` is served and gives `amount` per
// second of each batch. The first run is not counted: drivers compile and allocate then.
template <class Work>
Result<Figure> rate_of(CalibrateSession& session, const Plan& plan, double amount, Work work) {
  LOAM_CHECK(work());
  LOAM_CHECK(session.finish());
  auto begin = Clock::now();
  LOAM_CHECK(work());
  LOAM_CHECK(session.finish());
  const double once = std::max(seconds_since(begin), 1e-6);
  const auto batch =
      static_cast<std::int64_t>(std::clamp(std::ceil(plan.batch_s / once), 1.0, 4096.0));
  std::vector<double> rates;
  for (std::int32_t repeat = 0; repeat < plan.repeats; ++repeat) {
    begin = Clock::now();
    for (std::int64_t i = 0; i < batch; ++i) LOAM_CHECK(work());
    LOAM_CHECK(session.finish());
    const double spent = seconds_since(begin);
    if (!(spent > 0)) {
      return Error{ErrorKind::internal, "a batch took no time: the driver did not do the work",
                   "see that the driver works (clinfo)"};
    }
    rates.push_back(amount * static_cast<double>(batch) / spent);
  }
  return figure_of(std::move(rates));
}

// As rate_of, again where something else was using the device, and then the steadiest of three.
template <class Work>
Result<Figure> steady_rate_of(CalibrateSession& session, const Plan& plan, double amount,
                              Work work) {
  constexpr int rounds_max = 3;
  Figure steadiest;
  for (int round = 0; round < rounds_max; ++round) {
    LOAM_TRY(figure, rate_of(session, plan, amount, work));
    if (round == 0 || figure.spread_percent() < steadiest.spread_percent()) steadiest = figure;
    if (steadiest.spread_percent() <= spread_percent_max) break;
  }
  return steadiest;
}

// ---- the matrix product ----

struct ProductShape {
  bool wide = false;
  bool half = false;
};

class Product {
 public:
  Product(CalibrateSession& session, ProductShape shape) : session_(session), shape_(shape) {}

  Result<void> prepare(std::int64_t size) {
    size_ = size;
    session_.release_buffers();
    const std::size_t count = static_cast<std::size_t>(size * size);
    const std::size_t real_bytes = shape_.half ? 2 : 4;
    LOAM_TRY(a, session_.buffer(count * real_bytes));
    LOAM_TRY(b, session_.buffer(count * real_bytes));
    LOAM_TRY(c, session_.buffer(count * sizeof(float)));
    c_ = c;
    LOAM_TRY(fill, session_.kernel("fill"));
    for (const auto& [buffer, step] : {std::pair(a, fill_step_a), std::pair(b, fill_step_b)}) {
      LOAM_CHECK(session_.set(fill, 0, buffer));
      LOAM_CHECK(session_.set(fill, 1, step));
      LOAM_CHECK(session_.enqueue(fill, {count}, {}));
    }
    LOAM_TRY(kernel, session_.kernel(shape_.wide ? "product_wide" : "product_tiled"));
    kernel_ = kernel;
    LOAM_CHECK(session_.set(kernel_, 0, a));
    LOAM_CHECK(session_.set(kernel_, 1, b));
    LOAM_CHECK(session_.set(kernel_, 2, c));
    LOAM_CHECK(session_.set(kernel_, 3, static_cast<cl_int>(size)));
    return session_.finish();
  }

  Result<void> run() {
    const auto n = static_cast<std::size_t>(size_);
    if (shape_.wide) return session_.enqueue(kernel_, {n / 16, n / 4}, {});
    return session_.enqueue(kernel_, {n / 4, n / 4}, {16, 16});
  }

  double operations() const {
    const auto n = static_cast<double>(size_);
    return 2 * n * n * n;
  }
  std::int64_t size() const { return size_; }

  // A few entries against the host's own sums: a device that is fast and wrong earns nothing.
  Result<void> verify() {
    const auto n = static_cast<std::size_t>(size_);
    std::vector<float> result(n * n);
    LOAM_CHECK(session_.read(c_, result.data(), result.size() * sizeof(float)));
    for (std::int64_t probe = 0; probe < 64; ++probe) {
      const std::int64_t row = (probe * 37 + 11) % size_;
      const std::int64_t column = (probe * 101 + 5) % size_;
      std::int64_t expected = 0;
      for (std::int64_t k = 0; k < size_; ++k) {
        expected +=
            fill_value(row * size_ + k, fill_step_a) * fill_value(k * size_ + column, fill_step_b);
      }
      const float got = result[static_cast<std::size_t>(row * size_ + column)];
      if (got != static_cast<float>(expected)) {
        return Error{ErrorKind::internal,
                     "the device computes wrong: entry (" + std::to_string(row) + ", " +
                         std::to_string(column) + ") of a product is " + std::to_string(got) +
                         " instead of " + std::to_string(expected),
                     "drain it and have it examined"};
      }
    }
    return {};
  }

 private:
  CalibrateSession& session_;
  ProductShape shape_;
  std::int64_t size_ = 0;
  cl_mem c_ = nullptr;
  cl_kernel kernel_ = nullptr;
};

// Doubles the size until one product fills a third of a batch, or memory ends.
Result<void> settle_size(Product& product, CalibrateSession& session, const Plan& plan) {
  for (std::int64_t size = matrix_size_first;; size *= 2) {
    LOAM_CHECK(product.prepare(size));
    LOAM_CHECK(product.run());  // compiles
    LOAM_CHECK(session.finish());
    const auto begin = Clock::now();
    LOAM_CHECK(product.run());
    LOAM_CHECK(session.finish());
    const std::uint64_t next_bytes =
        static_cast<std::uint64_t>(size) * 2 * static_cast<std::uint64_t>(size) * 2 * sizeof(float);
    const bool next_fits =
        next_bytes <= session.allocation_bytes_max() && next_bytes <= session.memory_bytes() / 8;
    if (seconds_since(begin) * 3 >= plan.batch_s || size >= matrix_size_max || !next_fits) {
      return product.verify();
    }
  }
}

Result<void> measure_product(CalibrateSession& session, const Plan& plan, ProductShape shape,
                             Calibration& result) {
  Product product(session, shape);
  LOAM_CHECK(settle_size(product, session, plan));
  LOAM_TRY(rate, steady_rate_of(session, plan, product.operations() / 1e12,
                                [&] { return product.run(); }));
  result.gemm_tflops = rate;
  result.matrix_size = product.size();
  return {};
}

// ---- bandwidths ----

Result<void> measure_bandwidth(CalibrateSession& session, const Plan& plan, Calibration& result) {
  session.release_buffers();
  LOAM_TRY(triad, session.kernel("triad"));
  for (cl_uint i = 0; i < 3; ++i) {
    LOAM_TRY(buffer, session.buffer(plan.stream_bytes));
    // Touched, so that no page of zeros is read from cache.
    const std::vector<float> ones(plan.stream_bytes / sizeof(float), 1.0F);
    LOAM_CHECK(session.write(buffer, ones.data(), plan.stream_bytes));
    LOAM_CHECK(session.set(triad, i, buffer));
  }
  LOAM_CHECK(session.set(triad, 3, 0.5F));
  const std::size_t items = plan.stream_bytes / 16;
  LOAM_TRY(rate, steady_rate_of(session, plan, 3 * static_cast<double>(plan.stream_bytes) / 1e9,
                                [&] { return session.enqueue(triad, {items}, {}); }));
  result.bandwidth_gb_s = rate;
  return {};
}

Result<void> measure_copies(CalibrateSession& session, const Plan& plan, Calibration& result) {
  session.release_buffers();
  LOAM_TRY(buffer, session.buffer(plan.stream_bytes));
  std::vector<char> host(plan.stream_bytes, 1);
  const double amount = static_cast<double>(plan.stream_bytes) / 1e9;
  LOAM_TRY(to_device, rate_of(session, plan, amount,
                              [&] { return session.write(buffer, host.data(), host.size()); }));
  LOAM_TRY(from_device, rate_of(session, plan, amount,
                                [&] { return session.read(buffer, host.data(), host.size()); }));
  result.to_device_gb_s = to_device;
  result.from_device_gb_s = from_device;
  return {};
}

void warn_of_spread(Calibration& result) {
  const auto look = [&](const char* what, const Figure& figure) {
    if (figure.spread_percent() <= spread_percent_max) return;
    result.warnings.push_back(std::string(what) + " varied by " +
                              std::to_string(std::llround(figure.spread_percent())) +
                              " % between repeats: the device was not idle");
  };
  look("the matrix product", result.gemm_tflops);
  look("the memory bandwidth", result.bandwidth_gb_s);
}

ProductShape shape_for(const FoundDevice& device, const CalibrationOptions& options,
                       const CalibrateSession& session) {
  ProductShape shape;
  shape.wide = options.kernel == CalibrationOptions::Kernel::wide ||
               (options.kernel == CalibrationOptions::Kernel::automatic && device.is_cpu);
  shape.half = !shape.wide && has_extension(session.extensions(), "cl_khr_fp16");
  return shape;
}

}  // namespace

Result<Calibration> calibrate(const FoundDevice& device, const CalibrationOptions& options,
                              const CalibrationProgress& progress) {
  const auto begin = Clock::now();
  if (!device.opencl) {
    return Error{ErrorKind::unsupported,
                 "'" + device.name + "' (" + device.uuid +
                     ") is not shown by any OpenCL driver, through which loam measures",
                 "install the vendor's OpenCL driver, or enter the device in the catalogue"};
  }
  const auto report = [&](std::string_view step, std::int32_t done) {
    if (progress) progress(step, done, 4);
  };
  report("opening the device", 0);
  LOAM_TRY(cl, OpenCl::open(options.paths.opencl, true));
  LOAM_TRY(session, CalibrateSession::open(std::move(cl), *device.opencl, device.name));
  const Plan plan = plan_for(device, options, session);
  const ProductShape shape = shape_for(device, options, session);
  LOAM_CHECK(session.build(kernel_source, shape.half ? "-DHALF" : ""));

  Calibration result;
  result.uuid = device.uuid;
  result.device_name = device.name;
  result.driver_version = device.driver_version;
  result.method = "opencl";
  result.precision = shape.half ? "fp16" : "fp32";
  result.is_cpu = device.is_cpu;
  result.brief = options.brief;
  report("multiplying matrices", 1);
  LOAM_CHECK(measure_product(session, plan, shape, result));
  report("streaming through device memory", 2);
  LOAM_CHECK(measure_bandwidth(session, plan, result));
  report("copying to and from the host", 3);
  LOAM_CHECK(measure_copies(session, plan, result));
  LOAM_TRY(factors, factors_from(result.gemm_tflops.median, result.bandwidth_gb_s.median));
  result.factors = factors;
  warn_of_spread(result);
  result.elapsed_s = static_cast<double>(std::llround(seconds_since(begin) * 1000)) / 1000;
  report("done", 4);
  return result;
}

}  // namespace loam::node
