// ExactSum: a sum of price × quantity products over one denominator, kept whole until it is rounded
// once. Pure.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <optional>

#include "base/money.hpp"

namespace loam::billing {

class ExactSum {
 public:
  // Adds money units × quantity × weight. Never overflows: beyond 128 bits it goes on in 512.
  void add(Int128 units, Int128 quantity, Int128 weight);
  // The sum / denominator, rounded half to even. Requires denominator > 0 and a result within 126
  // bits.
  Int128 rounded(Int128 denominator) const;
  // What rounding left over: the sum − rounded × denominator, at most half the denominator either
  // way. Requires `rounded` as rounded(denominator) gave it, and a denominator within 62 bits.
  std::int64_t residue(Int128 rounded, Int128 denominator) const;

 private:
  Int128 narrow_ = 0;
  std::optional<boost::multiprecision::int512_t> wide_;
};

}  // namespace loam::billing
