// What an endpoint's traffic of the past days says of the next minutes: requests in flight, as
// schedule/lend's forecast expects them. Knows no clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "schedule/lend/forecast.hpp"

namespace loam::serving {

class Traffic {
 public:
  // `start_time` is how long an instance takes until it serves.
  explicit Traffic(Duration start_time);

  // Requests in flight and waiting at `now`; times rise. Call at least once a minute; minutes that
  // were left out count as empty.
  void observe(Instant now, std::uint32_t requests);
  // One minute that is over, from a record of the past. In order.
  void learn(std::int64_t minute_of_epoch, double mean, double peak);

  // The most requests in flight that are expected until an instance started now would serve and
  // for some minutes after, in thousandths, with a stock for what the forecast usually misses. 0
  // within the first whole day, where nothing usual is known yet, and where so little is expected
  // that an instance started on demand does.
  std::uint64_t expected_milli() const;

 private:
  void close_minute(std::int64_t next_minute);

  schedule::lend::Forecaster forecaster_;
  std::optional<std::int64_t> first_minute_;
  std::int64_t minute_ = 0;  // that is going on, since the epoch
  double sum_ = 0;
  double peak_ = 0;
  std::int64_t samples_ = 0;
};

// Each model's minutes from a usage file: mean and peak of requests in flight, at most `days` back
// from `now`. Lines that cannot be read are counted in `skipped`. Requests are spread over the
// minutes they lasted.
struct PastMinute {
  double mean = 0;
  double peak = 0;  // by arrivals and ends inside the minute, at most
};
using PastTraffic = std::map<std::string, std::map<std::int64_t, PastMinute>>;
Result<PastTraffic> past_traffic(const std::string& usage_file, Instant now, int days,
                                 std::size_t& skipped);

}  // namespace loam::serving
