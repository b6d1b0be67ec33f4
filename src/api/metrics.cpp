#include "api/metrics.hpp"

#include <boost/describe/enum_to_string.hpp>
#include <cstdio>

#include "http/exposition.hpp"

namespace loam::api {
namespace {

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.10g", value);
  return text.data();
}

using http::Exposition;
using http::label;

// What is read on the loop's thread: figures only, no text.
struct Gauges {
  struct DeviceGauge {
    DeviceId id;
    std::string name;
    std::shared_ptr<const DeviceFacts> facts;
    double used = 0;
    std::int64_t memory_used_mib = 0;
    std::int64_t leases = 0;
    bool healthy = false;
    bool draining = false;
  };
  std::vector<DeviceGauge> devices;
  std::int64_t waiting = 0, starting = 0, running = 0, stopping = 0, paused = 0;
  std::map<std::string, Money> held;
  std::uint64_t sequence = 0;
  std::size_t tenants = 0;
};

Gauges read_gauges(Backend& backend) {
  Gauges gauges;
  backend.read([&](const engine::State& state, Instant) {
    for (const Device& device : state.devices) {
      gauges.devices.push_back({device.id, device_name(state.node(device.node), device),
                                device.facts, static_cast<double>(device.used.value) / 1000.0,
                                device.memory_used.value, device.leases,
                                device.health == DeviceHealth::healthy, device.draining});
    }
    for (const auto& [id, lease] : state.leases) {
      ++(lease.stopping != StopReason::none ? gauges.stopping
         : lease.started()                  ? gauges.running
                                            : gauges.starting);
    }
    gauges.waiting = static_cast<std::int64_t>(state.scheduler.waiting());
    gauges.paused =
        static_cast<std::int64_t>(state.tasks.size() - state.leases.size()) - gauges.waiting;
    for (const auto& [account, amount] : state.accounts.balances()) {
      if (account.kind != AccountKind::held) continue;
      gauges.held.try_emplace(std::string(account.currency.code()), Money::zero(account.currency))
          .first->second += amount;
    }
    gauges.sequence = state.sequence;
    gauges.tenants = state.tenants.size();
  });
  return gauges;
}

void put_devices(Exposition& out, const Gauges& gauges, const std::map<DeviceId, double>& busy) {
  const auto labels = [](const Gauges::DeviceGauge& device) {
    return label("device", device.name) + "," + label("type", device.facts->type) + "," +
           label("uuid", device.facts->uuid);
  };
  const auto each = [&](const auto& value) {
    for (const auto& device : gauges.devices) out.sample(labels(device), value(device));
  };
  out.family("loam_device_allocated_ratio", "gauge",
             "Share of the device lent to leases; above 1 where it is oversubscribed.");
  each([](const auto& device) { return number(device.used); });
  out.family("loam_device_busy_ratio", "gauge",
             "Share of the device's time in use lately, measured.");
  for (const auto& device : gauges.devices) {
    if (const auto found = busy.find(device.id); found != busy.end()) {
      out.sample(labels(device), number(found->second));
    } else if (device.leases == 0) {
      out.sample(labels(device), number(0));
    }
  }
  constexpr std::int64_t mebibyte = 1024 * 1024;
  out.family("loam_device_memory_allocated_bytes", "gauge", "Device memory lent to leases.");
  each([](const auto& device) { return device.memory_used_mib * mebibyte; });
  out.family("loam_device_memory_bytes", "gauge", "Device memory.");
  each([](const auto& device) { return device.facts->memory.value * mebibyte; });
  out.family("loam_device_leases", "gauge", "Leases on the device.");
  each([](const auto& device) { return device.leases; });
  out.family("loam_device_placeable", "gauge", "1 where the device takes new leases.");
  each([](const auto& device) { return std::int64_t{device.healthy && !device.draining ? 1 : 0}; });
}

void put_gauges(Exposition& out, const Gauges& gauges) {
  out.family("loam_tasks", "gauge", "Live tasks by state.");
  out.sample(label("state", "waiting"), gauges.waiting);
  out.sample(label("state", "starting"), gauges.starting);
  out.sample(label("state", "running"), gauges.running);
  out.sample(label("state", "stopping"), gauges.stopping);
  out.sample(label("state", "paused"), gauges.paused);
  out.family("loam_held_money", "gauge", "Money set aside for tasks.");
  for (const auto& [currency, amount] : gauges.held)
    out.sample(label("currency", currency), amount_text(amount));
  out.family("loam_tenants", "gauge", "Tenants.");
  out.sample("", static_cast<std::int64_t>(gauges.tenants));
  out.family("loam_journal_sequence", "gauge", "Number of the last journal record.");
  out.sample("", std::to_string(gauges.sequence));
}

void put_daemon(Exposition& out, Backend& backend) {
  const Counters counters = backend.counters();
  out.family("loam_commands_total", "counter", "Commands through the loop, of any origin.");
  out.sample("", counters.commands);
  out.family("loam_batches_total", "counter", "Batches of commands, one durable write each.");
  out.sample("", counters.batches);
  out.family("loam_journal_healthy", "gauge", "1 while the journal can be written.");
  out.sample("", std::int64_t{backend.journal_healthy() ? 1 : 0});
  out.family("loam_journal_failures_total", "counter", "Appends to the journal that failed.");
  out.sample("", counters.journal_failures);
  out.family("loam_journal_bytes", "gauge", "Size of the journal on disk.");
  out.sample("", counters.journal_bytes);
  out.family("loam_start_time_seconds", "gauge", "When the daemon started, Unix time.");
  out.sample("", backend.started_at().ms / 1000);
  out.family("loam_build_info", "gauge", "The daemon's version.");
  out.sample(label("version", backend.version()), std::int64_t{1});
}

}  // namespace

