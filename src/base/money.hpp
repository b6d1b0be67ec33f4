// Money: an exact amount of one currency, a 128-bit integer at 12 decimal places.
// Money + Money of different currencies is a programmer error; Money * Money does not compile.
// Pure.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loam {

__extension__ typedef __int128 Int128;

// An ISO 4217 code: three capital letters.
class Currency {
 public:
  constexpr Currency() = default;
  // Requires three capital letters; parse() is for input.
  constexpr explicit Currency(std::string_view code) : code_{code[0], code[1], code[2]} {}
  static Result<Currency> parse(std::string_view text);

  std::string_view code() const { return {code_.data(), code_.size()}; }
  // Decimal digits of the smallest payable unit: USD 2, JPY 0, KWD 3 (ISO 4217).
  int exponent() const;

  friend constexpr auto operator<=>(const Currency&, const Currency&) = default;

 private:
  std::array<char, 3> code_{'U', 'S', 'D'};
};

enum class Rounding { half_even, half_up, up, down };

class Money {
 public:
  static constexpr int decimals = 12;
  static constexpr std::int64_t units_per_one = 1'000'000'000'000;

  constexpr Money() = default;
  constexpr Money(Int128 units, Currency currency) : units_(units), currency_(currency) {}
  static constexpr Money zero(Currency currency) { return Money(0, currency); }

  // A decimal amount without currency: "0.02", "-3". At most 12 decimals and 10^15 whole units.
  static Result<Money> parse(std::string_view amount, Currency currency);
  // The canonical text with the currency: "1.25 USD"; parse_text is its inverse.
  static Result<Money> parse_text(std::string_view text);

  constexpr Int128 units() const { return units_; }
  constexpr Currency currency() const { return currency_; }
  bool is_zero() const { return units_ == 0; }
  bool is_negative() const { return units_ < 0; }

  Money operator-() const { return Money(-units_, currency_); }
  // Require the same currency.
  friend Money operator+(Money a, Money b);
  friend Money operator-(Money a, Money b);
  Money& operator+=(Money other) { return *this = *this + other; }
  Money& operator-=(Money other) { return *this = *this - other; }
  friend std::strong_ordering operator<=>(Money a, Money b);
  friend bool operator==(Money a, Money b) = default;

  // this * numerator / denominator, computed in 256 bits and rounded once.
  // Requires denominator > 0 and a result within 128 bits.
  Money times_ratio(Int128 numerator, Int128 denominator, Rounding rounding) const;

  // Rounded to the currency's payable unit, still at 12 decimals.
  Money rounded(Rounding rounding) const;

 private:
  Int128 units_ = 0;
  Currency currency_;
};

// "1.25", "-0.000000000001": exact, without trailing zeros.
std::string amount_text(Money money);
// "1.25 USD", canonical: also what SQL and the journal hold.
std::string to_text(Money money);
// At least `places` decimals shown ("1.50"), more where the amount has more: for people.
std::string display_text(Money money, int places);

}  // namespace loam
