// Looks after this machine's devices while tasks run on them: one that is gone or fails is
// reported, so that its leases end and are not billed on, and one that is back is sold again. A
// thread of its own, for a look takes as long as the drivers do.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "app/loamd/loop_thread.hpp"
#include "app/loamd/node_devices.hpp"

namespace loam::daemon {

class DeviceWatch {
 public:
  // Looks every `every`, seldom where no lease runs; 0: never. Both must outlive this.
  DeviceWatch(NodeDevices& devices, LoopThread& loop, Duration every);
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  void start();
  void stop();

 private:
  void run();
  // Until the next look.
  Duration pause(bool soon);

  NodeDevices& devices_;
  LoopThread& loop_;
  const Duration every_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace loam::daemon
