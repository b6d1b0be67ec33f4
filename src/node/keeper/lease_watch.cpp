#include "node/keeper/lease_watch.hpp"

namespace loam::node {

void LeaseWatch::note(const Standing& standing, Nanoseconds now,
                      const std::function<void(KeeperReport)>& tell) {
  KeeperReport report;
  report.lease = lease_;
  report.device = device_;
  if (const auto missing = promise_.note(now, standing.share_milli, standing.busy_ns,
                                         standing.wants, standing.kept_waiting)) {
    report.kind = ReportKind::shortfall;
    report.from_ns = missing->from_ns;
    report.until_ns = missing->until_ns;
    report.owed_ns = missing->owed_ns;
    report.used_ns = missing->used_ns;
    report.missing_ns = missing->missing_ns;
    tell(report);
    report = KeeperReport{ReportKind::idle, lease_, device_};
  }
  if (const auto idle = idle_.note(now, standing.busy_ns)) {
    report.kind = *idle ? ReportKind::idle : ReportKind::active;
    report.from_ns = report.until_ns = now;
    tell(report);
  }
}

}  // namespace loam::node
