// History: what a pool's own journal says of what was asked and how long it ran, to be replayed
// against another pool, discipline or price. The replay runs the daemon's own engine on virtual
// nodes. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/event.hpp"

namespace loam::sim {

struct PastTask {
  TaskId task;
  TenantId tenant;
  TaskSpec spec;
  Instant submitted;
  Duration ran;  // of useful time: all attempts that were not lost
  std::int64_t exit_code = 0;
  bool withdrawn = false;  // stopped by its tenant before it was done: runs as long again
};

struct History {
  std::vector<NodeAttached> nodes;
  std::vector<DeviceAttached> devices;
  std::vector<TenantSpec> tenants;  // as they were last
  std::vector<RateCard> cards;
  SchedulingSettings settings;
  std::vector<PastTask> tasks;  // that ended, in the order of submission
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

struct ReplaySetting {
  std::string discipline;              // of all queues; empty: as it was
  std::int64_t devices_percent = 100;  // of each node's devices, rounded up
  std::optional<Money> on_demand;      // per CE-hour, in its currency, instead of every card in it
  std::uint64_t seed = 1;
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
  double utilisation = 0;      // of the pool's milli-device over that time
  std::vector<Money> charged;  // by currency
};

// An error where the history holds no task that ended, or the setting means nothing.
Result<ReplayOutcome> replay(const History& history, const ReplaySetting& setting);

}  // namespace loam::sim
