#include "base/quantity.hpp"

#include <gtest/gtest.h>

#include "base/id.hpp"
#include "base/random.hpp"

namespace loam {
namespace {

TEST(Ce, ReadsAndWritesThousandths) {
  EXPECT_EQ(parse_ce("25").value(), MilliCe{25'000});
  EXPECT_EQ(parse_ce("0.3125000").error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(parse_ce("0.312000").value(), MilliCe{312});
  EXPECT_EQ(to_text(MilliCe{312}), "0.312");
  EXPECT_EQ(to_text(MilliCe{25'000}), "25");
}

TEST(Ce, RefusesAbsurdities) {
  for (const char* text :
       {"", "0", "0.000", "-1", "+1", "1e3", "NaN", "inf", " 1", "1 ", ".5", "5.", "1.2.3", "0x10",
        "1000000000000000000000000000000", "1000000001"}) {
    const auto ce = parse_ce(text);
    ASSERT_FALSE(ce.ok()) << text;
    EXPECT_FALSE(ce.error().next_step.empty()) << text;
  }
}

TEST(Memory, ReadsUnitsExactly) {
  EXPECT_EQ(parse_memory("10GiB").value(), Mebibytes{10'240});
  EXPECT_EQ(parse_memory("0.5GiB").value(), Mebibytes{512});
  EXPECT_EQ(parse_memory("1TiB").value(), Mebibytes{1'048'576});
  EXPECT_EQ(to_text(Mebibytes{10'240}), "10GiB");
  EXPECT_EQ(to_text(Mebibytes{1'536}), "1536MiB");
  for (const char* text :
       {"10", "10GB", "1e3GiB", "-1GiB", "0GiB", "0.0001GiB", "0.3MiB", "GiB", "99999999999TiB"}) {
    EXPECT_FALSE(parse_memory(text).ok()) << text;
  }
}

TEST(Share, IsAboveZeroAndAtMostOne) {
  EXPECT_EQ(parse_share("0.6").value(), MilliDevice{600});
  EXPECT_EQ(parse_share("1").value(), whole_device);
  for (const char* text : {"0", "1.001", "2", "0.0001", "60%"})
    EXPECT_FALSE(parse_share(text).ok()) << text;
  EXPECT_EQ(parse_share("30%").error().next_step, "give a part of one, such as 0.3 for 30 %");
}

TEST(Quantity, TextRoundTripsForAllValues) {
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const MilliCe ce{random.between(1, milli_ce_max.value)};
    EXPECT_EQ(parse_ce(to_text(ce)).value(), ce);
    const Mebibytes size{random.between(1, mebibytes_max.value)};
    EXPECT_EQ(parse_memory(to_text(size)).value(), size);
  }
}

struct FooTag {
  static constexpr const char* prefix = "f";
};

TEST(Id, TextHasOneForm) {
  EXPECT_EQ(Id<FooTag>{17}.text(), "f17");
  EXPECT_EQ(Id<FooTag>::parse("f17"), Id<FooTag>{17});
  for (const char* text :
       {"17", "f", "f0", "f017", "f-1", "f17x", "g17", "f99999999999999999999"}) {
    EXPECT_FALSE(Id<FooTag>::parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace loam
