// Usage records: what cannot be is refused with its value, and tiles leave nothing out.
#include "billing/usage.hpp"

#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

const Instant march = parse_instant("2025-03-01T00:00:00Z").value();

Usage hour_record(int hour, std::int64_t milli_ce = 1000) {
  return usage(("r" + std::to_string(hour)).c_str(), march + hm(hour), march + hm(hour + 1),
               milli_ce);
}

TEST(Usage, what_no_meter_can_have_seen_is_refused_with_the_value) {
  const auto fault = [](const auto& change) {
    Usage record = hour_record(1);
    change(record);
    return refusal(check(record));
  };
  EXPECT_EQ(fault([](Usage&) {}), "");
  EXPECT_NE(fault([](Usage& u) { u.id.clear(); }).find("no id"), std::string::npos);
  EXPECT_NE(fault([](Usage& u) { u.to = u.from; }).find("not after"), std::string::npos);
  EXPECT_NE(fault([](Usage& u) { u.to = u.from - Duration{1}; }).find("not after"),
            std::string::npos);
  EXPECT_NE(fault([](Usage& u) { u.billable_ce.value = -1; }).find("negative"), std::string::npos);
  EXPECT_NE(fault([](Usage& u) { u.storage_mib_ms = -1; }).find("negative"), std::string::npos);
  EXPECT_NE(fault([](Usage& u) { u.network_bytes = -1; }).find("negative"), std::string::npos);
  EXPECT_NE(fault([](Usage& u) { u.billable_ce.value = milli_ce_max.value + 1; }).find("beyond"),
            std::string::npos);
  EXPECT_NE(fault([](Usage& u) { u.run_from = u.to; }).find("before its run"), std::string::npos);
  EXPECT_NE(fault([](Usage& u) { u.to = u.from + Duration::hours(24 * 4000); }).find("ten years"),
            std::string::npos);
}

TEST(Usage, tiles_leave_no_gap_and_no_overlap) {
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    const Instant from{random.between(0, 2'000'000'000'000)};
    const Instant to = from + Duration{random.between(0, 100'000'000)};
    Instant cursor = from;
    for (const Period& tile : tiles(from, to, Duration::hours(1))) {
      EXPECT_EQ(tile.from, cursor);
      EXPECT_LT(tile.from, tile.to);
      EXPECT_LE(tile.to - tile.from, Duration::hours(1));
      cursor = tile.to;
    }
    EXPECT_EQ(cursor, to);
  }
}

}  // namespace
}  // namespace loam::billing
