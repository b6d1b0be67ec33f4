// How many devices a service will need in the next minutes: its usual day, scaled to the present
// level, and a stock for what the forecast usually misses. Doubles: estimates, not quantities.
// Pure; no allocation after construction.
#pragma once

#include <array>
#include <cstdint>

namespace loam::schedule::lend {

inline constexpr int minutes_per_day = 1440;

// A minute of the week on the clock whose days the service's users live by.
struct WeekMinute {
  int day = 0;     // 0 = Monday .. 6
  int minute = 0;  // 0 .. 1439

  bool weekend() const { return day >= 5; }
  WeekMinute plus(int minutes) const;
};

// The usual load by minute of the day, weekdays and weekends apart: means over all days learned and
// over the 15 minutes on either side.
class Profile {
 public:
  // One whole day of mean loads, by minute.
  void learn(bool weekend, const std::array<double, minutes_per_day>& day);
  bool knows(bool weekend) const { return days_[weekend ? 1 : 0] > 0; }
  // Of a kind of day never seen, the other kind's; 0 where nothing was learned.
  double at(WeekMinute minute) const;

 private:
  void smooth(std::size_t kind);

  std::array<std::int64_t, 2> days_{};
  std::array<std::array<double, minutes_per_day>, 2> sums_{};
  std::array<std::array<double, minutes_per_day>, 2> smoothed_{};
};

// The newsvendor's quantile: what is held idle costs `idle_cost` a minute, what is missing
// `miss_cost` (Arrow, Harris & Marschak, "Optimal Inventory Policy", Econometrica 19, 1951).
// Requires both positive. 1 and 99 give the default 0.01.
inline double shortage_probability(double idle_cost, double miss_cost) {
  return idle_cost / (idle_cost + miss_cost);
}

struct ForecastTerms {
  int lead_minutes = 2;    // until a device taken now serves: 1 + what waking it takes, rounded up
  int span_minutes = 10;   // a loan should last ten times its save and load
  double shortage = 0.01;  // newsvendor epsilon: the part of minutes that may need more
};

// lead: 1 + ceil((wake, + save where no guests are) / 60 s); span: ceil(10 (save + load) / 60 s).
ForecastTerms forecast_terms(std::int64_t wake_ms, std::int64_t save_ms, std::int64_t load_ms,
                             bool guests, double shortage);

class Forecaster {
 public:
  explicit Forecaster(const ForecastTerms& terms);

  // What the minute that has just ended was: mean and peak of requests in the system, in devices.
  // Minutes come in order, one each. Call once a minute, then expect() and stock().
  void observe(WeekMinute minute, double mean, double peak);
  // The most that is expected from now until the end of lead and span.
  double expect() const { return expected_; }
  // z: how many sqrt(max(expect, 1/4)) beside `expect` cover all but `shortage` of the minutes.
  // From this forecaster's own errors at its lead, on days that its profile did not know; cautious
  // until there are some hours of them.
  double stock() const;
  // Load now over the usual load now: the larger of the last 30 and the last 5 minutes.
  double level() const { return level_; }

 private:
  static constexpr std::size_t kept_minutes = 30;
  static constexpr std::size_t issued_max = 64;
  static constexpr std::size_t error_bins = 2'048;

  double level_over(int minutes) const;
  void note_error(double peak);
  void foresee();

  ForecastTerms terms_;
  Profile profile_;
  std::array<double, minutes_per_day> today_{};
  int learned_today_ = 0;
  std::array<double, kept_minutes> means_{};
  std::array<double, kept_minutes> usual_{};
  std::int64_t observed_ = 0;
  WeekMinute last_;
  std::array<double, issued_max> issued_{};  // forecasts by the minute they were made in
  std::array<std::int64_t, error_bins> errors_{};
  std::int64_t error_count_ = 0;
  double level_ = 1;
  double expected_ = 0;
};

}  // namespace loam::schedule::lend
