// Drives the lending replay: each second the requests and what is urgent, each minute the forecast
// and the training.
#include <algorithm>
#include <cmath>
#include <memory>

#include "schedule/lend/forecast.hpp"
#include "schedule/lend/hold.hpp"
#include "sim/trace/lending.hpp"
#include "sim/trace/lending_pool.hpp"
#include "sim/trace/lending_queue.hpp"

namespace loam::sim {
namespace {

namespace lend = schedule::lend;

constexpr std::int64_t us_per_second = 1'000'000;
constexpr std::int64_t minute_us = 60 * us_per_second;
// Kubernetes' horizontal pod autoscaler: looks every 15 s, shrinks to the most of 5 minutes.
constexpr std::int64_t autoscale_every_s = 15;
constexpr std::size_t autoscale_memory = 20;

lend::WeekMinute week_minute(std::int64_t minute) {
  return {static_cast<int>(minute / lend::minutes_per_day % 7),
          static_cast<int>(minute % lend::minutes_per_day)};
}

struct Controlled {
  ServiceQueue queue;
  lend::Forecaster forecaster;
  lend::Emergency emergency;
  std::int64_t target = 1;           // devices of the last minute's decision
  double seen_us = 0;                // requests in the system over time, at the last autoscaling
  std::vector<std::int64_t> wanted;  // by autoscaling, of the last minutes
};

class Replay {
 public:
  Replay(const std::vector<ServiceLoad>& services, const std::vector<TrainingJob>& jobs,
         const LendingWeeks& weeks, const LendingSettings& settings)
      : services_(services),
        settings_(settings),
        seconds_(std::int64_t{weeks.days} * 86'400),
        history_minutes_(std::int64_t{weeks.history_days} * lend::minutes_per_day),
        pool_(settings_, jobs, services.size()) {
    const auto terms = lend::forecast_terms(settings.wake_s * 1000, settings.save_s * 1000,
                                            settings.load_s * 1000, turns(), settings.shortage);
    for (std::size_t i = 0; i < services.size(); ++i)
      services_now_.push_back(
          {ServiceQueue(services[i], settings.quantum_us, settings.switch_us, weeks.seed * 77 + i),
           lend::Forecaster(terms),
           {},
           1,
           0,
           {}});
  }

  LendingOutcome run() {
    begin();
    for (std::int64_t second = 1; second <= seconds_; ++second) {
      for (Controlled& service : services_now_) service.queue.run_until(second * us_per_second);
      urgent(second);
      if (second % 60 == 0) minute(second);
    }
    return outcome();
  }

 private:
  bool turns() const { return settings_.lending == Lending::forecast_and_turns; }
  bool forecasts() const { return turns() || settings_.lending == Lending::forecast; }
  bool shared() const { return settings_.lending != Lending::exclusive; }

  void begin() {
    for (std::size_t i = 0; i < services_.size(); ++i) {
      Controlled& service = services_now_[i];
      if (!shared()) {
        service.queue.set_devices(
            std::vector<std::uint8_t>(static_cast<std::size_t>(services_[i].peak), 0));
        continue;
      }
      const std::vector<MinuteLoad>& history = services_[i].history;
      for (std::size_t minute = 0; minute < history.size(); ++minute)
        service.forecaster.observe(week_minute(static_cast<std::int64_t>(minute)),
                                   static_cast<double>(history[minute].mean),
                                   static_cast<double>(history[minute].peak));
      const double last = history.empty() ? 1.0 : static_cast<double>(history.back().peak);
      service.target = std::max<std::int64_t>(1, static_cast<std::int64_t>(last) + 1);
    }
    if (forecasts()) decide(0);
    if (shared()) {
      for (std::size_t i = 0; i < services_.size(); ++i)
        while (pool_.held(i) < services_now_[i].target) pool_.install(i);
    }
    pool_.end_minute(std::vector<std::vector<std::int64_t>>(services_.size()), 0);
    refresh();
  }

  void refresh() {
    if (!shared()) return;
    for (std::size_t i = 0; i < services_now_.size(); ++i)
      services_now_[i].queue.set_devices(pool_.guests_of(i));
  }

  // What each second may bring: devices that woke, and more requests than devices.
  void urgent(std::int64_t second) {
    if (!shared()) return;
    for (std::size_t i = 0; i < services_now_.size(); ++i) {
      Controlled& service = services_now_[i];
      if (pool_.wake(i, second)) service.queue.set_devices(pool_.guests_of(i));
      if (forecasts()) {
        service.emergency.observe(second, service.queue.in_system(), pool_.held(i));
        grow(i, std::max(service.target, service.emergency.devices(second)), second);
      } else if (second % autoscale_every_s == 0) {
        autoscale(service);
        grow(i, service.target, second);
        shrink(i, service.target);
      }
    }
  }

  void autoscale(Controlled& service) const {
    const double now_us = service.queue.in_system_us();
    const double mean =
        (now_us - service.seen_us) / static_cast<double>(autoscale_every_s * us_per_second);
    service.seen_us = now_us;
    const auto wanted = static_cast<std::int64_t>(std::ceil(mean / settings_.threshold));
    service.wanted.push_back(std::max<std::int64_t>(wanted, 1));
    if (service.wanted.size() > autoscale_memory) service.wanted.erase(service.wanted.begin());
    service.target = *std::max_element(service.wanted.begin(), service.wanted.end());
  }

  void grow(std::size_t i, std::int64_t target, std::int64_t now) {
    while (pool_.held(i) < target && pool_.take(i, now)) {
    }
  }

  void shrink(std::size_t i, std::int64_t target) {
    ServiceQueue& queue = services_now_[i].queue;
    if (pool_.give(i, pool_.held(i) - target, queue.busy())) queue.set_devices(pool_.guests_of(i));
  }

  void decide(std::int64_t second) {
    std::vector<lend::HoldDemand> demands;
    for (Controlled& service : services_now_)
      demands.push_back({service.forecaster.expect(), service.forecaster.stock(),
                         service.emergency.devices(second)});
    const std::vector<std::int64_t> holds = lend::holds(demands, settings_.devices);
    for (std::size_t i = 0; i < holds.size(); ++i) services_now_[i].target = holds[i];
  }

  void minute(std::int64_t second) {
    std::vector<std::vector<std::int64_t>> idle;
    for (Controlled& service : services_now_) {
      const MinuteLoad load = service.queue.minute_load(minute_us);
      idle.push_back(service.queue.idle_us());
      service.queue.begin_minute();
      if (forecasts())
        service.forecaster.observe(week_minute(history_minutes_ + second / 60 - 1),
                                   static_cast<double>(load.mean), static_cast<double>(load.peak));
    }
    if (forecasts()) decide(second);
    // Training is settled by who held what during the minute; then devices change hands.
    pool_.end_minute(shared() ? idle : std::vector<std::vector<std::int64_t>>(services_.size()),
                     second);
    if (forecasts()) {
      for (std::size_t i = 0; i < services_now_.size(); ++i) shrink(i, services_now_[i].target);
      for (std::size_t i = 0; i < services_now_.size(); ++i)
        grow(i, services_now_[i].target, second);
    }
    refresh();
  }

  LendingOutcome outcome() {
    LendingOutcome result;
    double served_s = 0;
    double lost_s = 0;
    double devices = static_cast<double>(settings_.devices);
    for (std::size_t i = 0; i < services_now_.size(); ++i) {
      ServiceQueue& queue = services_now_[i].queue;
      served_s += queue.serving_us() / 1e6;
      lost_s += queue.switching_us() / 1e6;
      if (!shared()) devices += static_cast<double>(services_[i].peak);
      result.p50_ms.push_back(queue.response_ms(50));
      result.p99_ms.push_back(queue.response_ms(99));
      result.queued.push_back(queue.queued());
    }
    const double all_s = devices * static_cast<double>(seconds_);
    result.serving = served_s / all_s;
    result.use = (served_s + pool_.trained_s() - lost_s) / all_s;
    result.tasks = pool_.started();
    result.finished = pool_.finished();
    result.preemptions = pool_.preemptions();
    result.completion_mean_s = pool_.completion_mean_s(seconds_);
    return result;
  }

  const std::vector<ServiceLoad>& services_;
  LendingSettings settings_;
  std::int64_t seconds_;
  std::int64_t history_minutes_;
  LendingPool pool_;
  std::vector<Controlled> services_now_;
};

}  // namespace

LendingOutcome replay_lending(const std::vector<ServiceLoad>& services,
                              const std::vector<TrainingJob>& jobs, const LendingWeeks& weeks,
                              const LendingSettings& settings) {
  return Replay(services, jobs, weeks, settings).run();
}

}  // namespace loam::sim
