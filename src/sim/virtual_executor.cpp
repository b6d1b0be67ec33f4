#include "sim/virtual_executor.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "engine/state.hpp"

namespace loam::sim {
namespace {

constexpr std::int64_t exit_sigterm = 128 + 15;
constexpr std::int64_t exit_sigkill = 128 + 9;

}  // namespace

void VirtualExecutor::launch(const engine::State& state, const engine::LaunchEffect& effect) {
  if (deaf_) return;
  if (const auto known = attempts_.find(effect.lease); known != attempts_.end()) {
    if (known->second.phase == Attempt::Phase::running) post_start(known->second, Duration{0});
    return;
  }
  const Lease* lease = state.find_lease(effect.lease);
  if (lease == nullptr) return;  // over before it was launched
  Attempt attempt;
  attempt.lease = effect.lease;
  attempt.epoch = effect.epoch;
  attempt.task = effect.task;
  attempt.rank = lease->rank;
  for (const Slice& slice : lease->slices) attempt.devices.push_back(slice.device);
  const Task& task = state.tasks.at(effect.task);
  attempt.program = program_of(task.spec->command);
  attempt.limit = task.spec->limit - task.run_time + engine::node_limit_slack;
  attempt.grace = task.spec->grace;
  // One for each time that it goes on.
  attempt.backups = std::min<std::int64_t>(task.spec->backups, effect.epoch.value - 1);
  Duration launch = attempt.program.launch;
  if (faults_.launch_max.ms > 0) launch += Duration{random_.between(0, faults_.launch_max.ms)};
  Attempt& kept = attempts_.emplace(effect.lease, std::move(attempt)).first->second;
  open_.insert(kept.lease);
  set_due(kept, clock_.true_now() + launch);
}

void VirtualExecutor::stop(const engine::State& state, const engine::StopEffect& effect) {
  if (deaf_) return;
  const auto known = attempts_.find(effect.lease);
  if (known == attempts_.end()) {
    // Never launched, and never will be.
    Attempt never;
    never.lease = effect.lease;
    never.epoch = effect.epoch;
    if (const Lease* lease = state.find_lease(effect.lease)) never.task = lease->task;
    Attempt& kept = attempts_.emplace(effect.lease, std::move(never)).first->second;
    open_.insert(kept.lease);
    end(kept, exit_sigterm);
    return;
  }
  Attempt& attempt = known->second;
  if (attempt.phase == Attempt::Phase::ended || attempt.dead) return;
  if (attempt.phase == Attempt::Phase::launching) {
    end(attempt, exit_sigterm);
    return;
  }
  const bool killed = attempt.program.outlasts(effect.grace);
  const Instant gone = clock_.true_now() + (killed ? effect.grace : attempt.program.stop);
  if (!attempt.stopping) attempt.told_at = clock_.true_now();
  attempt.stopping = true;
  if (gone >= attempt.due) return;  // exits by itself before that, or was asked before
  attempt.exit_code = killed ? exit_sigkill : exit_sigterm;
  attempt.by_limit = false;
  attempt.killed = killed;
  set_due(attempt, gone);
}

void VirtualExecutor::set_due(Attempt& attempt, Instant due) {
  due_.erase({attempt.due, attempt.lease});
  attempt.due = due;
  due_.insert({due, attempt.lease});
}

void VirtualExecutor::end(Attempt& attempt, std::int64_t exit_code) {
  due_.erase({attempt.due, attempt.lease});
  if (attempt.phase == Attempt::Phase::running) {
    attempt.ran = clock_.true_now() - attempt.true_start;
    if (!attempt.dead) saved_[attempt.task] += attempt.ran;  // its checkpoint
  }
  attempt.phase = Attempt::Phase::ended;
  attempt.exit_code = exit_code;
  post_end(attempt, attempt.program.report_delay);
}

void VirtualExecutor::change_phase(Attempt& attempt) {
  if (attempt.phase == Attempt::Phase::launching) {
    if (!attempt.program.refused.empty()) {
      attempt.end = AttemptEnd::refused;
      attempt.reason = attempt.program.refused;
      end(attempt, 0);
      return;
    }
    if (tried_[attempt.task]++ < attempt.program.unable) {
      attempt.end = AttemptEnd::unable;
      attempt.reason = "the node had no room on its disk";
      end(attempt, 0);
      return;
    }
    attempt.phase = Attempt::Phase::running;
    attempt.true_start = clock_.true_now();
    attempt.start = clock_.now();
    attempt.exit_code = attempt.program.exit_code;
    const Duration left{
        std::max<std::int64_t>(0, attempt.program.run.ms - saved_[attempt.task].ms)};
    const bool killed = attempt.program.outlasts(attempt.grace);
    const Duration stopped = attempt.limit + (killed ? attempt.grace : attempt.program.stop);
    attempt.by_limit = left > attempt.limit && left > stopped;
    if (attempt.by_limit) attempt.exit_code = killed ? exit_sigkill : exit_sigterm;
    set_due(attempt, clock_.true_now() + (attempt.by_limit ? stopped : left));
    post_start(attempt, attempt.program.start_delay);
    post_services(attempt, attempt.due - clock_.true_now());
    return;
  }
  if (attempt.by_limit) attempt.end = AttemptEnd::limit;
  if (attempt.killed) attempt.noticed = clock_.true_now() - attempt.told_at;
  if (attempt.exit_code != 0 && attempt.reason.empty()) {
    attempt.reason = "exit code " + std::to_string(attempt.exit_code);
  }
  end(attempt, attempt.exit_code);
}

void VirtualExecutor::post(const Attempt& attempt, Command command, Duration late) {
  Instant arrival = clock_.true_now() + late;
  if (faults_.delay_max.ms > 0)
    arrival = arrival + Duration{random_.between(0, faults_.delay_max.ms)};
  const Parcel parcel{attempt.lease, std::move(command)};
  const bool doubled = attempt.program.reports_twice ||
                       (faults_.doubled_permille > 0 && random_.chance(faults_.doubled_permille));
  if (doubled) mail_.emplace(arrival + Duration::seconds(1), parcel);
  if (faults_.dropped_permille > 0 && random_.chance(faults_.dropped_permille)) {
    arrival = arrival + resend_after;  // lost, and sent again later
  }
  mail_.emplace(arrival, parcel);
}

// Members of a gang share their checkpoints: the first counts them.
ServiceReport VirtualExecutor::services_after(const Attempt& attempt, Duration ran) {
  const Program& program = attempt.program;
  ServiceReport report;
  if (attempt.rank == 0) report.kept = program.storage;
  if (attempt.rank == 0) report.backed_up = program.storage * attempt.backups;
  report.use.storage_mib_ms = program.storage.value * ran.ms;
  const std::int64_t bytes =
      program.run.ms == 0
          ? program.network_bytes
          : static_cast<std::int64_t>(static_cast<Int128>(program.network_bytes) *
                                      std::min(ran.ms, program.run.ms) / program.run.ms);
  report.use.received_bytes = bytes / 2;
  report.use.sent_bytes = bytes - report.use.received_bytes;
  return report;
}

// Every hour, as a node does, where the program says how busy it is; else once on the way.
void VirtualExecutor::post_services(const Attempt& attempt, Duration left) {
  const Program& program = attempt.program;
  if (!program.busy && program.storage.value == 0 && program.network_bytes == 0) return;
  const Duration step = program.busy ? Duration::hours(1) : Duration{left.ms / 2};
  const Duration last = program.busy ? left : step;
  for (Duration ran = step; ran <= last && ran.ms > 0; ran = ran + step) {
    ReportServices report;
    report.lease = attempt.lease;
    report.epoch = attempt.epoch;
    report.at = attempt.start + ran;
    report.services = services_after(attempt, ran);
    if (program.busy) report.device_time = device_time_after(attempt, ran);
    post(attempt, report, ran);
  }
}

Duration VirtualExecutor::device_time_after(const Attempt& attempt, Duration ran) {
  if (!attempt.program.busy) return ran;
  constexpr std::int64_t whole_bp = 10'000;
  const auto devices = static_cast<std::int64_t>(attempt.devices.size());
  return Duration{static_cast<std::int64_t>(static_cast<Int128>(ran.ms) * devices *
                                            attempt.program.busy->value / whole_bp)};
}

void VirtualExecutor::post_start(const Attempt& attempt, Duration late) {
  post(attempt, ReportStarted{attempt.lease, attempt.epoch, attempt.start}, late);
}

void VirtualExecutor::post_end(const Attempt& attempt, Duration late) {
  ReportEnded report;
  report.lease = attempt.lease;
  report.epoch = attempt.epoch;
  report.end = attempt.end;
  report.started_at = attempt.start;
  const bool ran = attempt.start != Instant::never();
  report.ended_at = ran ? attempt.start + attempt.ran : clock_.now();
  report.exit_code = attempt.exit_code;
  report.reason = attempt.reason;
  report.device_time = device_time_after(attempt, attempt.ran);
  if (ran) report.services = services_after(attempt, attempt.ran);
  post(attempt, std::move(report), late);
}

Instant VirtualExecutor::next_due() const {
  Instant due = due_.empty() ? Instant::never() : due_.begin()->first;
  if (!mail_.empty()) due = std::min(due, mail_.begin()->first);
  return due;
}

std::vector<Parcel> VirtualExecutor::collect() {
  while (!due_.empty() && due_.begin()->first <= clock_.true_now()) {
    change_phase(attempts_.at(due_.begin()->second));
  }
  std::vector<Parcel> arrived;
  while (!mail_.empty() && mail_.begin()->first <= clock_.true_now()) {
    Parcel parcel = std::move(mail_.begin()->second);
    mail_.erase(mail_.begin());
    const Attempt& attempt = attempts_.at(parcel.lease);
    // A node that knows the end tells of that alone.
    const bool overtaken = attempt.phase == Attempt::Phase::ended &&
                           std::holds_alternative<ReportServices>(parcel.command);
    if (!attempt.dead && !overtaken) arrived.push_back(std::move(parcel));
  }
  return arrived;
}

void VirtualExecutor::settle(Attempt& attempt) {
  attempt.end_answered = true;
  open_.erase(attempt.lease);
}

void VirtualExecutor::answered(const Parcel& parcel, bool stale) {
  Attempt& attempt = attempts_.at(parcel.lease);
  if (std::holds_alternative<ReportStarted>(parcel.command)) attempt.start_answered = true;
  if (std::holds_alternative<ReportEnded>(parcel.command)) settle(attempt);
  if (stale && attempt.phase != Attempt::Phase::ended) {
    attempt.dead = true;
    end(attempt, exit_sigkill);
    settle(attempt);
  }
}

void VirtualExecutor::unanswered(const Parcel& parcel) {
  mail_.emplace(clock_.true_now() + resend_after, parcel);
}

void VirtualExecutor::report_again() {
  for (const LeaseId lease : open_) {
    const Attempt& attempt = attempts_.at(lease);
    if (attempt.dead) continue;
    const bool started = attempt.start != Instant::never();
    const Instant now = clock_.true_now();
    if (started && !attempt.start_answered) {
      mail_.emplace(now, Parcel{lease, ReportStarted{lease, attempt.epoch, attempt.start}});
    }
    if (attempt.phase != Attempt::Phase::ended) continue;
    const ReportFaults faults = std::exchange(faults_, ReportFaults{});
    post_end(attempt, Duration{0});
    faults_ = faults;
  }
}

void VirtualExecutor::kill_unknown(const engine::State& state) {
  for (const LeaseId lease : std::set<LeaseId>(open_)) {
    Attempt& attempt = attempts_.at(lease);
    if (state.find_lease(lease) != nullptr) continue;
    attempt.dead = true;
    if (attempt.phase != Attempt::Phase::ended) end(attempt, exit_sigkill);
    settle(attempt);
  }
}

void VirtualExecutor::lose(DeviceId device) {
  for (const LeaseId lease : std::set<LeaseId>(open_)) {
    Attempt& attempt = attempts_.at(lease);
    if (std::find(attempt.devices.begin(), attempt.devices.end(), device) == attempt.devices.end())
      continue;
    attempt.dead = true;
    if (attempt.phase == Attempt::Phase::running) {
      attempt.ran = clock_.true_now() - attempt.true_start;
    }
    attempt.phase = Attempt::Phase::ended;
    attempt.end = AttemptEnd::lost;
    due_.erase({attempt.due, attempt.lease});
    settle(attempt);
  }
}

}  // namespace loam::sim
