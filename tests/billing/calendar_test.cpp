// Civil dates, zones through DST, months and anchored periods.
#include "billing/calendar.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

TEST(Calendar, dates_that_no_calendar_has_are_refused) {
  for (const char* text :
       {"2025-02-30", "2025-02-29", "2025-13-01", "2025-00-10", "2025-04-31", "2025-4-1",
        "2025-04-01T00:00:00Z", "1969-12-31", "", "2025/04/01", "-025-04-01", "2025-0a-01"}) {
    EXPECT_FALSE(parse_date(text).ok()) << text;
  }
  EXPECT_NE(refusal(parse_date("2025-02-30")).find("2025-02-30"), std::string::npos);
  EXPECT_EQ(to_text(day("2024-02-29")), "2024-02-29");
}

TEST(Calendar, months_are_counted_from_the_anchor_and_end_with_the_month) {
  const Date anchor = day("2025-01-31");
  EXPECT_EQ(to_text(add_months(anchor, 1)), "2025-02-28");
  EXPECT_EQ(to_text(add_months(anchor, 2)), "2025-03-31");
  EXPECT_EQ(to_text(add_months(anchor, 13)), "2026-02-28");
  EXPECT_EQ(to_text(add_months(anchor, 37)), "2028-02-29");
  EXPECT_EQ(to_text(add_months(anchor, -1)), "2024-12-31");
}

TEST(Calendar, days_and_weekdays_agree_with_known_dates) {
  EXPECT_EQ(days_since_epoch(day("1970-01-01")), 0);
  EXPECT_EQ(weekday_of(day("1970-01-01")), 4);
  EXPECT_EQ(weekday_of(day("2025-11-02")), 0);
  EXPECT_EQ(days_since_epoch(day("2000-03-01")) - days_since_epoch(day("2000-02-28")), 2);
  for (std::int64_t d = 0; d < 60'000; d += 17) EXPECT_EQ(days_since_epoch(date_of_day(d)), d);
}

TEST(Zone, names_that_the_machine_does_not_know_are_refused) {
  for (const char* name : {"Mars/Olympus", "", "../../etc/passwd", "Europe/berlin"})
    EXPECT_NE(refusal(Zone::open(name)).find("no time zone"), std::string::npos) << name;
}

TEST(Zone, the_skipped_hour_of_spring_has_no_instant) {
  const Zone zone = *Zone::open("America/New_York");
  EXPECT_TRUE(zone.instants({day("2025-03-09"), hm(2, 30)}).empty());
  EXPECT_EQ(zone.first_instant({day("2025-03-09"), hm(2, 30)}), at("2025-03-09T07:00:00Z"));
  EXPECT_TRUE(zone.spans(day("2025-03-09"), hm(2), hm(3)).empty());
  const auto across = zone.spans(day("2025-03-09"), hm(1, 30), hm(3, 30));
  ASSERT_EQ(across.size(), 1u);
  EXPECT_EQ(across[0], (Period{at("2025-03-09T06:30:00Z"), at("2025-03-09T07:30:00Z")}));
}

TEST(Zone, the_repeated_hour_of_autumn_has_two_instants) {
  const Zone zone = *Zone::open("America/New_York");
  EXPECT_EQ(zone.instants({day("2025-11-02"), hm(1, 30)}),
            (std::vector<Instant>{at("2025-11-02T05:30:00Z"), at("2025-11-02T06:30:00Z")}));
  const auto twice = zone.spans(day("2025-11-02"), hm(1, 15), hm(1, 45));
  ASSERT_EQ(twice.size(), 2u);
  EXPECT_EQ(twice[1], (Period{at("2025-11-02T06:15:00Z"), at("2025-11-02T06:45:00Z")}));
  EXPECT_EQ(zone.local(at("2025-11-02T06:30:00Z")), (LocalTime{day("2025-11-02"), hm(1, 30)}));
}

TEST(Zone, odd_zones_are_right_too) {
  // Half an hour of daylight saving; a quarter-hour offset; a day that never was.
  const Zone lord_howe = *Zone::open("Australia/Lord_Howe");
  EXPECT_EQ(lord_howe.offset_at(at("2025-01-01T00:00:00Z")), hm(11));
  EXPECT_EQ(lord_howe.offset_at(at("2025-07-01T00:00:00Z")), hm(10, 30));
  EXPECT_EQ(Zone::open("Asia/Kathmandu")->offset_at(at("2025-01-01T00:00:00Z")), hm(5, 45));
  const Zone apia = *Zone::open("Pacific/Apia");
  EXPECT_TRUE(apia.spans(day("2011-12-30"), hm(0), hm(24)).empty());
  EXPECT_EQ(apia.first_instant({day("2011-12-30"), {}}),
            apia.first_instant({day("2011-12-31"), {}}));
}

TEST(Zone, every_local_reading_leads_back_to_its_instant) {
  Random random(11);
  for (const char* name : {"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe",
                           "Pacific/Apia", "Asia/Kathmandu", "Africa/Casablanca"}) {
    const Zone zone = *Zone::open(name);
    for (int i = 0; i < 2000; ++i) {
      const Instant t{random.between(0, 2'000'000'000'000)};
      const auto back = zone.instants(zone.local(t));
      EXPECT_NE(std::find(back.begin(), back.end(), t), back.end()) << name << " " << to_text(t);
      EXPECT_LE(zone.first_instant(zone.local(t)), t);
      EXPECT_EQ(zone.offset_at(t),
                zone.offset_at(std::min(t + Duration{1}, zone.next_change(t) - Duration{1})));
    }
  }
}

TEST(Months, run_from_local_midnight_to_local_midnight) {
  const Zone zone = *Zone::open("America/New_York");
  EXPECT_EQ(month_of(zone, at("2025-11-15T00:00:00Z")),
            (Period{at("2025-11-01T04:00:00Z"), at("2025-12-01T05:00:00Z")}));
  EXPECT_EQ(month_text(zone, at("2025-04-01T03:59:59Z")), "2025-03");
  EXPECT_EQ(*parse_month(zone, "2025-03"),
            (Period{at("2025-03-01T05:00:00Z"), at("2025-04-01T04:00:00Z")}));
  EXPECT_EQ(parse_month(*Zone::open("Asia/Kolkata"), "2025-12")->to, at("2025-12-31T18:30:00Z"));
  for (const char* text : {"", "2025", "2025-13", "2025-00", "2025-3", "2025-03-01", "1969-12",
                           "march", "2025-0x", " 2025-03"})
    EXPECT_FALSE(parse_month(zone, text).ok()) << text;
}

}  // namespace
}  // namespace loam::billing
