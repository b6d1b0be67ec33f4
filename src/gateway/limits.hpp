// A tenant's limits: requests and tokens a minute, and requests at once. A request that is let in
// reserves the tokens it may need; what it used is settled at its end. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace loam::gateway {

// 0: no limit.
struct TenantLimits {
  std::uint32_t requests_per_minute = 0;
  std::uint32_t tokens_per_minute = 0;
  std::uint32_t concurrent_requests = 0;
  friend bool operator==(const TenantLimits&, const TenantLimits&) = default;
};

// A minute's allowance that refills evenly.
class Allowance {
 public:
  // `amount` a minute from now on; what was there is kept up to the new amount.
  void set(std::uint32_t amount, Instant now);
  // How long until `wanted` can be taken; nothing if at once. More than a whole minute's amount can
  // be taken only from a full allowance, and leaves a debt.
  Duration wait(std::uint64_t wanted, Instant now);
  void take(std::uint64_t amount);
  void give_back(std::uint64_t amount);
  std::uint64_t left(Instant now);
  bool full(Instant now);

 private:
  void refill(Instant now);

  // In parts of 1/60,000: what is refilled in a millisecond is whole.
  static constexpr std::int64_t parts = 60'000;
  std::uint32_t per_minute_ = 0;
  std::int64_t level_ = 0;
  Instant at_{};
  bool is_set_ = false;
};

class TenantMeter {
 public:
  enum class Which { requests, tokens, concurrency };
  struct Refusal {
    Which which;
    std::uint64_t limit;
    Duration retry_after;
  };

  // Lets the request in, with `tokens` reserved, or says why not. Nothing is taken on refusal.
  std::optional<Refusal> admit(const TenantLimits& limits, std::uint64_t tokens, Instant now);
  // Each admitted request ends once.
  void end(std::uint64_t reserved, std::uint64_t used, Instant now);

  std::uint32_t in_flight() const { return in_flight_; }
  // Nothing would be lost by forgetting it.
  bool idle(Instant now);

 private:
  Allowance requests_;
  Allowance tokens_;
  std::uint32_t in_flight_ = 0;
};

}  // namespace loam::gateway
