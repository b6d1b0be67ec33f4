// Cron expressions: what they accept, when they are due, and nights when the clock changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "schedule/recurrence.hpp"

namespace loam::schedule {
namespace {

Instant at(const char* text) {
  const auto instant = parse_instant(text);
  EXPECT_TRUE(instant.ok()) << text;
  return *instant;
}

Cron cron(const char* text) {
  const auto parsed = Cron::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return *parsed;
}

const UtcClock utc;

std::vector<std::string> next_in(const char* expression, const char* after, int count,
                                 const ZoneClock& clock = utc) {
  std::vector<std::string> times;
  Instant time = at(after);
  for (int i = 0; i < count; ++i) {
    const auto next = cron(expression).next(time, clock);
    if (!next) break;
    time = *next;
    times.push_back(to_text(time));
  }
  return times;
}

using Times = std::vector<std::string>;

TEST(Cron, FieldsRangesListsStepsAndNames) {
  EXPECT_EQ(next_in("30 2 * * *", "2026-03-01T02:30:00Z", 2),
            (Times{"2026-03-02T02:30:00Z", "2026-03-03T02:30:00Z"}));
  EXPECT_EQ(next_in("*/20 9-17/4 * * *", "2026-03-01T09:30:00Z", 4),
            (Times{"2026-03-01T09:40:00Z", "2026-03-01T13:00:00Z", "2026-03-01T13:20:00Z",
                   "2026-03-01T13:40:00Z"}));
  EXPECT_EQ(next_in("0 0 * jan,JUN MON", "2026-01-20T00:00:00Z", 2),
            (Times{"2026-01-26T00:00:00Z", "2026-06-01T00:00:00Z"}));
  EXPECT_EQ(next_in("5,10 0 1 1 *", "2026-01-01T00:05:00Z", 2),
            (Times{"2026-01-01T00:10:00Z", "2027-01-01T00:05:00Z"}));
  EXPECT_EQ(next_in("0 12 * * 6-7", "2026-03-06T00:00:00Z", 3),
            (Times{"2026-03-07T12:00:00Z", "2026-03-08T12:00:00Z", "2026-03-14T12:00:00Z"}));
  EXPECT_EQ(cron("0 0 * * sat-sun"), cron("0 0 * * 6,0"));
  EXPECT_EQ(cron("  0\t0 * * 7 "), cron("@weekly"));
}

TEST(Cron, Forms) {
  EXPECT_EQ(cron("@daily"), cron("0 0 * * *"));
  EXPECT_EQ(cron("@midnight"), cron("@daily"));
  EXPECT_EQ(cron("@hourly"), cron("0 * * * *"));
  EXPECT_EQ(cron("@monthly"), cron("0 0 1 * *"));
  EXPECT_EQ(cron("@yearly"), cron("@annually"));
}

TEST(Cron, TwoRestrictedDayFieldsMeanEither) {
  EXPECT_EQ(next_in("0 0 13 * fri", "2026-02-01T00:00:00Z", 4),
            (Times{"2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z",
                   "2026-02-27T00:00:00Z"}));
  EXPECT_EQ(next_in("0 0 15 * fri", "2026-02-13T00:00:00Z", 2),
            (Times{"2026-02-15T00:00:00Z", "2026-02-20T00:00:00Z"}));
}

TEST(Cron, LeapDaysComeEightYearsApartOver2100) {
  EXPECT_EQ(next_in("0 0 29 2 *", "2096-02-29T00:00:00Z", 1), (Times{"2104-02-29T00:00:00Z"}));
}

TEST(Cron, WhatNeverOccursIsRefused) {
  for (const char* text : {"0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30-31 feb *"}) {
    const auto bad = Cron::parse(text);
    ASSERT_FALSE(bad.ok()) << text;
    EXPECT_NE(bad.error().message.find("never occurs"), std::string::npos);
  }
  EXPECT_TRUE(Cron::parse("0 0 30 2 mon").ok());
  EXPECT_TRUE(Cron::parse("0 0 31 2,3 *").ok());
  EXPECT_TRUE(Cron::parse("0 0 29 2 *").ok());
}

TEST(Cron, BadInputIsRefusedWithFieldAndReason) {
  struct Bad {
    const char* text;
    const char* says;
  };
  for (const Bad& bad : {
           Bad{"", "5 fields, not 0"},
           Bad{"* * * *", "5 fields, not 4"},
           Bad{"* * * * * *", "5 fields, not 6"},
           Bad{"60 * * * *", "minute '60' is out of range"},
           Bad{"* 24 * * *", "hour '24'"},
           Bad{"* * 0 * *", "day of month '0'"},
           Bad{"* * 32 * *", "day of month '32'"},
           Bad{"* * * 13 *", "month '13'"},
           Bad{"* * * 0 *", "month '0'"},
           Bad{"* * * * 8", "day of week '8'"},
           Bad{"-1 * * * *", "minute '-1'"},
           Bad{"1.5 * * * *", "minute '1.5'"},
           Bad{"x * * * *", "minute 'x'"},
           Bad{"jan * * * *", "minute 'jan'"},
           Bad{"* * * mon *", "month 'mon'"},
           Bad{"* * * january *", "month 'january'"},
           Bad{"1, * * * *", "empty part"},
           Bad{",1 * * * *", "empty part"},
           Bad{"5-1 * * * *", "runs backwards"},
           Bad{"* * * * fri-mon", "runs backwards"},
           Bad{"1-2-3 * * * *", "minute '1-2-3'"},
           Bad{"1- * * * *", "minute '1-'"},
           Bad{"*/0 * * * *", "has no step"},
           Bad{"*/-1 * * * *", "has no step"},
           Bad{"*/ * * * *", "has no step"},
           Bad{"*/99 * * * *", "has no step"},
           Bad{"5/15 * * * *", "no range"},
           Bad{"** * * * *", "minute '**'"},
           Bad{"99999999999999999999 * * * *", "minute '999"},
           Bad{"@reboot", "'@reboot'"},
           Bad{"@daily *", "5 fields"},
       }) {
    const auto parsed = Cron::parse(bad.text);
    ASSERT_FALSE(parsed.ok()) << bad.text;
    EXPECT_NE(parsed.error().message.find(bad.says), std::string::npos) << parsed.error().message;
    EXPECT_FALSE(parsed.error().next_step.empty());
  }
  EXPECT_FALSE(Cron::parse(std::string(5'000, '1')).ok());
}

TEST(Cron, ItsTextParsesToTheSame) {
  for (const char* text : {"*/7 1-3 * 2,4 mon", "0 0 1-31 * fri", "* * * * *", "1 2 3 4 5"})
    EXPECT_EQ(cron(cron(text).text().c_str()), cron(text)) << text;
  EXPECT_EQ(cron("*/30 0 * * 0-6").text(), "0,30 0 * * *");
}

// A zone an hour ahead of UTC; on 2026-03-29 at 01:00 UTC the clock goes from 02:00 to 03:00, on
// 2026-10-25 at 01:00 UTC back from 03:00 to 02:00.
class Berlin final : public ZoneClock {
 public:
  LocalTime local(Instant instant) const override {
    return utc.local(instant + Duration::hours(summer(instant) ? 2 : 1));
  }
  Instant first(const LocalTime& time) const override {
    const Instant shown = utc.first(time);
    const Instant as_summer = shown - Duration::hours(2);
    const Instant as_winter = shown - Duration::hours(1);
    if (summer(as_summer)) return as_summer;
    if (!summer(as_winter)) return as_winter;
    return spring;
  }

 private:
  Instant spring = at("2026-03-29T01:00:00Z");
  Instant autumn = at("2026-10-25T01:00:00Z");
  bool summer(Instant instant) const { return instant >= spring && instant < autumn; }
};

TEST(CronOnNightsOfChange, ATimeThatDoesNotOccurIsDueRightAfterTheGap) {
  EXPECT_EQ(next_in("30 2 * * *", "2026-03-28T00:00:00Z", 3, Berlin{}),
            (Times{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}));
  // Several times within the gap, and one at its end, are one.
  EXPECT_EQ(next_in("*/10 2,3 * * *", "2026-03-29T00:59:00Z", 2, Berlin{}),
            (Times{"2026-03-29T01:00:00Z", "2026-03-29T01:10:00Z"}));
}

TEST(CronOnNightsOfChange, ATimeThatOccursTwiceIsDueOnce) {
  EXPECT_EQ(next_in("30 2 * * *", "2026-10-24T12:00:00Z", 2, Berlin{}),
            (Times{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}));
  // Asked in the second pass of the hour.
  EXPECT_EQ(next_in("30 2,3 * * *", "2026-10-25T01:10:00Z", 1, Berlin{}),
            (Times{"2026-10-25T02:30:00Z"}));
}

TEST(Cron, NextEqualsEveryMinuteTriedByHand) {
  const Berlin berlin;
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    const std::string text = std::to_string(random.below(60)) + "," +
                             std::to_string(random.below(60)) + " */" +
                             std::to_string(random.between(1, 9)) + " " +
                             (random.chance(500) ? "*" : std::to_string(random.between(20, 31))) +
                             " 3,10 " + (random.chance(500) ? "*" : "sat,0");
    const Cron expression = cron(text.c_str());
    Instant from = at(random.chance(500) ? "2026-03-27T20:13:20Z" : "2026-10-23T20:13:20Z");
    from = from + Duration::minutes(static_cast<std::int64_t>(random.below(2'000)));
    // By hand: of all local minutes of the month, the first instant that each is shown.
    std::vector<Instant> due;
    for (const int month : {3, 10})
      for (int day = 1; day <= 31; ++day)
        for (int minute = 0; minute < 1440; ++minute) {
          const LocalTime time{2026, month, day, minute / 60, minute % 60};
          const auto just_before = utc.first(time) - Duration{1};
          if (expression.next(just_before, utc) == utc.first(time))
            due.push_back(berlin.first(time));
        }
    std::sort(due.begin(), due.end());
    const auto expected = std::upper_bound(due.begin(), due.end(), from);
    const auto next = expression.next(from, berlin);
    ASSERT_TRUE(next);
    if (expected != due.end()) {
      EXPECT_EQ(to_text(*next), to_text(*expected)) << text;
    }
  }
}

TEST(Due, MissedTimesRunOnceAndAreCounted) {
  const auto hourly = cron("@hourly");
  EXPECT_FALSE(due(hourly, at("2026-03-01T00:00:00Z"), at("2026-03-01T00:59:59Z"), utc));
  const auto once = due(hourly, at("2026-03-01T00:00:00Z"), at("2026-03-01T01:00:00Z"), utc);
  ASSERT_TRUE(once);
  EXPECT_EQ(once->skipped, 0);
  const auto many = due(hourly, at("2026-03-01T00:00:00Z"), at("2026-03-01T05:30:00Z"), utc);
  ASSERT_TRUE(many);
  EXPECT_EQ(to_text(many->at), "2026-03-01T05:00:00Z");
  EXPECT_EQ(many->skipped, 4);
}

TEST(UtcClock, DatesAndInstantsAreInverse) {
  Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    const Instant instant{
        random.between(-60'000'000'000'000 / 60'000, 250'000'000'000'000 / 60'000) * 60'000};
    const LocalTime time = utc.local(instant);
    ASSERT_EQ(utc.first(time), instant);
    ASSERT_LE(time.day, days_in_month(time.year, time.month));
  }
  EXPECT_EQ(weekday_of(2026, 3, 1), 0);
  EXPECT_EQ(weekday_of(1970, 1, 1), 4);
}

}  // namespace
}  // namespace loam::schedule
