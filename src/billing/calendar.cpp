#include "billing/calendar.hpp"

#include <date/date.h>
#include <date/tz.h>

#include <algorithm>
#include <charconv>
#include <exception>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t day_ms = 86'400'000;
// No offset of any zone is further from UTC.
constexpr Duration offset_max = Duration::hours(26);

date::year_month_day civil(Date date) {
  return date::year{date.year} / date::month{static_cast<unsigned>(date.month)} /
         date::day{static_cast<unsigned>(date.day)};
}

Date date_from(const date::year_month_day& ymd) {
  return {static_cast<int>(ymd.year()), static_cast<int>(static_cast<unsigned>(ymd.month())),
          static_cast<int>(static_cast<unsigned>(ymd.day()))};
}

bool read_digits(std::string_view text, int& out) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  return fault == std::errc{} && end == text.data() + text.size() && text.front() != '-';
}

std::string padded(int value, std::size_t digits) {
  std::string text = std::to_string(value);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return text;
}

std::int64_t floor_days(std::int64_t ms) {
  return ms >= 0 ? ms / day_ms : -((-ms + day_ms - 1) / day_ms);
}

// The local reading as if it were UTC.
Instant as_utc(LocalTime local) {
  return Instant{days_since_epoch(local.date) * day_ms} + local.of_day;
}

}  // namespace

std::string to_text(Date date) {
  return padded(date.year, 4) + "-" + padded(date.month, 2) + "-" + padded(date.day, 2);
}

Result<Date> parse_date(std::string_view text) {
  const std::string shown(text);
  Date date;
  const bool shaped = text.size() == 10 && text[4] == '-' && text[7] == '-' &&
                      read_digits(text.substr(0, 4), date.year) &&
                      read_digits(text.substr(5, 2), date.month) &&
                      read_digits(text.substr(8, 2), date.day);
  if (!shaped) return invalid("'" + shown + "' is not a date", "write it as 2026-03-31");
  if (date.year < 1970) return invalid("'" + shown + "' is before 1970", "give a later date");
  if (!civil(date).ok()) {
    return invalid("there is no day '" + shown + "' in any calendar",
                   "check the month and the day of the month");
  }
  return date;
}

int days_in_month(int year, int month) {
  const date::year_month_day_last last{
      date::year{year}, date::month_day_last{date::month{static_cast<unsigned>(month)}}};
  return static_cast<int>(static_cast<unsigned>(last.day()));
}

std::int64_t days_since_epoch(Date date) {
  return date::sys_days{civil(date)}.time_since_epoch().count();
}

Date date_of_day(std::int64_t days) {
  return date_from(date::year_month_day{date::sys_days{date::days{days}}});
}

int weekday_of(Date date) {
  return static_cast<int>(date::weekday{date::sys_days{civil(date)}}.c_encoding());
}

Date add_days(Date date, std::int64_t days) {
  return date_of_day(days_since_epoch(date) + days);
}

Date add_months(Date anchor, int months) {
  const int index = anchor.year * 12 + (anchor.month - 1) + months;
  Date moved{index / 12, index % 12 + 1, anchor.day};
  moved.day = std::min(moved.day, days_in_month(moved.year, moved.month));
  return moved;
}

// --- Zones ---------------------------------------------------------------------------------------

struct Zone::Table {
  struct Span {
    Instant from;
    Duration offset;
  };
  std::string name;
  std::vector<Span> spans;  // in order; the first begins before every instant

  // Index of the span that holds the instant.
  std::size_t at(Instant instant) const {
    const auto next = std::upper_bound(spans.begin(), spans.end(), instant,
                                       [](Instant t, const Span& s) { return t < s.from; });
    return static_cast<std::size_t>(next - spans.begin()) - 1;
  }
  Instant end(std::size_t index) const {
    return index + 1 < spans.size() ? spans[index + 1].from : Instant::never();
  }
};

namespace {

constexpr Instant the_beginning{std::numeric_limits<std::int64_t>::min()};

}  // namespace

Zone::Zone() {
  static const auto utc = std::make_shared<const Table>(
      Table{"UTC", std::vector<Table::Span>{{the_beginning, Duration{0}}}});
  table_ = utc;
}

