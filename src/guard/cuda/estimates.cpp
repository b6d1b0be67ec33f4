#include "guard/cuda/estimates.hpp"

#include <algorithm>

namespace loam::guard::cuda {

std::atomic<std::uint32_t> estimates[LOAM_SLICE_DEVICES_MAX * LOAM_LANES][kinds_max] = {};

namespace {

// The mean of late values; never 0, which means unknown. Lower values count more: whatever else the
// machine does only makes work seem longer.
void fold(std::atomic<std::uint32_t>& place, std::uint64_t value) {
  const std::uint64_t known = place.load(std::memory_order_relaxed);
  const std::uint64_t mean = known == 0      ? value
                             : value < known ? (known + value) / 2
                                             : (3 * known + value) / 4;
  place.store(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(mean, 1, UINT32_MAX)),
              std::memory_order_relaxed);
}

}  // namespace

std::uint64_t first_estimate(std::uint32_t lane, Kind kind, std::uint64_t guess_ns) {
  if (const std::uint64_t known = estimate_of(lane, kind)) return known;
  const std::uint64_t like = estimates[lane][kind.like].load(std::memory_order_relaxed);
  return like ? like : guess_ns;
}

bool Mixture::add_other(Kind kind) {
  for (int i = 0; i < count; ++i) {
    if (parts[i].exact != kind.exact) continue;
    ++parts[i].count;
    last = i;
    return true;
  }
  if (count == most) return false;
  last = count;
  parts[count++] = Part{kind.exact, kind.like, 1};
  return true;
}

void learn(std::uint32_t lane, const Mixture& mixture, std::uint64_t took_ns) {
  std::uint64_t expected = 0, launches = 0;
  for (int i = 0; i < mixture.count; ++i) {
    const Mixture::Part& part = mixture.parts[i];
    expected += part.count *
                std::max<std::uint64_t>(first_estimate(lane, Kind{part.exact, part.like}, 0), 1);
    launches += part.count;
  }
  if (launches == 0) return;
  for (int i = 0; i < mixture.count; ++i) {
    const Mixture::Part& part = mixture.parts[i];
    const std::uint64_t each =
        std::max<std::uint64_t>(first_estimate(lane, Kind{part.exact, part.like}, 0), 1);
    const auto share =
        static_cast<double>(took_ns) * static_cast<double>(each) / static_cast<double>(expected);
    fold(estimates[lane][part.exact], static_cast<std::uint64_t>(share));
    if (part.like != part.exact)
      fold(estimates[lane][part.like], static_cast<std::uint64_t>(share));
  }
}

void learn_one(std::uint32_t lane, Kind kind, std::uint64_t took_ns) {
  fold(estimates[lane][kind.exact], took_ns);
  if (kind.like != kind.exact) fold(estimates[lane][kind.like], took_ns);
}

}  // namespace loam::guard::cuda
