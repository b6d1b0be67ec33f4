#include "node/keeper/promise.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::node {

std::optional<ShareShortfall> PromiseWatch::note(Nanoseconds now, std::int32_t share_milli,
                                                 Nanoseconds busy_ns, bool wants,
                                                 bool kept_waiting) {
  LOAM_ASSERT(now >= seen_ns_ && share_milli >= 0 && share_milli <= 1000);
  if (!busy_at_begin_ns_) busy_at_begin_ns_ = busy_ns;
  const Nanoseconds step = now - seen_ns_;
  if (wants_) owed_ += step * share_milli_;
  if (kept_waiting_) waited_ns_ += step;
  seen_ns_ = now;
  share_milli_ = share_milli;
  wants_ = wants;
  kept_waiting_ = kept_waiting;
  if (now - begin_ns_ < terms_.window_ns) return std::nullopt;

  ShareShortfall window{begin_ns_, now, owed_ / 1000,
                        std::max<Nanoseconds>(busy_ns - *busy_at_begin_ns_, 0), 0};
  window.missing_ns = std::min(window.owed_ns - window.used_ns, waited_ns_);
  begin_ns_ = now;
  busy_at_begin_ns_ = busy_ns;
  owed_ = 0;
  waited_ns_ = 0;
  if (window.missing_ns <= window.owed_ns / 1000 * terms_.tolerance_permille) return std::nullopt;
  return window.missing_ns > 0 ? std::optional(window) : std::nullopt;
}

}  // namespace loam::node
