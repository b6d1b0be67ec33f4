#include "schedule/waiting/escalation.hpp"

#include <optional>

namespace loam::schedule {
namespace {

// The fewest equal parts of a gang of which one fits now; 0: not even a single member does.
std::int64_t parts_that_fit(const Ask& ask, const Room& room) {
  for (std::int64_t parts = 2; parts <= ask.count; ++parts) {
    if (ask.count % parts != 0) continue;
    Ask part = ask;
    part.count = ask.count / parts;
    if (room.find(part, 0)) return parts;
  }
  return 0;
}

bool helps(const EscalationStep& step, const Job& job, const Scheduler& scheduler,
           std::int64_t parts) {
  switch (step.kind) {
    case EscalationKind::alarm:
      return true;
    case EscalationKind::larger_pool:
      return step.queue != job.queue && step.queue < scheduler.queues().size() &&
             scheduler.queues()[step.queue].barred_environments.count(job.environment) == 0;
    case EscalationKind::on_demand:
      return job.preemptible;
    case EscalationKind::split:
      return parts > 0;
  }
  return false;
}

std::optional<Escalation> next_step(const Scheduler& scheduler, const WaitingPromise& promise,
                                    const Job& job, Duration waited, std::size_t taken,
                                    const Room& room) {
  for (std::size_t number = taken; number < promise.steps.size(); ++number) {
    const EscalationStep& step = promise.steps[number];
    if (waited < promise.wait + step.after) return std::nullopt;
    const std::int64_t parts =
        step.kind == EscalationKind::split ? parts_that_fit(job.ask, room) : 0;
    if (helps(step, job, scheduler, parts))
      return Escalation{job.id, step, number, waited, promise.wait, parts};
  }
  return std::nullopt;
}

}  // namespace

const char* name_of(EscalationKind kind) noexcept {
  switch (kind) {
    case EscalationKind::alarm:
      return "alarm";
    case EscalationKind::larger_pool:
      return "larger_pool";
    case EscalationKind::on_demand:
      return "on_demand";
    case EscalationKind::split:
      return "split";
  }
  return "";
}

std::string to_text(const Escalation& escalation) {
  const std::string text = escalation.task.text() + " has waited " +
                           loam::to_text(escalation.waited) + ", its class promises " +
                           loam::to_text(escalation.promised);
  switch (escalation.step.kind) {
    case EscalationKind::alarm:
      return text;
    case EscalationKind::larger_pool:
      return text + "; it is tried in another queue too";
    case EscalationKind::on_demand:
      return text + "; on-demand capacity is offered";
    case EscalationKind::split:
      return text + "; as " + std::to_string(escalation.parts) + " parts the first could start now";
  }
  return text;
}

std::vector<Escalation> due_escalations(const Scheduler& scheduler, const WaitingPromises& promises,
                                        const std::map<TaskId, std::size_t>& taken, Instant now,
                                        const Room& room) {
  std::vector<Escalation> due;
  for (const auto& [line, tasks] : scheduler.lines()) {
    const auto promise = promises.find(line.level);
    if (promise == promises.end()) continue;
    for (const auto& [arrival, task] : tasks) {  // the longest waiting first
      const Standing& standing = scheduler.standing(task);
      const Duration waited = standing.waited_at(now);
      if (waited < promise->second.wait) break;
      const auto steps = taken.find(task);
      auto step = next_step(scheduler, promise->second, standing.job, waited,
                            steps == taken.end() ? 0 : steps->second, room);
      if (step) due.push_back(*step);
    }
  }
  return due;
}

}  // namespace loam::schedule
