// Instant and Duration: integer milliseconds, UTC. Intervals are half open [start, end).
// Calendars (zones, months) exist in billing alone. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>

#include "base/result.hpp"

namespace loam {

struct Duration {
  std::int64_t ms = 0;

  static constexpr Duration seconds(std::int64_t s) { return {s * 1000}; }
  static constexpr Duration minutes(std::int64_t m) { return {m * 60'000}; }
  static constexpr Duration hours(std::int64_t h) { return {h * 3'600'000}; }

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ms + b.ms}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.ms - b.ms}; }
  friend constexpr Duration operator*(Duration a, std::int64_t n) { return {a.ms * n}; }
  Duration& operator+=(Duration other) {
    ms += other.ms;
    return *this;
  }
};

// Milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
struct Instant {
  std::int64_t ms = 0;

  static constexpr Instant never() { return {std::numeric_limits<std::int64_t>::max()}; }

  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant t, Duration d) { return {t.ms + d.ms}; }
  friend constexpr Instant operator-(Instant t, Duration d) { return {t.ms - d.ms}; }
  friend constexpr Duration operator-(Instant a, Instant b) { return {a.ms - b.ms}; }
};

// "2026-03-02T00:00:00Z", with ".250" before the Z where the milliseconds are not zero.
std::string to_text(Instant instant);
// Accepts what to_text gives; UTC only. Years 1970 to 9999.
Result<Instant> parse_instant(std::string_view text);

// The shortest exact form: "250ms", "90s", "2h", "1h30m", "0s".
std::string to_text(Duration duration);
// One or more number+unit parts (ms, s, m, h, d), each unit once and in falling order: "1h30m",
// "90s", "0.5h". At most 100 years; never negative.
Result<Duration> parse_duration(std::string_view text);

}  // namespace loam
