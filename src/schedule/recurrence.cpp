#include "schedule/recurrence.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace loam::schedule {
namespace {

constexpr int year_max = 9999;
constexpr std::size_t text_bytes_max = 1'000;

struct Field {
  const char* name;
  int low;
  int high;
  const char* names;  // of three letters each, without blanks
  int first_named;
};

constexpr Field minute_field{"minute", 0, 59, "", 0};
constexpr Field hour_field{"hour", 0, 23, "", 0};
constexpr Field day_field{"day of month", 1, 31, "", 0};
constexpr Field month_field{"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec", 1};
constexpr Field weekday_field{"day of week", 0, 7, "sunmontuewedthufrisat", 0};

struct Form {
  std::string_view name;
  std::string_view text;
};
constexpr std::array<Form, 7> forms{{{"@hourly", "0 * * * *"},
                                     {"@daily", "0 0 * * *"},
                                     {"@midnight", "0 0 * * *"},
                                     {"@weekly", "0 0 * * 0"},
                                     {"@monthly", "0 0 1 * *"},
                                     {"@yearly", "0 0 1 1 *"},
                                     {"@annually", "0 0 1 1 *"}}};

std::uint64_t bit(int value) {
  return std::uint64_t{1} << value;
}
bool has(std::uint64_t set, int value) {
  return (set & bit(value)) != 0;
}

Error bad(const Field& field, std::string_view part, const std::string& why,
          std::string step = {}) {
  if (step.empty())
    step = "give numbers from " + std::to_string(field.low) + " to " + std::to_string(field.high);
  return invalid(std::string(field.name) + " '" + std::string(part) + "' " + why, std::move(step));
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::optional<int> named(const Field& field, std::string_view word) {
  const std::string_view names = field.names;
  if (word.size() != 3) return std::nullopt;
  for (std::size_t i = 0; i < names.size(); i += 3)
    if (lower(word[0]) == names[i] && lower(word[1]) == names[i + 1] &&
        lower(word[2]) == names[i + 2])
      return field.first_named + static_cast<int>(i / 3);
  return std::nullopt;
}

std::optional<int> number(std::string_view word) {
  int value = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || word.front() == '-' || fault != std::errc{} ||
      end != word.data() + word.size())
    return std::nullopt;
  return value;
}

Result<int> value_of(const Field& field, std::string_view word, std::string_view part) {
  if (const auto known = named(field, word)) return *known;
  const auto value = number(word);
  if (!value) return bad(field, part, "is no number or name");
  if (*value < field.low || *value > field.high)
    return bad(field, part,
               "is out of range (" + std::to_string(field.low) + " to " +
                   std::to_string(field.high) + ")");
  return *value;
}

// One part of a list: `*`, a, a-b, each range with an optional /step.
Result<std::uint64_t> part_of(const Field& field, std::string_view part) {
  const std::size_t slash = part.find('/');
  const std::string_view range = part.substr(0, slash);
  int step = 1;
  if (slash != part.npos) {
    const auto given = number(part.substr(slash + 1));
    if (!given || *given < 1 || *given > field.high)
      return bad(field, part, "has no step", "write the step as */15 or 9-17/2");
    step = *given;
  }
  int from = field.low;
  int to = field.high;
  if (range != "*") {
    const std::size_t dash = range.find('-');
    LOAM_TRY(first, value_of(field, range.substr(0, dash), part));
    from = to = first;
    if (dash != range.npos) {
      LOAM_TRY(last, value_of(field, range.substr(dash + 1), part));
      to = last == 0 && from > 0 && field.high == weekday_field.high ? weekday_field.high : last;
    } else if (slash != part.npos) {
      return bad(field, part, "has a step but no range",
                 "write " + std::to_string(from) + "-" + std::to_string(field.high) + "/" +
                     std::to_string(step));
    }
  } else if (field.high == weekday_field.high) {
    to = 6;  // Sunday once
  }
  if (to < from)
    return bad(field, part, "runs backwards", "write it as two ranges, separated by a comma");
  std::uint64_t set = 0;
  for (int value = from; value <= to; value += step) set |= bit(value);
  return set;
}

Result<std::uint64_t> field_of(const Field& field, std::string_view text) {
  std::uint64_t set = 0;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    if (part.empty()) return bad(field, text, "has an empty part");
    LOAM_TRY(values, part_of(field, part));
    set |= values;
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (field.high == weekday_field.high && has(set, 7)) set = (set & ~bit(7)) | bit(0);
  return set;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == text.npos) return words;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::uint64_t all_of(int low, int high) {
  std::uint64_t set = 0;
  for (int value = low; value <= high; ++value) set |= bit(value);
  return set;
}

std::string list_of(std::uint64_t set, int low, int high) {
  if (set == all_of(low, high)) return "*";
  std::string text;
  for (int value = low; value <= high; ++value) {
    if (!has(set, value)) continue;
    if (!text.empty()) text += ',';
    text += std::to_string(value);
  }
  return text;
}

// How many days a month can have in some year.
int days_at_most(int month) {
  return days_in_month(2000, month);
}

}  // namespace

