// One service of the lending replay: its requests, first come, first served, on the devices it
// holds. Part of the replay (lending.hpp). Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/random.hpp"
#include "sim/trace/lending.hpp"

namespace loam::sim {

// Requests fill the devices from the first; the device of index i serves while more than i are
// served. Times are microseconds from the replay's start.
class ServiceQueue {
 public:
  ServiceQueue(const ServiceLoad& load, std::int64_t quantum_us, std::int64_t switch_us,
               std::uint64_t seed);

  // Devices that serve from now on; guests[i] is not 0 where a guest lives on device i. Requires as
  // many as are busy at least.
  void set_devices(std::vector<std::uint8_t> guests);
  void run_until(std::int64_t end_us);

  std::int64_t busy() const { return static_cast<std::int64_t>(ends_.size()); }
  std::int64_t in_system() const { return busy() + static_cast<std::int64_t>(next_ - head_); }

  // Of the time since begin_minute(): requests in the system, and for each device the time that it
  // did not serve.
  MinuteLoad minute_load(std::int64_t length_us) const;
  std::vector<std::int64_t> idle_us() const;
  void begin_minute();

  // The sum of requests in the system over time, in request-microseconds.
  double in_system_us() const { return in_system_us_; }
  double serving_us() const { return serving_us_; }
  double switching_us() const { return switching_us_; }
  std::int64_t queued() const { return queued_; }
  double response_ms(double percentile);

 private:
  void advance(std::int64_t to_us);
  void serve(std::int64_t now_us);

  const ServiceLoad& load_;
  std::int64_t quantum_us_;
  std::int64_t switch_us_;
  Random random_;
  std::vector<std::uint8_t> guests_;
  std::size_t head_ = 0;  // the first request that is not served yet
  std::size_t next_ = 0;  // the first that has not arrived
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> ends_;
  std::int64_t now_us_ = 0;
  std::vector<std::int64_t> busy_for_us_;  // by requests served at once
  double minute_sum_us_ = 0;
  std::int64_t minute_peak_ = 0;
  double in_system_us_ = 0;
  double serving_us_ = 0;
  double switching_us_ = 0;
  std::int64_t queued_ = 0;
  std::vector<float> responses_ms_;
};

}  // namespace loam::sim
