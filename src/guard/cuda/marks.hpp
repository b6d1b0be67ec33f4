// Events that the guard records behind what a process launched, to learn when it is over. One list
// a lane, used under the lane's lock. Not pure: driver.
#pragma once

#include <cstdint>

#include "guard/cuda/estimates.hpp"
#include "guard/cuda/places.hpp"

namespace loam::guard::cuda {

struct Mark {
  CUevent event = nullptr;  // null: none could be recorded; it is over when it is expected to be
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  bool per_thread = false;
  std::uint64_t expected_ns = 0;
  std::uint64_t recorded_ns = 0;
  Mixture mixture;  // empty: nothing is learned from it
};

class Marks {
 public:
  // Records a mark on the stream, for work that is expected to take so long. The thread's context
  // is the stream's. `mixture` may be null. Cost: one driver call.
  void record(CUstream stream, bool per_thread, std::uint64_t expected_ns, const Mixture* mixture,
              std::uint64_t now);
  // Takes off the list what is over, from the front; learns. Cost: a driver call for each that is
  // over, and one for the first that is not.
  void poll(std::uint32_t lane, std::uint64_t now);
  // What was recorded is over, as somebody else found out.
  void all_over();
  // Whether every mark lies on that stream.
  bool all_on(CUstream stream, bool per_thread) const;
  void drop_context(CUcontext context);

  bool empty() const { return count_ == 0; }
  std::uint64_t expected_ns() const { return expected_ns_; }
  // The device's time from `begin()` to the last mark that is over; 0: unknown.
  std::uint64_t measured_ns() const { return measured_ns_; }
  // Starts measuring: records the beginning on the stream.
  void begin(CUstream stream, bool per_thread);
  bool measuring() const { return last_ != nullptr; }
  // Nothing is measured until the next begin().
  void do_not_measure();
  void forget();

 private:
  struct Event {
    CUevent event = nullptr;
    CUcontext context = nullptr;
    bool in_use = false;
  };
  static constexpr std::uint32_t marks_max = 64;
  static constexpr int events_max = marks_max + 4;

  CUevent take_event(CUcontext context);
  void return_event(CUevent event);
  void finish_first(std::uint32_t lane);

  Mark marks_[marks_max];
  std::uint32_t first_ = 0, count_ = 0;
  std::uint64_t expected_ns_ = 0;
  Event events_[events_max] = {};
  CUevent last_ = nullptr;  // the last that is over, from which the next is measured
  CUcontext last_context_ = nullptr;
  std::uint64_t measured_ns_ = 0;
};

}  // namespace loam::guard::cuda
