// Measures the storage that an attempt holds without holding up whoever asks: a walk runs on a
// thread of its own, seldom enough to cost little, and the last figure stands meanwhile. Shell.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/money.hpp"

namespace loam::node {

struct StorageHeld {
  std::optional<std::int64_t> work_bytes;  // nothing until a walk came to its end
  std::optional<std::int64_t> checkpoint_bytes;
  std::optional<std::int64_t> log_bytes;
  // What was held at each walk, over the time until the next: MiB × ms. Nothing before the first.
  std::optional<std::int64_t> storage_mib_ms;  // working directory and logs
  std::optional<std::int64_t> checkpoint_mib_ms;
};

class StorageMeter {
 public:
  StorageMeter(std::string work, std::string checkpoint, std::string logs);
  ~StorageMeter();
  StorageMeter(const StorageMeter&) = delete;
  StorageMeter& operator=(const StorageMeter&) = delete;

  // Starts a walk unless one runs or the last one is too recent: walks take at most about one
  // part in twenty of the time, and none starts within a minute of the last.
  void tick();
  // The last figures, with the sums up to now.
  StorageHeld held() const;
  // Ends the walk and measures once more here, for at most `limit_ms`; then the last figures.
  StorageHeld finish(int limit_ms);

 private:
  // Adds what is held since the last sum; with mutex_.
  void add_up(std::int64_t now_ns) const;
  void walk(int limit_ms);
  void join();

  const std::string work_;
  const std::string checkpoint_;
  const std::string logs_;
  std::thread walker_;
  std::atomic<bool> walking_ = false;
  std::atomic<bool> cancel_ = false;
  std::atomic<std::int64_t> next_walk_ns_ = 0;  // boottime
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  StorageHeld held_;
  mutable std::int64_t summed_to_ns_ = 0;  // boottime; 0: no walk yet
  mutable Int128 storage_byte_ms_ = 0;
  mutable Int128 checkpoint_byte_ms_ = 0;
};

}  // namespace loam::node
