// PromiseWatch: whether a lease got the part of a device's time that it was promised. Compared over
// windows: what it was owed is its share of the time in which it wanted the device, and what is
// missing counts only as far as neighbours held the device meanwhile. Pure: the caller gives the
// time, nanoseconds on a clock that never falls.
#pragma once

#include <cstdint>
#include <optional>

#include "schedule/quantum.hpp"

namespace loam::node {

using schedule::Nanoseconds;

struct PromiseTerms {
  Nanoseconds window_ns = 60'000'000'000;  // long against turns and kernels, short against bills
  // Of what was owed, that may be missing without a word: kernels do not end on windows' bounds.
  std::int32_t tolerance_permille = 20;
};

// What a lease was owed in [from, until) and did not get because of neighbours.
struct ShareShortfall {
  Nanoseconds from_ns = 0;
  Nanoseconds until_ns = 0;
  Nanoseconds owed_ns = 0;
  Nanoseconds used_ns = 0;
  Nanoseconds missing_ns = 0;  // > 0, at most owed - used

  friend bool operator==(const ShareShortfall&, const ShareShortfall&) = default;
};

class PromiseWatch {
 public:
  PromiseWatch(const PromiseTerms& terms, Nanoseconds now)
      : terms_(terms), begin_ns_(now), seen_ns_(now) {}

  // What holds from now on. `busy_ns`: all device time that the lease ever had; `wants`: it has
  // work in flight or waits; `kept_waiting`: it waits and another lease holds the device. Returns
  // the shortfall of a window that has ended.
  std::optional<ShareShortfall> note(Nanoseconds now, std::int32_t share_milli, Nanoseconds busy_ns,
                                     bool wants, bool kept_waiting);

 private:
  PromiseTerms terms_;
  Nanoseconds begin_ns_;
  Nanoseconds seen_ns_;
  std::optional<Nanoseconds> busy_at_begin_ns_;
  std::int32_t share_milli_ = 0;
  bool wants_ = false, kept_waiting_ = false;
  std::int64_t owed_ = 0;  // thousandths of a nanosecond
  Nanoseconds waited_ns_ = 0;
};

}  // namespace loam::node
