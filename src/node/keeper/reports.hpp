// What the keeper found out about leases, for the daemon: ROOT/reports, a line each, appended by
// the keeper alone (docs/formats/keeper_reports.md). The daemon may be away: it reads on where it
// was. Not pure: files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::node {

enum class ReportKind : std::uint8_t {
  hung,       // its work did not end within hung_ns after its turn
  shortfall,  // neighbours took device time that it was promised
  idle,       // it leaves the device unused
  active,     // it was idle and is not any more
  reclaim,    // it holds lent memory that its owner wants
  overdue,    // and has not given it back within its notice
};

struct KeeperReport {
  ReportKind kind = ReportKind::hung;
  std::string lease;
  std::uint32_t device = 0;  // index on the lease's page
  std::uint32_t lane = 0;
  // CLOCK_BOOTTIME. Of a shortfall the whole window; else both when it was noticed.
  std::int64_t from_ns = 0, until_ns = 0;
  std::int64_t owed_ns = 0, used_ns = 0, missing_ns = 0;  // of a shortfall
  // Of reclaim and overdue: above the quota. Of idle: asked to go to the host.
  std::uint64_t bytes = 0;
  bool end = false;  // of hung, overdue and idle: its task is to be ended

  friend bool operator==(const KeeperReport&, const KeeperReport&) = default;
};

// One line, without its end.
std::string report_line(const KeeperReport& report);
// invalid_argument, with the line, for anything else.
Result<KeeperReport> parse_report(std::string_view line);

// Appends whole lines. A file that has become large is kept as ROOT/reports.old, and a new one
// begun.
class ReportWriter {
 public:
  explicit ReportWriter(std::string root) : path_(std::move(root) + "/reports") {}
  Result<void> append(const KeeperReport& report);

 private:
  std::string path_;
};

// Reads on from where it was; lines that mean nothing are skipped and counted.
class ReportReader {
 public:
  explicit ReportReader(std::string root) : path_(std::move(root) + "/reports") {}
  ReportReader(const ReportReader&) = delete;
  ReportReader& operator=(const ReportReader&) = delete;
  ~ReportReader();

  // Everything since the last call; the first call begins at the file's beginning. Nothing where
  // there is no file.
  Result<std::vector<KeeperReport>> read();
  std::uint64_t skipped() const { return skipped_; }

 private:
  void read_open(std::vector<KeeperReport>& reports);

  std::string path_;
  int fd_ = -1;
  std::string rest_;  // of a line that is not whole yet
  std::uint64_t skipped_ = 0;
};

}  // namespace loam::node
