#include "billing/apportion.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <numeric>

#include "base/assert.hpp"

namespace loam::billing {

std::vector<Int128> split(Int128 amount, const std::vector<Int128>& weights) {
  using Wide = boost::multiprecision::int256_t;
  LOAM_ASSERT(!weights.empty());
  const bool negative = amount < 0;
  const Int128 whole = negative ? -amount : amount;
  Int128 sum = 0;
  for (const Int128 weight : weights) {
    LOAM_ASSERT(weight >= 0);
    sum += weight;
  }
  std::vector<Int128> parts(weights.size(), 0);
  if (sum == 0) {
    parts.front() = amount;
    return parts;
  }
  std::vector<Int128> rests(weights.size());
  Int128 given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Wide exact = Wide(whole) * Wide(weights[i]);
    parts[i] = static_cast<Int128>(exact / Wide(sum));
    rests[i] = static_cast<Int128>(exact % Wide(sum));
    given += parts[i];
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rests[a] > rests[b]; });
  for (std::size_t i = 0; given < whole; ++i, ++given) {
    LOAM_ASSERT(i < order.size());
    ++parts[order[i]];
  }
  if (negative) {
    for (Int128& part : parts) part = -part;
  }
  return parts;
}

std::vector<Money> split(Money amount, const std::vector<Int128>& weights) {
  std::vector<Money> parts;
  for (const Int128 units : split(amount.units(), weights))
    parts.push_back(Money(units, amount.currency()));
  return parts;
}

Int128 payable_unit(Currency currency) {
  Int128 unit = 1;
  for (int i = currency.exponent(); i < Money::decimals; ++i) unit *= 10;
  return unit;
}

Settled settle(const std::vector<Money>& exact, Currency currency, Rounding rounding) {
  Settled settled;
  settled.payable.reserve(exact.size());
  const Int128 unit = payable_unit(currency);
  Int128 sum = 0;
  Int128 given = 0;
  std::vector<Int128> rests(exact.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    LOAM_ASSERT(exact[i].currency() == currency);
    const Int128 units = exact[i].units();
    Int128 rest = units % unit;
    if (rest < 0) rest += unit;
    rests[i] = rest;
    settled.payable.push_back(Money(units - rest, currency));
    sum += units;
    given += units - rest;
  }
  settled.total = Money(sum, currency).rounded(rounding);
  Int128 left = (settled.total.units() - given) / unit;
  std::vector<std::size_t> order(exact.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto larger = [&](std::size_t a, std::size_t b) {
    return rests[a] != rests[b] ? rests[a] > rests[b] : a < b;
  };
  LOAM_ASSERT(left >= 0 && left <= static_cast<Int128>(order.size()));
  // Only which ones are largest matters, not their order: linear, also for a million lines.
  const auto cut = order.begin() + static_cast<std::ptrdiff_t>(left);
  if (cut != order.end()) std::nth_element(order.begin(), cut, order.end(), larger);
  for (auto at = order.begin(); at != cut; ++at) settled.payable[*at] += Money(unit, currency);
  return settled;
}

}  // namespace loam::billing