Result<Cron> Cron::parse(std::string_view text) {
  if (text.size() > text_bytes_max)
    return invalid("a cron expression of " + std::to_string(text.size()) + " bytes",
                   "use at most " + std::to_string(text_bytes_max));
  std::vector<std::string_view> words = words_of(text);
  if (words.size() == 1 && words[0].front() == '@') {
    const std::string_view form = words[0];
    for (const Form& known : forms)
      if (form == known.name) words = words_of(known.text);
    if (words.size() == 1)
      return invalid("'" + std::string(form) + "' is no known form",
                     "use @hourly, @daily, @weekly, @monthly or @yearly");
  }
  if (words.size() != 5)
    return invalid("a cron expression has 5 fields, not " + std::to_string(words.size()),
                   "write minute hour day-of-month month day-of-week, such as '30 2 * * mon-fri'");
  Cron cron;
  LOAM_TRY(minutes, field_of(minute_field, words[0]));
  LOAM_TRY(hours, field_of(hour_field, words[1]));
  LOAM_TRY(days, field_of(day_field, words[2]));
  LOAM_TRY(months, field_of(month_field, words[3]));
  LOAM_TRY(weekdays, field_of(weekday_field, words[4]));
  cron.minutes_ = minutes;
  cron.hours_ = hours;
  cron.days_ = days;
  cron.months_ = months;
  cron.weekdays_ = weekdays;
  // A weekday comes in every month; a day of the month need not.
  if (cron.by_either_day()) return cron;
  for (int month = 1; month <= 12; ++month)
    for (int day = 1; day <= days_at_most(month); ++day)
      if (has(months, month) && has(days, day)) return cron;
  return invalid("day of month '" + std::string(words[2]) + "' never occurs in month '" +
                     std::string(words[3]) + "'",
                 "name a day that the month has");
}

bool Cron::by_either_day() const {
  return days_ != all_of(day_field.low, day_field.high) && weekdays_ != all_of(0, 6);
}

bool Cron::on_day(int year, int month, int day) const {
  const bool by_day = has(days_, day);
  const bool by_weekday = has(weekdays_, weekday_of(year, month, day));
  return by_either_day() ? by_day || by_weekday : by_day && by_weekday;
}

std::optional<Instant> Cron::next(Instant after, const ZoneClock& clock) const {
  // A time that the clock showed first at or before `after` is not sought: first() never falls.
  LocalTime at = clock.local(after);
  for (bool today = true; at.year <= year_max; today = false) {
    if (has(months_, at.month) && on_day(at.year, at.month, at.day)) {
      const int from_hour = today ? at.hour : 0;
      for (int hour = from_hour; hour < 24; ++hour) {
        if (!has(hours_, hour)) continue;
        for (int minute = today && hour == from_hour ? at.minute : 0; minute < 60; ++minute) {
          if (!has(minutes_, minute)) continue;
          const Instant due = clock.first({at.year, at.month, at.day, hour, minute});
          if (due > after) return due;
        }
      }
    }
    at.day = has(months_, at.month) ? at.day + 1 : 32;  // a month that is not in is skipped
    if (at.day > days_in_month(at.year, at.month)) {
      at.day = 1;
      at.month = at.month % 12 + 1;
      if (at.month == 1) ++at.year;
    }
  }
  return std::nullopt;
}

std::string Cron::text() const {
  return list_of(minutes_, 0, 59) + " " + list_of(hours_, 0, 23) + " " + list_of(days_, 1, 31) +
         " " + list_of(months_, 1, 12) + " " + list_of(weekdays_, 0, 6);
}

std::optional<Due> due(const Cron& cron, Instant last, Instant now, const ZoneClock& clock) {
  std::optional<Due> found;
  for (std::int64_t count = 0; count < due_counted_max; ++count) {
    const auto at = cron.next(found ? found->at : last, clock);
    if (!at || *at > now) break;
    found = Due{*at, count};
  }
  return found;
}

}  // namespace loam::schedule
