#include "base/money.hpp"

#include "base/currency_codes.hpp"

#include <gtest/gtest.h>

#include "base/money_text.hpp"
#include "base/random.hpp"

namespace loam {
namespace {

const Currency usd("USD");

Money dollars(const char* amount) {
  return Money::parse(amount, usd).value();
}

TEST(Money, TextIsCanonical) {
  EXPECT_EQ(to_text(dollars("1.250")), "1.25 USD");
  EXPECT_EQ(to_text(dollars("-0.000000000001")), "-0.000000000001 USD");
  EXPECT_EQ(display_text(dollars("1.5"), 2), "1.50");
  EXPECT_EQ(display_text(dollars("1.505"), 2), "1.505");
  EXPECT_EQ(Money::parse_text("1.25 USD").value(), dollars("1.25"));
}

TEST(Money, RefusesWhatIsNoAmount) {
  for (const char* text : {"", "-", ".", "1.", ".5", "1e3", "NaN", "1,5", "0.0000000000001",
                           "1000000000000001", "--1"}) {
    EXPECT_FALSE(Money::parse(text, usd).ok()) << text;
  }
  for (const char* text : {"1.25", "1.25 usd", "1.25 USDX", " USD"})
    EXPECT_FALSE(Money::parse_text(text).ok()) << text;
}

TEST(Money, RatioRoundsOnceAndExactly) {
  // 4 CE for two hours at 1.75: 14.00 (half the time at 1.50, half at 2.00).
  EXPECT_EQ(dollars("1.75").times_ratio(8, 1, Rounding::half_even), dollars("14"));
  EXPECT_EQ(to_text(dollars("10000").times_ratio(6, 31, Rounding::half_even)),
            "1935.483870967742 USD");
  const Int128 big = static_cast<Int128>(1) << 100;  // intermediate far beyond 128 bits
  EXPECT_EQ(dollars("123456789").times_ratio(big, big, Rounding::half_even), dollars("123456789"));
}

TEST(CurrencyCodes, known_ones_have_the_exponent_of_the_list_and_others_are_refused) {
  const std::pair<const char*, int> some[] = {{"USD", 2}, {"EUR", 2}, {"JPY", 0}, {"KWD", 3},
                                              {"CLF", 4}, {"UYW", 4}, {"XPF", 0}, {"XAF", 0},
                                              {"AED", 2}, {"ZWG", 2}, {"BIF", 0}, {"TND", 3}};
  for (const auto& [code, exponent] : some) {
    ASSERT_TRUE(listed_currency(code).ok()) << code;
    EXPECT_EQ(Currency(code).exponent(), exponent) << code;
  }
  for (const char* code : {"XYZ", "QQQ", "XAU", "XTS", "XXX", "usd", "US", "USDD", "", "U D"})
    EXPECT_FALSE(listed_currency(code).ok()) << code;
  EXPECT_NE(listed_currency("USB").error().next_step.find("USD"), std::string::npos);
  EXPECT_NE(listed_currency("JYP").error().next_step.find("JPY"), std::string::npos);
  EXPECT_NE(listed_currency("eur").error().next_step.find("EUR"), std::string::npos);
  // What was stored before is still read.
  EXPECT_TRUE(Currency::parse("QQQ").ok());
  EXPECT_EQ(Currency("QQQ").exponent(), 2);
}

TEST(CurrencyCodes, only_whole_payable_units_are_paid) {
  const auto amount = [](const char* text, const char* code) {
    return *Money::parse(text, Currency(code));
  };
  EXPECT_TRUE(payable(amount("10", "JPY")).ok());
  EXPECT_TRUE(payable(amount("10.55", "USD")).ok());
  EXPECT_TRUE(payable(amount("1.2345", "CLF")).ok());
  EXPECT_FALSE(payable(amount("10.555", "USD")).ok());
  const auto half = payable(amount("10.5", "JPY"));
  ASSERT_FALSE(half.ok());
  EXPECT_EQ(half.error().message, "10.5 JPY cannot be paid: JPY has no decimals");
  EXPECT_EQ(half.error().next_step, "give 10 or 11");
}

TEST(Money, RoundsByCurrency) {
  const Currency jpy("JPY"), kwd("KWD");
  EXPECT_EQ(amount_text(Money::parse("1935.483870967742", jpy)->rounded(Rounding::half_even)),
            "1935");
  EXPECT_EQ(amount_text(Money::parse("1.2345", kwd)->rounded(Rounding::half_up)), "1.235");
  EXPECT_EQ(amount_text(Money::parse("1.2345", kwd)->rounded(Rounding::half_even)), "1.234");
  EXPECT_EQ(amount_text(dollars("-0.005").rounded(Rounding::half_up)), "-0.01");
  EXPECT_EQ(amount_text(dollars("0.001").rounded(Rounding::up)), "0.01");
  EXPECT_EQ(amount_text(dollars("0.019").rounded(Rounding::down)), "0.01");
}

// Digit by digit, as one would by hand.
std::string slow_text(Int128 units, int places) {
  std::string digits;
  for (Int128 rest = units < 0 ? -units : units; digits.size() < 13 || rest != 0; rest /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  std::string part = digits.substr(digits.size() - 12);
  while (part.size() > static_cast<std::size_t>(places) && part.back() == '0') part.pop_back();
  return (units < 0 ? "-" : "") + digits.substr(0, digits.size() - 12) +
         (part.empty() ? "" : "." + part);
}

TEST(Money, TextIsDigitByDigitAtEveryWidth) {
  Random random(7);
  std::vector<Int128> values{0, 1, 999'999'999'999, 1'000'000'000'000};
  Int128 power = 1;
  for (int i = 0; i < 38; ++i, power *= 10) {
    for (const Int128 near : {power - 1, power, power + 1}) values.push_back(near);
  }
  for (int shift = 0; shift < 126; ++shift) values.push_back((Int128{1} << shift) - shift % 3);
  for (int i = 0; i < 1000; ++i)
    values.push_back(static_cast<Int128>(random.below(1ULL << 60)) << random.below(66));
  for (const Int128 value : values) {
    for (const Int128 units : {value, -value}) {
      for (const int places : {0, 2, 3, 12})
        ASSERT_EQ(display_text(Money(units, usd), places), slow_text(units, places));
    }
  }
  std::string row = "a,";
  append_display_text(row, dollars("-1.5"), 2);
  EXPECT_EQ(row, "a,-1.50");
}

TEST(Money, TextRoundTripsForAllValues) {
  Random random(7);
  for (int i = 0; i < 10'000; ++i) {
    Int128 units = static_cast<Int128>(random.next() >> 14) * 1'000'000'000;
    const Money money(random.chance(500) ? -units : units, usd);
    EXPECT_EQ(Money::parse_text(to_text(money)).value(), money);
  }
}

template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};
static_assert(!Multipliable<Money, Money>);

}  // namespace
}  // namespace loam
