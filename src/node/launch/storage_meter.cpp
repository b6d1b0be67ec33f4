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
  add_up(boottime_ns());
  if (work) held_.work_bytes = work;
  if (checkpoint) held_.checkpoint_bytes = checkpoint;
  if (logs) held_.log_bytes = logs;
}

void StorageMeter::add_up(std::int64_t now_ns) const {
  const std::int64_t length_ms = summed_to_ns_ == 0 ? 0 : (now_ns - summed_to_ns_) / 1'000'000;
  summed_to_ns_ = summed_to_ns_ == 0 ? now_ns : summed_to_ns_ + length_ms * 1'000'000;
  const std::int64_t storage = held_.work_bytes.value_or(0) + held_.log_bytes.value_or(0);
  storage_byte_ms_ += static_cast<Int128>(storage) * length_ms;
  checkpoint_byte_ms_ += static_cast<Int128>(held_.checkpoint_bytes.value_or(0)) * length_ms;
}

StorageHeld StorageMeter::held() const {
  const std::lock_guard lock(mutex_);
  StorageHeld held = held_;
  if (summed_to_ns_ == 0) return held;
  add_up(boottime_ns());
  constexpr int mib_bits = 20;
  held.storage_mib_ms = static_cast<std::int64_t>(storage_byte_ms_ >> mib_bits);
  held.checkpoint_mib_ms = static_cast<std::int64_t>(checkpoint_byte_ms_ >> mib_bits);
  return held;
}

StorageHeld StorageMeter::finish(int limit_ms) {
  cancel_ = true;
  join();
  cancel_ = false;
  walk(limit_ms);
  return held();
}

}  // namespace loam::node
