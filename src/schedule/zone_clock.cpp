// Civil dates and day numbers: Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2013): eras
// of 400 years, years that begin in March.
#include "schedule/zone_clock.hpp"

namespace loam::schedule {
namespace {

constexpr std::int64_t ms_per_minute = 60'000;
constexpr std::int64_t ms_per_day = 86'400'000;
constexpr std::int64_t days_per_era = 146'097;
constexpr std::int64_t epoch_day = 719'468;  // days from 0000-03-01 to 1970-01-01

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

std::int64_t day_number(int year, int month, int day) {
  const std::int64_t y = month <= 2 ? year - 1 : year;
  const std::int64_t era = floor_div(y, 400);
  const std::int64_t year_of_era = y - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * days_per_era + day_of_era - epoch_day;
}

LocalTime date_of(std::int64_t number) {
  const std::int64_t days = number + epoch_day;
  const std::int64_t era = floor_div(days, days_per_era);
  const std::int64_t day_of_era = days - era * days_per_era;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month_from_march = (5 * day_of_year + 2) / 153;
  LocalTime date;
  date.day = static_cast<int>(day_of_year - (153 * month_from_march + 2) / 5 + 1);
  date.month =
      static_cast<int>(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
  date.year = static_cast<int>(year_of_era + era * 400 + (date.month <= 2 ? 1 : 0));
  return date;
}

}  // namespace

LocalTime UtcClock::local(Instant instant) const {
  const std::int64_t day = floor_div(instant.ms, ms_per_day);
  const std::int64_t minute = (instant.ms - day * ms_per_day) / ms_per_minute;
  LocalTime time = date_of(day);
  time.hour = static_cast<int>(minute / 60);
  time.minute = static_cast<int>(minute % 60);
  return time;
}

Instant UtcClock::first(const LocalTime& time) const {
  return {day_number(time.year, time.month, time.day) * ms_per_day +
          (std::int64_t{time.hour} * 60 + time.minute) * ms_per_minute};
}

int days_in_month(int year, int month) {
  constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

int weekday_of(int year, int month, int day) {
  const std::int64_t thursday_based = day_number(year, month, day) + 4;  // 1970-01-01: Thursday
  return static_cast<int>(thursday_based - floor_div(thursday_based, 7) * 7);
}

}  // namespace loam::schedule
