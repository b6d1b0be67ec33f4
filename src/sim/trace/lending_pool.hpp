// The devices of the lending replay: who holds them, which training task is on them, what taking
// one costs. Part of the replay (lending.hpp). Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/trace/lending.hpp"

namespace loam::sim {

// Seconds from the replay's start; a minute is the step of training.
class LendingPool {
 public:
  // `services` may be 0: a cluster of training alone.
  LendingPool(const LendingSettings& settings, const std::vector<TrainingJob>& jobs,
              std::size_t services);

  // The devices that serve, in the order in which requests fill them: each minute those without a
  // guest come first, so that a guest is met only where requests are many.
  const std::vector<int>& serving(std::size_t service) const { return serving_[service]; }
  // Those and the ones that wake for it.
  std::int64_t held(std::size_t service) const;
  // Where guests live, for ServiceQueue.
  std::vector<std::uint8_t> guests_of(std::size_t service) const;

  // Takes the cheapest device for the service; false where every device is held.
  bool take(std::size_t service, std::int64_t now);
  // Like take(), but it serves at once: for the start of the replay.
  void install(std::size_t service);
  // Gives `count` devices back that are idle, those without a guest first; all that are idle where
  // they are fewer. `busy` of them serve a request. True if any went back.
  bool give(std::size_t service, std::int64_t count, std::int64_t busy);
  // True if a device of the service began to serve at `now`.
  bool wake(std::size_t service, std::int64_t now);

  // A minute has ended: training gets its time. idle_us[service][i] is what device i did not serve
  // in it. Then waiting tasks start.
  void end_minute(const std::vector<std::vector<std::int64_t>>& idle_us, std::int64_t now);

  double trained_s() const { return trained_s_; }  // device seconds of progress
  std::int64_t started() const { return started_; }
  std::int64_t finished() const { return finished_; }
  std::int64_t preemptions() const { return preemptions_; }
  // Mean over all tasks submitted by `end`; what has not finished counts until `end`.
  double completion_mean_s(std::int64_t end) const;

 private:
  static constexpr int nobody = -1;

  struct Device {
    int owner = nobody;  // service
    int task = nobody;
    bool waking = false;
    std::int64_t free_at = 0;  // a task saves until then; or it wakes until then
  };
  struct Task {
    int gang = 1;
    double work_s = 0;
    double done_s = 0;
    std::int64_t arrived = 0;
    std::int64_t started = 0;      // this time
    std::int64_t active_from = 0;  // its load is over
    std::int64_t settled = 0;
    std::vector<int> devices;
  };

  bool turns() const { return settings_.lending == Lending::forecast_and_turns; }
  int cheapest(std::int64_t now) const;
  void preempt(int task, std::int64_t now);
  void settle(Task& task, std::int64_t now, double rate);
  void finish(int task, std::int64_t now, double rate);
  void submit(std::int64_t now);
  void submit_one(const TrainingJob& job, std::int64_t arrived);
  void start_waiting(std::int64_t now);
  bool start_gangs(std::vector<int>& free, std::int64_t now);
  void start_singles(std::vector<int>& hosts, std::int64_t now);
  bool has_guest(int device) const {
    return devices_[static_cast<std::size_t>(device)].task != nobody;
  }
  void start(int task, std::vector<int> devices, std::int64_t now);

  const LendingSettings& settings_;
  const std::vector<TrainingJob>& jobs_;
  std::vector<Device> devices_;
  std::vector<std::vector<int>> serving_;
  std::vector<std::vector<int>> waking_;
  std::vector<Task> tasks_;
  std::vector<int> running_;
  std::deque<int> waiting_;
  std::size_t next_job_ = 0;
  double trained_s_ = 0;
  std::int64_t started_ = 0;
  std::int64_t finished_ = 0;
  std::int64_t preemptions_ = 0;
  double completed_s_ = 0;
};

}  // namespace loam::sim
