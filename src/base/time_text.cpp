// Text forms of instants and durations. The civil calendar arithmetic is std::chrono's.
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <limits>

#include "base/quantity.hpp"
#include "base/time.hpp"

namespace loam {
namespace {

constexpr std::int64_t day_ms = 86'400'000;

// Reads exactly `width` digits at `at`; -1 when they are not all digits.
int fixed_digits(std::string_view text, std::size_t at, std::size_t width) {
  int value = 0;
  for (std::size_t i = at; i < at + width; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

Error not_an_instant(std::string_view text) {
  return invalid("'" + std::string(text) + "' is not a time",
                 "give UTC such as 2026-03-02T00:00:00Z");
}

struct DurationUnit {
  std::string_view name;
  std::int64_t ms;
};
constexpr std::array<DurationUnit, 5> duration_units{
    {{"d", day_ms}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr std::int64_t duration_ms_max = 100LL * 366 * day_ms;

}  // namespace

std::string to_text(Instant instant) {
  if (instant == Instant::never()) return "never";
  using namespace std::chrono;
  const sys_time<milliseconds> time{milliseconds{instant.ms}};
  const auto midnight = floor<days>(time);
  const year_month_day date{midnight};
  const hh_mm_ss<milliseconds> clock{time - midnight};
  std::array<char, 64> text{};
  const int length = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()));
  std::string out(text.data(), static_cast<std::size_t>(length));
  if (const auto ms = clock.subseconds().count(); ms != 0) {
    std::snprintf(text.data(), text.size(), ".%03d", static_cast<int>(ms));
    out += text.data();
  }
  return out + "Z";
}

Result<Instant> parse_instant(std::string_view text) {
  using namespace std::chrono;
  const int y = fixed_digits(text, 0, 4), mo = fixed_digits(text, 5, 2),
            d = fixed_digits(text, 8, 2);
  const int h = fixed_digits(text, 11, 2), mi = fixed_digits(text, 14, 2),
            s = fixed_digits(text, 17, 2);
  const bool shape = text.size() >= 20 && text[4] == '-' && text[7] == '-' && text[10] == 'T' &&
                     text[13] == ':' && text[16] == ':' && text.back() == 'Z';
  if (!shape || y < 1970 || mo < 0 || d < 0 || h < 0 || h > 23 || mi < 0 || mi > 59 || s < 0 ||
      s > 59) {
    return not_an_instant(text);
  }
  int ms = 0;
  if (text.size() != 20) {
    ms = text.size() == 24 && text[19] == '.' ? fixed_digits(text, 20, 3) : -1;
    if (ms < 0) return not_an_instant(text);
  }
  const year_month_day date{year{y}, month{static_cast<unsigned>(mo)},
                            day{static_cast<unsigned>(d)}};
  if (!date.ok()) return not_an_instant(text);
  const std::int64_t days_since = sys_days{date}.time_since_epoch().count();
  const std::int64_t clock_s = h * 3600LL + mi * 60LL + s;
  return Instant{days_since * day_ms + clock_s * 1000 + ms};
}

std::string to_text(Duration duration) {
  if (duration.ms == 0) return "0s";
  std::string text = duration.ms < 0 ? "-" : "";
  std::int64_t rest = duration.ms < 0 ? -duration.ms : duration.ms;
  for (const DurationUnit& unit : duration_units) {
    if (rest < unit.ms) continue;
    text += std::to_string(rest / unit.ms) + std::string(unit.name);
    rest %= unit.ms;
  }
  return text;
}

Result<Duration> parse_duration(std::string_view text) {
  const Error fault = invalid("'" + std::string(text) + "' is not a length of time",
                              "give a number with d, h, m, s or ms, such as 2h or 1h30m");
  std::string_view rest = text;
  std::size_t next_unit = 0;
  std::int64_t total_ms = 0;
  if (rest.empty()) return fault;
  while (!rest.empty()) {
    const std::size_t digits = rest.find_first_not_of("0123456789.");
    if (digits == 0 || digits == std::string_view::npos) return fault;
    std::size_t letters = rest.find_first_of("0123456789.", digits);
    if (letters == std::string_view::npos) letters = rest.size();
    const std::string_view name = rest.substr(digits, letters - digits);
    while (next_unit < duration_units.size() && duration_units[next_unit].name != name) ++next_unit;
    if (next_unit == duration_units.size()) return fault;
    const std::int64_t unit_ms = duration_units[next_unit++].ms;
    auto thousandths = parse_decimal(rest.substr(0, digits), 3, duration_ms_max / unit_ms * 1000,
                                     "length of time");
    if (!thousandths) {
      const bool number = rest.find_first_not_of("0123456789") == digits;
      return number ? invalid("'" + std::string(text) + "' is more than 100 years",
                              "give at most 36600d")
                    : invalid(fault.message, thousandths.error().next_step);
    }
    const std::int64_t scaled = *thousandths * unit_ms;
    if (scaled % 1000 != 0)
      return invalid("'" + std::string(text) + "' is finer than a millisecond");
    total_ms += scaled / 1000;
    if (total_ms > duration_ms_max)
      return invalid("'" + std::string(text) + "' is more than 100 years", "give at most 36600d");
    rest.remove_prefix(letters);
  }
  return Duration{total_ms};
}

}  // namespace loam
