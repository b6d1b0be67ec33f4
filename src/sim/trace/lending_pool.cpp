#include "sim/trace/lending_pool.hpp"

#include <algorithm>

#include "schedule/lend/order.hpp"

namespace loam::sim {
namespace {

using schedule::lend::GiveCandidate;
using schedule::lend::Giving;
using schedule::lend::TakeCandidate;
using schedule::lend::Taking;

constexpr double minute_s = 60;             // the step of training
constexpr std::size_t waiting_min = 64;     // endless training: gangs, and single tasks, to choose
constexpr std::size_t looked_at_max = 256;  // waiting tasks that a pass tries
constexpr std::int64_t patience_s = 3'600;  // a gang that waited longer gets freed devices kept

}  // namespace

LendingPool::LendingPool(const LendingSettings& settings, const std::vector<TrainingJob>& jobs,
                         std::size_t services)
    : settings_(settings),
      jobs_(jobs),
      devices_(static_cast<std::size_t>(settings.devices)),
      serving_(services),
      waking_(services) {}

std::int64_t LendingPool::held(std::size_t service) const {
  return static_cast<std::int64_t>(serving_[service].size() + waking_[service].size());
}

std::vector<std::uint8_t> LendingPool::guests_of(std::size_t service) const {
  std::vector<std::uint8_t> guests;
  for (const int device : serving_[service]) guests.push_back(has_guest(device) ? 1 : 0);
  return guests;
}

int LendingPool::cheapest(std::int64_t now) const {
  TakeCandidate best;
  int found = nobody;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const Device& device = devices_[i];
    if (device.owner != nobody) continue;
    TakeCandidate candidate;
    candidate.device = i;
    if (device.task != nobody) {
      const Task& task = tasks_[static_cast<std::size_t>(device.task)];
      candidate.taking = task.gang == 1 && turns() ? Taking::guest : Taking::task;
      candidate.gang = task.gang;
      candidate.save_and_load = Duration::seconds(settings_.save_s + settings_.load_s);
      candidate.started = Instant{task.started * 1000};
    } else {
      candidate.taking = device.free_at > now ? Taking::saving_for_nobody : Taking::free;
    }
    if (found != nobody && !takes_before(candidate, best)) continue;
    best = candidate;
    found = static_cast<int>(i);
  }
  return found;
}

bool LendingPool::take(std::size_t service, std::int64_t now) {
  const int chosen = cheapest(now);
  if (chosen == nobody) return false;
  Device& device = devices_[static_cast<std::size_t>(chosen)];
  std::int64_t from = std::max(now, device.free_at);
  if (device.task != nobody) {
    Task& task = tasks_[static_cast<std::size_t>(device.task)];
    if (task.gang == 1 && turns()) {
      settle(task, now, 1);
      task.active_from = std::max(task.active_from, now + settings_.wake_s);
    } else {
      preempt(device.task, now);
      from = device.free_at;
    }
  }
  device.owner = static_cast<int>(service);
  device.waking = true;
  device.free_at = from + settings_.wake_s;
  waking_[service].push_back(chosen);
  return true;
}

void LendingPool::install(std::size_t service) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].owner != nobody) continue;
    devices_[i].owner = static_cast<int>(service);
    serving_[service].push_back(static_cast<int>(i));
    return;
  }
}

bool LendingPool::give(std::size_t service, std::int64_t count, std::int64_t busy) {
  std::vector<int>& serving = serving_[service];
  std::vector<GiveCandidate> idle;
  for (auto i = static_cast<std::size_t>(busy); i < serving.size(); ++i)
    idle.push_back({i, has_guest(serving[i]) ? Giving::idle : Giving::guestless_idle});
  if (count <= 0 || idle.empty()) return false;
  for (const std::uint64_t place :
       schedule::lend::give(std::move(idle), static_cast<std::size_t>(count))) {
    int& given = serving[place];
    Device& device = devices_[static_cast<std::size_t>(given)];
    device.owner = nobody;
    device.free_at = 0;
    given = nobody;
  }
  std::erase(serving, nobody);
  return true;
}

