// How long work of a kind takes on a lane, learned from marks. Plain tables: two kinds that fall on
// one place share an estimate. Not pure: process-wide tables.
#pragma once

#include <atomic>
#include <cstdint>

#include "guard/slice_page.h"

namespace loam::guard::cuda {

inline constexpr std::uint32_t kinds_max = 4096;

// `exact` is the work, `like` is what it resembles (the same kernel at another size): both index
// the lane's table.
struct Kind {
  std::uint32_t exact = 0;
  std::uint32_t like = 0;
};

inline std::uint32_t kind_of(std::uint64_t what) {
  return static_cast<std::uint32_t>(what * 0x9e3779b97f4a7c15ull >> 52);
}

// Nanoseconds; 0: never seen.
extern std::atomic<std::uint32_t> estimates[LOAM_SLICE_DEVICES_MAX * LOAM_LANES][kinds_max];

inline std::uint64_t estimate_of(std::uint32_t lane, Kind kind) {
  return estimates[lane][kind.exact].load(std::memory_order_relaxed);
}
// What is best known before the first run.
std::uint64_t first_estimate(std::uint32_t lane, Kind kind, std::uint64_t guess_ns);

// Which kinds a chunk was spent on, and how often each.
struct Mixture {
  static constexpr int most = 8;
  struct Part {
    std::uint32_t exact, like, count;
  };
  Part parts[most] = {};
  int count = 0;
  int last = 0;

  // False where there is no room for one more kind.
  bool add(Kind kind) {
    if (count > 0 && parts[last].exact == kind.exact) [[likely]] {
      ++parts[last].count;
      return true;
    }
    return add_other(kind);
  }
  bool add_other(Kind kind);
  void clear() { count = last = 0; }
};

// The mixture took `took_ns` in all: each of its kinds gets its part, by what was expected of it.
void learn(std::uint32_t lane, const Mixture& mixture, std::uint64_t took_ns);
void learn_one(std::uint32_t lane, Kind kind, std::uint64_t took_ns);

}  // namespace loam::guard::cuda
