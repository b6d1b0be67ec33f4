// An adversary that decides where spot is, to make a task under a deadline late or dear: it sees
// the policy's whole state before each tick. Pure; the same seed gives the same runs.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "schedule/spot/deadline.hpp"

namespace loam::sim {

struct AdversaryReport {
  std::uint64_t runs = 0;
  std::uint64_t missed = 0;     // feasible deadlines
  std::uint64_t over_cap = 0;   // costs above Terms::cost_cap(), where the policy promises one
  std::uint64_t zone_runs = 0;  // of the runs, with several zones
  std::string first_fault;      // seed and terms of the first of either; empty: none
};

// `runs` runs with random terms: half by random availability (coins, spells), half targeted (spot
// leaves just before its changeover ends, comes when on-demand has just been paid for, keeps the
// slack at its thresholds, or looks ahead for what costs most). Every eighth run of `reserve` is in
// several zones. About 5 million ticks a second.
AdversaryReport run_adversary(schedule::spot::Policy policy, std::uint64_t seed,
                              std::uint64_t runs);

}  // namespace loam::sim
