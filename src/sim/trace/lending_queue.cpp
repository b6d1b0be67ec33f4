#include "sim/trace/lending_queue.hpp"

#include <algorithm>
#include <cmath>

namespace loam::sim {

ServiceQueue::ServiceQueue(const ServiceLoad& load, std::int64_t quantum_us, std::int64_t switch_us,
                           std::uint64_t seed)
    : load_(load), quantum_us_(quantum_us), switch_us_(switch_us), random_(seed) {
  responses_ms_.reserve(load.arrivals.size());
}

void ServiceQueue::set_devices(std::vector<std::uint8_t> guests) {
  LOAM_ASSERT(static_cast<std::int64_t>(guests.size()) >= busy());
  guests_ = std::move(guests);
  serve(now_us_);
}

void ServiceQueue::advance(std::int64_t to_us) {
  const std::int64_t took = to_us - now_us_;
  const auto served = static_cast<std::size_t>(busy());
  if (busy_for_us_.size() <= served) busy_for_us_.resize(served + 1);
  busy_for_us_[served] += took;
  const double sum = static_cast<double>(in_system()) * static_cast<double>(took);
  minute_sum_us_ += sum;
  in_system_us_ += sum;
  now_us_ = to_us;
}

void ServiceQueue::serve(std::int64_t now_us) {
  while (head_ < next_ && ends_.size() < guests_.size()) {
    const ServiceLoad::Arrival& request = load_.arrivals[head_++];
    std::int64_t wait = 0;
    if (guests_[ends_.size()] != 0) {
      // The guest is somewhere within its quantum; then the device changes hands, and back.
      wait = random_.between(0, quantum_us_) + switch_us_;
      switching_us_ += 2 * static_cast<double>(switch_us_);
    }
    const std::int64_t end = now_us + wait + request.service_us;
    ends_.push(end);
    serving_us_ += static_cast<double>(request.service_us);
    responses_ms_.push_back(static_cast<float>(static_cast<double>(end - request.at_us) / 1000));
  }
}

void ServiceQueue::run_until(std::int64_t end_us) {
  while (true) {
    const std::int64_t arrival =
        next_ < load_.arrivals.size() ? load_.arrivals[next_].at_us : INT64_MAX;
    const std::int64_t finish = ends_.empty() ? INT64_MAX : ends_.top();
    const std::int64_t at = std::min(arrival, finish);
    if (at >= end_us) break;
    advance(at);
    if (finish <= arrival) {
      ends_.pop();
    } else {
      ++next_;
      if (ends_.size() >= guests_.size()) ++queued_;
    }
    serve(at);
    minute_peak_ = std::max(minute_peak_, in_system());
  }
  advance(end_us);
}

MinuteLoad ServiceQueue::minute_load(std::int64_t length_us) const {
  return {static_cast<float>(minute_sum_us_ / static_cast<double>(length_us)),
          static_cast<float>(minute_peak_)};
}

std::vector<std::int64_t> ServiceQueue::idle_us() const {
  std::vector<std::int64_t> idle(guests_.size());
  std::int64_t sum = 0;
  for (std::size_t device = 0; device < idle.size(); ++device) {
    if (device < busy_for_us_.size()) sum += busy_for_us_[device];
    idle[device] = sum;
  }
  return idle;
}

void ServiceQueue::begin_minute() {
  minute_sum_us_ = 0;
  minute_peak_ = in_system();
  std::fill(busy_for_us_.begin(), busy_for_us_.end(), 0);
}

double ServiceQueue::response_ms(double percentile) {
  if (responses_ms_.empty()) return 0;
  const auto rank = static_cast<std::size_t>(
      std::ceil(percentile / 100 * static_cast<double>(responses_ms_.size())));
  const std::size_t at = std::max<std::size_t>(rank, 1) - 1;
  std::nth_element(responses_ms_.begin(), responses_ms_.begin() + static_cast<std::ptrdiff_t>(at),
                   responses_ms_.end());
  return static_cast<double>(responses_ms_[at]);
}

}  // namespace loam::sim
