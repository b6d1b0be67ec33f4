// How hot a model is: its tokens of the last hour, minute by minute. Knows no clock. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace loam::infer {

class TokenRate {
 public:
  // `total`: tokens since whoever counts began; one that is smaller than before began anew. Times
  // rise.
  void note(std::uint64_t total, Instant now) {
    const std::int64_t minute = now.ms / Duration::minutes(1).ms;
    Minute& slot = minutes_[static_cast<std::size_t>(minute) % minutes_.size()];
    if (slot.number != minute) slot = {minute, 0};
    if (last_total_) slot.tokens += total >= *last_total_ ? total - *last_total_ : total;
    last_total_ = total;
  }
  // On average over the hour.
  std::uint64_t per_minute(Instant now) const {
    const std::int64_t oldest =
        now.ms / Duration::minutes(1).ms - static_cast<std::int64_t>(minutes_.size());
    std::uint64_t sum = 0;
    for (const Minute& minute : minutes_) sum += minute.number > oldest ? minute.tokens : 0;
    return (sum + minutes_.size() - 1) / minutes_.size();
  }

 private:
  struct Minute {
    std::int64_t number = -1;
    std::uint64_t tokens = 0;
  };
  std::array<Minute, 60> minutes_;
  std::optional<std::uint64_t> last_total_;
};

}  // namespace loam::infer
