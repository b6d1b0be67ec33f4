// Text forms of the quantities, both ways. Integers only: "0.1" never passes through a float.
#include <algorithm>
#include <array>
#include <limits>

#include "base/quantity.hpp"

namespace loam {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

Error not_a_number(std::string_view text, std::string_view what) {
  const bool vowel =
      !what.empty() && std::string_view("aeio").find(what.front()) != std::string_view::npos;
  return invalid(
      "'" + std::string(text) + "' is not " + (vowel ? "an " : "a ") + std::string(what),
      text.starts_with('-') ? "give 0 or more" : "give a plain decimal number such as 2 or 0.5");
}

// Pushes one decimal digit onto `value`; false when it would pass `max`.
bool push_digit(std::int64_t& value, int digit, std::int64_t max) {
  if (value > (max - digit) / 10) return false;
  value = value * 10 + digit;
  return true;
}

}  // namespace

Result<std::int64_t> parse_decimal(std::string_view text, int decimals, std::int64_t max,
                                   std::string_view what) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = point < text.size() ? text.substr(point + 1) : std::string_view{};
  const bool has_point = point < text.size();
  if (whole.empty() || (has_point && part.empty()) ||
      !std::all_of(whole.begin(), whole.end(), is_digit) ||
      !std::all_of(part.begin(), part.end(), is_digit)) {
    return not_a_number(text, what);
  }
  std::size_t significant = part.size();
  while (significant > 0 && part[significant - 1] == '0') --significant;
  if (significant > static_cast<std::size_t>(decimals)) {
    return invalid("'" + std::string(text) + "' is too fine for a " + std::string(what),
                   "use at most " + std::to_string(decimals) + " decimals");
  }
  std::int64_t value = 0;
  bool fits = true;
  for (const char c : whole) fits = fits && push_digit(value, c - '0', max);
  for (int i = 0; i < decimals; ++i) {
    const auto at = static_cast<std::size_t>(i);
    fits = fits && push_digit(value, at < significant ? part[at] - '0' : 0, max);
  }
  if (!fits) {
    return invalid("'" + std::string(text) + "' is too large for a " + std::string(what),
                   "the most is " + decimal_text(max, decimals));
  }
  return value;
}

std::string decimal_text(std::int64_t value, int decimals) {
  const bool negative = value < 0;
  // Unsigned negation: the lowest int64 has no positive twin.
  std::uint64_t magnitude =
      negative ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  std::string digits = std::to_string(magnitude);
  const auto places = static_cast<std::size_t>(decimals);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  std::string whole = digits.substr(0, digits.size() - places);
  std::string part = digits.substr(digits.size() - places);
  while (!part.empty() && part.back() == '0') part.pop_back();
  std::string text = negative ? "-" : "";
  text += whole;
  if (!part.empty()) text += "." + part;
  return text;
}

std::string to_text(MilliCe ce) {
  return decimal_text(ce.value, 3);
}

Result<MilliCe> parse_ce(std::string_view text) {
  LOAM_TRY(value, parse_decimal(text, 3, milli_ce_max.value, "number of CE"));
  if (value == 0) return invalid("0 CE is nothing", "ask for at least 0.001 CE");
  return MilliCe{value};
}

std::string to_text(Mebibytes size) {
  if (size.value != 0 && size.value % one_gibibyte.value == 0) {
    return std::to_string(size.value / one_gibibyte.value) + "GiB";
  }
  return std::to_string(size.value) + "MiB";
}

Result<Mebibytes> parse_memory(std::string_view text) {
  struct UnitName {
    std::string_view name;
    std::int64_t mebibytes;
  };
  constexpr std::array<UnitName, 3> units{{{"MiB", 1}, {"GiB", 1024}, {"TiB", 1024 * 1024}}};
  for (const UnitName& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const std::string_view number = text.substr(0, text.size() - unit.name.size());
    // Thousandths of the unit, then to MiB; what is left over is refused, not rounded.
    LOAM_TRY(thousandths,
             parse_decimal(number, 3, mebibytes_max.value / unit.mebibytes * 1000, "memory size"));
    if (thousandths == 0)
      return invalid("'" + std::string(text) + "' is no memory", "ask for at least 1MiB");
    // thousandths * unit stays below 2^40 * 1000 * 1, see the maximum above.
    const std::int64_t scaled = thousandths * unit.mebibytes;
    if (scaled % 1000 != 0) {
      return invalid("'" + std::string(text) + "' is not a whole number of MiB",
                     "use MiB, for example " + std::to_string(scaled / 1000 + 1) + "MiB");
    }
    return Mebibytes{scaled / 1000};
  }
  return invalid("'" + std::string(text) + "' is not a memory size",
                 "give a number with MiB, GiB or TiB, such as 10GiB");
}

std::string to_text(MilliDevice share) {
  return decimal_text(share.value, 3);
}

Result<MilliDevice> parse_share(std::string_view text) {
  const auto parsed =
      parse_decimal(text, 3, std::numeric_limits<std::int32_t>::max(), "share of a device");
  if (!parsed) return invalid(parsed.error().message, "give a part of one, such as 0.3 for 30 %");
  const std::int64_t value = *parsed;
  if (value < 1 || value > whole_device.value) {
    return invalid(
        "a share of '" + std::string(text) + "' is out of range",
        "ask for more than 0 and at most 1, such as 0.3; for several devices use --devices");
  }
  return MilliDevice{value};
}

std::string to_text(MilliCpu cpu) {
  return decimal_text(cpu.value, 3);
}

Result<MilliCpu> parse_cpu(std::string_view text) {
  constexpr std::int64_t milli_cpu_max = 1'000'000'000;  // a million CPUs
  LOAM_TRY(value, parse_decimal(text, 3, milli_cpu_max, "number of CPUs"));
  if (value == 0) return invalid("0 CPUs cannot run anything", "ask for at least 0.001");
  return MilliCpu{value};
}

}  // namespace loam