std::optional<TaskId> Metrics::on_record(const Record& record) {
  const std::lock_guard lock(mutex_);
  ++records_;
  const auto of_lease = [&](LeaseId lease) {
    const auto found = task_of_lease_.find(lease.value);
    return found == task_of_lease_.end() ? TaskId{} : found->second;
  };
  if (const auto* accepted = std::get_if<TaskAccepted>(&record.event)) {
    waiting_since_[accepted->task.value] = record.at;
    return accepted->task;
  }
  if (const auto* granted = std::get_if<LeaseGranted>(&record.event)) {
    ++granted_;
    task_of_lease_[granted->lease.value] = granted->task;
    if (const auto since = waiting_since_.find(granted->task.value);
        since != waiting_since_.end()) {
      const double waited_s = static_cast<double>((record.at - since->second).ms) / 1000.0;
      std::size_t bucket = 0;
      while (bucket < wait_bounds_s.size() && waited_s > wait_bounds_s[bucket]) ++bucket;
      ++waits_[bucket];
      wait_sum_s_ += waited_s;
      waiting_since_.erase(since);
    }
    return granted->task;
  }
  if (const auto* late = std::get_if<TaskLate>(&record.event)) {
    ++late_[boost::describe::enum_to_string(late->kind, "?")];
    return late->task;
  }
  if (const auto* noticed = std::get_if<DeadlineNoticed>(&record.event)) {
    if (noticed->kind == DeadlineNoticeKind::at_risk) ++late_["deadline_at_risk"];
    return noticed->task;
  }
  if (const auto* move = std::get_if<MoveBegun>(&record.event)) {
    ++moves_;
    return move->task;
  }
  if (const auto* started = std::get_if<AttemptStarted>(&record.event))
    return of_lease(started->lease);
  if (const auto* stop = std::get_if<StopRequested>(&record.event)) return of_lease(stop->lease);
  if (const auto* ended = std::get_if<LeaseEnded>(&record.event)) {
    const TaskId task = of_lease(ended->lease);
    task_of_lease_.erase(ended->lease.value);
    return task;
  }
  if (const auto* requeued = std::get_if<TaskRequeued>(&record.event)) {
    waiting_since_[requeued->task.value] = record.at;
    return requeued->task;
  }
  if (const auto* paused = std::get_if<TaskPaused>(&record.event)) {
    waiting_since_.erase(paused->task.value);
    return paused->task;
  }
  if (const auto* finished = std::get_if<TaskFinished>(&record.event)) {
    ++finished_[boost::describe::enum_to_string(finished->outcome, "?")];
    waiting_since_.erase(finished->task.value);
    return finished->task;
  }
  return std::nullopt;
}

void Metrics::on_submission(const std::string& outcome) {
  const std::lock_guard lock(mutex_);
  ++submissions_[outcome];
}

void Metrics::on_request(int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[status];
}

std::string Metrics::text(Backend& backend) const {
  const Gauges gauges = read_gauges(backend);
  Exposition out;
  put_devices(out, gauges, backend.device_busy());
  put_gauges(out, gauges);
  put_daemon(out, backend);

  const std::lock_guard lock(mutex_);
  out.family("loam_records_total", "counter", "Journal records written.");
  out.sample("", records_);
  out.family("loam_submissions_total", "counter", "Submissions by what became of them.");
  std::int64_t placeable = 0;  // nothing but room could be in their way
  std::int64_t accepted = 0;
  for (const auto& [outcome, count] : submissions_) {
    out.sample(label("outcome", outcome), count);
    if (outcome == "accepted") accepted += count;
    if (outcome == "accepted" || outcome == "does_not_fit" || outcome == "quota_exceeded")
      placeable += count;
  }
  out.family("loam_allocation_success_ratio", "gauge",
             "Accepted submissions as a share of these and of those refused for want of room or "
             "quota, since the start; 1 before the first.");
  out.sample(
      "", number(placeable == 0 ? 1.0
                                : static_cast<double>(accepted) / static_cast<double>(placeable)));
  out.family("loam_leases_granted_total", "counter", "Leases granted.");
  out.sample("", granted_);
  out.family("loam_moves_total", "counter", "Running tasks moved to make room for another.");
  out.sample("", moves_);
  out.family("loam_late_total", "counter",
             "Tasks that waited longer than their class promises, by what was done.");
  for (const auto& [step, count] : late_) out.sample(label("step", step), count);
  out.family("loam_tasks_finished_total", "counter", "Finished tasks by outcome.");
  for (const auto& [outcome, count] : finished_) out.sample(label("outcome", outcome), count);
  out.family("loam_requests_total", "counter", "API requests by status.");
  for (const auto& [status, count] : requests_)
    out.sample(label("status", std::to_string(status)), count);
  out.family("loam_wait_seconds", "histogram", "From submission or requeueing to the lease.");
  std::int64_t below = 0;
  for (std::size_t i = 0; i < waits_.size(); ++i) {
    below += waits_[i];
    const std::string bound = i < wait_bounds_s.size() ? number(wait_bounds_s[i]) : "+Inf";
    out.sample(label("le", bound), std::to_string(below), "_bucket");
  }
  out.sample("", number(wait_sum_s_), "_sum");
  out.sample("", std::to_string(below), "_count");
  return out.take();
}

}  // namespace loam::api
