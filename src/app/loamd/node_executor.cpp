#include "app/loamd/node_executor.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

namespace loam::daemon {
namespace {

constexpr std::int64_t share_window_ns = 10'000'000'000;  // "lately" in a measured share
constexpr std::int64_t bytes_per_mib = 1024 * 1024;

struct AttemptIds {
  LeaseId lease;
  Epoch epoch;
};

std::optional<AttemptIds> ids_of(const node::AttemptStatus& status) {
  const auto lease = LeaseId::parse(status.lease);
  if (!lease || status.epoch == 0 || status.epoch > std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  return AttemptIds{*lease, Epoch{static_cast<std::uint32_t>(status.epoch)}};
}

std::string reason_of(const node::AttemptStatus& status) {
  constexpr int exit_not_found = 127;  // as a shell says it
  if (status.outcome == node::Outcome::refused && status.exit_code == exit_not_found)
    return status.detail +
           "; tasks see the folders that loamd's setting `shared` names and their own --mount";
  if (!status.detail.empty()) return status.detail;
  if (status.outcome == node::Outcome::out_of_memory) return "out of host memory";
  if (status.signal) return "ended by signal " + std::to_string(*status.signal);
  if (status.exit_code && *status.exit_code != 0)
    return "exit status " + std::to_string(*status.exit_code);
  return {};
}

std::int64_t exit_code_of(const node::AttemptStatus& status) {
  constexpr std::int64_t signal_base = 128;
  if (status.signal) return signal_base + *status.signal;
  return status.exit_code.value_or(0);
}

// Where the members of a gang find the first: all run on this node. The port is the task's own as
// long as fewer than that many gangs live.
std::string rendezvous_of(TaskId task) {
  constexpr std::uint64_t first_port = 20'000;
  constexpr std::uint64_t ports = 10'000;
  return "127.0.0.1:" + std::to_string(first_port + task.value % ports);
}

// An endpoint's instance, by the name that the gateway gives it. It computes without a driver that
// the guard is in.
bool is_instance(const TaskSpec& spec) {
  return spec.name == "loam-engine";
}

// A task that listens is a service: requests wait for it, so it goes before those that compute.
bool is_service(const TaskSpec& spec) {
  return !spec.ports.empty() || is_instance(spec);
}

// Of this machine's processors, what a share is of the device that they are.
std::int64_t cpu_milli_of(MilliDevice share) {
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  return cores * share.value;
}

// A CPU that is the device is shared by the guard's turns; what a program computes past the guard
// is held to the same cores, and beside others counts by what it is promised. An instance computes
// without the guard: its share is its limit.
void keep_to_cores(const Slice& slice, ShareMode mode, bool instance, node::LaunchOrder& order) {
  if (order.cpu_weight_milli == 0) order.cpu_weight_milli = order.cpu_milli;
  order.cpu_weight_milli += cpu_milli_of(slice.promised());
  const std::int64_t most = cpu_milli_of(mode == ShareMode::strict ? slice.share : whole_device);
  if (instance) {
    order.cpu_milli = most;
  } else {
    order.cpu_turns_milli += most;
  }
}

// Where to listen, for the program: "8080,8443".
std::string ports_text(const std::vector<std::int64_t>& ports) {
  std::string text;
  for (const std::int64_t port : ports) text += (text.empty() ? "" : ",") + std::to_string(port);
  return text;
}

// Short tasks have turns that grow with their progress, so that many of them answer early; what
// runs longer than this gains nothing from that.
node::SliceTurns turns_of(const TaskSpec& spec) {
  constexpr Duration short_task = Duration::minutes(10);
  return spec.limit <= short_task && !is_service(spec) ? node::SliceTurns::dynamic
                                                       : node::SliceTurns::fixed;
}

node::SandboxMode sandbox_of(const std::string& text) {
  if (text == "bubblewrap") return node::SandboxMode::bubblewrap;
  if (text == "none") return node::SandboxMode::none;
  return node::SandboxMode::automatic;
}

node::WhenIdle when_idle(const std::string& setting) {
  if (setting == "park") return node::WhenIdle::park;
  return setting == "end" ? node::WhenIdle::end : node::WhenIdle::report;
}

}  // namespace

NodeExecutor::NodeExecutor(const Config& config, const AnchoredClock& clock)
    : config_(config), clock_(clock) {}

NodeExecutor::~NodeExecutor() {
  stop();
}

std::string NodeExecutor::attempt_name(TaskId task, LeaseId lease, Epoch epoch) {
  return task.text() + "-" + lease.text() + "-e" + std::to_string(epoch.value);
}

void NodeExecutor::connect(LoopThread& loop, const NodeDevices& devices) {
  loop_ = &loop;
  devices_ = &devices;
}

Result<void> NodeExecutor::start() {
  LOAM_TRY(supervisor, node::Supervisor::create(
                           config_.data_dir + "/attempts", config_.programs + "/loam-launch",
                           [this](const node::AttemptReport& report) { on_report(report); }));
  supervisor_ = std::move(supervisor);
  LOAM_TRY(keeper, ensure_keeper());
  keeper_reports_ = std::make_unique<node::ReportReader>(config_.data_dir + "/keeper");
  spdlog::info("loam-keeper serves as process {}", keeper);
  std::vector<Error> trouble;
  LOAM_TRY(adopted, supervisor_->adopt(&trouble));
  for (const Error& error : trouble) spdlog::warn("{}", to_text(error));
  if (adopted > 0) spdlog::info("{} attempts are there from before", adopted);
  report_missing();
  remove_stray_pages();
  worker_ = std::thread([this] { work(); });
  enqueue([this] { prune(); });
  return {};
}

void NodeExecutor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (worker_.joinable()) worker_.join();
  supervisor_.reset();
  end_idle_keeper();
}

void NodeExecutor::enqueue(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

// Nothing is told of leases that are not there: without any, the daemon sleeps.
std::chrono::milliseconds NodeExecutor::report_pause() {
  constexpr std::chrono::seconds busy{1};
  constexpr std::chrono::hours idle{1};
  const std::lock_guard lock(live_mutex_);
  return live_.empty() ? std::chrono::milliseconds(idle) : std::chrono::milliseconds(busy);
}

void NodeExecutor::work() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point looked = Clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::chrono::milliseconds pause = report_pause();
    const bool work =
        wake_.wait_until(lock, looked + pause, [&] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;  // effects are repeated by the next daemon
    // Also where there is always something to do.
    if (!work || Clock::now() - looked >= pause) {
      looked = Clock::now();
      lock.unlock();
      keep_keeper();
      read_keeper_reports();
      report_services();
      lock.lock();
      continue;
    }
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

void NodeExecutor::launch(const engine::State& state, const engine::LaunchEffect& effect) {
  const Lease* lease = state.find_lease(effect.lease);
  if (lease == nullptr || lease->epoch != effect.epoch) return;  // over before it began
  const Task& task = state.tasks.at(effect.task);
  const TaskSpec& spec = *task.spec;
  const std::string& tenant = state.tenant(task.tenant).spec.name;

  node::LaunchOrder order;
  order.attempt = attempt_name(task.id, lease->id, lease->epoch);
  order.task = task.id.text();
  order.lease = lease->id.text();
  order.epoch = lease->epoch.value;
  order.restart = lease->epoch.value - 1;
  order.rank = static_cast<std::uint32_t>(lease->rank);
  order.size = static_cast<std::uint32_t>(spec.gang);
  if (spec.gang > 1) order.rendezvous = rendezvous_of(task.id);
  order.argv = spec.command;
  order.environment = spec.environment;
  if (!spec.ports.empty()) order.environment["LOAM_PORTS"] = ports_text(spec.ports);
  order.working_directory = spec.working_directory;
  order.checkpoint_directory = config_.data_dir + "/checkpoints/" + task.id.text();
  order.cache_directory = config_.data_dir + "/cache/" + tenant;
  order.backups = spec.backups;
  if (spec.backups > 0) order.backup_directory = config_.data_dir + "/backups/" + task.id.text();
  for (const Mount& mount : spec.mounts)
    order.mounts.push_back({mount.source, mount.target, mount.read_only});
  order.read_only = config_.shared;
  order.cpu_milli = spec.request.cpu.value;
  order.host_memory_mib = spec.request.host_memory.value;
  order.grace_ms = spec.grace.ms;
  const Duration rest =
      std::min(spec.limit - task.run_time, engine::reserved_until(state, spec) - state.now);
  order.run_limit_ms = (rest + engine::node_limit_slack).ms;
  order.sandbox = sandbox_of(config_.sandbox);
  order.guard_library = config_.guard;

  std::vector<WantedSlice> slices;
  for (const Slice& slice : lease->slices) {
    const Device& device = state.device(slice.device);
    slices.push_back({device.facts->uuid, device_name(state.node(device.node), device), slice,
                      spec.request.mode, spec.request.bandwidth, turns_of(spec), is_service(spec),
                      spec.purchase_model == PurchaseModel::spot, is_instance(spec)});
  }
  {
    const std::lock_guard lock(live_mutex_);
    live_[lease->id].device = lease->slices.front().device;
  }
  enqueue([this, order, slices, id = lease->id, epoch = lease->epoch] {
    carry_out(order, slices, id, epoch);
  });
}

Result<std::vector<node::SliceLimits>> NodeExecutor::limits_of(
    const std::vector<WantedSlice>& slices, node::LaunchOrder& order) const {
  std::vector<node::SliceLimits> limits;
  for (const WantedSlice& wanted : slices) {
    const auto handle = devices_->handle(wanted.uuid);
    if (!handle) {
      return Error{ErrorKind::unavailable,
                   "no driver shows the device " + wanted.uuid + " any more",
                   "look again with: loam device discover"};
    }
    if (handle->is_cpu) keep_to_cores(wanted.slice, wanted.mode, wanted.instance, order);
    // The driver then numbers the slice's devices from 0; others the guard refuses anyway.
    if (!handle->cuda_name.empty()) {
      std::string& visible = order.environment["CUDA_VISIBLE_DEVICES"];
      const bool first = limits.empty();
      visible = first ? handle->cuda_name : visible + "," + handle->cuda_name;
    }
    node::SliceLimits limit;
    limit.device_key = handle->slice_key;
    limit.device_name = wanted.name;
    limit.memory_bytes = static_cast<std::uint64_t>(wanted.slice.memory.value) * bytes_per_mib;
    // What is promised is its own; what idles goes by what was bought.
    limit.share_milli = static_cast<std::int32_t>(wanted.slice.promised().value);
    limit.weight = static_cast<std::int32_t>(wanted.slice.share.value);
    limit.mode =
        wanted.mode == ShareMode::strict ? node::SliceMode::strict : node::SliceMode::burstable;
    // Never above the share, so that what is promised of a device adds up to at most one.
    limit.copy_share_milli =
        wanted.bandwidth
            ? static_cast<std::int32_t>(std::min(*wanted.bandwidth, wanted.slice.promised()).value)
            : 0;
    // A CPU copies with the cores that compute: one lane for both.
    limit.copy_lanes = !handle->is_cpu;
    limit.turns = wanted.turns;
    limit.service = wanted.service;
    limit.hung_ns = config_.hung_action == "ignore" ? 0 : config_.hung_after.ms * 1'000'000;
    limit.end_hung = config_.hung_action == "end";
    // The system clears a CPU's memory between processes; a device's driver may not.
    limit.clear_memory = !handle->is_cpu;
    limit.concurrent = config_.concurrent_kernels && !handle->is_cpu;
    limit.lends = config_.lend_memory && !wanted.spot;
    limit.borrows = config_.lend_memory && wanted.spot;
    limit.spills = config_.spill_memory && !handle->is_cpu;
    limit.leaves_first = wanted.slice.memory_unpromised.value > 0;
    limit.when_idle = when_idle(config_.when_idle);
    limit.quantum_ns = config_.turn_quantum.ms * 1'000'000;
    limits.push_back(limit);
  }
  return limits;
}

void NodeExecutor::carry_out(const node::LaunchOrder& ordered,
                             const std::vector<WantedSlice>& slices, LeaseId lease_id,
                             Epoch epoch) {
  node::LaunchOrder order = ordered;
  const std::string lease = lease_id.text();
  const std::string root = config_.data_dir + "/keeper";
  const auto limits = limits_of(slices, order);
  if (!limits) {
    report_refused(lease_id, epoch, limits.error());
    return;
  }
  std::error_code fault;
  std::filesystem::create_directories(order.checkpoint_directory, fault);
  if (!fault) std::filesystem::create_directories(order.cache_directory, fault);
  if (fault) {
    report_refused(
        lease_id, epoch,
        Error{ErrorKind::unavailable, "cannot make the task's folders: " + fault.message(), {}});
    return;
  }
  if (const auto keeper = ensure_keeper(); !keeper) {
    report_refused(lease_id, epoch, keeper.error());
    return;
  }
  if (!order.guard_library.empty()) {
    const auto page = node::create_page(root, lease, *limits);
    if (!page && page.error().kind !=
                     ErrorKind::conflict) {  // conflict: launched before the daemon restarted
      report_refused(lease_id, epoch, page.error());
      return;
    }
    order.slice_page = node::page_prefix(root, lease);
  }
  if (const auto started = supervisor_->start(order); !started)
    report_refused(lease_id, epoch, started.error());
}

void NodeExecutor::stop(const engine::State& state, const engine::StopEffect& effect) {
  // The lease may be gone from the state (a lost device): the name must come from what we know.
  const Lease* lease = state.find_lease(effect.lease);
  const std::string suffix = "-" + effect.lease.text() + "-e" + std::to_string(effect.epoch.value);
  std::string attempt =
      lease != nullptr ? attempt_name(lease->task, effect.lease, effect.epoch) : std::string();
  enqueue([this, attempt, suffix, effect] {
    std::string name = attempt;
    if (name.empty()) {
      for (const std::string& known : supervisor_->attempts()) {
        if (known.ends_with(suffix)) name = known;
      }
    }
    if (name.empty()) return;
    const char* reason = "stopped";
    if (effect.reason == StopReason::paused) reason = "paused";
    if (effect.reason == StopReason::limit) reason = "time limit";
    if (effect.reason == StopReason::device_lost) reason = "device lost";
    if (effect.reason == StopReason::preempted) reason = "preempted";
    if (effect.reason == StopReason::moved) reason = "moved";
    if (effect.reason == StopReason::segment) reason = "segment";
    if (effect.reason == StopReason::resold) reason = "another purchase model";
    if (effect.reason == StopReason::gang) reason = "another member of its gang ended";
    const auto stopped = supervisor_->stop(name, effect.grace.ms, reason);
    if (stopped) return;
    if (stopped.error().kind == ErrorKind::not_found) {
      // Never launched: its end must still be told.
      report_refused(effect.lease, effect.epoch,
                     Error{ErrorKind::not_found, "stopped before it was launched", {}});
    } else {
      spdlog::warn("cannot stop {}: {}", name, to_text(stopped.error()));
    }
  });
}

Instant NodeExecutor::instant_of(const node::AttemptStatus& status, std::int64_t boottime) const {
  if (status.boot_id == clock_.anchor().boot_id) return clock_.at(boottime);
  // Another boot: only the wall clock of its start and the time since then are left.
  constexpr std::int64_t ns_per_ms = 1'000'000;
  return Instant{status.start_wall_ms + (boottime - status.start_boottime_ns) / ns_per_ms};
}

void NodeExecutor::on_report(const node::AttemptReport& report) {
  const auto ids = ids_of(report.status);
  if (!ids) {
    spdlog::warn("the attempt {} names no lease", report.attempt);
    return;
  }
  switch (report.status.phase) {
    case node::Phase::ordered:  // the engine repeats the launch
    case node::Phase::starting:
    case node::Phase::stopping:
      return;
    case node::Phase::running: {
      const bool advisory =
          report.status.isolation != node::Isolation::sandboxed || config_.guard.empty();
      {
        const std::lock_guard lock(live_mutex_);
        live_[ids->lease].advisory = advisory;
        live_[ids->lease].isolation_detail = report.status.isolation_detail;
        if (!report.status.isolation_detail.empty() &&
            weaknesses_.insert(report.status.isolation_detail).second)
          spdlog::warn("tasks of this node are kept apart less than they might be: {}",
                       report.status.isolation_detail);
      }
      ReportStarted started;
      started.lease = ids->lease;
      started.epoch = ids->epoch;
      started.started_at = instant_of(report.status, report.status.start_boottime_ns);
      started.advisory = advisory;
      loop_->post_until_durable(
          started, node_actor, [this, attempt = report.attempt](const engine::Answer& answer) {
            if (!answer.reject || answer.reject->code != RejectCode::stale_epoch) return;
            // Runs without a lease (its device was lost, or an older backup was restored).
            enqueue([this, attempt] {
              static_cast<void>(supervisor_->kill(attempt, "its lease is over"));
            });
          });
      return;
    }
    case node::Phase::exited:
    case node::Phase::refused:
    case node::Phase::lost:
      report_end(report, ids->lease, ids->epoch);
      return;
  }
}

void NodeExecutor::report_end(const node::AttemptReport& report, LeaseId lease, Epoch epoch) {
  const node::AttemptStatus& status = report.status;
  ReportEnded ended;
  ended.lease = lease;
  ended.epoch = epoch;
  ended.end = AttemptEnd::exited;
  if (status.phase == node::Phase::refused) {
    const bool unable = status.outcome == node::Outcome::unable;
    ended.end = unable ? AttemptEnd::unable : AttemptEnd::refused;
  }
  if (status.phase == node::Phase::lost) ended.end = AttemptEnd::lost;
  if (!status.notices.empty() && status.notices.front().action == node::notice_limit)
    ended.end = AttemptEnd::limit;
  if (status.start_boottime_ns != 0) {
    ended.started_at = instant_of(status, status.start_boottime_ns);
    ended.ended_at = instant_of(status, std::max(status.end_boottime_ns, status.start_boottime_ns));
  } else {
    ended.ended_at = clock_.at(boottime_ns());
  }
  ended.exit_code = exit_code_of(status);
  ended.reason = reason_of(status);
  ended.advisory = status.isolation != node::Isolation::sandboxed || config_.guard.empty();
  std::int64_t rank = 0;
  loop_->read([&](const engine::State& state, Instant) {
    if (const Lease* known = state.find_lease(lease)) rank = known->rank;
  });
  ended.services = services_of(status.usage, rank);
  put_measures(report, ended);
  post_end(ended);
}

void NodeExecutor::forget(LeaseId lease) {
  const auto removed = node::remove_page(config_.data_dir + "/keeper", lease.text());
  if (!removed) spdlog::warn("a slice page stays: {}", to_text(removed.error()));
  const std::lock_guard lock(live_mutex_);
  live_.erase(lease);
}

void NodeExecutor::report_refused(LeaseId lease, Epoch epoch, const Error& error) {
  spdlog::warn("the lease {} could not start: {}", lease.text(), to_text(error));
  ReportEnded ended;
  ended.lease = lease;
  ended.epoch = epoch;
  // What the order itself says wrong stays wrong; another node, or another time, may do the rest.
  ended.end = error.kind == ErrorKind::invalid_argument ? AttemptEnd::refused : AttemptEnd::unable;
  ended.ended_at = clock_.at(boottime_ns());
  ended.reason = to_text(error);
  post_end(ended);
}

void NodeExecutor::report_missing() {
  std::set<std::string> there;
  for (const std::string& attempt : supervisor_->attempts()) there.insert(attempt);
  std::vector<ReportEnded> missing;
  loop_->read([&](const engine::State& state, Instant) {
    for (const auto& [id, lease] : state.leases) {
      {
        const std::lock_guard lock(live_mutex_);
        live_[id].device = lease.slices.front().device;
      }
      if (!lease.started() || there.count(attempt_name(lease.task, id, lease.epoch)) != 0) continue;
      ReportEnded ended;
      ended.lease = id;
      ended.epoch = lease.epoch;
      ended.end = AttemptEnd::lost;
      ended.ended_at = lease.billed_until;
      ended.reason = "nothing of it was left on the node";
      missing.push_back(ended);
    }
  });
  for (const ReportEnded& ended : missing) post_end(ended);
}

// A daemon that died between an end and its page's removal, or an older one, left it there.
void NodeExecutor::remove_stray_pages() {
  const auto pages = node::list_pages(config_.data_dir + "/keeper");
  if (!pages) {
    spdlog::warn("cannot look for slice pages: {}", to_text(pages.error()));
    return;
  }
  for (const std::string& name : *pages) {
    const auto id = LeaseId::parse(name);
    if (!id) continue;  // not ours
    {
      const std::lock_guard lock(live_mutex_);
      if (live_.count(*id) != 0) continue;
    }
    spdlog::info("the slice page of {} goes: its lease is over", name);
    forget(*id);
  }
}

Result<api::LogPiece> NodeExecutor::read_log(const std::vector<std::string>& attempts,
                                             bool finished, api::LogStream stream,
                                             std::int64_t offset, std::int64_t bytes_max) const {
  const char* name = stream == api::LogStream::out ? "stdout" : "stderr";
  api::LogPiece piece;
  std::int64_t begin = 0;  // of the attempt, in the offsets of the task
  for (const std::string& attempt : attempts) {
    const bool last = &attempt == &attempts.back();
    const auto chunk =
        supervisor_->read_log(attempt, name, std::max<std::int64_t>(0, offset - begin), bytes_max);
    if (!chunk) {
      // Not begun yet, or pruned: it adds nothing.
      if (chunk.error().kind == ErrorKind::not_found) continue;
      return chunk.error();
    }
    piece.offset = begin + chunk->offset;
    piece.next_offset = begin + chunk->next_offset;
    piece.ended = finished && last && chunk->next_offset == chunk->end_offset;
    if (!chunk->bytes.empty() || last) {
      piece.bytes = chunk->bytes;
      return piece;
    }
    begin += chunk->end_offset;
  }
  piece.ended = finished;
  return piece;
}

std::optional<api::LeaseLive> NodeExecutor::live(LeaseId lease) {
  const std::lock_guard lock(live_mutex_);
  const auto found = live_.find(lease);
  if (found == live_.end()) return std::nullopt;
  const auto usage = node::read_counters(config_.data_dir + "/keeper", lease.text());
  api::LeaseLive answer;
  answer.advisory = found->second.advisory;
  answer.isolation_detail = found->second.isolation_detail;
  if (!usage) return answer;
  Sample sample{boottime_ns(), 0};
  std::uint64_t memory_bytes = 0;
  for (const node::SliceUsage& slice : *usage) {
    sample.busy_ns += slice.busy_ns;
    memory_bytes += slice.memory_used_bytes;
  }
  answer.memory_used = Mebibytes{static_cast<std::int64_t>(memory_bytes / bytes_per_mib)};
  std::deque<Sample>& samples = found->second.samples;
  while (samples.size() > 1 && samples.front().boottime_ns < sample.boottime_ns - share_window_ns)
    samples.pop_front();
  constexpr std::int64_t sample_gap_ns = 200'000'000;
  if (!samples.empty() && sample.boottime_ns > samples.front().boottime_ns + sample_gap_ns) {
    const auto elapsed = static_cast<double>(sample.boottime_ns - samples.front().boottime_ns);
    answer.share_measured = static_cast<double>(sample.busy_ns - samples.front().busy_ns) / elapsed;
  }
  if (samples.empty() || sample.boottime_ns > samples.back().boottime_ns + sample_gap_ns)
    samples.push_back(sample);
  return answer;
}

std::map<DeviceId, double> NodeExecutor::device_busy() {
  std::vector<std::pair<LeaseId, DeviceId>> leases;
  {
    const std::lock_guard lock(live_mutex_);
    for (const auto& [id, lease] : live_) leases.emplace_back(id, lease.device);
  }
  std::map<DeviceId, double> busy;
  for (const auto& [lease, device] : leases) {
    const auto measured = live(lease);
    if (measured && measured->share_measured) busy[device] += *measured->share_measured;
  }
  return busy;
}

}  // namespace loam::daemon
