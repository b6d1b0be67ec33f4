// The slice page inside a process of the task: found and mapped at the first OpenCL call that needs
// it, with a slot of its own for this process. Not pure: files, mappings, locks.
#pragma once

#include <cstdint>

#include "guard/slice_page.h"

namespace loam::guard {

class Page {
 public:
  // The process's page; null where there is none that can be trusted: then device calls are refused
  // (said once on standard error). After fork the child gets a slot of its own.
  static Page* of_process();

  const loam_slice_limits& limits() const { return *limits_; }
  loam_slice_counters& counters() const { return *counters_; }
  std::uint32_t device_count() const { return device_count_; }
  std::uint32_t slot() const { return slot_; }
  loam_slot_device& own(std::uint32_t device) const {
    return counters_->slot[slot_].device[device];
  }

  // Gives back what dead processes of the lease held. Costs a system call per other process.
  void reclaim_dead() const;
  // Wakes the keeper.
  void ring() const;

 private:
  const char* open_files();
  const char* open_at(const char* prefix);
  const char* claim_slot(int fd);

  const loam_slice_limits* limits_ = nullptr;
  loam_slice_counters* counters_ = nullptr;
  std::uint32_t device_count_ = 0;
  std::uint32_t slot_ = 0;
  char prefix_[512] = {};
};

// One line on standard error, prefixed "loam-guard: ".
void say(const char* line);

// CLOCK_MONOTONIC.
std::uint64_t now_ns();

// Called in a forked child before anything else, in the order of registration: parts forget what
// belonged to the parent. At most 16.
void at_fork_in_child(void (*forget)());

}  // namespace loam::guard
