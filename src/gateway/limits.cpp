#include "gateway/limits.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::gateway {

void Allowance::refill(Instant now) {
  if (now <= at_) return;
  const std::int64_t full = std::int64_t{per_minute_} * parts;
  const std::int64_t missing = full - level_;
  const std::int64_t passed_ms = (now - at_).ms;
  at_ = now;
  if (per_minute_ == 0) return;
  // Divided, not multiplied: a long silence must not overflow.
  level_ = passed_ms >= missing / std::int64_t{per_minute_} + 1
               ? full
               : std::min(full, level_ + passed_ms * std::int64_t{per_minute_});
}

void Allowance::set(std::uint32_t amount, Instant now) {
  if (is_set_ && amount == per_minute_) return refill(now);
  const std::int64_t full = std::int64_t{amount} * parts;
  if (is_set_) refill(now);
  level_ = is_set_ ? std::min(level_, full) : full;
  per_minute_ = amount;
  at_ = now;
  is_set_ = true;
}

Duration Allowance::wait(std::uint64_t wanted, Instant now) {
  refill(now);
  if (per_minute_ == 0) return {};
  const std::int64_t needed =
      static_cast<std::int64_t>(std::min<std::uint64_t>(wanted, per_minute_)) * parts;
  if (level_ >= needed) return {};
  return {(needed - level_ + per_minute_ - 1) / per_minute_};
}

void Allowance::take(std::uint64_t amount) {
  if (per_minute_ == 0) return;
  level_ -= static_cast<std::int64_t>(amount) * parts;
}

void Allowance::give_back(std::uint64_t amount) {
  if (per_minute_ == 0) return;
  level_ = std::min(level_ + static_cast<std::int64_t>(amount) * parts,
                    std::int64_t{per_minute_} * parts);
}

std::uint64_t Allowance::left(Instant now) {
  refill(now);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(level_, 0) / parts);
}

bool Allowance::full(Instant now) {
  refill(now);
  return level_ >= std::int64_t{per_minute_} * parts;
}

std::optional<TenantMeter::Refusal> TenantMeter::admit(const TenantLimits& limits,
                                                       std::uint64_t tokens, Instant now) {
  requests_.set(limits.requests_per_minute, now);
  tokens_.set(limits.tokens_per_minute, now);
  if (limits.concurrent_requests > 0 && in_flight_ >= limits.concurrent_requests) {
    // Nobody knows when one of them ends.
    return Refusal{Which::concurrency, limits.concurrent_requests, Duration::seconds(1)};
  }
  if (const Duration wait = requests_.wait(1, now); wait.ms > 0)
    return Refusal{Which::requests, limits.requests_per_minute, wait};
  if (const Duration wait = tokens_.wait(tokens, now); wait.ms > 0)
    return Refusal{Which::tokens, limits.tokens_per_minute, wait};
  requests_.take(1);
  tokens_.take(tokens);
  ++in_flight_;
  return std::nullopt;
}

void TenantMeter::end(std::uint64_t reserved, std::uint64_t used, Instant now) {
  LOAM_ASSERT(in_flight_ > 0);
  --in_flight_;
  tokens_.left(now);  // refilled up to now, so that what is given back is not refilled twice
  if (used > reserved) {
    tokens_.take(used - reserved);
  } else {
    tokens_.give_back(reserved - used);
  }
}

bool TenantMeter::idle(Instant now) {
  return in_flight_ == 0 && requests_.full(now) && tokens_.full(now);
}

}  // namespace loam::gateway
