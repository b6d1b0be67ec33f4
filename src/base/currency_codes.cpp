#include "base/currency_codes.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace loam {
namespace {

// Codes of three letters each, in order.
constexpr std::string_view two_decimals =
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD "
    "CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL "
    "GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR "
    "LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD "
    "PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC "
    "SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW "
    "ZWG";
constexpr std::string_view no_decimals =
    "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
constexpr std::string_view three_decimals = "BHD IQD JOD KWD LYD OMR TND";
constexpr std::string_view four_decimals = "CLF UYW";

struct Codes {
  int exponent;
  std::string_view codes;
};
constexpr std::array<Codes, 4> lists{
    {{2, two_decimals}, {0, no_decimals}, {3, three_decimals}, {4, four_decimals}}};
constexpr int usual_exponent = 2;
constexpr std::size_t step = 4;  // a code and a blank

// The listed code that shares most letters, in their places, with `text`; widely used ones first.
std::string nearest_to(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  for (std::size_t i = 0; i + 1 < upper.size() && upper.size() == 3; ++i) {  // JYP
    std::string swapped = upper;
    std::swap(swapped[i], swapped[i + 1]);
    if (listed_exponent(swapped)) return swapped;
  }
  std::string best;
  std::size_t most = 1;  // one letter alike is not near
  const auto look = [&](std::string_view codes) {
    for (std::size_t at = 0; at < codes.size(); at += step) {
      std::size_t alike = 0;
      for (std::size_t i = 0; i < 3; ++i) alike += i < upper.size() && upper[i] == codes[at + i];
      if (alike <= most) continue;
      most = alike;
      best = codes.substr(at, 3);
    }
  };
  look("USD EUR GBP JPY CHF CNY");
  for (const Codes& list : lists) look(list.codes);
  return best;
}

}  // namespace

namespace {

bool holds(std::string_view codes, std::string_view code) {
  for (std::size_t at = 0; at < codes.size(); at += step) {
    if (codes.compare(at, 3, code) == 0) return true;
  }
  return false;
}

}  // namespace

std::optional<int> listed_exponent(std::string_view code) {
  if (code.size() != 3) return std::nullopt;
  for (const Codes& list : lists) {
    if (holds(list.codes, code)) return list.exponent;
  }
  return std::nullopt;
}

int exponent_of(std::string_view code) {
  // Amounts are written by the million: the long list, of the usual exponent, is not searched.
  for (const Codes& list : lists) {
    if (list.exponent != usual_exponent && holds(list.codes, code)) return list.exponent;
  }
  return usual_exponent;
}

Result<Currency> listed_currency(std::string_view text) {
  if (listed_exponent(text)) return Currency(text);
  const std::string near = nearest_to(text);
  return invalid("'" + std::string(text) + "' is not a currency code of ISO 4217",
                 near.empty() ? "give three capital letters such as USD"
                              : "did you mean " + near + "? give three capital letters");
}

bool is_payable(Money amount) {
  return amount.rounded(Rounding::half_even) == amount;
}

Result<Money> payable(Money amount) {
  if (is_payable(amount)) return amount;
  const int places = amount.currency().exponent();
  const std::string code(amount.currency().code());
  const Money less = amount.rounded(Rounding::down);
  // One payable unit more.
  Int128 unit = 1;
  for (int i = places; i < Money::decimals; ++i) unit *= 10;
  const Money more = less + Money(unit, amount.currency());
  return invalid(amount_text(amount) + " " + code + " cannot be paid: " + code + " has " +
                     (places == 0 ? "no decimals" : std::to_string(places) + " decimals"),
                 "give " + display_text(less, places) + " or " + display_text(more, places));
}

}  // namespace loam
