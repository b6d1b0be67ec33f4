// Findings as JSON and back; anything else is refused.
#include <gtest/gtest.h>

#include "node/device/discovery.hpp"

namespace loam::node {
namespace {

TEST(FindingJson, RefusesWhatItDidNotWrite) {
  Finding finding;
  FoundDevice device;
  device.uuid = "GPU-1";
  device.numa_node = 3;
  device.link_group = "0000:3b:00.0";
  device.opencl = OpenClPlace{1, 2, "a \"quoted\" name"};
  device.found_by = {"nvml", "cuda"};
  finding.devices.push_back(device);
  finding.warn("amd", "words\nin two lines");
  const std::string json = to_json(finding);
  const auto back = parse_finding(json);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->devices, finding.devices);
  EXPECT_EQ(back->notes, finding.notes);
  for (std::size_t length = 0; length < json.size(); ++length) {
    EXPECT_FALSE(parse_finding(json.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(parse_finding("{}").ok());
  EXPECT_FALSE(parse_finding("[1,2]").ok());
  EXPECT_FALSE(parse_finding(R"({"devices":[{"uuid":1}],"notes":[]})").ok());
  EXPECT_FALSE(
      parse_finding(R"({"devices":[],"notes":[{"severity":"x","source":"","text":""}]})").ok());
}

}  // namespace
}  // namespace loam::node
