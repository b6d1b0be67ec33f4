// Factors against values worked out apart (in decimal arithmetic of 40 digits, from the formula).
#include "node/device/factors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>

namespace loam::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

MeasuredFactors milli_ce(std::int64_t general, std::int64_t train, std::int64_t prefill,
                         std::int64_t decode) {
  return {MilliCe{general}, MilliCe{train}, MilliCe{prefill}, MilliCe{decode}};
}

Catalog shipped() {
  auto catalog = Catalog::load(std::string(LOAM_SOURCE_DIR) + "/share/catalog.toml");
  LOAM_ASSERT(catalog.ok());
  return std::move(catalog).value();
}

FoundDevice card(const std::string& name, std::int64_t mebibytes) {
  FoundDevice device;
  device.uuid = "GPU-1";
  device.name = name;
  device.driver_version = "1.0";
  device.memory = Mebibytes{mebibytes};
  return device;
}

Calibration measured(const FoundDevice& device, double tflops, double bandwidth) {
  Calibration calibration;
  calibration.uuid = device.uuid;
  calibration.device_name = device.name;
  calibration.driver_version = device.driver_version;
  calibration.method = "opencl";
  calibration.precision = "fp32";
  calibration.is_cpu = device.is_cpu;
  calibration.matrix_size = 1024;
  calibration.gemm_tflops = Figure{tflops, tflops, tflops, 7};
  calibration.bandwidth_gb_s = Figure{bandwidth, bandwidth, bandwidth, 7};
  calibration.to_device_gb_s = calibration.from_device_gb_s = Figure{5, 5, 5, 7};
  calibration.factors = factors_from(tflops, bandwidth).value();
  return calibration;
}

TEST(Factors, TheReferenceIsAHundredCeInEveryClass) {
  EXPECT_EQ(*factors_from(271.2, 2039), milli_ce(100'000, 100'000, 100'000, 100'000));
}

TEST(Factors, AgreeWithValuesWorkedOutApart) {
  EXPECT_EQ(*factors_from(794.5, 3350), milli_ce(219'390, 260'957, 276'495, 174'079));
  EXPECT_EQ(*factors_from(668.4, 5300), milli_ce(253'106, 249'097, 247'775, 258'552));
  EXPECT_EQ(*factors_from(1243, 3700), milli_ce(288'392, 380'804, 417'774, 199'078));
  EXPECT_EQ(*factors_from(0.03, 10), milli_ce(74, 24, 16, 336));
}

TEST(Factors, ArePositiveForTheSmallestDevice) {
  EXPECT_EQ(*factors_from(1e-9, 1e-6), milli_ce(1, 1, 1, 1));
}

TEST(Factors, RefuseFiguresOfNoDevice) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -1.0, nan, inf, -inf, 1e30}) {
    EXPECT_FALSE(factors_from(bad, 100).ok()) << bad;
    EXPECT_FALSE(factors_from(100, bad).ok()) << bad;
  }
}

TEST(Worth, ComesFromTheCatalogueWhereNothingWasMeasured) {
  const Catalog catalog = shipped();
  const auto h200 = worth_of(card("NVIDIA H200", 143771), catalog, std::nullopt);
  ASSERT_TRUE(h200.ok());
  EXPECT_EQ(h200->device_type, "H200-SXM");
  EXPECT_EQ(h200->origin, DeviceWorth::Origin::catalogue);
  EXPECT_EQ(h200->factors, milli_ce(262'612, 280'419, 286'620, 240'615));
  EXPECT_FALSE(h200->doubtful);
  const auto t4 = worth_of(card("Tesla T4", 15360), catalog, std::nullopt);
  ASSERT_TRUE(t4.ok());
  EXPECT_EQ(t4->factors, milli_ce(18'082, 19'686, 20'251, 16'145));
}

TEST(Worth, SaysWhereFiguresAreDoubtful) {
  const auto l4 = worth_of(card("NVIDIA L4", 23034), shipped(), std::nullopt);
  ASSERT_TRUE(l4.ok());
  EXPECT_TRUE(l4->doubtful);
  EXPECT_THAT(l4->notes, ElementsAre(HasSubstr("from memory of the vendor datasheet")));
}

TEST(Worth, ByPeakAnMi300xWouldOutsellAnH100ThatOutrunsIt) {
  const Catalog catalog = shipped();
  const auto& mi300x = *catalog.named("MI300X");
  const auto& h100 = *catalog.named("H100-SXM");
  EXPECT_NEAR(*mi300x.dense_tflops / *h100.dense_tflops, 1.32, 0.005);
  EXPECT_NEAR(*catalog.gemm_tflops(mi300x) / *catalog.gemm_tflops(h100), 0.84, 0.005);
}

TEST(Worth, ADeviceOfWhichNothingIsKnownIsRefusedWithTheCommandToRun) {
  const Catalog catalog = shipped();
  for (const FoundDevice& device :
       {card("Unheard Of", 1024), card("Ascend 910B2", 65536), card("AMD Instinct MI250", 65536)}) {
    const auto worth = worth_of(device, catalog, std::nullopt);
    ASSERT_FALSE(worth.ok()) << device.name;
    EXPECT_EQ(worth.error().kind, ErrorKind::unsupported);
    EXPECT_THAT(worth.error().message, HasSubstr(device.name));
    EXPECT_EQ(worth.error().next_step, "measure it: loam device calibrate GPU-1");
  }
}

