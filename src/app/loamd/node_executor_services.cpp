// The executor's part that tells how attempts ended, what they hold on this node's disk, move over
// the network and use of its devices, and clears away what ended tasks have kept.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "app/loamd/node_executor.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/file.hpp"

namespace loam::daemon {
namespace {

constexpr std::chrono::hours services_interval{1};           // as leases are rated
constexpr Duration attempts_kept = Duration::hours(24 * 7);  // with their logs, after the end

Mebibytes rounded_up(std::int64_t bytes) {
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  return Mebibytes{(bytes + mib - 1) / mib};
}

}  // namespace

// Members of a gang share their checkpoints: the first counts them. What nobody could count is 0.
ServiceReport NodeExecutor::services_of(const node::Usage& usage, std::int64_t rank) {
  ServiceReport report;
  report.use.storage_mib_ms = usage.storage_mib_ms.value_or(0);
  if (rank == 0) {
    report.use.storage_mib_ms += usage.checkpoint_mib_ms.value_or(0);
    report.kept = rounded_up(usage.checkpoint_bytes.value_or(0));
    report.backed_up = rounded_up(usage.backup_bytes.value_or(0));
  }
  report.use.received_bytes = usage.network_rx_bytes.value_or(0);
  report.use.sent_bytes = usage.network_tx_bytes.value_or(0);
  return report;
}

// The page goes only when the end is durable: a daemon that dies before reads it again. An attempt
// has ended whatever was counted of it: figures that are refused are left out, and it is told
// again.
void NodeExecutor::post_end(const ReportEnded& ended, bool counted) {
  loop_->post_until_durable(
      ended, node_actor, [this, ended, counted](const engine::Answer& answer) {
        const bool refused =
            counted && answer.reject && answer.reject->code == RejectCode::invalid_argument;
        if (!refused) {
          enqueue([this, lease = ended.lease] { forget(lease); });
          return;
        }
        spdlog::error("what was counted of the lease {} is not taken: {}", ended.lease.text(),
                      answer.reject->message);
        ReportEnded bare = ended;
        if (bare.started_at != Instant::never())
          bare.ended_at = std::max(bare.ended_at, bare.started_at);
        bare.services = {};
        bare.device_time = {};
        bare.memory_peak = {};
        enqueue([this, bare] { post_end(bare, false); });
      });
}

void NodeExecutor::report_services() {
  const auto now = std::chrono::steady_clock::now();
  if (now < services_due_) return;
  services_due_ = now + services_interval;
  struct Running {
    LeaseId lease;
    Epoch epoch;
    TaskId task;
    std::int64_t rank = 0;
    bool advisory = false;
  };
  std::vector<Running> running;
  loop_->read([&](const engine::State& state, Instant) {
    for (const auto& [id, lease] : state.leases) {
      if (lease.started())
        running.push_back(
            {id, lease.epoch, lease.task, lease.rank, lease.isolation == Isolation::advisory});
    }
  });
  for (const Running& each : running) {
    const auto status = supervisor_->status_now(attempt_name(each.task, each.lease, each.epoch));
    if (!status || node::is_final(status->phase)) continue;  // its end tells
    ReportServices report;
    report.lease = each.lease;
    report.epoch = each.epoch;
    report.at = clock_.at(node::boottime_ns());
    report.services = services_of(status->usage, each.rank);
    // Nothing used is a measurement too, but where nothing binds the guard to the task.
    report.device_time = device_time(each.lease);
    if (each.advisory && report.device_time == Duration{}) report.device_time.reset();
    loop_->post_until_durable(report, node_actor, [](const engine::Answer& answer) {
      if (answer.reject && answer.reject->code != RejectCode::stale_epoch)
        spdlog::warn("a report of use is not taken: {}", answer.reject->message);
    });
  }
}

void NodeExecutor::prune() {
  const std::int64_t before_ms = wall_clock().ms - attempts_kept.ms;
  for (const std::string& attempt : supervisor_->attempts()) {
    const auto report = supervisor_->status(attempt);
    if (!report || !node::is_final(report->status.phase)) continue;
    if (report->status.end_wall_ms < before_ms) static_cast<void>(supervisor_->remove(attempt));
  }
  prune_checkpoints();
}

// Checkpoints, and copies of them, of tasks that are over and of which no attempt is kept any more.
void NodeExecutor::prune_checkpoints() {
  std::set<std::string> kept;
  for (const std::string& attempt : supervisor_->attempts())
    kept.insert(attempt.substr(0, attempt.find('-')));
  loop_->read([&](const engine::State& state, Instant) {
    for (const auto& [id, task] : state.tasks) kept.insert(id.text());
  });
  for (const char* folder : {"/checkpoints", "/backups"}) {
    std::error_code fault;
    for (const auto& entry :
         std::filesystem::directory_iterator(config_.data_dir + folder, fault)) {
      const std::string name = entry.path().filename().string();
      if (!TaskId::parse(name) || kept.count(name) != 0) continue;
      if (const auto removed = node::remove_tree(entry.path().string()); !removed)
        spdlog::warn("checkpoints stay: {}", to_text(removed.error()));
    }
  }
}

}  // namespace loam::daemon
