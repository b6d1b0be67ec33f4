// Statistics of repeated measurements. The interval of a median is distribution-free: the number
// of values below the true median is binomial(n, 1/2) (Hahn & Meeker, "Statistical Intervals",
// section 5.2). Pure but for the clocks.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/assert.hpp"
#include "bench/bench.hpp"

namespace loam::bench {
namespace {

constexpr std::size_t median_values_min = 6;  // below, even the extremes hold less than 95 %
constexpr double tail = 0.025;

// The largest k for which P(binomial(n, 1/2) <= k - 1) is within one tail: the interval reaches
// from the k-th smallest to the k-th largest value.
std::size_t interval_rank(std::size_t n) {
  const double count = static_cast<double>(n);
  double below = 0;
  std::size_t k = 0;
  while (k < n) {
    const double i = static_cast<double>(k);
    below += std::exp(std::lgamma(count + 1) - std::lgamma(i + 1) - std::lgamma(count - i + 1) -
                      count * std::log(2.0));
    if (below > tail) break;
    ++k;
  }
  return k;
}

}  // namespace

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double core_seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    const int failed = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    LOAM_ASSERT(failed == 0);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  work();
  return now() - start;
}

double percentile(std::vector<double> values, double p) {
  LOAM_ASSERT(!values.empty());
  LOAM_ASSERT(p >= 0 && p <= 100);
  const double rank = std::ceil(p / 100 * static_cast<double>(values.size()));
  const std::size_t at = rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

Median median_of(std::vector<double> values) {
  LOAM_ASSERT(values.size() >= median_values_min);
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const std::size_t k = interval_rank(n);
  LOAM_ASSERT(k >= 1);
  const double middle = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {middle, {values[k - 1], values[n - k]}};
}

Median compare_alternating(const std::function<double()>& a, const std::function<double()>& b,
                           int pairs, const std::function<void(int pair)>& after_pair) {
  LOAM_ASSERT(pairs >= pairs_min);
  std::vector<double> ratios;
  for (int pair = 0; pair < pairs; ++pair) {
    double cost_a = 0;
    double cost_b = 0;
    if (pair % 2 == 0) {
      cost_a = a();
      cost_b = b();
    } else {
      cost_b = b();
      cost_a = a();
    }
    LOAM_ASSERT(cost_a > 0 && cost_b > 0);
    ratios.push_back(cost_a / cost_b);
    if (after_pair) after_pair(pair + 1);
  }
  return median_of(std::move(ratios));
}

}  // namespace loam::bench
