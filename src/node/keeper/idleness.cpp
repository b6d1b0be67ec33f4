#include "node/keeper/idleness.hpp"

#include <numeric>

#include "base/assert.hpp"

namespace loam::node {

std::optional<bool> IdleWatch::note(Nanoseconds now, Nanoseconds busy_ns) {
  LOAM_ASSERT(now >= look_ns_);
  if (!busy_ns_) busy_ns_ = busy_ns;
  const Nanoseconds span = now - look_ns_;
  if (span < terms_.look_ns()) return std::nullopt;
  const Nanoseconds used = busy_ns - *busy_ns_;
  used_ns_[count_ % looks] = used;
  spans_ns_[count_ % looks] = span;
  ++count_;
  look_ns_ = now;
  busy_ns_ = busy_ns;
  if (idle_) {
    if (used <= span / 1000 * terms_.active_permille) return std::nullopt;
    idle_ = false;
    count_ = 0;
    used_ns_.fill(0);
    spans_ns_.fill(0);
    return false;
  }
  const Nanoseconds seen = std::accumulate(spans_ns_.begin(), spans_ns_.end(), Nanoseconds{0});
  const Nanoseconds all = std::accumulate(used_ns_.begin(), used_ns_.end(), Nanoseconds{0});
  if (seen < terms_.idle_after_ns || all >= seen / 1000 * terms_.idle_permille) return std::nullopt;
  idle_ = true;
  return true;
}

}  // namespace loam::node
