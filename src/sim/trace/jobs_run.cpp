#include "sim/trace/jobs_run.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/quantity.hpp"
#include "base/random.hpp"
#include "schedule/scheduler.hpp"
#include "sim/trace/fairness.hpp"

namespace loam::sim {
namespace {

using schedule::Job;
using schedule::Standing;

double seconds(Duration duration) {
  return static_cast<double>(duration.ms) / 1000;
}

class JobsRun {
 public:
  JobsRun(const std::vector<TraceJob>& jobs, const JobsSetting& setting,
          const std::function<void(std::size_t)>& progress)
      : jobs_(jobs), setting_(setting), progress_(progress), room_(setting.devices) {
    scheduler_.set_queue(0, {"trace", setting.discipline, 0, 1, {}});
    outcome_.fates.resize(jobs.size());
    coming_.resize(jobs.size());
    std::iota(coming_.begin(), coming_.end(), std::size_t{0});
    std::stable_sort(coming_.begin(), coming_.end(), [&](std::size_t a, std::size_t b) {
      return jobs_[a].arrival < jobs_[b].arrival;
    });
  }

  Result<JobsOutcome> run() {
    while (finished_ < jobs_.size()) {
      const Instant next = next_event();
      if (next == Instant::never()) {
        return Error{ErrorKind::internal,
                     std::to_string(scheduler_.waiting()) + " tasks wait and nothing will happen",
                     ""};
      }
      now_ = next;
      end_what_ends();
      while (arrived_ < coming_.size() && jobs_[coming_[arrived_]].arrival <= now_) arrive();
      scheduler_.tick(now_);
      pass();
      note_busy();
    }
    sum_up();
    return std::move(outcome_);
  }

 private:
  TaskId id_of(std::size_t job) const { return TaskId{job + 1}; }
  const TraceJob& job_of(TaskId task) const { return jobs_[task.value - 1]; }
  JobFate& fate_of(TaskId task) { return outcome_.fates[task.value - 1]; }

  Instant next_event() const {
    Instant next = Instant::never();
    if (arrived_ < coming_.size()) next = jobs_[coming_[arrived_]].arrival;
    if (!ends_.empty()) next = std::min(next, ends_.begin()->first);
    // Once nothing runs and nothing comes, time alone must bring a start.
    if (arrived_ > 0) next = std::min(next, scheduler_.look_again(now_));
    if (ends_.empty() && arrived_ == coming_.size() && idle_looks_ > idle_looks_max)
      return Instant::never();
    return next;
  }

  void arrive() {
    const std::size_t index = coming_[arrived_++];
    const TraceJob& traced = jobs_[index];
    Job job;
    job.id = id_of(index);
    job.tenant = TenantId{1};
    job.ask.demand.share = whole_device;
    job.ask.count = traced.devices;
    job.milli = traced.devices * whole_device.value;
    job.takes[schedule::Dimension::devices] = job.milli;
    job.takes[schedule::Dimension::tasks] = 1;
    job.arrival = traced.arrival;
    job.load = setting_.preemption_cost;
    if (setting_.knowledge == Knowledge::limits) job.limit = traced.limit;
    if (setting_.knowledge == Knowledge::lengths) job.length = traced.length;
    scheduler_.arrives(std::move(job), now_);
  }

  void end_what_ends() {
    while (!ends_.empty() && ends_.begin()->first <= now_) {
      const TaskId task = ends_.begin()->second;
      ends_.erase(ends_.begin());
      room_.give_back(scheduler_.standing(task).place);
      busy_ -= job_of(task).devices;
      scheduler_.leaves(task, now_, true);
      fate_of(task).finished = now_;
      ++finished_;
      if (progress_) progress_(finished_);
    }
  }

  void start(TaskId task, const schedule::Place& place) {
    const Standing& standing = scheduler_.standing(task);
    if (!standing.started_before) fate_of(task).started = now_;
    const Duration owed = standing.started_before ? setting_.preemption_cost : Duration{};
    const Instant ends = now_ + owed + (job_of(task).length - standing.served);
    room_.take(place);
    busy_ += job_of(task).devices;
    ends_.insert({ends, task});
    scheduler_.starts(task, now_, place, owed);
  }

  void preempt(TaskId task) {
    const Standing& standing = scheduler_.standing(task);
    const Instant ends = standing.since + standing.owed + (job_of(task).length - standing.served);
    ends_.erase({ends, task});
    room_.give_back(standing.place);
    busy_ -= job_of(task).devices;
    ++fate_of(task).preemptions;
    ++outcome_.preemptions;
    scheduler_.is_preempted(task, now_);
  }

  void pass() {
    schedule::Scheduler::PassLimits limits;
    limits.reasons = false;
    const schedule::Pass decided = scheduler_.pass(now_, room_, limits);
    idle_looks_ = decided.actions.empty() ? idle_looks_ + 1 : 0;
    for (const TaskId task : decided.dropped) scheduler_.forget_promise(task);
    for (const schedule::Action& action : decided.actions) {
      if (const auto* started = std::get_if<schedule::Start>(&action)) {
        start(started->task, started->place);
      } else if (const auto* preempted = std::get_if<schedule::Preempt>(&action)) {
        for (const TaskId victim : preempted->victims) preempt(victim);
        if (preempted->task.valid()) start(preempted->task, preempted->place);
      } else if (const auto* promised = std::get_if<schedule::Promise>(&action)) {
        scheduler_.is_promised(promised->task, now_, *promised, false);
      }
    }
  }

