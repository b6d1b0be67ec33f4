// The integer quantities of loam. Each is its own type, so that a share is never taken for a
// size. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace loam {

// An integer amount of one unit; `Unit_` keeps the units apart.
template <class Unit_>
struct Quantity {
  std::int64_t value = 0;

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, std::int64_t n) { return {a.value * n}; }
  Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
};

using MilliCe = Quantity<struct MilliCeUnit>;          // 1000 = 1 CE; 100 CE = one A100-SXM-80GB
using MilliDevice = Quantity<struct MilliDeviceUnit>;  // 1000 = one whole device
using Mebibytes = Quantity<struct MebibytesUnit>;      // 2^20 bytes
using MilliCpu = Quantity<struct MilliCpuUnit>;        // 1000 = one CPU
using BasisPoints = Quantity<struct BasisPointsUnit>;  // 10,000 = the whole

inline constexpr MilliDevice whole_device{1000};
inline constexpr Mebibytes one_gibibyte{1024};

// Upper bounds on what a person may ask for: far above any pool, far below overflow.
inline constexpr MilliCe milli_ce_max{1'000'000'000'000};     // 10^9 CE
inline constexpr Mebibytes mebibytes_max{1'099'511'627'776};  // 1 EiB

// "25", "0.3125": CE with up to three decimals, no trailing zeros.
std::string to_text(MilliCe ce);
// Positive, at most 10^9 CE, at most three decimals.
Result<MilliCe> parse_ce(std::string_view text);

// "10GiB" where whole, else "1536MiB".
std::string to_text(Mebibytes size);
// A positive number with a unit: MiB, GiB, TiB; decimals where they come out as whole MiB.
Result<Mebibytes> parse_memory(std::string_view text);

// "0.6": a fraction of a device with up to three decimals.
std::string to_text(MilliDevice share);
// Above 0, at most 1, at most three decimals.
Result<MilliDevice> parse_share(std::string_view text);

// "1.5" CPUs with up to three decimals.
std::string to_text(MilliCpu cpu);
Result<MilliCpu> parse_cpu(std::string_view text);

// The shared engine of the parsers above: a plain decimal number ("12", "0.5"; no sign, exponent,
// NaN or blanks) scaled by 10^`decimals` to an integer in [0, `max`].
// `what` names the quantity in the error.
Result<std::int64_t> parse_decimal(std::string_view text, int decimals, std::int64_t max,
                                   std::string_view what);
// The inverse: `value`/10^`decimals` without trailing zeros.
std::string decimal_text(std::int64_t value, int decimals);

}  // namespace loam
