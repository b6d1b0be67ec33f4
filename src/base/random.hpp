// Random: a seeded generator with the same sequence everywhere (the standard distributions are
// not). splitmix64, Steele, Lea & Flood, "Fast Splittable Pseudorandom Number Generators",
// OOPSLA 2014. Not for secrets. Pure.
#pragma once

#include <cstdint>

#include "base/assert.hpp"

namespace loam {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound) without bias worth measuring (bound far below 2^64). Requires bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    LOAM_ASSERT(bound > 0);
    return next() % bound;
  }
  // Uniform in [low, high]. Requires low <= high.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    LOAM_ASSERT(low <= high);
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  // True with probability `permille`/1000.
  bool chance(std::uint64_t permille) { return below(1000) < permille; }

 private:
  std::uint64_t state_;
};

}  // namespace loam
