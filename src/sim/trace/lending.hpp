// A serving pool that lends to training, replayed: services made from a public request trace over
// seeded weeks, training from job traces, four ways to share the devices. What is modelled and what
// is not: docs/lending.md. Pure but for read_; the same seed gives the same figures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::sim {

// One request of a trace: how long after the one before, and its tokens.
struct TracedRequest {
  std::int64_t gap_us = 0;
  std::int32_t context = 0;
  std::int32_t generated = 0;
};

// "TIMESTAMP,ContextTokens,GeneratedTokens" with a header line and rising times
// (YYYY-MM-DD HH:MM:SS.fffffff) of one or several days. invalid_argument with file, line and
// reason; not_found where the file cannot be read.
Result<std::vector<TracedRequest>> parse_requests(const std::string& name, std::string_view text);
Result<std::vector<TracedRequest>> read_requests(const std::string& path);

struct TrainingJob {
  std::int64_t work_s = 0;  // on its own devices
  int gang = 1;
  std::int64_t arrival_s = 0;
};

struct MinuteLoad {
  float mean = 0;  // requests in the system, in devices
  float peak = 0;
};

struct ServiceLoad {
  std::string name;
  // Of the weeks before, with devices for all: what a forecaster may learn from.
  std::vector<MinuteLoad> history;
  // Of the replayed weeks.
  struct Arrival {
    std::int64_t at_us = 0;
    std::int64_t service_us = 0;  // on a device of its own
  };
  std::vector<Arrival> arrivals;
  std::int64_t peak = 0;  // requests in the system with devices for all
};

struct LendingWeeks {
  int history_days = 14;
  int days = 14;
  std::uint64_t seed = 1;
};

// Four services: office hours, evenings, around the clock, and a small bursty one; each with a
// rhythm of day and week, drift, and the trace's own bursts. In the second replayed week one grows
// by half at once, and another meets a flash crowd of four times its load.
std::vector<ServiceLoad> make_services(const std::vector<TracedRequest>& trace,
                                       const LendingWeeks& weeks);

// Jobs drawn from `traced` until their work fills `devices` devices to `load` over the days.
std::vector<TrainingJob> make_training(const std::vector<TrainingJob>& traced,
                                       const LendingWeeks& weeks, std::int64_t devices,
                                       double load);

enum class Lending : std::uint8_t { exclusive, threshold, forecast, forecast_and_turns };
const char* name_of(Lending lending) noexcept;

struct LendingSettings {
  Lending lending = Lending::forecast_and_turns;
  std::int64_t devices = 0;  // of the pool; exclusive: of training alone
  std::int64_t save_s = 30;
  std::int64_t load_s = 30;
  std::int64_t wake_s = 4;          // until a device taken serves
  std::int64_t quantum_us = 4'000;  // guests are stoppable every so long
  std::int64_t switch_us = 500;
  double threshold = 0.6;        // use that threshold autoscaling keeps
  double shortage = 0.01;        // newsvendor's
  bool endless_training = true;  // else the jobs' own arrivals
};

struct LendingOutcome {
  double use = 0;              // device time that served or trained, of all
  double serving = 0;          // of which serving
  std::vector<double> p50_ms;  // response times by service
  std::vector<double> p99_ms;
  std::vector<std::int64_t> queued;  // requests that found no device, by service
  std::int64_t tasks = 0;            // training tasks started
  std::int64_t finished = 0;
  std::int64_t preemptions = 0;
  double completion_mean_s = 0;  // of finished tasks
};

LendingOutcome replay_lending(const std::vector<ServiceLoad>& services,
                              const std::vector<TrainingJob>& jobs, const LendingWeeks& weeks,
                              const LendingSettings& settings);

}  // namespace loam::sim
