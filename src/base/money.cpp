#include "base/money.hpp"

#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <limits>

#include "base/currency_codes.hpp"
#include "base/money_text.hpp"

namespace loam {
namespace {

using Int256 = boost::multiprecision::int256_t;

Int256 widen(Int128 value) {
  return Int256(value);
}

constexpr int bits_max = 126;

// `denominator` is above 0 and, like the numerator, leaves a bit to spare.
template <class Wide>
Wide divide_rounded(const Wide& numerator, const Wide& denominator, Rounding rounding) {
  Wide quotient = numerator / denominator;  // toward zero
  const Wide rest = numerator - quotient * denominator;
  if (rest != 0) {
    const bool negative = numerator < 0;
    const Wide twice = negative ? Wide(rest * -2) : Wide(rest * 2);
    bool away = false;
    switch (rounding) {
      case Rounding::half_even:
        away = twice > denominator || (twice == denominator && quotient % 2 != 0);
        break;
      case Rounding::half_up:
        away = twice >= denominator;
        break;
      case Rounding::up:
        away = !negative;
        break;
      case Rounding::down:
        away = negative;
        break;
    }
    if (away) quotient += negative ? -1 : 1;
  }
  return quotient;
}

// value * numerator / denominator. Most products fit 128 bits, where a division is ten times
// cheaper than in 256.
Int128 scale(Int128 value, Int128 numerator, Int128 denominator, Rounding rounding) {
  constexpr Int128 narrow = Int128{1} << 62;
  if (value > -narrow && value < narrow && numerator > -narrow && numerator < narrow &&
      denominator < narrow)
    return divide_rounded<Int128>(value * numerator, denominator, rounding);
  const auto quotient =
      divide_rounded<Int256>(widen(value) * widen(numerator), widen(denominator), rounding);
  LOAM_ASSERT(boost::multiprecision::abs(quotient) < (Int256(1) << bits_max));
  return static_cast<Int128>(quotient);
}

__extension__ typedef unsigned __int128 UInt128;

// The decimal digits of `value`, written so that they end before `end`; returns their begin. In 64
// bits: a 128-bit division for every digit is what made long invoices slow.
char* write_digits(std::uint64_t value, char* end) {
  char* at = end;
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  return at;
}

constexpr std::int64_t whole_units_max = 1'000'000'000'000'000;  // 10^15: beyond any invoice

}  // namespace

Result<Currency> Currency::parse(std::string_view text) {
  const bool good = text.size() == 3 && std::all_of(text.begin(), text.end(),
                                                    [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!good)
    return invalid("'" + std::string(text) + "' is not a currency code",
                   "give three capital letters such as USD");
  return Currency(text);
}

int Currency::exponent() const {
  return exponent_of(code());
}

Result<Money> Money::parse(std::string_view amount, Currency currency) {
  std::string_view rest = amount;
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  const std::size_t point = std::min(rest.find('.'), rest.size());
  const std::string_view whole = rest.substr(0, point);
  const std::string_view part =
      point < rest.size() ? rest.substr(point + 1) : std::string_view{"0"};
  const auto all_digits = [](std::string_view s) {
    return !s.empty() &&
           std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!all_digits(whole) || !all_digits(part) || part.size() > static_cast<std::size_t>(decimals))
    return invalid("'" + std::string(amount) + "' is not an amount of money",
                   "give a decimal number such as 0.02, at most 12 decimals");
  Int128 units = 0;
  for (const char c : whole) {
    units = units * 10 + (c - '0');
    if (units > whole_units_max)
      return invalid("'" + std::string(amount) + "' is too much money", "the most is 10^15");
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(decimals); ++i) {
    units = units * 10 + (i < part.size() ? part[i] - '0' : 0);
  }
  return Money(negative ? -units : units, currency);
}

Result<Money> Money::parse_text(std::string_view text) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) {
    return invalid("'" + std::string(text) + "' has no currency",
                   "write the amount and the code, such as '1.25 USD'");
  }
  LOAM_TRY(currency, Currency::parse(text.substr(blank + 1)));
  return parse(text.substr(0, blank), currency);
}

Money operator+(Money a, Money b) {
  LOAM_ASSERT(a.currency_ == b.currency_);
  return Money(a.units_ + b.units_, a.currency_);
}

Money operator-(Money a, Money b) {
  LOAM_ASSERT(a.currency_ == b.currency_);
  return Money(a.units_ - b.units_, a.currency_);
}

std::strong_ordering operator<=>(Money a, Money b) {
  LOAM_ASSERT(a.currency_ == b.currency_);
  if (a.units_ == b.units_) return std::strong_ordering::equal;
  return a.units_ < b.units_ ? std::strong_ordering::less : std::strong_ordering::greater;
}

Money Money::times_ratio(Int128 numerator, Int128 denominator, Rounding rounding) const {
  LOAM_ASSERT(denominator > 0);
  return Money(scale(units_, numerator, denominator, rounding), currency_);
}

Money Money::rounded(Rounding rounding) const {
  Int128 step = 1;
  for (int i = currency_.exponent(); i < decimals; ++i) step *= 10;
  return Money(scale(units_, 1, step, rounding) * step, currency_);
}

std::string amount_text(Money money) {
  return display_text(money, 0);
}

std::string to_text(Money money) {
  return amount_text(money) + " " + std::string(money.currency().code());
}

std::string display_text(Money money, int places) {
  std::string text;
  append_display_text(text, money, places);
  return text;
}

void append_display_text(std::string& text, Money money, int places) {
  LOAM_ASSERT(places >= 0 && places <= Money::decimals);
  constexpr auto scale = static_cast<std::size_t>(Money::decimals);
  constexpr auto one = static_cast<UInt128>(Money::units_per_one);
  const UInt128 units = static_cast<UInt128>(money.units());
  const UInt128 magnitude = money.is_negative() ? UInt128{0} - units : units;
  // A whole part of 2^127 / 10^12 has at most 27 digits: two halves of 64 bits.
  const bool narrow = magnitude <= std::numeric_limits<std::uint64_t>::max();
  const UInt128 whole =
      narrow ? static_cast<std::uint64_t>(magnitude) / static_cast<std::uint64_t>(one)
             : magnitude / one;
  const auto part = static_cast<std::uint64_t>(magnitude - whole * one);

  constexpr std::uint64_t half = 1'000'000'000'000'000'000;  // 18 digits
  std::array<char, 40> digits;
  char* const point = digits.data() + 28;
  char* begin = nullptr;
  if (whole < half) {
    begin = write_digits(static_cast<std::uint64_t>(whole), point);
  } else {
    char* const low = write_digits(static_cast<std::uint64_t>(whole % half), point);
    std::fill(point - 18, low, '0');
    begin = write_digits(static_cast<std::uint64_t>(whole / half), point - 18);
  }
  char* end = point + scale;
  std::fill(point, write_digits(part, end), '0');
  while (end > point + places && end > point && end[-1] == '0') --end;

  if (money.is_negative()) text.push_back('-');
  text.append(begin, point);
  if (end == point) return;
  text.push_back('.');
  text.append(point, end);
}

}  // namespace loam
