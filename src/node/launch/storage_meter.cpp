#include "node/launch/storage_meter.hpp"

#include <algorithm>

#include "node/launch/clock.hpp"
#include "node/launch/file.hpp"

namespace loam::node {

namespace {

constexpr std::int64_t walk_interval_ns_min = 60'000'000'000;  // storage is billed by the hour
constexpr std::int64_t first_walk_ns = 5'000'000'000;  // a program's start comes before its books
constexpr std::int64_t rest_per_walk = 20;             // times the length of the last walk
constexpr int walk_limit_ms = 600'000;                 // a tree too big to measure stays null

}  // namespace

StorageMeter::StorageMeter(std::string work, std::string checkpoint, std::string logs)
    : work_(std::move(work)), checkpoint_(std::move(checkpoint)), logs_(std::move(logs)) {
  next_walk_ns_ = boottime_ns() + first_walk_ns;
}

StorageMeter::~StorageMeter() {
  cancel_ = true;
  join();
}

void StorageMeter::join() {
  if (walker_.joinable()) walker_.join();
}

void StorageMeter::tick() {
  if (walking_ || boottime_ns() < next_walk_ns_) return;
  join();
  walking_ = true;
  walker_ = std::thread([this] {
    const std::int64_t begin_ns = boottime_ns();
    walk(walk_limit_ms);
    const std::int64_t end_ns = boottime_ns();
    next_walk_ns_ = end_ns + std::max(walk_interval_ns_min, (end_ns - begin_ns) * rest_per_walk);
    walking_ = false;
  });
}

void StorageMeter::walk(int limit_ms) {
  const auto work = bytes_held(work_, limit_ms, cancel_);
  const auto checkpoint = bytes_held(checkpoint_, limit_ms, cancel_);
  const auto logs = bytes_held(logs_, limit_ms, cancel_);
  const std::lock_guard lock(mutex_);
  if (work) held_.work_bytes = work;
  if (checkpoint) held_.checkpoint_bytes = checkpoint;
  if (logs) held_.log_bytes = logs;
}

StorageHeld StorageMeter::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

StorageHeld StorageMeter::finish(int limit_ms) {
  cancel_ = true;
  join();
  cancel_ = false;
  walk(limit_ms);
  return held();
}

}  // namespace loam::node
