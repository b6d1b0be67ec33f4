#include "app/gateway/traffic.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "http/fixture.hpp"

namespace loam::serving {
namespace {

constexpr Instant monday{4 * 24 * 3'600'000LL};  // 1970-01-05T00:00:00Z

// Two weeks in which every day between 9:00 and 10:00 has eight requests in flight.
void learn_mornings(Traffic& traffic) {
  for (std::int64_t minute = 0; minute < 14 * 1440; ++minute) {
    const bool busy = minute % 1440 / 60 == 9;
    traffic.learn(monday.ms / 60'000 + minute, busy ? 8 : 0, busy ? 8 : 0);
  }
}

TEST(Traffic, TheFirstDayExpectsNothing) {
  Traffic traffic(Duration::seconds(30));
  EXPECT_EQ(traffic.expected_milli(), 0U);
  for (int minute = 0; minute < 600; ++minute)
    traffic.observe(monday + Duration::minutes(minute), 5);
  EXPECT_EQ(traffic.expected_milli(), 0U);
}

TEST(Traffic, TheUsualMorningIsExpectedBeforeItComes) {
  Traffic traffic(Duration::minutes(2));
  learn_mornings(traffic);
  const Instant today = monday + Duration::hours(14 * 24);
  for (int minute = 0; minute <= 3 * 60; ++minute)
    traffic.observe(today + Duration::minutes(minute), 0);
  EXPECT_EQ(traffic.expected_milli(), 0U);  // at three in the night
  for (int minute = 3 * 60; minute <= 8 * 60 + 58; ++minute)
    traffic.observe(today + Duration::minutes(minute), 0);
  EXPECT_GT(traffic.expected_milli(), 1'000U);  // two minutes before, although nobody is there
}

TEST(Traffic, AGapAndAClockThatStepsBackDoNoHarm) {
  Traffic traffic(Duration::seconds(30));
  learn_mornings(traffic);
  const Instant later = monday + Duration::hours(24 * 400);
  traffic.observe(later, 3);
  traffic.observe(later - Duration::hours(5), 3);
  traffic.observe(later + Duration::minutes(1), 3);
}

TEST(Traffic, AUsageFileBecomesMinutes) {
  http::Folder folder;
  const std::string path = folder / "usage.jsonl";
  std::ofstream(path) << R"({"model":"a","arrived":"1970-01-05T00:00:30Z","lasted_ms":60000})"
                      << "\n"
                      << R"({"model":"a","arrived":"1970-01-05T00:00:00Z","lasted_ms":30000})"
                      << "\n"
                      << R"({"model":"b","arrived":"1970-01-01T00:00:00Z","lasted_ms":5})"
                      << "\nrubbish\n{}\n"
                      << R"({"model":"a","arrived":"never","lasted_ms":5})"
                      << "\n";
  std::size_t skipped = 0;
  const auto past = past_traffic(path, monday + Duration::hours(1), 2, skipped);
  ASSERT_TRUE(past.ok());
  EXPECT_EQ(skipped, 3U);
  const auto& minutes = past->at("a");
  ASSERT_EQ(minutes.size(), 2U);
  EXPECT_DOUBLE_EQ(minutes.begin()->second.mean, 1.0);
  EXPECT_DOUBLE_EQ(minutes.rbegin()->second.mean, 0.5);
  EXPECT_TRUE(past->at("b").empty());  // too long ago
  EXPECT_TRUE(past_traffic(folder / "none", monday, 2, skipped)->empty());
}

}  // namespace
}  // namespace loam::serving
