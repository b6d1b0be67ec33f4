// The keeper's reports: written, read on, damaged.
#include "node/keeper/reports.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace loam::node {
namespace {

class Reports : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/loam_reports_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static KeeperReport missing(const std::string& lease, std::int64_t ns) {
    KeeperReport report;
    report.kind = ReportKind::shortfall;
    report.lease = lease;
    report.device = 3;
    report.from_ns = 100;
    report.until_ns = 200;
    report.owed_ns = 50;
    report.used_ns = 50 - ns;
    report.missing_ns = ns;
    return report;
  }
  std::string root_;
};

TEST_F(Reports, WhatIsWrittenIsReadOnce) {
  ReportReader reader(root_);
  EXPECT_TRUE(reader.read().value().empty()) << "there is no file";
  ReportWriter writer(root_);
  ASSERT_TRUE(writer.append(missing("l1", 5)).ok());
  KeeperReport hung;
  hung.lease = "l2";
  hung.lane = 2;
  hung.end = true;
  ASSERT_TRUE(writer.append(hung).ok());
  EXPECT_EQ(reader.read().value(), (std::vector{missing("l1", 5), hung}));
  EXPECT_TRUE(reader.read().value().empty());
  ASSERT_TRUE(writer.append(missing("l3", 7)).ok());
  EXPECT_EQ(reader.read().value(), std::vector{missing("l3", 7)});
  EXPECT_EQ(ReportReader(root_).read().value().size(), 3u) << "another reader begins anew";
}

TEST_F(Reports, EveryKindSurvivesItsLine) {
  for (const auto kind : {ReportKind::hung, ReportKind::shortfall, ReportKind::idle,
                          ReportKind::active, ReportKind::reclaim, ReportKind::overdue}) {
    KeeperReport report = missing("lease-1.x", 9);
    report.kind = kind;
    report.bytes = UINT64_MAX;
    EXPECT_EQ(parse_report(report_line(report)).value(), report);
  }
}

TEST_F(Reports, DamagedLinesAreSkippedAndCounted) {
  ReportWriter writer(root_);
  ASSERT_TRUE(writer.append(missing("l1", 5)).ok());
  {
    std::ofstream file(root_ + "/reports", std::ios::app);
    file << "nonsense\n\n" << std::string(10'000, 'x') << "\n";
  }
  ASSERT_TRUE(writer.append(missing("l2", 5)).ok());
  {
    std::ofstream file(root_ + "/reports", std::ios::app);
    file << report_line(missing("l3", 5)).substr(0, 20);  // cut off
  }
  ReportReader reader(root_);
  EXPECT_EQ(reader.read().value().size(), 2u);
  EXPECT_EQ(reader.skipped(), 3u);
}

TEST_F(Reports, AbsurdLinesAreRefused) {
  const std::string good = report_line(missing("l1", 5));
  ASSERT_TRUE(parse_report(good).ok());
  for (const std::string& line :
       {std::string(), std::string("hung"), "flung" + good.substr(good.find(' ')), good + " ",
        good + " 1", good.substr(0, good.size() - 1) + "2", good.substr(0, good.size() - 2),
        std::string("shortfall l1 -1 0 100 200 50 45 5 0 0"),
        std::string("shortfall l1 0 0 200 100 50 45 5 0 0"),
        std::string("shortfall l1 0 0 100 200 50 45 -5 0 0"),
        std::string("shortfall l1 0 0 100 99999999999999999999 50 45 5 0 0"),
        std::string("shortfall  0 0 100 200 50 45 5 0 0")})
    EXPECT_FALSE(parse_report(line).ok()) << "'" << line << "'";
}

TEST_F(Reports, ALargeFileIsPutAsideAndReadToItsEnd) {
  ReportWriter writer(root_);
  ASSERT_TRUE(writer.append(missing("first", 5)).ok());
  ReportReader reader(root_);
  EXPECT_EQ(reader.read().value().size(), 1u);
  ASSERT_TRUE(writer.append(missing("before", 5)).ok());
  std::filesystem::resize_file(root_ + "/reports", 5 << 20);  // zeros: one endless line
  ASSERT_TRUE(writer.append(missing("after", 5)).ok());
  EXPECT_TRUE(std::filesystem::exists(root_ + "/reports.old"));
  const auto rest = reader.read().value();
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].lease, "before");
  EXPECT_EQ(rest[1].lease, "after");
}

}  // namespace
}  // namespace loam::node
