// What the gateway counts, and its text for Prometheus (text format 0.0.4). Knows no clock: times
// are handed in. Pure. Internal to this folder.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "domain/token_usage.hpp"
#include "gateway/ports.hpp"
#include "infer/wire.hpp"

namespace loam::gateway {

// Upper bounds in milliseconds; one more bucket takes the rest.
inline constexpr std::array<std::uint32_t, 14> bucket_ms{1,   2,   5,    10,   20,   50,    100,
                                                         200, 500, 1000, 2000, 5000, 10000, 60000};

struct Histogram {
  std::array<std::uint64_t, bucket_ms.size() + 1> counts{};
  std::uint64_t sum_us = 0;
  void observe(std::uint64_t microseconds);
};

struct ModelMetrics {
  std::map<std::string, std::uint64_t, std::less<>> ended;  // requests by outcome
  std::uint64_t refused = 0;                                // by a tenant's limits
  std::uint64_t repeated = 0;                               // tries on another instance
  std::uint32_t in_flight = 0;
  std::uint32_t waiting = 0;  // for an instance to come up
  std::uint64_t chunks = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t generated_tokens = 0;
  std::array<std::uint64_t, 24> tokens_by_hour{};  // of the day, UTC
  Histogram to_first_token;
  Histogram gap;
  Histogram lasted;

  void count(const TokenUsage& usage, Instant now);
};

// An instance as it stands.
struct InstanceReport {
  std::string name;
  std::string model;
  enum class State { down, starting, up, silent, draining } state = State::down;
  std::uint32_t in_flight = 0;  // of this gateway
  infer::wire::Welcome welcome;
  infer::wire::Stats stats;
};
const char* name_of(InstanceReport::State state) noexcept;

std::string metrics_text(const std::map<std::string, ModelMetrics>& models,
                         const std::vector<InstanceReport>& instances);

}  // namespace loam::gateway
