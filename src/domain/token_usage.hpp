// What one inference request used, by kind of token: the unit in which models are metered. Counted
// where the tokens are computed, step by step, so that it is right also when the client has left.
// Pure.
#pragma once

#include <cstdint>

namespace loam {

struct TokenUsage {
  std::uint32_t prompt_tokens = 0;      // the whole prompt, cached or not
  std::uint32_t cached_tokens = 0;      // of these, taken from a stored prefix
  std::uint32_t generated_tokens = 0;   // sampled, also where the client had left
  std::uint32_t recomputed_tokens = 0;  // computed again after a preemption; never charged
  std::uint64_t engine_time_us = 0;     // this request's part of the steps that it was in

  friend bool operator==(const TokenUsage&, const TokenUsage&) = default;
  TokenUsage& operator+=(const TokenUsage& other) {
    prompt_tokens += other.prompt_tokens;
    cached_tokens += other.cached_tokens;
    generated_tokens += other.generated_tokens;
    recomputed_tokens += other.recomputed_tokens;
    engine_time_us += other.engine_time_us;
    return *this;
  }
};

}  // namespace loam
