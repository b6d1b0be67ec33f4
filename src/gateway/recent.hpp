// What happened in the last minute, for people who look on: sums and quantiles over slices of ten
// seconds, the oldest of which is forgotten whole. Knows no clock: times are handed in. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace loam::gateway {

// Counts of durations in steps of at most an eighth of their size, from a microsecond to two
// minutes.
class DurationCounts {
 public:
  void observe(std::uint64_t microseconds);
  void add(const DurationCounts& other);
  // At least so many permille of what was observed took no longer, told to an eighth above; nothing
  // where nothing was observed.
  std::optional<std::uint64_t> quantile_us(std::uint32_t permille) const;

 private:
  static constexpr std::size_t buckets = 8 * 25;
  std::array<std::uint32_t, buckets> counts_{};
  std::uint64_t total_ = 0;
};

class Recent {
 public:
  struct Summary {
    Duration over{};  // what the sums are over: up to a minute
    std::uint64_t generated_tokens = 0;
    std::uint64_t prompt_tokens = 0;  // of requests that ended
    std::uint64_t cached_tokens = 0;  // of these
    std::optional<std::uint64_t> first_token_p50_us, first_token_p99_us;
    std::optional<std::uint64_t> gap_p50_us, gap_p99_us;
  };

  // `now` of one clock that never goes back.
  void first_token(std::uint64_t microseconds, Instant now);
  void gap(std::uint64_t microseconds, Instant now);
  void generated(std::uint64_t tokens, Instant now);
  void prompt(std::uint64_t tokens, std::uint64_t cached, Instant now);
  Summary summary(Instant now) const;

 private:
  struct Slice {
    std::int64_t number = -1;
    std::uint64_t generated_tokens = 0;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t cached_tokens = 0;
    DurationCounts first_token;
    DurationCounts gap;
  };
  Slice& at(Instant now);

  std::array<Slice, 6> slices_;
  std::optional<Instant> since_;  // the first that was told
};

}  // namespace loam::gateway