bool LendingPool::wake(std::size_t service, std::int64_t now) {
  bool any = false;
  std::vector<int>& waking = waking_[service];
  for (std::size_t i = 0; i < waking.size();) {
    Device& device = devices_[static_cast<std::size_t>(waking[i])];
    if (device.free_at > now) {
      ++i;
      continue;
    }
    device.waking = false;
    serving_[service].push_back(waking[i]);
    waking.erase(waking.begin() + static_cast<std::ptrdiff_t>(i));
    any = true;
  }
  return any;
}

void LendingPool::settle(Task& task, std::int64_t now, double rate) {
  const std::int64_t from = std::max(task.settled, task.active_from);
  if (now > from) {
    const double done = static_cast<double>(now - from) * rate;
    task.done_s += done;
    trained_s_ += done * task.gang;
  }
  task.settled = std::max(task.settled, now);
}

void LendingPool::preempt(int id, std::int64_t now) {
  Task& task = tasks_[static_cast<std::size_t>(id)];
  settle(task, now, 1);
  for (const int device : task.devices) {
    devices_[static_cast<std::size_t>(device)].task = nobody;
    devices_[static_cast<std::size_t>(device)].free_at = now + settings_.save_s;
  }
  task.devices.clear();
  running_.erase(std::find(running_.begin(), running_.end(), id));
  waiting_.push_front(id);
  ++preemptions_;
}

void LendingPool::finish(int id, std::int64_t now, double rate) {
  Task& task = tasks_[static_cast<std::size_t>(id)];
  const double over = task.done_s - task.work_s;
  trained_s_ -= over * task.gang;
  for (const int device : task.devices) devices_[static_cast<std::size_t>(device)].task = nobody;
  // It ended within the minute; one that ended as its device was taken has no rate since.
  const double ago = rate > 0 ? std::min(over / rate, minute_s) : 0;
  completed_s_ += static_cast<double>(now - task.arrived) - ago;
  task.devices.clear();
  task.done_s = task.work_s;
  ++finished_;
}

void LendingPool::end_minute(const std::vector<std::vector<std::int64_t>>& idle_us,
                             std::int64_t now) {
  // How fast a guest on each device could run.
  std::vector<double> rates(devices_.size(), 1.0);
  for (std::size_t service = 0; service < serving_.size(); ++service) {
    for (std::size_t i = 0; i < serving_[service].size(); ++i) {
      const double idle =
          i < idle_us[service].size() ? static_cast<double>(idle_us[service][i]) : 0;
      rates[static_cast<std::size_t>(serving_[service][i])] = idle / 60e6;
    }
    for (const int device : waking_[service]) rates[static_cast<std::size_t>(device)] = 0;
  }
  std::vector<int> still;
  for (const int id : running_) {
    Task& task = tasks_[static_cast<std::size_t>(id)];
    const double rate =
        task.gang == 1 ? rates[static_cast<std::size_t>(task.devices.front())] : 1.0;
    settle(task, now, rate);
    if (task.done_s >= task.work_s) {
      finish(id, now, rate);
    } else {
      still.push_back(id);
    }
  }
  running_ = std::move(still);
  submit(now);
  start_waiting(now);
  for (std::vector<int>& serving : serving_)
    std::stable_partition(serving.begin(), serving.end(),
                          [this](int device) { return !has_guest(device); });
}

void LendingPool::submit_one(const TrainingJob& job, std::int64_t arrived) {
  Task task;
  task.gang = job.gang;
  task.work_s = static_cast<double>(job.work_s);
  task.arrived = arrived;
  waiting_.push_back(static_cast<int>(tasks_.size()));
  tasks_.push_back(std::move(task));
}

