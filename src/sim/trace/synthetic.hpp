// A made-up pool in steady churn: how fast the scheduler decides on a hundred thousand devices, and
// what bounding a decision costs in allocation. Shell (times the run).
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.hpp"
#include "schedule/pool.hpp"

namespace loam::sim {

struct SyntheticPool {
  std::int64_t devices = 100'000;
  std::int64_t nodes = 12'500;
  std::int64_t load_permille = 900;   // of milli-device, kept up by arrivals and departures
  std::int64_t placements = 200'000;  // measured ones
  std::uint64_t seed = 1;
};

// "devices=100000,nodes=12500,load=0.9[,placements=N][,seed=N]"; what is absent keeps its default.
Result<SyntheticPool> parse_synthetic(std::string_view text);

// States scored at most in one decision where nobody says otherwise: at a third of a microsecond
// each it keeps the longest decision well below a millisecond.
inline constexpr std::int64_t scored_max_default = 384;

struct SyntheticOutcome {
  std::int64_t placements = 0;
  std::int64_t refused = 0;
  double placements_per_s = 0;  // departures' time included
  double decision_p50_us = 0;   // find and take
  double decision_p99_us = 0;
  double decision_max_us = 0;
  double allocated_percent = 0;  // filled to the brim after the churn: 130 % arrivals in all
  double jain_devices = 1;       // Jain's index over the use of devices then
  double rss_mib = 0;            // the process's highest
  std::int64_t states = 0;
};

// `progress` is told the percent done.
SyntheticOutcome run_synthetic(const SyntheticPool& synthetic, const schedule::PoolOptions& options,
                               const std::function<void(int)>& progress = {});

}  // namespace loam::sim
