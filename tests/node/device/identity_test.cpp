#include "node/device/identity.hpp"

#include <gtest/gtest.h>

namespace loam::node {
namespace {

TEST(PciAddress, HasOneSpelling) {
  EXPECT_EQ(pci_address(0, 0x3b, 0, 0), "0000:3b:00.0");
  EXPECT_EQ(pci_address(0x10000, 0xff, 0x1f, 7), "10000:ff:1f.7");
  EXPECT_EQ(normal_pci_address("00000000:3B:00.0"), "0000:3b:00.0");
  EXPECT_EQ(normal_pci_address("0000:3b:00.0"), "0000:3b:00.0");
}

TEST(PciAddress, RefusesWhatIsNone) {
  for (const char* text : {"", ":", "::.", "3b:00.0", "0000:3b:00", "0000:3b:20.0", "0000:100:00.0",
                           "0000:3b:00.8", "0000:3b:00.0 ", "-1:3b:00.0", "x:y:z.w"}) {
    EXPECT_EQ(normal_pci_address(text), "") << text;
  }
}

TEST(Uuid, SpellsSixteenBytesAsDriversDo) {
  std::array<unsigned char, 16> bytes{};
  EXPECT_EQ(gpu_uuid(bytes), "");
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(0xF0 + i);
  EXPECT_EQ(gpu_uuid(bytes), "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
}

TEST(Uuid, DerivedOnesKeepTheirPartsApart) {
  EXPECT_EQ(derived_uuid({"a", "b"}), derived_uuid({"a", "b"}));
  EXPECT_NE(derived_uuid({"ab", "c"}), derived_uuid({"a", "bc"}));
  EXPECT_NE(derived_uuid({"a", ""}), derived_uuid({"", "a"}));
  EXPECT_NE(derived_uuid({"a"}), derived_uuid({"a", ""}));
  // Pinned: a change of this value would give every such device a new identity on upgrade.
  EXPECT_EQ(derived_uuid({"vendor", "name", "platform", "0", "machine"}),
            "CL-6c1e57f1-dc86-de36-00ea-3d4a5f4760e9");
}

TEST(DriverText, StopsAtTheEndOfItsBuffer) {
  const std::array<char, 3> unterminated{'a', 'b', 'c'};
  EXPECT_EQ(driver_text(unterminated), "abc");
  const std::array<char, 4> blank{' ', ' ', '\0', 'x'};
  EXPECT_EQ(driver_text(blank), "unnamed");
}

}  // namespace
}  // namespace loam::node
