// Records taken once each, in any order; what overlaps or cannot be is refused and not booked.
#include "billing/metering.hpp"

#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

const Instant start = parse_instant("2025-03-01T00:00:00Z").value();

Usage hour_record(int hour, std::int64_t milli_ce = 1000) {
  return usage(("r" + std::to_string(hour)).c_str(), start + hm(hour), start + hm(hour + 1),
               milli_ce);
}

TEST(Metering, order_and_repetition_change_nothing) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    Metering metering;
    int booked = 0;
    std::vector<int> order(48);
    for (int i = 0; i < 48; ++i) order[static_cast<std::size_t>(i)] = i % 24;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (const int hour : order)
      booked += *metering.add(hour_record(hour)) == Metering::Receipt::booked ? 1 : 0;
    EXPECT_EQ(booked, 24);
    EXPECT_TRUE(metering.gaps(LeaseId{1}, start, start + hm(24)).empty());
  }
}

TEST(Metering, another_record_under_a_known_id_is_refused) {
  Metering metering;
  ASSERT_TRUE(metering.add(hour_record(1)).ok());
  EXPECT_NE(refusal(metering.add(hour_record(1, 2000))).find("'r1' was taken before"),
            std::string::npos);
}

TEST(Metering, records_that_overlap_are_refused_whichever_comes_first) {
  for (const auto& [from, to] : {std::pair{30, 90}, std::pair{-30, 30}, std::pair{10, 20},
                                 std::pair{-10, 70}, std::pair{0, 60}}) {
    Metering metering;
    ASSERT_TRUE(metering.add(hour_record(0)).ok());
    const Usage second =
        usage("s", start + Duration::minutes(from), start + Duration::minutes(to), 1);
    EXPECT_NE(refusal(metering.add(second)).find("overlaps another one of lease l1"),
              std::string::npos);
    EXPECT_EQ(metering.size(), 1u);  // nothing booked
    Usage elsewhere = second;
    elsewhere.lease = LeaseId{2};
    EXPECT_TRUE(metering.add(elsewhere).ok());
  }
}

TEST(Metering, gaps_are_named) {
  Metering metering;
  ASSERT_TRUE(metering.add(hour_record(1)).ok());
  ASSERT_TRUE(metering.add(hour_record(3)).ok());
  EXPECT_EQ(
      metering.gaps(LeaseId{1}, start, start + hm(5)),
      (std::vector<Period>{
          {start, start + hm(1)}, {start + hm(2), start + hm(3)}, {start + hm(4), start + hm(5)}}));
  EXPECT_EQ(metering.gaps(LeaseId{9}, start, start + hm(1)).size(), 1u);
}

TEST(Metering, what_comes_after_the_close_is_a_correction_at_the_price_of_its_own_time) {
  Tables tables = tables_of(card("1.00"));
  ASSERT_TRUE(tables.add(*PriceTable::compile(card("3.00", "2025-03-01T04:00:00Z", 2))).ok());
  Metering metering;
  metering.close(start + hm(4));
  const Usage late = usage("late", start + hm(3), start + hm(5), 1000);
  EXPECT_EQ(*metering.add(late), Metering::Receipt::correction);
  const auto parts = metering.parts(late);
  ASSERT_EQ(parts.late.size(), 1u);
  ASSERT_EQ(parts.open.size(), 1u);
  EXPECT_EQ(rated(tables, parts.late[0]).net, money("1.00"));
  EXPECT_EQ(rated(tables, parts.open[0]).net, money("3.00"));
  EXPECT_EQ(*metering.add(late), Metering::Receipt::duplicate);
  EXPECT_EQ(*metering.add(hour_record(6)), Metering::Receipt::booked);
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
  EXPECT_NE(fault([](Usage& u) { u.storage.value = -1; }).find("negative"), std::string::npos);
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
