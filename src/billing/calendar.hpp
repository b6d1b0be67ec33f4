// Calendars: civil dates, IANA time zones, months and anchored periods. The only place of loam that
// knows them (library: date, by Howard Hinnant, over the machine's zone files). Opening a zone
// reads its file; everything afterwards is pure.
#pragma once

#include <compare>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace loam::billing {

// A day of the Gregorian calendar, without a zone.
struct Date {
  int year = 1970;
  int month = 1;  // 1 … 12
  int day = 1;    // 1 … 31

  friend auto operator<=>(const Date&, const Date&) = default;
};

// "2024-02-29".
std::string to_text(Date date);
// Years 1970 to 9999. Refuses what no calendar has, such as 30 February.
Result<Date> parse_date(std::string_view text);

int days_in_month(int year, int month);
std::int64_t days_since_epoch(Date date);  // of 1970-01-01
Date date_of_day(std::int64_t days_since_epoch);
int weekday_of(Date date);  // 0 = Sunday … 6 = Saturday
Date add_days(Date date, std::int64_t days);
// `months` after `anchor`, on its day or, where the month is shorter, on its last day. Always
// counted from the anchor: 31 January, 28 February, 31 March.
Date add_months(Date anchor, int months);

// What a clock on the wall reads.
struct LocalTime {
  Date date;
  Duration of_day;  // since midnight by the wall clock, 0 to below 24 h

  friend auto operator<=>(const LocalTime&, const LocalTime&) = default;
};

// Half open.
struct Period {
  Instant from;
  Instant to;

  bool contains(Instant instant) const { return from <= instant && instant < to; }
  friend bool operator==(const Period&, const Period&) = default;
};

// A time zone. Cheap to copy; immutable. Rules hold as far as the machine's zone files list them
// (at least to 2037); after that the last offset stays.
class Zone {
 public:
  Zone();  // UTC
  // ErrorKind::invalid_argument for a name that the machine does not know.
  static Result<Zone> open(std::string_view name);

  const std::string& name() const;
  Duration offset_at(Instant instant) const;   // local = UTC + offset
  Instant next_change(Instant instant) const;  // of the offset; Instant::never() where none comes
  LocalTime local(Instant instant) const;
  // The instants at which the wall clock reads so: none in a skipped hour, two in a repeated one.
  std::vector<Instant> instants(LocalTime local) const;
  // The first instant at which the wall clock reads so or later.
  Instant first_instant(LocalTime local) const;
  // The stretches of time in which the wall clock reads [from, to) of `date`: none where the clock
  // skips it, two where it is repeated. `to` up to 24 h.
  std::vector<Period> spans(Date date, Duration from, Duration to) const;

 private:
  struct Table;
  explicit Zone(std::shared_ptr<const Table> table) : table_(std::move(table)) {}
  std::shared_ptr<const Table> table_;
};

// The calendar month around an instant, by the wall clock of `zone`.
Period month_of(const Zone& zone, Instant instant);
// The month of that name: "2025-03". Refuses what no calendar has.
Result<Period> parse_month(const Zone& zone, std::string_view text);
// "2025-03".
std::string month_text(const Zone& zone, Instant instant);
}  // namespace loam::billing