Result<Zone> Zone::open(std::string_view name) {
  if (name == "UTC") return Zone();
  // date reports by exception; none leaves this function.
  try {
    const date::time_zone* zone = date::locate_zone(name);
    auto table = std::make_shared<Table>();
    table->name = std::string(name);
    date::sys_seconds at{std::chrono::seconds{0}};
    const date::sys_seconds last{date::sys_days{date::year{2200} / 1 / 1}};
    while (true) {
      const date::sys_info info = zone->get_info(at);
      const Duration offset{std::chrono::milliseconds{info.offset}.count()};
      const Instant from{std::chrono::milliseconds{at.time_since_epoch()}.count()};
      if (table->spans.empty()) {
        table->spans.push_back({the_beginning, offset});
      } else if (table->spans.back().offset != offset) {
        table->spans.push_back({from, offset});
      }
      if (info.end >= last || info.end <= at) break;
      at = info.end;
    }
    return Zone(std::move(table));
  } catch (const std::exception&) {
    return invalid("there is no time zone '" + std::string(name) + "' on this machine",
                   "use a name of the IANA list such as Europe/Berlin, or install tzdata");
  }
}

const std::string& Zone::name() const {
  return table_->name;
}

Duration Zone::offset_at(Instant instant) const {
  return table_->spans[table_->at(instant)].offset;
}

Instant Zone::next_change(Instant instant) const {
  return table_->end(table_->at(instant));
}

LocalTime Zone::local(Instant instant) const {
  const std::int64_t ms = (instant + offset_at(instant)).ms;
  const std::int64_t days = floor_days(ms);
  return {date_of_day(days), Duration{ms - days * day_ms}};
}

std::vector<Instant> Zone::instants(LocalTime local) const {
  std::vector<Instant> found;
  const Instant reading = as_utc(local);
  for (std::size_t i = table_->at(reading - offset_max); i < table_->spans.size(); ++i) {
    if (table_->spans[i].from != the_beginning && table_->spans[i].from > reading + offset_max)
      break;
    const Instant candidate = reading - table_->spans[i].offset;
    if (candidate >= table_->spans[i].from && candidate < table_->end(i))
      found.push_back(candidate);
  }
  return found;
}

Instant Zone::first_instant(LocalTime local) const {
  const Instant reading = as_utc(local);
  for (std::size_t i = table_->at(reading - offset_max);; ++i) {
    LOAM_ASSERT(i < table_->spans.size());
    const Instant candidate = std::max(reading - table_->spans[i].offset, table_->spans[i].from);
    if (candidate < table_->end(i)) return candidate;
  }
}

std::vector<Period> Zone::spans(Date date, Duration from, Duration to) const {
  std::vector<Period> found;
  const Instant midnight{days_since_epoch(date) * day_ms};
  for (std::size_t i = table_->at(midnight - offset_max); i < table_->spans.size(); ++i) {
    const Table::Span& span = table_->spans[i];
    if (span.from != the_beginning && span.from > midnight + to + offset_max) break;
    const Instant begin = std::max(midnight + from - span.offset, span.from);
    const Instant end = std::min(midnight + to - span.offset, table_->end(i));
    if (begin >= end) continue;
    if (!found.empty() && found.back().to == begin) {
      found.back().to = end;
    } else {
      found.push_back({begin, end});
    }
  }
  return found;
}

// --- Months --------------------------------------------------------------------------------------

Period month_of(const Zone& zone, Instant instant) {
  const Date today = zone.local(instant).date;
  const Date first{today.year, today.month, 1};
  return {zone.first_instant({first, {}}), zone.first_instant({add_months(first, 1), {}})};
}

Result<Period> parse_month(const Zone& zone, std::string_view text) {
  const auto first = parse_date(std::string(text) + "-01");
  if (!first.ok() || text.size() != 7)
    return invalid("'" + std::string(text) + "' is not a month", "write it as 2026-03");
  return month_of(zone, zone.first_instant({*first, {}}));
}

std::string month_text(const Zone& zone, Instant instant) {
  return to_text(zone.local(instant).date).substr(0, 7);
}

}  // namespace loam::billing
