// Replays a placement trace against a pool: one request at a time, what does not fit is dropped.
// The protocol is that of "Beware of Fragmentation" (USENIX ATC 2023): shuffle, then draw further
// requests until all together ask for a given part of the pool, or drop some where they ask for
// more. Shell (times the run).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/pool.hpp"
#include "sim/trace/placement_trace.hpp"

namespace loam::sim {

struct PlacementRun {
  schedule::PoolOptions pool;
  std::int64_t arrivals_percent = 130;  // of the pool's devices
  std::int64_t moves_max = 0;           // residents moved in the whole run to let others in
  // Divides into requests' CPU: 100 leaves them, 160 makes a list short of CPU.
  std::int64_t cpu_percent = 100;
};

struct PlacementOutcome {
  std::uint64_t seed = 0;
  double allocated_percent = 0;  // of the pool's milli-device, at the end
  std::vector<double> curve;     // the same after each percent of arrivals, from 0
  std::int64_t arrived = 0;
  std::int64_t placed = 0;
  std::int64_t moves = 0;
  double wall_s = 0;               // building the pool and all decisions
  double cpu_s = 0;                // the same, of this thread on its core
  std::vector<double> device_use;  // of each device in order of its node, 0 to 1
  double jain = 1;                 // over tenants, of what was placed of the milli-device asked
};

// The order of arrivals for a seed: places in `trace.tasks`. What arrives is measured by the
// milli-device asked for, all devices of a request; only whether a further one is drawn goes by its
// milli of one device, as in the published simulator, so the last may pass the limit.
std::vector<std::size_t> arrivals_of(const PlacementTrace& trace, std::int64_t arrivals_percent,
                                     std::uint64_t seed);

// `progress` is told the percent done, 0 to 100, now and then.
PlacementOutcome run_placement(const PlacementTrace& trace, const PlacementRun& run,
                               std::uint64_t seed, const std::function<void(int)>& progress = {});

// Replays creations and deletions at the trace's own times. Requires trace.has_times.
struct ChurnOutcome {
  std::int64_t placed = 0;
  std::int64_t refused = 0;
  double refused_milli_percent = 0;   // of the milli-device asked for
  double allocated_mean_percent = 0;  // over time
  double allocated_peak_percent = 0;
  std::vector<std::pair<double, double>> curve;  // hours, percent
  std::vector<double> device_use;                // of each device, mean over time, 0 to 1
  double jain = 1;                               // as in PlacementOutcome
  double wall_s = 0;
};
ChurnOutcome run_with_departures(const PlacementTrace& trace, const PlacementRun& run);

// A pool with the trace's nodes; devices are numbered in order.
schedule::Pool pool_of(const PlacementTrace& trace, const schedule::PoolOptions& options);

struct Spread {
  double mean = 0;
  double deviation = 0;  // of the sample, n - 1
};
Spread spread_of(const std::vector<double>& values);

}  // namespace loam::sim
