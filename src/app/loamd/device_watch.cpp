#include "app/loamd/device_watch.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

namespace loam::daemon {
namespace {

constexpr std::int64_t idle_factor = 5;  // looks are that much rarer without leases
constexpr Duration confirm_after = Duration::seconds(5);  // a driver may be slow for a moment

}  // namespace

DeviceWatch::DeviceWatch(NodeDevices& devices, LoopThread& loop, Duration every)
    : devices_(devices), loop_(loop), every_(every) {}

DeviceWatch::~DeviceWatch() {
  stop();
}

void DeviceWatch::start() {
  if (every_.ms > 0) thread_ = std::thread([this] { run(); });
}

void DeviceWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Duration DeviceWatch::pause(bool soon) {
  if (soon) return std::min(confirm_after, every_);
  bool idle = true;
  loop_.read([&](const engine::State& state, Instant) { idle = state.leases.empty(); });
  return idle ? Duration{every_.ms * idle_factor} : every_;
}

// The first look is soon: what was lost while no loamd ran is known only now.
void DeviceWatch::run() {
  bool soon = true;
  std::string trouble;
  for (;;) {
    const Duration until = pause(soon);
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(until.ms), [this] { return stopping_; });
      if (stopping_) return;
    }
    const auto missing = devices_.check();
    soon = missing && *missing;
    if (!missing && to_text(missing.error()) != trouble) {  // said once
      trouble = to_text(missing.error());
      spdlog::warn("the devices cannot be looked after: {}", trouble);
    }
  }
}

}  // namespace loam::daemon
