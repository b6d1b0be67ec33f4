#include "node/keeper/memory_phases.hpp"

#include <algorithm>
#include <numeric>

namespace loam::node {

namespace {

// Of the variation: what repeats must explain at least this much of it, in thousandths.
constexpr std::int64_t repeats_permille = 800;
constexpr std::size_t iterations_min = 3;
constexpr std::size_t period_min = 2;

// Variation is counted in mebibytes, so that squares of it fit.
std::int64_t mebibytes(std::uint64_t bytes) {
  return static_cast<std::int64_t>(std::min(bytes >> 20, std::uint64_t{1} << 24));
}

}  // namespace

void MemoryPhases::note(std::uint64_t used_bytes) {
  samples_.push_back(used_bytes);
  if (samples_.size() > samples_kept) samples_.pop_front();
  if (++since_refresh_ < refresh_samples) return;
  since_refresh_ = 0;
  find_period();
}

void MemoryPhases::find_period() {
  period_.reset();
  const std::size_t count = samples_.size();
  if (count < iterations_min * period_min) return;
  std::deque<std::int64_t> level;
  for (const std::uint64_t sample : samples_) level.push_back(mebibytes(sample));
  const std::int64_t mean = std::accumulate(level.begin(), level.end(), std::int64_t{0}) /
                            static_cast<std::int64_t>(count);
  for (std::int64_t& value : level) value -= mean;
  // The first lag whose mean product with itself comes close to the variance and is a local peak.
  const auto likeness = [&](std::size_t lag) {
    std::int64_t product = 0, square = 0;
    for (std::size_t i = lag; i < count; ++i) {
      product += level[i] * level[i - lag];
      square += (level[i] * level[i] + level[i - lag] * level[i - lag]) / 2;
    }
    return square == 0 ? std::int64_t{0} : product * 1000 / square;
  };
  std::int64_t before = likeness(period_min - 1);
  for (std::size_t lag = period_min; lag * iterations_min <= count; ++lag) {
    const std::int64_t here = likeness(lag);
    if (here >= repeats_permille && here >= before && here >= likeness(lag + 1)) {
      period_ = lag;
      return;
    }
    before = here;
  }
}

std::uint64_t MemoryPhases::peak_within(std::size_t ahead) const {
  if (samples_.empty()) return UINT64_MAX;
  const std::size_t count = samples_.size();
  std::uint64_t peak = samples_.back();
  if (!period_ || ahead >= *period_)
    return std::max(peak, *std::max_element(samples_.begin(), samples_.end()));
  // Sample count + k is like count + k - period, - 2 period and so on; one place to either side, as
  // iterations are not equally long to the sample.
  for (std::size_t k = 0; k < ahead + 2; ++k)
    for (std::size_t back = *period_ + 1; back <= count + k; back += *period_) {
      const std::size_t at = count + k - back;
      if (at < count) peak = std::max(peak, samples_[at]);
    }
  return peak;
}

}  // namespace loam::node
