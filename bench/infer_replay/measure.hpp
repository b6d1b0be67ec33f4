// What steps of the real engine last here, and how long an instance takes to start.
#pragma once

#include <string>

#include "bench/infer_replay/replay.hpp"

namespace loam::bench::replay {

struct Measured {
  infer::StepCost cost;
  Duration start_time;  // the file is read and the context made
  // Steps of a mixed load that the costs were not taken from: what the costs say of them all over
  // what they lasted.
  double said_over_lasted = 0;
  std::uint64_t steps = 0;  // measured in all
};

// On one thread; a step's time is the thread's processor time, so that what else runs on the
// machine does not show. `samples` are requests of the trace, in its order.
Result<Measured> measure(const std::string& model_path, const infer::BatcherConfig& batching,
                         const std::vector<Arrival>& samples);

}  // namespace loam::bench::replay
