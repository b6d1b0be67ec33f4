#include "billing/exact.hpp"

#include "base/assert.hpp"

namespace loam::billing {

using Wide = boost::multiprecision::int512_t;

void ExactSum::add(Int128 units, Int128 quantity, Int128 weight) {
  Int128 product = 0;
  if (!wide_) {
    Int128 sum = 0;
    if (!__builtin_mul_overflow(units, quantity, &product) &&
        !__builtin_mul_overflow(product, weight, &product) &&
        !__builtin_add_overflow(narrow_, product, &sum)) {
      narrow_ = sum;
      return;
    }
    wide_ = Wide(narrow_);
  }
  *wide_ += Wide(units) * Wide(quantity) * Wide(weight);
}

namespace {

template <class Number>
Number half_even(const Number& sum, const Number& denominator) {
  Number quotient = sum / denominator;  // toward zero
  Number rest = sum - quotient * denominator;
  if (rest == 0) return quotient;
  const bool negative = rest < 0;
  if (negative) rest = -rest;
  const Number other = denominator - rest;
  const bool away = rest > other || (rest == other && quotient % 2 != 0);
  if (away) quotient += negative ? -1 : 1;
  return quotient;
}

}  // namespace

Int128 ExactSum::rounded(Int128 denominator) const {
  LOAM_ASSERT(denominator > 0);
  if (!wide_) return half_even<Int128>(narrow_, denominator);
  const Wide quotient = half_even<Wide>(*wide_, Wide(denominator));
  constexpr int bits_max = 126;
  LOAM_ASSERT(boost::multiprecision::abs(quotient) < (Wide(1) << bits_max));
  return static_cast<Int128>(quotient);
}

std::int64_t ExactSum::residue(Int128 rounded, Int128 denominator) const {
  Int128 whole = 0;
  if (!wide_ && !__builtin_mul_overflow(rounded, denominator, &whole))
    return static_cast<std::int64_t>(narrow_ - whole);
  const Wide sum = wide_ ? *wide_ : Wide(narrow_);
  return static_cast<std::int64_t>(sum - Wide(rounded) * Wide(denominator));
}

}  // namespace loam::billing