  void note_busy() {
    if (outcome_.busy.empty() || outcome_.busy.back().second != busy_)
      outcome_.busy.emplace_back(now_, busy_);
  }

  void sum_up() {
    std::vector<double> waits;
    std::vector<double> speeds;
    double used = 0;
    Instant first = Instant::never();
    Instant last{};
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const Duration took = outcome_.fates[i].finished - jobs_[i].arrival;
      outcome_.completion_mean_s += seconds(took);
      waits.push_back(seconds(took - jobs_[i].length));
      speeds.push_back(seconds(jobs_[i].length) / seconds(took));
      used += seconds(jobs_[i].length) * static_cast<double>(jobs_[i].devices);
      first = std::min(first, jobs_[i].arrival);
      last = std::max(last, outcome_.fates[i].finished);
    }
    const auto count = static_cast<double>(jobs_.size());
    std::sort(waits.begin(), waits.end());
    outcome_.completion_mean_s /= count;
    outcome_.wait_mean_s = std::accumulate(waits.begin(), waits.end(), 0.0) / count;
    outcome_.wait_p99_s = waits[(waits.size() - 1) * 99 / 100];
    outcome_.wait_max_s = waits.back();
    outcome_.makespan_s = seconds(last - first);
    outcome_.jain = jain_index(speeds);
    outcome_.utilisation = used / (outcome_.makespan_s * static_cast<double>(setting_.devices));
  }

  // A discipline that has looked so often in vain, with the pool empty, will not start anything.
  static constexpr int idle_looks_max = 1000;

  const std::vector<TraceJob>& jobs_;
  const JobsSetting& setting_;
  const std::function<void(std::size_t)>& progress_;
  schedule::CountingRoom room_;
  schedule::Scheduler scheduler_;
  JobsOutcome outcome_;
  std::vector<std::size_t> coming_;  // by arrival
  std::size_t arrived_ = 0;
  std::size_t finished_ = 0;
  std::set<std::pair<Instant, TaskId>> ends_;
  std::int64_t busy_ = 0;
  int idle_looks_ = 0;
  Instant now_;
};

}  // namespace

Knowledge knowledge_of(const schedule::Discipline& discipline) {
  using schedule::Order;
  switch (discipline.order) {
    case Order::shortest:
    case Order::remaining:
    case Order::area:
      return Knowledge::lengths;
    case Order::semi_blind:
    case Order::priority:
    case Order::drf:
      return Knowledge::limits;
    case Order::fifo:
      return discipline.overtaking == schedule::Overtaking::none ||
                     discipline.overtaking == schedule::Overtaking::any
                 ? Knowledge::nothing
                 : Knowledge::lengths;
    case Order::mlfq:
    case Order::blind:
      break;
  }
  return Knowledge::nothing;
}

void state_limits(std::vector<TraceJob>& jobs, std::uint64_t seed, std::int64_t low_permille,
                  std::int64_t high_permille) {
  LOAM_ASSERT(1000 <= low_permille && low_permille <= high_permille);
  Random random(seed);
  for (TraceJob& job : jobs) {
    const std::int64_t factor = random.between(low_permille, high_permille);
    job.limit = Duration{job.length.ms / 1000 * factor + job.length.ms % 1000 * factor / 1000};
  }
}

Result<JobsOutcome> run_jobs(const std::vector<TraceJob>& jobs, const JobsSetting& setting,
                             const std::function<void(std::size_t)>& progress) {
  if (setting.devices < 1)
    return invalid("a pool of " + std::to_string(setting.devices) + " devices");
  if (jobs.empty()) return invalid("a trace without tasks");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].devices <= setting.devices) continue;
    return invalid(setting.trace + ":" + std::to_string(jobs[i].line) + ": task " +
                       std::to_string(i + 1) + " wants " + std::to_string(jobs[i].devices) +
                       " devices of " + std::to_string(setting.devices),
                   "give more with --devices");
  }
  return JobsRun(jobs, setting, progress).run();
}

std::string to_csv(const std::vector<TraceJob>& jobs, const JobsOutcome& outcome) {
  const auto s = [](std::int64_t ms) { return decimal_text(ms, 3); };
  std::string text = "task,arrival_s,devices,duration_s,started_s,finished_s,wait_s,preemptions\n";
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobFate& fate = outcome.fates[i];
    const Duration wait = fate.finished - jobs[i].arrival - jobs[i].length;
    text += std::to_string(i + 1) + "," + s(jobs[i].arrival.ms) + "," +
            std::to_string(jobs[i].devices) + "," + s(jobs[i].length.ms) + "," +
            s(fate.started.ms) + "," + s(fate.finished.ms) + "," + s(wait.ms) + "," +
            std::to_string(fate.preemptions) + "\n";
  }
  return text;
}

}  // namespace loam::sim
