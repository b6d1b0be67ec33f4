// The executor's part that heeds the keeper's reports: hung work is ended, and what a lease was
// promised of a device and did not get becomes a credit.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "app/loamd/node_executor.hpp"
#include "node/keeper/keeper_process.hpp"

namespace loam::daemon {
namespace {

// Of who is ended for lent memory or for idling; with the notice, what an owner waits.
constexpr Duration early_end_grace = Duration::seconds(30);
// The keeper's, for giving lent memory back.
constexpr Duration memory_notice = Duration::seconds(10);

Duration busy_of(const std::vector<node::SliceUsage>& slices) {
  constexpr std::int64_t ns_per_ms = 1'000'000;
  Duration busy;
  for (const node::SliceUsage& slice : slices) busy += Duration{slice.busy_ns / ns_per_ms};
  return busy;
}

}  // namespace

void NodeExecutor::put_measures(const node::AttemptReport& report, ReportEnded& ended) const {
  constexpr std::int64_t bytes_per_mib = 1024 * 1024;
  if (const auto output = supervisor_->output(report.attempt); output.ok()) {
    ended.output = *output;
  } else {
    spdlog::warn("{}: {}", report.attempt, to_text(output.error()));
  }
  const auto usage = node::read_counters(config_.data_dir + "/keeper", ended.lease.text());
  if (!usage) return;
  ended.device_time = busy_of(*usage);
  for (const node::SliceUsage& slice : *usage) {
    ended.memory_peak +=
        Mebibytes{static_cast<std::int64_t>(slice.memory_peak_bytes) / bytes_per_mib};
  }
}

std::optional<Duration> NodeExecutor::device_time(LeaseId lease) const {
  const auto usage = node::read_counters(config_.data_dir + "/keeper", lease.text());
  if (!usage) return std::nullopt;
  return busy_of(*usage);
}

void NodeExecutor::read_keeper_reports() {
  const auto reports = keeper_reports_->read();
  if (!reports) {
    spdlog::warn("{}", to_text(reports.error()));
    return;
  }
  for (const node::KeeperReport& report : *reports) heed(report);
}

Result<pid_t> NodeExecutor::ensure_keeper() const {
  return node::ensure_keeper(config_.data_dir + "/keeper", config_.programs + "/loam-keeper",
                             {"--watched"});
}

// Its lock tells, which the kernel frees however it died. The pages are adopted by the next one.
// The keeper outlives the daemon for the leases it keeps; where there is none it may rest, too.
void NodeExecutor::end_idle_keeper() const {
  std::error_code fault;
  const std::string root = config_.data_dir + "/keeper";
  if (!std::filesystem::is_empty(root + "/pages", fault) || fault) return;
  const auto keeper = node::keeper_running(root);
  if (keeper && *keeper > 0) ::kill(*keeper, SIGTERM);
}

void NodeExecutor::keep_keeper() {
  const auto running = node::keeper_running(config_.data_dir + "/keeper");
  if (running && *running != 0) return;
  const auto started = running ? ensure_keeper() : running;
  if (started) {
    spdlog::warn("loam-keeper had died; process {} serves in its place", *started);
    keeper_trouble_.clear();
    return;
  }
  // Tried again each second; said once.
  const std::string trouble = to_text(started.error());
  if (trouble != keeper_trouble_)
    spdlog::error("loam-keeper has died and cannot be started again: {}", trouble);
  keeper_trouble_ = trouble;
}

std::string NodeExecutor::attempt_of(std::string_view lease) const {
  const std::string part = "-" + std::string(lease) + "-e";
  std::string found;
  for (const std::string& attempt : supervisor_->attempts())
    if (attempt.find(part) != std::string::npos) found = attempt;
  return found;
}

// What a lease was promised of a device and did not get becomes a credit. A report that was read
// before (the file is read anew after a restart) is known to the engine by its time.
void NodeExecutor::report_shortfall(LeaseId id, const node::KeeperReport& report) {
  constexpr std::int64_t bp_per_milli = 10;
  constexpr std::int64_t whole_bp = 10'000;
  const std::int64_t window_ns = report.until_ns - report.from_ns;
  // Copies have lanes of their own; what is sold and priced is the device's time.
  if (report.lane != 0 || window_ns <= 0) return;
  ReportShortfall shortfall;
  shortfall.lease = id;
  shortfall.slice = report.device;
  shortfall.from = clock_.at(report.from_ns);
  shortfall.to = clock_.at(report.until_ns);
  bool found = false;
  loop_->read([&](const engine::State& state, Instant) {
    const Lease* lease = state.find_lease(id);
    if (lease == nullptr || report.device >= lease->slices.size()) return;
    found = true;
    shortfall.epoch = lease->epoch;
    shortfall.promised = BasisPoints{lease->slices[report.device].promised().value * bp_per_milli};
  });
  if (!found) return;
  const auto missing =
      static_cast<std::int64_t>(static_cast<Int128>(report.missing_ns) * whole_bp / window_ns);
  if (missing <= 0) return;
  shortfall.delivered = BasisPoints{std::max<std::int64_t>(0, shortfall.promised.value - missing)};
  loop_->post_until_durable(shortfall, node_actor);
}

void NodeExecutor::heed(const node::KeeperReport& report) {
  const auto id = LeaseId::parse(report.lease);
  {
    const std::lock_guard lock(live_mutex_);
    if (!id || live_.count(*id) == 0) return;  // over
  }
  constexpr double ns_per_s = 1e9;
  const auto seconds = [&](std::int64_t ns) { return static_cast<double>(ns) / ns_per_s; };
  switch (report.kind) {
    case node::ReportKind::shortfall:
      report_shortfall(*id, report);
      spdlog::warn(
          "the lease {} got {:.3f} s of the {:.3f} s that its share promised; neighbours "
          "had {:.3f} s of it",
          report.lease, seconds(report.used_ns), seconds(report.owed_ns),
          seconds(report.missing_ns));
      return;
    case node::ReportKind::idle:
      if (report.end) return end_early(report, "it leaves its device unused");
      spdlog::info("the lease {} leaves its device unused", report.lease);
      return;
    case node::ReportKind::active:
      spdlog::info("the lease {} uses its device again", report.lease);
      return;
    case node::ReportKind::reclaim:
      spdlog::info("the lease {} is asked to give {} bytes of lent memory back", report.lease,
                   report.bytes);
      if (const std::string attempt = attempt_of(report.lease); !attempt.empty()) {
        const auto told = supervisor_->ask_for_memory(attempt, memory_notice.ms,
                                                      static_cast<std::int64_t>(report.bytes));
        if (!told) spdlog::warn("cannot tell {}: {}", attempt, to_text(told.error()));
      }
      return;
    case node::ReportKind::hung:
      return end_early(report, "its device work hangs");
    case node::ReportKind::overdue:
      return end_early(report, "it did not give lent memory back");
  }
}

void NodeExecutor::end_early(const node::KeeperReport& report, const char* why) {
  spdlog::warn("the lease {}: {}", report.lease, why);
  const std::string attempt = attempt_of(report.lease);
  if (!report.end || attempt.empty()) return;
  // What hangs cannot save itself; who borrowed or idles can, and has its grace.
  const auto ended = report.kind == node::ReportKind::hung
                         ? supervisor_->kill(attempt, why)
                         : supervisor_->stop(attempt, early_end_grace.ms, why);
  if (!ended) spdlog::warn("cannot end {}: {}", attempt, to_text(ended.error()));
}

}  // namespace loam::daemon