TEST(Worth, ACalibrationStandsForCpusAndUnknownDevices) {
  FoundDevice cpu = card("pthread-haswell-AMD EPYC", 3619);
  cpu.is_cpu = true;
  const auto worth = worth_of(cpu, shipped(), measured(cpu, 0.03, 10));
  ASSERT_TRUE(worth.ok());
  EXPECT_EQ(worth->origin, DeviceWorth::Origin::calibration);
  EXPECT_EQ(worth->factors.general, MilliCe{74});
  EXPECT_EQ(worth->device_type, "pthread-haswell-AMD-EPYC");
  EXPECT_THAT(worth->notes, testing::IsEmpty());
  const FoundDevice unknown = card("Unheard Of", 1024);
  const auto at_least = worth_of(unknown, shipped(), measured(unknown, 10, 500));
  ASSERT_TRUE(at_least.ok());
  EXPECT_THAT(at_least->notes, ElementsAre(HasSubstr("at least this")));
}

TEST(Worth, AMeasurementWithoutMatrixUnitsDoesNotReplacePublishedCompute) {
  const Catalog catalog = shipped();
  const FoundDevice h100 = card("NVIDIA H100 80GB HBM3", 81559);
  // 50 TFLOPS in fp32 where the card does 794.5 in bf16, but its bandwidth is as measured.
  const auto worth = worth_of(h100, catalog, measured(h100, 50, 3350));
  ASSERT_TRUE(worth.ok());
  EXPECT_EQ(worth->origin, DeviceWorth::Origin::catalogue_and_measured);
  EXPECT_EQ(worth->factors, milli_ce(219'390, 260'957, 276'495, 174'079));
  Calibration with_units = measured(h100, 700, 3000);
  with_units.matrix_units = true;
  const auto measured_worth = worth_of(h100, catalog, with_units);
  ASSERT_TRUE(measured_worth.ok());
  EXPECT_EQ(measured_worth->origin, DeviceWorth::Origin::calibration);
  EXPECT_EQ(measured_worth->factors, with_units.factors);
}

TEST(Worth, ACalibrationOfAnotherDeviceOrDriverIsNotTakenInSilence) {
  const Catalog catalog = shipped();
  FoundDevice device = card("Unheard Of", 1024);
  device.is_cpu = true;
  Calibration calibration = measured(device, 1, 100);
  device.driver_version = "2.0";
  calibration.brief = true;
  calibration.warnings = {"the memory bandwidth varied by 30 %"};
  const auto worth = worth_of(device, catalog, calibration);
  ASSERT_TRUE(worth.ok());
  EXPECT_THAT(worth->notes, ElementsAre(HasSubstr("brief"), HasSubstr("driver 1.0, now 2.0"),
                                        HasSubstr("varied by 30 %")));
  device.uuid = "GPU-2";
  EXPECT_FALSE(worth_of(device, catalog, calibration).ok());
}

TEST(CalibrationJson, IsReadBackAndNothingElseIs) {
  const FoundDevice device = card("Card", 1024);
  Calibration calibration = measured(device, 12.5, 500.25);
  calibration.warnings = {"a \"warning\"\n"};
  const std::string json = to_json(calibration);
  const auto back = parse_calibration(json);
  ASSERT_TRUE(back.ok()) << to_text(back.error());
  EXPECT_EQ(*back, calibration);
  for (std::size_t length = 0; length < json.size(); ++length) {
    EXPECT_FALSE(parse_calibration(json.substr(0, length)).ok()) << length;
  }
}

TEST(CalibrationJson, EveryMissingOrAbsurdFieldIsRefused) {
  const FoundDevice device = card("Card", 1024);
  const auto good = boost::json::parse(to_json(measured(device, 12.5, 500))).as_object();
  for (const auto& member : good) {
    boost::json::object bad = good;
    bad.erase(member.key());
    EXPECT_FALSE(parse_calibration(boost::json::serialize(bad)).ok()) << member.key();
    bad = good;
    bad[member.key()] = nullptr;
    EXPECT_FALSE(parse_calibration(boost::json::serialize(bad)).ok()) << member.key();
  }
  for (const std::int64_t absurd :
       {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    boost::json::object bad = good;
    bad["gemm_mflop_s"].as_object()["median"] = absurd;
    EXPECT_FALSE(parse_calibration(boost::json::serialize(bad)).ok()) << absurd;
  }
  for (const std::int64_t absurd : {std::int64_t{0}, std::int64_t{-5}, milli_ce_max.value + 1}) {
    boost::json::object bad = good;
    bad["milli_ce"].as_object()["train"] = absurd;
    EXPECT_FALSE(parse_calibration(boost::json::serialize(bad)).ok()) << absurd;
  }
}

}  // namespace
}  // namespace loam::node
