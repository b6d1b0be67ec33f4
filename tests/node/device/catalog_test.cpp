// The catalogue: the one that is shipped, and every way of writing a bad one.
#include "node/device/catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "node/device/calibration.hpp"

namespace loam::node {
namespace {

using testing::HasSubstr;

const std::string shipped_path = std::string(LOAM_SOURCE_DIR) + "/share/catalog.toml";

FoundDevice device_called(const std::string& name, std::int64_t mebibytes) {
  FoundDevice device;
  device.uuid = "GPU-1";
  device.name = name;
  device.memory = Mebibytes{mebibytes};
  return device;
}

constexpr const char* whole_entry = R"(format = 1

[[device]]
name = "Card"
vendor = "someone"
match = ["Some Card"]
memory_gib = [16]
bandwidth_gb_s = 1000
dense_tflops = 100
measured_gemm_tflops = 80.5
slicing = "mig"
slices = [ { profile = "1g", at_most = 2, compute_parts = 1, of_parts = 2, memory_gib = 8 } ]
source = "a datasheet"
verified = "yes"
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = whole_entry;
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no '" + from + "' in the entry");
  return text.replace(at, from.size(), to);
}

TEST(Catalog, TheShippedOneIsWhole) {
  const auto catalog = Catalog::load(shipped_path);
  ASSERT_TRUE(catalog.ok()) << to_text(catalog.error());
  EXPECT_EQ(catalog->entries().size(), 19U);
  std::size_t doubtful = 0;
  for (const CatalogEntry& entry : catalog->entries()) doubtful += entry.doubtful ? 1U : 0U;
  EXPECT_EQ(doubtful, 7U);
  const CatalogEntry* reference = catalog->named("A100-SXM-80");
  ASSERT_NE(reference, nullptr);
  EXPECT_EQ(reference->measured_gemm_tflops, reference_gemm_tflops);
  EXPECT_EQ(reference->bandwidth_gb_s, reference_bandwidth_gb_s);
  const CatalogEntry* a30 = catalog->named("A30");
  ASSERT_NE(a30, nullptr);
  ASSERT_EQ(a30->slices.size(), 3U);
  EXPECT_EQ(a30->slices[1], (SliceProfile{"2g.12gb", 2, 2, 4, Mebibytes{12 * 1024}}));
  EXPECT_EQ(catalog->named("Ascend-910B2")->slicing, HardwareSlicing::vnpu);
  EXPECT_EQ(catalog->gemm_tflops(*catalog->named("Ascend-910B2")), std::nullopt);
}

TEST(Catalog, MatchesTheDriversNamesWholeAndByMemory) {
  const auto catalog = Catalog::load(shipped_path);
  ASSERT_TRUE(catalog.ok());
  const auto type = [&](const std::string& name, std::int64_t mebibytes) {
    const CatalogEntry* entry = catalog->match(device_called(name, mebibytes));
    return entry == nullptr ? std::string("none") : entry->name;
  };
  EXPECT_EQ(type("NVIDIA H100 80GB HBM3", 81559), "H100-SXM");
  EXPECT_EQ(type("NVIDIA H200", 143771), "H200-SXM");
  EXPECT_EQ(type("nvidia  a100-sxm4-80gb", 81920), "A100-SXM-80");
  EXPECT_EQ(type("Tesla T4", 15360), "T4");
  EXPECT_EQ(type("Tesla V100-SXM2-16GB", 16160), "V100-SXM2");
  EXPECT_EQ(type("Tesla V100-SXM2-32GB", 32510), "V100-SXM2");
  EXPECT_EQ(type("NVIDIA L4", 23034), "L4");
  EXPECT_EQ(type("NVIDIA L40", 46068), "none");  // L4 is no part of it, nor it of L40S
  EXPECT_EQ(type("NVIDIA A100", 81920), "none");
  EXPECT_EQ(type("NVIDIA A10G", 23028), "none");
  EXPECT_EQ(type("NVIDIA H100 80GB HBM3", 40000), "none");
  EXPECT_EQ(type("", 0), "none");
  EXPECT_THAT(catalog->named_alike(device_called("AMD Instinct MI250", 65536)),
              testing::ElementsAre("MI250"));
}

TEST(Catalog, NamesATypeThatItDoesNotKnowAfterTheDriversName) {
  const auto catalog = Catalog::load(shipped_path);
  ASSERT_TRUE(catalog.ok());
  EXPECT_EQ(device_type_of(device_called("pthread-haswell-AMD EPYC", 1), *catalog),
            "pthread-haswell-AMD-EPYC");
  EXPECT_EQ(device_type_of(device_called("  (R) x/y  ", 1), *catalog), "R-x-y");
  EXPECT_EQ(device_type_of(device_called("???", 1), *catalog), "unnamed");
  EXPECT_EQ(device_type_of(device_called("NVIDIA A30", 24576), *catalog), "A30");
}

TEST(Catalog, APeakWithoutMeasurementTakesItsSistersEfficiency) {
  const auto catalog = Catalog::load(shipped_path);
  ASSERT_TRUE(catalog.ok());
  EXPECT_DOUBLE_EQ(*catalog->gemm_tflops(*catalog->named("H100-SXM")), 794.5);
  EXPECT_DOUBLE_EQ(*catalog->gemm_tflops(*catalog->named("H200-SXM")), 794.5);
  EXPECT_DOUBLE_EQ(*catalog->gemm_tflops(*catalog->named("T4")), 65 * 271.2 / 312);
  EXPECT_DOUBLE_EQ(*catalog->gemm_tflops(*catalog->named("MI250")), 362 * 668.4 / 1307);
}

TEST(CatalogText, AGoodEntryIsRead) {
  const auto catalog = Catalog::parse(whole_entry, "test");
  ASSERT_TRUE(catalog.ok()) << to_text(catalog.error());
  ASSERT_EQ(catalog->entries().size(), 1U);
  EXPECT_EQ(catalog->entries()[0].slices[0].memory, Mebibytes{8192});
}

TEST(CatalogText, FaultsAreToldWithLineAndColumn) {
  struct Bad {
    std::string text;
    const char* place;
    const char* words;
  };
  const std::string second = std::string(whole_entry).substr(10);
  const std::vector<Bad> all = {
      {with("vendor", "vendro"), "test:3:1:", "no 'vendor'"},
      {with("verified = \"yes\"", "verified = \"yes\"\nextra = 1"),
       "test:15:1:", "unknown key 'extra'"},
      {with("format = 1", "format = 1\nmore = 2"), "test:2:1:", "unknown key 'more'"},
      {with("format = 1", "format = 2"), "test:1:10:", "'format'"},
      {with("format = 1", "format = \"1\""), "test:1:10:", "'format'"},
      {with("format = 1", ""), "test:", "no 'format'"},
      {with("dense_tflops = 100", "dense_tflops = -1"), "test:9:16:", "'dense_tflops'"},
      {with("dense_tflops = 100", "dense_tflops = 0"), "test:9:16:", "'dense_tflops'"},
      {with("dense_tflops = 100", "dense_tflops = nan"), "test:9:16:", "'dense_tflops'"},
      {with("dense_tflops = 100", "dense_tflops = inf"), "test:9:16:", "'dense_tflops'"},
      {with("dense_tflops = 100", "dense_tflops = 1e30"), "test:9:16:", "'dense_tflops'"},
      {with("dense_tflops = 100", "dense_tflops = true"), "test:9:16:", "'dense_tflops'"},
      {with("dense_tflops = 100", "dense_tflops = \"100\""), "test:9:16:", "'dense_tflops'"},
      {with("dense_tflops = 100", ""), "test:3:1:", "together"},
      {with("bandwidth_gb_s = 1000", ""), "test:3:1:", "together"},
      {with("80.5", "100.5"), "test:3:1:", "no less"},
      {with("memory_gib = [16]", "memory_gib = 16"), "test:7:14:", "must be a list"},
      {with("memory_gib = [16]", "memory_gib = []"), "test:7:14:", "at least one"},
      {with("memory_gib = [16]", "memory_gib = [16.5]"), "test:7:15:", "whole number"},
      {with("memory_gib = [16]", "memory_gib = [0]"), "test:7:15:", "from 1"},
      {with("memory_gib = [16]", "memory_gib = [9223372036854775807]"), "test:7:15:", "to 1000000"},
      {with("[\"Some Card\"]", "[\"\"]"), "test:6:10:", "1 to 4096 bytes"},
      {with("[\"Some Card\"]", "[7]"), "test:6:10:", "must be a text"},
      {with("\"mig\"", "\"mgi\""), "test:3:1:", "'mgi'"},
      {with("\"mig\"", "\"none\""), "test:3:1:", "'slicing' is none"},
      {with("compute_parts = 1", "compute_parts = 3"), "test:12:12:", "3/2"},
      {with("at_most = 2", "at_most = 0"), "test:12:", "'at_most'"},
      {with("memory_gib = 8 }", "memory_gib = 8, x = 1 }"), "test:12:", "unknown key 'x'"},
      {with("slices = [", "slices = [ 3,"), "test:12:12:", "must be a table"},
      {with("\"yes\"", "\"perhaps\""), "test:3:1:", "'perhaps'"},
      {with("\"yes\"", "\"doubtful\""), "test:3:1:", "needs a 'note'"},
      {with("80.5", "80.5\nefficiency_of = \"Card\""), "test:3:1:", "there is one"},
      {with("measured_gemm_tflops = 80.5", ""), "test:3:1:", "needs an 'efficiency_of'"},
      {with("measured_gemm_tflops = 80.5", "efficiency_of = \"None\""), "test:3:1:", "'None'"},
      {with("measured_gemm_tflops = 80.5", "efficiency_of = \"Card\""), "test:3:1:", "'Card'"},
      {whole_entry + second, "test:", "twice"},
      {with("name = \"Card\"", "name = \"Card\"\nname = \"Card\""), "test:5:", "name"},
      {with("name = \"Card\"", "name = \"Card"), "test:4:", ""},
      {"format = 1\ndevice = 3\n", "test:2:10:", "must be a list"},
      {"format = 1\ndevice = [3]\n", "test:2:11:", "must be a table"},
      {"format = 1\n", "test:", "no 'device'"},
      {"", "test:", "no 'format'"},
      {"\xff\xfe", "test:1:1:", ""},
      {std::string("format = 1\0", 11), "test:1:", ""},
      {"a = " + std::string(100000, '['), "test:1:", ""},
  };
  for (const Bad& bad : all) {
    const auto catalog = Catalog::parse(bad.text, "test");
    ASSERT_FALSE(catalog.ok()) << bad.text;
    EXPECT_EQ(catalog.error().kind, ErrorKind::invalid_argument);
    EXPECT_THAT(catalog.error().message, HasSubstr(bad.place)) << bad.text;
    EXPECT_THAT(catalog.error().message, HasSubstr(bad.words)) << bad.text;
  }
}

// Any byte string is either read or refused: never a crash, and what is read is within bounds.
TEST(CatalogText, RandomDamageIsReadOrRefused) {
  std::ifstream file(shipped_path);
  std::ostringstream shipped;
  shipped << file.rdbuf();
  const std::string good = shipped.str().substr(0, 6000);
  std::mt19937 random(20260302);
  for (int round = 0; round < 2000; ++round) {
    std::string text = good;
    for (int edit = 0; edit < 3; ++edit) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, random() % 40);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
        default:
          text.resize(at + 1);
      }
    }
    const auto catalog = Catalog::parse(text, "test");
    if (!catalog.ok()) {
      EXPECT_THAT(catalog.error().message, HasSubstr("test"));
      continue;
    }
    for (const CatalogEntry& entry : catalog->entries()) {
      EXPECT_FALSE(entry.name.empty());
      EXPECT_FALSE(entry.memory.empty());
    }
  }
}

TEST(CatalogFile, OneThatCannotBeReadIsSaidWithItsPath) {
  for (const char* path : {"/nonexistent/catalog.toml", "/"}) {
    const auto catalog = Catalog::load(path);
    ASSERT_FALSE(catalog.ok());
    EXPECT_THAT(catalog.error().message, HasSubstr(path));
  }
}

}  // namespace
}  // namespace loam::node
