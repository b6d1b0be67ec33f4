// A job trace on identical devices: a virtual clock that drives schedule::Scheduler, the code the
// daemon schedules with. Pure.
//
// At an instant first ends what ends, then comes what comes, then one pass decides. A task that was
// preempted owes `preemption_cost` of device time whenever it resumes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "schedule/order/discipline.hpp"
#include "sim/trace/jobs.hpp"

namespace loam::sim {

// What a discipline is told of a task's length.
enum class Knowledge { nothing, limits, lengths };

struct JobsSetting {
  std::int64_t devices = 1;
  std::string name;  // of the discipline, for the report
  schedule::Discipline discipline;
  Knowledge knowledge = Knowledge::nothing;
  Duration preemption_cost;
  std::string trace = "trace";  // its file, for messages
};

// What each discipline that has a name is told: the reference orders know all, blind ones nothing.
Knowledge knowledge_of(const schedule::Discipline& discipline);

// Limits as their owners might state them: length × a factor drawn evenly from [low, high], in
// thousandths, one seed one draw. Replaces limits that the trace states. Requires 1000 <= low <=
// high.
void state_limits(std::vector<TraceJob>& jobs, std::uint64_t seed, std::int64_t low_permille,
                  std::int64_t high_permille);

struct JobFate {
  Instant started;  // for the first time
  Instant finished;
  std::int64_t preemptions = 0;
};

struct JobsOutcome {
  std::vector<JobFate> fates;    // in the trace's order
  double completion_mean_s = 0;  // from arrival to end
  double wait_mean_s = 0;        // completion − length
  double wait_p99_s = 0;         // element ⌊0.99 (n − 1)⌋ of the sorted waits
  double wait_max_s = 0;
  std::int64_t preemptions = 0;
  double makespan_s = 0;  // from the first arrival to the last end
  // Jain's index of length/completion over the tasks: 1 is all alike.
  double jain = 0;
  double utilisation = 0;                              // device time used over devices × makespan
  std::vector<std::pair<Instant, std::int64_t>> busy;  // devices taken from then on
};

// Error: a task wants more devices than there are, or (internal) the run came to a standstill.
// `progress` hears the number of finished tasks.
Result<JobsOutcome> run_jobs(const std::vector<TraceJob>& jobs, const JobsSetting& setting,
                             const std::function<void(std::size_t)>& progress = {});

// One row a task: task,arrival_s,devices,duration_s,started_s,finished_s,wait_s,preemptions.
std::string to_csv(const std::vector<TraceJob>& jobs, const JobsOutcome& outcome);

}  // namespace loam::sim
