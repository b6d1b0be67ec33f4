// Recurring tasks: a cron expression and the instants at which it is due on a zone's wall clock.
// Grammar: POSIX crontab (IEEE Std 1003.1, "crontab") with steps, names and @forms as in Vixie's
// cron. On nights when the clock changes: a time that does not occur is due at the first instant
// after the gap, one that occurs twice is due once, at its first occurrence. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "schedule/zone_clock.hpp"

namespace loam::schedule {

class Cron {
 public:
  // "minute hour day-of-month month day-of-week": each `*`, a number, a range a-b, a list of
  // those, or `*` or a range with a step /n; months and weekdays by name too (jan, MON); Sunday is
  // 0 or 7. Where both day fields leave something out, either is enough. Also @hourly, @daily,
  // @midnight, @weekly, @monthly, @yearly, @annually.
  // invalid_argument names the field and what is wrong with it, or says that the expression never
  // occurs (30 February).
  static Result<Cron> parse(std::string_view text);

  // The first instant after `after` at which it is due; nothing beyond the year 9999. Cost: the
  // days until then, at most some 3,000 (29 February over 2100).
  std::optional<Instant> next(Instant after, const ZoneClock& clock) const;

  // The canonical text, which parses to the same: lists of numbers, `*` where all.
  std::string text() const;

  friend bool operator==(const Cron&, const Cron&) = default;

 private:
  bool by_either_day() const;
  bool on_day(int year, int month, int day) const;

  std::uint64_t minutes_ = 0;  // bit n: value n is in
  std::uint64_t hours_ = 0;
  std::uint64_t days_ = 0;
  std::uint64_t months_ = 0;
  std::uint64_t weekdays_ = 0;  // 0 = Sunday
};

struct Due {
  Instant at;                // the latest time due, at or before now
  std::int64_t skipped = 0;  // earlier ones that were not run; counted to due_counted_max
};
inline constexpr std::int64_t due_counted_max = 1'000;

// What is due in (last, now]: however many were missed while nobody looked, it runs once, and the
// next question begins at `now`. Where more than due_counted_max were missed, `at` is the last of
// those counted.
std::optional<Due> due(const Cron& cron, Instant last, Instant now, const ZoneClock& clock);

}  // namespace loam::schedule
