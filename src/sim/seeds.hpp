// Fault simulation: one seed chooses a pool, tenants, a workload and everything that goes wrong;
// then the faults stop and everything must drain, under the eyes of the auditor. Pure, but for
// run_seeds(), which names the seed on standard error should the program abort.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace loam::sim {

struct SeedReport {
  std::uint64_t seed = 0;
  std::size_t tasks = 0;     // accepted
  std::size_t records = 0;   // journaled
  std::size_t restarts = 0;  // of the daemon
  std::uint64_t digest = 0;  // of the final state
};

// Error (internal): the rule that was broken, the seed, the step, and the shortest workload found
// that still breaks it. The same seed gives the same report everywhere.
Result<SeedReport> run_seed(std::uint64_t seed);

struct SeedsSummary {
  std::size_t seeds = 0;
  std::size_t tasks = 0;
  std::size_t records = 0;
  std::size_t restarts = 0;
};
std::string to_text(const SeedsSummary& summary);

// Runs each twice and compares. Error: the first seed that failed, with the command to repeat it.
Result<SeedsSummary> run_seeds(
    const std::vector<std::uint64_t>& seeds,
    const std::function<void(std::size_t done, std::size_t all)>& progress);

}  // namespace loam::sim
