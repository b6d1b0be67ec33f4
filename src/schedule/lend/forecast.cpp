#include "schedule/lend/forecast.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace loam::schedule::lend {
namespace {

constexpr int smoothing_minutes = 15;
constexpr double level_floor = 0.05;  // devices a minute: keeps the ratio of idle services tame
constexpr double level_min = 0.3;
constexpr double level_max = 8;
constexpr double load_min = 0.25;  // below, the spread is that of a quarter of a device
constexpr double bin_width = 0.02;
constexpr double lowest_error = -10;
constexpr std::int64_t errors_min = 360;  // minutes: before, nothing is known of the spread
constexpr double cautious_stock = 4;
constexpr int horizon_minutes_max = 60;

}  // namespace

WeekMinute WeekMinute::plus(int minutes) const {
  const int at = minute + minutes;
  return {(day + at / minutes_per_day) % 7, at % minutes_per_day};
}

void Profile::learn(bool weekend, const std::array<double, minutes_per_day>& day) {
  const std::size_t kind = weekend ? 1 : 0;
  for (std::size_t i = 0; i < day.size(); ++i) sums_[kind][i] += day[i];
  ++days_[kind];
  smooth(kind);
}

void Profile::smooth(std::size_t kind) {
  const auto& sums = sums_[kind];
  constexpr int width = 2 * smoothing_minutes + 1;
  const auto wrapped = [](int i) {
    return static_cast<std::size_t>((i + minutes_per_day) % minutes_per_day);
  };
  double sum = 0;
  for (int i = -smoothing_minutes; i <= smoothing_minutes; ++i) sum += sums[wrapped(i)];
  for (int i = 0; i < minutes_per_day; ++i) {
    smoothed_[kind][static_cast<std::size_t>(i)] =
        std::max(sum, 0.0) / (width * static_cast<double>(days_[kind]));
    sum += sums[wrapped(i + smoothing_minutes + 1)] - sums[wrapped(i - smoothing_minutes)];
  }
}

double Profile::at(WeekMinute minute) const {
  std::size_t kind = minute.weekend() ? 1 : 0;
  if (days_[kind] == 0) kind = 1 - kind;
  return smoothed_[kind][static_cast<std::size_t>(minute.minute)];
}

ForecastTerms forecast_terms(std::int64_t wake_ms, std::int64_t save_ms, std::int64_t load_ms,
                             bool guests, double shortage) {
  LOAM_ASSERT(wake_ms >= 0 && save_ms >= 0 && load_ms >= 0 && shortage > 0 && shortage < 1);
  const auto minutes = [](std::int64_t ms) { return static_cast<int>((ms + 59'999) / 60'000); };
  ForecastTerms terms;
  terms.lead_minutes = 1 + minutes(wake_ms + (guests ? 0 : save_ms));
  terms.span_minutes = minutes(10 * (save_ms + load_ms));
  terms.shortage = shortage;
  return terms;
}

Forecaster::Forecaster(const ForecastTerms& terms) : terms_(terms) {
  LOAM_ASSERT(terms.lead_minutes >= 1 && terms.span_minutes >= 0);
  LOAM_ASSERT(terms.lead_minutes < static_cast<int>(issued_max));
}

double Forecaster::level_over(int minutes) const {
  const auto known = std::min<std::int64_t>(minutes, observed_);
  double mean = 0;
  double usual = 0;
  for (std::int64_t i = observed_ - known; i < observed_; ++i) {
    mean += means_[static_cast<std::size_t>(i) % kept_minutes];
    usual += usual_[static_cast<std::size_t>(i) % kept_minutes];
  }
  const double floor = level_floor * static_cast<double>(minutes);
  return std::clamp((mean + floor) / (usual + floor), level_min, level_max);
}

void Forecaster::note_error(double peak) {
  if (observed_ < terms_.lead_minutes) return;
  if (!profile_.knows(false) && !profile_.knows(true)) return;
  const auto made = static_cast<std::size_t>(observed_ - terms_.lead_minutes) % issued_max;
  const double expected = issued_[made];
  const double error = (peak - expected) / std::sqrt(std::max(expected, load_min));
  const auto bin = static_cast<std::int64_t>((error - lowest_error) / bin_width);
  ++errors_[static_cast<std::size_t>(
      std::clamp<std::int64_t>(bin, 0, static_cast<std::int64_t>(error_bins) - 1))];
  ++error_count_;
}

void Forecaster::foresee() {
  if (!profile_.knows(false) && !profile_.knows(true)) {
    // The first day: the most of the last half hour.
    expected_ = 0;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(observed_, kept_minutes); ++i)
      expected_ = std::max(expected_, means_[static_cast<std::size_t>(i)]);
    return;
  }
  level_ = std::max(level_over(30), level_over(5));
  double usual = 0;
  const int horizon = std::min(terms_.lead_minutes + terms_.span_minutes, horizon_minutes_max);
  for (int ahead = 0; ahead <= horizon; ++ahead)
    usual = std::max(usual, profile_.at(last_.plus(1 + ahead)));
  expected_ = level_ * usual;
}

void Forecaster::observe(WeekMinute minute, double mean, double peak) {
  LOAM_ASSERT(minute.minute >= 0 && minute.minute < minutes_per_day && mean >= 0 && peak >= 0);
  note_error(peak);
  const auto slot = static_cast<std::size_t>(observed_) % kept_minutes;
  means_[slot] = mean;
  usual_[slot] = profile_.at(minute);
  last_ = minute;
  today_[static_cast<std::size_t>(minute.minute)] = mean;
  ++learned_today_;
  ++observed_;
  // A day enters the profile when it is over, so that errors are always those of a new day.
  if (minute.minute == minutes_per_day - 1) {
    if (learned_today_ >= minutes_per_day) profile_.learn(minute.weekend(), today_);
    learned_today_ = 0;
  }
  foresee();
  issued_[static_cast<std::size_t>(observed_ - 1) % issued_max] = expected_;
}

double Forecaster::stock() const {
  if (error_count_ < errors_min) return cautious_stock;
  const auto allowed =
      static_cast<std::int64_t>(terms_.shortage * static_cast<double>(error_count_));
  std::int64_t above = 0;
  for (std::size_t bin = error_bins; bin-- > 0;) {
    above += errors_[bin];
    if (above > allowed)
      return std::max(lowest_error + bin_width * static_cast<double>(bin + 1), 0.0);
  }
  return 0;
}

}  // namespace loam::schedule::lend
