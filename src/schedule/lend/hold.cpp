#include "schedule/lend/hold.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.hpp"

namespace loam::schedule::lend {
namespace {

constexpr std::int64_t emergency_seconds = 60;
constexpr std::int64_t theta_steps = 1'024;
constexpr double load_min = 0.25;
constexpr double devices_max = 1e9;

std::int64_t hold_of(const HoldDemand& demand, double theta) {
  const double wanted = demand.expected + theta * std::max(demand.stock, 0.0) *
                                              std::sqrt(std::max(demand.expected, load_min));
  const auto devices = static_cast<std::int64_t>(std::ceil(std::min(wanted, devices_max)));
  return std::max({std::int64_t{1}, devices, demand.emergency});
}

std::int64_t sum_at(std::span<const HoldDemand> demands, std::int64_t step) {
  const double theta = static_cast<double>(step) / theta_steps;
  std::int64_t sum = 0;
  for (const HoldDemand& demand : demands) sum += hold_of(demand, theta);
  return sum;
}

// Takes from the largest until the sum fits.
void cut(std::vector<std::int64_t>& held, std::int64_t pool) {
  std::int64_t over = std::accumulate(held.begin(), held.end(), std::int64_t{0}) - pool;
  while (over > 0) {
    const auto largest = std::max_element(held.begin(), held.end());
    if (*largest <= 1) return;
    const std::int64_t next = [&] {
      std::int64_t second = 1;
      for (const std::int64_t value : held)
        if (value < *largest) second = std::max(second, value);
      return second;
    }();
    const std::int64_t taken = std::min(over, std::max<std::int64_t>(*largest - next, 1));
    *largest -= taken;
    over -= taken;
  }
}

}  // namespace

std::vector<std::int64_t> holds(std::span<const HoldDemand> demands, std::int64_t pool) {
  // The sum does not fall as theta grows.
  std::int64_t low = 0;
  std::int64_t high = theta_steps;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (sum_at(demands, middle) <= pool) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  std::vector<std::int64_t> held;
  held.reserve(demands.size());
  for (const HoldDemand& demand : demands)
    held.push_back(hold_of(demand, static_cast<double>(low) / theta_steps));
  cut(held, pool);
  return held;
}

void Emergency::observe(std::int64_t second, std::int64_t requests, std::int64_t held) {
  if (requests <= held) return;
  const double n = static_cast<double>(requests);
  const auto needed = static_cast<std::int64_t>(std::ceil(n + std::sqrt(n)));
  devices_ = std::max(devices(second), std::min(needed, 2 * std::max<std::int64_t>(held, 1)));
  until_ = second + emergency_seconds;
}

std::int64_t guestless_devices(const GapTerms& terms, double requests_per_second,
                               std::int64_t most) {
  LOAM_ASSERT(requests_per_second >= 0 && most >= 0);
  const double mean = requests_per_second * (terms.quantum_ms + terms.switch_ms) / 1000;
  const double wait = terms.quantum_ms / 2 + terms.switch_ms;
  double at_least = 1;  // P(Poisson >= k)
  double exactly = std::exp(-mean);
  for (std::int64_t k = 0; k < most; ++k) {
    if (at_least * wait <= terms.mean_wait_max_ms) return k;
    at_least -= exactly;
    exactly *= mean / static_cast<double>(k + 1);
  }
  return most;
}

}  // namespace loam::schedule::lend
