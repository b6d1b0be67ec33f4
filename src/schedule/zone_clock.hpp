// ZoneClock: what the wall clocks of one time zone show. Calendars live elsewhere; whoever has one
// implements this. Pure.
#pragma once

#include <compare>
#include <cstdint>

#include "base/time.hpp"

namespace loam::schedule {

// A time on the wall, without a zone, in the Gregorian calendar.
struct LocalTime {
  int year = 1970;
  int month = 1;  // 1..12
  int day = 1;    // 1..31
  int hour = 0;
  int minute = 0;

  friend constexpr auto operator<=>(const LocalTime&, const LocalTime&) = default;
};

class ZoneClock {
 public:
  virtual ~ZoneClock() = default;
  // What the clock shows at the instant, seconds cut off.
  virtual LocalTime local(Instant instant) const = 0;
  // When the clock first shows the time. Of a time that occurs twice, the first; of one that does
  // not occur because the clock was put forward, the instant at which it was. Never falls as the
  // time grows. Requires a date that exists.
  virtual Instant first(const LocalTime& time) const = 0;
};

// Coordinated universal time, from the rules of the Gregorian calendar alone.
class UtcClock final : public ZoneClock {
 public:
  LocalTime local(Instant instant) const override;
  Instant first(const LocalTime& time) const override;
};

// Days of the month: 28 to 31.
int days_in_month(int year, int month);
// 0 = Sunday.
int weekday_of(int year, int month, int day);

}  // namespace loam::schedule
