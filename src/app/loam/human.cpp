#include "app/loam/human.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"

namespace loam::cli {
namespace {

std::optional<Money> amount_of(std::string_view amount, std::string_view currency) {
  const auto code = Currency::parse(currency);
  const auto money = Money::parse(amount, code ? *code : Currency());
  if (!money) return std::nullopt;
  return *money;
}

std::string to_four_decimals(std::string_view amount, std::string_view currency,
                             Rounding rounding) {
  const auto money = amount_of(amount, currency);
  if (!money) return std::string(amount);
  constexpr Int128 ten_thousandth = Money::units_per_one / 10'000;
  Money in_steps = money->times_ratio(1, ten_thousandth, rounding);
  if (in_steps.is_zero() && !money->is_zero()) {  // two digits of what is next to nothing
    Int128 step = ten_thousandth;
    const Int128 size = money->units() < 0 ? -money->units() : money->units();
    while (step > 1 && size < step * 10) step /= 10;
    in_steps = money->times_ratio(1, step, rounding);
    return display_text(Money(in_steps.units() * step, money->currency()),
                        money->currency().exponent());
  }
  return display_text(Money(in_steps.units() * ten_thousandth, money->currency()),
                      std::min(4, money->currency().exponent()));
}

std::string two_digits(std::int64_t number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

std::size_t decimals_of(const std::string& text) {
  const std::size_t point = text.find('.');
  return point == std::string::npos ? 0 : text.size() - point - 1;
}

}  // namespace

std::string human_duration(std::int64_t ms) {
  if (ms < 0) return "-" + human_duration(-ms);
  const std::int64_t seconds = ms / 1000;
  if (ms > 0 && ms < 100) return std::to_string(ms) + "ms";
  if (ms < 10'000) {
    const std::int64_t tenths = ms / 100 % 10;
    return std::to_string(seconds) + (tenths == 0 ? "" : "." + std::to_string(tenths)) + "s";
  }
  const std::int64_t minutes = seconds / 60;
  const std::int64_t hours = minutes / 60;
  if (minutes == 0) return std::to_string(seconds) + "s";
  if (hours == 0) return std::to_string(minutes) + "m " + two_digits(seconds % 60) + "s";
  constexpr std::int64_t days_from = 48;
  if (hours >= days_from) {
    return std::to_string(hours / 24) + "d " + two_digits(hours % 24) + "h " +
           two_digits(minutes % 60) + "m";
  }
  return std::to_string(hours) + "h " + two_digits(minutes % 60) + "m " + two_digits(seconds % 60) +
         "s";
}

std::string exact_seconds(std::int64_t ms) {
  std::string whole = std::to_string(std::abs(ms) / 1000);
  for (std::size_t at = whole.size(); at > 3; at -= 3) whole.insert(at - 3, ",");
  const std::string thousandths = std::to_string(std::abs(ms) % 1000);
  return (ms < 0 ? "-" : "") + whole + "." + std::string(3 - thousandths.size(), '0') +
         thousandths + " s";
}

std::string money_short(std::string_view amount, std::string_view currency) {
  return to_four_decimals(amount, currency, Rounding::half_even);
}

std::string money_most(std::string_view amount, std::string_view currency) {
  return to_four_decimals(amount, currency, Rounding::up);
}

std::string money_exact(std::string_view amount, std::string_view currency) {
  const auto money = amount_of(amount, currency);
  return money ? display_text(*money, money->currency().exponent()) : std::string(amount);
}

std::vector<std::string> money_column(const std::vector<std::string>& amounts,
                                      std::string_view currency) {
  const auto code = Currency::parse(currency);
  std::size_t places = static_cast<std::size_t>((code ? *code : Currency()).exponent());
  for (const std::string& amount : amounts)
    places = std::max(places, decimals_of(money_exact(amount, currency)));
  std::vector<std::string> column;
  for (const std::string& amount : amounts) {
    const auto money = amount_of(amount, currency);
    column.push_back(money ? display_text(*money, static_cast<int>(places)) : amount);
  }
  return column;
}

std::string percent(double fraction) {
  char text[32];
  const double tenths = std::round(fraction * 1000);
  const bool whole = std::fmod(tenths, 10) == 0;
  std::snprintf(text, sizeof text, whole ? "%.0f %%" : "%.1f %%", tenths / 10);
  return text;
}

std::string promised_text(double promised, double lent) {
  return percent(promised) + (lent > promised ? " of " + percent(lent) + " lent" : "");
}

std::string memory_text(std::int64_t mebibytes) {
  return to_text(Mebibytes{mebibytes});
}

std::string instant_text(const std::optional<std::string>& instant) {
  if (!instant) return {};
  const auto parsed = parse_instant(*instant);
  if (!parsed) return *instant;
  std::string text = to_text(Instant{parsed->ms / 1000 * 1000});
  if (text.size() < 20) return text;
  text[10] = ' ';
  text.pop_back();
  return text;
}

std::string command_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("_-+=./:,@%^").find(static_cast<char>(c)) != std::string_view::npos;
    });
    text += text.empty() ? "" : " ";
    if (plain) {
      text += word;
      continue;
    }
    text += "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += "'";
  }
  return text;
}

std::string count_of(std::int64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace loam::cli
