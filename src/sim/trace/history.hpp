// History: what a pool's own journal says of what was asked and how long it ran, to be replayed
// against another pool, discipline, placement or price. The replay runs the daemon's own engine on
// virtual nodes. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "domain/event.hpp"
#include "sim/trace/placement_trace.hpp"

namespace loam::sim {

struct PastTask {
  TaskId task;
  TenantId tenant;
  TaskSpec spec;
  Instant submitted;  // or due, where it recurs
  Duration ran;       // of useful time: all attempts that were not lost
  std::int64_t exit_code = 0;
  bool withdrawn = false;  // stopped by its tenant before it was done: runs as long again
};

struct History {
  std::vector<NodeAttached> nodes;
  std::vector<DeviceAttached> devices;
  std::vector<TenantSpec> tenants;  // as they were last
  std::vector<RateCard> cards;
  SchedulingSettings settings;
  std::vector<PastTask> tasks;  // that ended, by `submitted`
  Instant first;
  Instant last;
};

// Takes the records of a journal, in order.
class HistoryReader {
 public:
  void hear(const Record& record);
  History done() &&;

 private:
  History history_;
  std::map<TaskId, PastTask> open_;
  std::map<LeaseId, std::pair<TaskId, Instant>> started_;
};

// A hundred times the pool: beyond it a replay tells nothing and takes for ever.
inline constexpr std::int64_t devices_percent_max = 10'000;

struct ReplaySetting {
  std::string discipline;               // of all queues; empty: as it was
  std::string placement;                // the policy that chooses a device; empty: as it was
  std::vector<TraceNode> nodes;         // another pool; empty: the journal's own
  std::string nodes_file;               // where they were read, for messages
  std::int64_t devices_percent = 100;   // of each node's devices, rounded up; see replay_pool.hpp
  std::int64_t arrivals_percent = 100;  // how fast tasks come: 200 is twice as fast
  std::optional<Money> on_demand;       // per CE-hour, in its currency, instead of every card in it
  std::uint64_t seed = 1;
};

// What became of a past task.
struct ReplayedTask {
  TaskId task;  // in the history
  TenantId tenant;
  Instant submitted;
  Instant started = Instant::never();   // for the first time
  Instant finished = Instant::never();  // never(): it was refused, or nothing lets it start
  Duration ran;                         // in all its attempts
  std::int64_t preemptions = 0;

  // From submission to the end, less what was run. Requires that it finished.
  Duration wait() const { return std::max(finished - submitted - ran, Duration{}); }
};

struct ReplayOutcome {
  std::int64_t tasks = 0;
  std::int64_t finished = 0;
  std::int64_t refused = 0;  // at submission: they fit this pool nowhere
  std::int64_t devices = 0;
  std::int64_t preemptions = 0;
  double wait_mean_s = 0;  // from submission to the end, less what was run
  double wait_p99_s = 0;
  double completion_mean_s = 0;
  double makespan_s = 0;
  double utilisation = 0;  // of the pool's milli-device over that time
  // Jain's index over the tenants of the mean, over a tenant's tasks, of what was run over the time
  // from submission to the end; 0 for a task that did not finish.
  double jain = 1;
  std::vector<Money> charged;                                // by currency
  std::vector<ReplayedTask> fates;                           // in the history's order
  std::vector<std::pair<Instant, std::int64_t>> busy_milli;  // milli-device in use from then on
};

// An error where the history holds no task that ended, or the setting means nothing.
Result<ReplayOutcome> replay(const History& history, const ReplaySetting& setting);

// One row a task: task,tenant,submitted_s,started_s,finished_s,ran_s,wait_s,preemptions; instants
// from the history's first record on. What never was is empty.
std::string to_csv(const History& history, const ReplayOutcome& outcome);

}  // namespace loam::sim
