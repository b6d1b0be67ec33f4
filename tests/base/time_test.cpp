#include "base/time.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace loam {
namespace {

TEST(Instant, TextIsUtc) {
  EXPECT_EQ(parse_instant("2025-11-02T04:30:00Z").value(), Instant{1'762'057'800'000});
  EXPECT_EQ(to_text(Instant{1'762'057'800'250}), "2025-11-02T04:30:00.250Z");
  for (const char* text :
       {"", "2025-02-29T00:00:00Z", "2025-11-02", "2025-11-02T04:30:00", "2025-11-02T24:00:00Z",
        "2025-11-02T04:30:00.25Z", "1969-12-31T23:59:59Z", "2025-11-02T04:30:00+01:00"}) {
    EXPECT_FALSE(parse_instant(text).ok()) << text;
  }
}

TEST(Duration, ReadsPartsInFallingOrder) {
  EXPECT_EQ(parse_duration("1h30m").value(), Duration::minutes(90));
  EXPECT_EQ(parse_duration("0.5h").value(), Duration::minutes(30));
  EXPECT_EQ(parse_duration("250ms").value(), Duration{250});
  EXPECT_EQ(to_text(Duration::minutes(90)), "1h30m");
  EXPECT_EQ(to_text(Duration{0}), "0s");
  for (const char* text :
       {"", "5", "s", "30m1h", "1h1h", "-5s", "1e3s", "0.1ms", "99999999d", "5 s", "5x"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
}

TEST(Time, TextRoundTripsForAllValues) {
  Random random(3);
  for (int i = 0; i < 10'000; ++i) {
    const Instant instant{random.between(0, 253'402'300'799'999)};
    EXPECT_EQ(parse_instant(to_text(instant)).value(), instant);
    const Duration duration{random.between(0, 1'000'000'000'000)};
    EXPECT_EQ(parse_duration(to_text(duration)).value(), duration);
  }
}

}  // namespace
}  // namespace loam