void LendingPool::submit(std::int64_t now) {
  if (jobs_.empty()) return;
  if (settings_.endless_training) {
    // Gangs that wait for room do not keep single tasks from arriving, nor the other way round.
    std::size_t gangs = 0;
    for (const int id : waiting_) gangs += tasks_[static_cast<std::size_t>(id)].gang > 1 ? 1 : 0;
    std::size_t singles = waiting_.size() - gangs;
    for (std::size_t tried = 0; tried < jobs_.size(); ++tried) {
      if (gangs >= waiting_min && singles >= waiting_min) break;
      const TrainingJob& job = jobs_[next_job_];
      next_job_ = (next_job_ + 1) % jobs_.size();
      std::size_t& waiting = job.gang > 1 ? gangs : singles;
      if (waiting >= waiting_min) continue;
      ++waiting;
      submit_one(job, now);
    }
    return;
  }
  while (next_job_ < jobs_.size() && jobs_[next_job_].arrival_s <= now) {
    submit_one(jobs_[next_job_], jobs_[next_job_].arrival_s);
    ++next_job_;
  }
}

void LendingPool::start(int id, std::vector<int> devices, std::int64_t now) {
  Task& task = tasks_[static_cast<std::size_t>(id)];
  for (const int device : devices) devices_[static_cast<std::size_t>(device)].task = id;
  task.devices = std::move(devices);
  task.started = now;
  task.active_from = now + settings_.load_s;
  task.settled = now;
  running_.push_back(id);
  ++started_;
}

// Whole devices go first to tasks that cannot be guests. True if a gang that has waited long does
// not fit, so that what is free is kept for it.
bool LendingPool::start_gangs(std::vector<int>& free, std::int64_t now) {
  bool kept = false;
  std::deque<int> still;
  std::size_t tried = 0;
  for (const int id : waiting_) {
    const Task& task = tasks_[static_cast<std::size_t>(id)];
    const auto gang = static_cast<std::size_t>(task.gang);
    if (gang == 1 || kept || ++tried > looked_at_max || gang > free.size()) {
      if (gang > 1 && !settings_.endless_training && now - task.arrived > patience_s) kept = true;
      still.push_back(id);
      continue;
    }
    const auto from = free.end() - static_cast<std::ptrdiff_t>(gang);
    start(id, std::vector<int>(from, free.end()), now);
    free.erase(from, free.end());
  }
  waiting_ = std::move(still);
  return kept;
}

void LendingPool::start_singles(std::vector<int>& hosts, std::int64_t now) {
  std::deque<int> still;
  std::size_t next = 0;
  for (const int id : waiting_) {
    if (next == hosts.size() || tasks_[static_cast<std::size_t>(id)].gang > 1) {
      still.push_back(id);
    } else {
      start(id, {hosts[next++]}, now);
    }
  }
  waiting_ = std::move(still);
}

void LendingPool::start_waiting(std::int64_t now) {
  std::vector<int> free;
  for (std::size_t i = 0; i < devices_.size(); ++i)
    if (devices_[i].owner == nobody && devices_[i].task == nobody && devices_[i].free_at <= now)
      free.push_back(static_cast<int>(i));
  std::vector<int> hosts;
  if (!start_gangs(free, now)) hosts = free;
  if (turns()) {
    // Where the service comes last, its guests run most.
    for (const std::vector<int>& serving : serving_)
      for (auto device = serving.rbegin(); device != serving.rend(); ++device)
        if (!has_guest(*device)) hosts.push_back(*device);
  }
  start_singles(hosts, now);
}

double LendingPool::completion_mean_s(std::int64_t end) const {
  if (tasks_.empty()) return 0;
  double sum = completed_s_;
  for (const Task& task : tasks_)
    if (task.done_s < task.work_s) sum += static_cast<double>(end - task.arrived);
  return sum / static_cast<double>(tasks_.size());
}

}  // namespace loam::sim
