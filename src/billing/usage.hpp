// Usage: what was metered, before any price; and its tiling of a lease. Pure.
#pragma once

#include <string>
#include <vector>

#include "billing/calendar.hpp"
#include "billing/price_table.hpp"
#include "domain/lease.hpp"
#include "domain/task.hpp"

namespace loam::billing {

// A usage record as a meter gives it: one lease over [from, to).
struct Usage {
  std::string id;  // unique for ever; whoever meters gives it: "node7/e1"
  LeaseId lease;
  TaskId task;
  TenantId tenant;
  Instant from;
  Instant to;
  Instant run_from;  // when this run of the lease began: units of time are counted from there
  Terms terms;
  MilliCe billable_ce;
  Mebibytes memory;                 // of the device
  MilliDevice measured;             // share of the device really used: reports and credits only
  std::int64_t storage_mib_ms = 0;  // MiB held × ms, evenly over its time
  std::int64_t backup_mib_ms = 0;   // likewise
  std::int64_t network_bytes = 0;   // moved in this time
  Attribution who;

  Duration length() const { return to - from; }
  friend bool operator==(const Usage&, const Usage&) = default;
};

// Refuses what no meter can have seen, with the value: no id, an end that is not after the start,
// negative quantities, quantities beyond any machine, a run that begins after the record.
Result<void> check(const Usage& usage);

// [from, to) cut at every multiple of `step` since 1970: no gap, no overlap, nothing twice.
// Requires step > 0.
std::vector<Period> tiles(Instant from, Instant to, Duration step);

// What is billed of a run that has lasted `run`: exact, or the units begun. task: `run` itself.
Duration billed_length(Duration run, Granularity granularity);

}  // namespace loam::billing
