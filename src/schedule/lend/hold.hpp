// How many devices each service holds: what it is expected to need and a stock, cut alike for all
// where the pool is too small; more at once where requests already wait. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace loam::schedule::lend {

struct HoldDemand {
  double expected = 0;         // Forecaster::expect()
  double stock = 0;            // Forecaster::stock()
  std::int64_t emergency = 0;  // Emergency::devices()
};

// max(1, ceil(max(emergency, expected + theta * stock * sqrt(max(expected, 1/4))))) for each
// service, with the largest theta <= 1 for which they fit the pool. Where even theta = 0 does not,
// the largest are cut first, ties by index, none below 1 (so the sum may pass a pool smaller than
// the number of services). O(services).
std::vector<std::int64_t> holds(std::span<const HoldDemand> demands, std::int64_t pool);

// More requests in the system than devices held: for a minute the service holds as many as they
// and their root need, at most twice what it holds. Looked at every second.
class Emergency {
 public:
  // Requires rising seconds.
  void observe(std::int64_t second, std::int64_t requests, std::int64_t held);
  // 0 where there is none.
  std::int64_t devices(std::int64_t second) const { return second < until_ ? devices_ : 0; }

 private:
  std::int64_t devices_ = 0;
  std::int64_t until_ = 0;
};

struct GapTerms {
  double quantum_ms = 4;  // guests are stoppable every so long
  double switch_ms = 0.5;
  double mean_wait_max_ms = 3;  // that guests may add to a request on average
};

// How many idle devices a service keeps without guests where the quantum is longer than its promise
// allows: the smallest k with P(Poisson(rate * (q + c)) >= k) * (q/2 + c) <= mean_wait_max, so that
// a request rarely meets a guest. `requests_per_second` >= 0. At most `most`.
std::int64_t guestless_devices(const GapTerms& terms, double requests_per_second,
                               std::int64_t most);

}  // namespace loam::schedule::lend
