// Figures for Prometheus, in its text format 0.0.4. Counts since the daemon started; gauges are
// read when asked. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "api/backend.hpp"

namespace loam::api {

class Metrics {
 public:
  // From the loop's thread; does not block. The task whose state the record changes; a none id
  // where that task is not known; nothing for other records.
  std::optional<TaskId> on_record(const Record& record);
  // What became of a submission: "accepted", or why it was refused.
  void on_submission(const std::string& outcome);
  void on_request(int status);

  std::string text(Backend& backend) const;

 private:
  // Upper bounds in seconds, as the field reads waiting times: instant, a coffee, a night.
  static constexpr std::array<double, 10> wait_bounds_s{0.1, 1,   5,    30,    60,
                                                        300, 900, 3600, 14400, 86400};

  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> submissions_;
  std::map<int, std::int64_t> requests_;
  std::map<std::string, std::int64_t> finished_;
  std::int64_t granted_ = 0;
  std::int64_t moves_ = 0;
  std::map<std::string, std::int64_t> late_;  // by what was done
  std::int64_t records_ = 0;
  std::array<std::int64_t, wait_bounds_s.size() + 1> waits_{};
  double wait_sum_s_ = 0;
  std::unordered_map<std::uint64_t, Instant> waiting_since_;  // by task
  std::unordered_map<std::uint64_t, TaskId> task_of_lease_;
};

}  // namespace loam::api
