// Reading job traces: both forms, and what is said about each kind of bad input.
#include <gmock/gmock.h>

#include "sim/trace/jobs.hpp"

namespace loam::sim {
namespace {

using ::testing::HasSubstr;

std::string row(const std::string& devices, const std::string& length, const std::string& arrival) {
  return "name\tcommand\tfolder\t--steps\t1\t100\t" + devices + "\tgns\t1\t-1.0\t" + length + "\t" +
         arrival + "\n";
}

TEST(JobsTrace, ReadsTheTabSeparatedForm) {
  const auto jobs = parse_jobs(row("2", "1418", "0") + row("1", "33.5", "55.25"), "t.tsv");
  ASSERT_TRUE(jobs.ok()) << to_text(jobs.error());
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[0].devices, 2);
  EXPECT_EQ((*jobs)[0].length, Duration::seconds(1418));
  EXPECT_EQ((*jobs)[1].length, Duration{33'500});
  EXPECT_EQ((*jobs)[1].arrival, Instant{55'250});
  EXPECT_FALSE((*jobs)[1].limit);
}

TEST(JobsTrace, ReadsCsvByItsHeaderInAnyOrder) {
  const auto jobs = parse_jobs(
      "who,devices,limit_s,arrival_s,duration_s\r\na,4,100,7,60\r\nb,1,,8,5\r\n", "t.csv");
  ASSERT_TRUE(jobs.ok()) << to_text(jobs.error());
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[0].devices, 4);
  EXPECT_EQ((*jobs)[0].arrival, Instant{7'000});
  EXPECT_EQ((*jobs)[0].limit, Duration::seconds(100));
  EXPECT_FALSE((*jobs)[1].limit);
}

TEST(JobsTrace, BadInputNamesFileLineAndReason) {
  const std::string good = row("1", "10", "0");
  const std::string header = "arrival_s,duration_s,devices,limit_s\n";
  const struct {
    std::string text;
    std::string says;
  } cases[] = {
      {"", "t: no tasks"},
      {header, "t: no tasks"},
      {"arrival_s,duration_s\n1,2\n",
       "t:1: neither tab-separated nor a header with the column devices"},
      {"hello\n", "t:1: neither"},
      {good + "a\tb\n", "t:2: 2 columns; at least 12"},
      {good + row("1", "-5", "0"), "t:2: "},
      {good + row("1", "5", "-1"), "t:2: "},
      {good + row("1", "nan", "0"), "t:2: "},
      {good + row("1", "1e3", "0"), "t:2: "},
      {good + row("1", "", "0"), "t:2: "},
      {good + row("1", "0", "0"), "t:2: the length is 0"},
      {good + row("0", "5", "0"), "t:2: the number of devices is 0"},
      {good + row("1.5", "5", "0"), "t:2: "},
      {good + row("99999999999", "5", "0"), "t:2: "},
      {good + row("1", "99999999999999999999", "0"), "t:2: "},
      {good + "\n" + good, "t:2: an empty line"},
      {header + "1,2\n", "t:2: 2 columns; at least 4"},
      {header + "1,20,1,10\n", "t:2: the limit of 10s is below the length of 20s"},
      {header + "1,20,1,x\n", "t:2: "},
  };
  for (const auto& bad : cases) {
    const auto jobs = parse_jobs(bad.text, "t");
    ASSERT_FALSE(jobs.ok()) << bad.text;
    EXPECT_THAT(jobs.error().message, HasSubstr(bad.says)) << bad.text;
  }
}

TEST(JobsTrace, AMillionLinesWithAFaultInTheLastAreReadToThere) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += row("1", "10", "0");
  text += row("1", "x", "0");
  const auto jobs = parse_jobs(text, "long");
  ASSERT_FALSE(jobs.ok());
  EXPECT_THAT(jobs.error().message, HasSubstr("long:1000001: "));
}

TEST(JobsTrace, AFileThatIsNotThereIsNamed) {
  const auto jobs = read_jobs("/nowhere/jobs.tsv");
  ASSERT_FALSE(jobs.ok());
  EXPECT_THAT(jobs.error().message, HasSubstr("/nowhere/jobs.tsv"));
}

}  // namespace
}  // namespace loam::sim
