// Calibration of the device that this machine has: a real one, or PoCL's CPU.
#include "node/device/calibrate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/device/factors.hpp"

namespace loam::node {
namespace {

using testing::HasSubstr;

std::optional<FoundDevice> some_opencl_device() {
  std::vector<std::unique_ptr<DeviceSource>> sources;
  sources.push_back(make_opencl_source());
  const Finding finding = discover(sources);
  if (finding.devices.empty()) return std::nullopt;
  return finding.devices.front();
}

TEST(Calibrate, MeasuresTheDeviceOfThisMachine) {
  const auto device = some_opencl_device();
  if (!device) GTEST_SKIP() << "no OpenCL driver on this machine";
  std::vector<std::string> steps;
  CalibrationOptions options;
  options.brief = true;
  const auto result = calibrate(*device, options, [&](std::string_view step, int done, int of) {
    EXPECT_EQ(of, 4);
    EXPECT_EQ(done, static_cast<int>(steps.size()));
    steps.emplace_back(step);
  });
  ASSERT_TRUE(result.ok()) << to_text(result.error());
  EXPECT_EQ(steps.size(), 5U);
  EXPECT_EQ(result->uuid, device->uuid);
  EXPECT_GE(result->matrix_size, 256);
  for (const Figure& figure : {result->gemm_tflops, result->bandwidth_gb_s, result->to_device_gb_s,
                               result->from_device_gb_s}) {
    EXPECT_GT(figure.lowest, 0);
    EXPECT_LE(figure.lowest, figure.median);
    EXPECT_LE(figure.median, figure.highest);
    EXPECT_EQ(figure.repeats, 3);
  }
  // The same figures give the same factors: nothing was measured for one and priced by another.
  EXPECT_EQ(*factors_from(result->gemm_tflops.median, result->bandwidth_gb_s.median),
            result->factors);
  if (device->is_cpu) {
    EXPECT_LT(result->factors.general, MilliCe{10'000});  // no processor is worth 10 CE
  }
  const auto back = parse_calibration(to_json(*result));
  ASSERT_TRUE(back.ok()) << to_text(back.error());
  EXPECT_EQ(*back, *result);
}

TEST(Calibrate, BothProductsComputeRight) {
  const auto device = some_opencl_device();
  if (!device) GTEST_SKIP() << "no OpenCL driver on this machine";
  for (const auto kernel : {CalibrationOptions::Kernel::wide, CalibrationOptions::Kernel::tiled}) {
    CalibrationOptions options;
    options.brief = true;
    options.kernel = kernel;
    const auto result = calibrate(*device, options);  // it verifies the product itself
    EXPECT_TRUE(result.ok()) << to_text(result.error());
  }
}

TEST(Calibrate, RefusesWhatOpenClDoesNotShow) {
  FoundDevice device;
  device.uuid = "GPU-1";
  device.name = "NVIDIA H100";
  const auto unseen = calibrate(device);
  ASSERT_FALSE(unseen.ok());
  EXPECT_EQ(unseen.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(unseen.error().message, HasSubstr("GPU-1"));
  device.opencl = OpenClPlace{77, 0, "Gone"};
  const auto gone = calibrate(device);
  ASSERT_FALSE(gone.ok());
  CalibrationOptions options;
  options.paths.opencl = {"libloam-no-opencl.so.1"};
  const auto no_loader = calibrate(device, options);
  ASSERT_FALSE(no_loader.ok());
  EXPECT_EQ(no_loader.error().kind, ErrorKind::not_found);
}

TEST(Calibrate, RefusesAPlaceThatNowHoldsAnotherDevice) {
  auto device = some_opencl_device();
  if (!device) GTEST_SKIP() << "no OpenCL driver on this machine";
  device->name = "something else";
  const auto result = calibrate(*device);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::not_found);
}

TEST(Figure, IsMedianLowestHighest) {
  EXPECT_EQ(figure_of({3, 1, 2}), (Figure{2, 1, 3, 3}));
  EXPECT_EQ(figure_of({4, 1, 2, 3}), (Figure{2.5, 1, 4, 4}));
  EXPECT_DOUBLE_EQ(figure_of({90, 100, 110}).spread_percent(), 20);
  EXPECT_EQ(Figure{}.spread_percent(), 0);
}

}  // namespace
}  // namespace loam::node
