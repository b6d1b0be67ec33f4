// VirtualClock: time that moves when the simulation says so. True time drives the simulation; the
// clock that the engine reads may be stepped, and like a daemon's it never falls. Pure.
#pragma once

#include <algorithm>

#include "base/assert.hpp"
#include "engine/ports.hpp"

namespace loam::sim {

class VirtualClock final : public engine::Clock {
 public:
  explicit VirtualClock(Instant start) : true_now_(start), shown_(start) {}

  // What the engine sees: holds still while a step back is made up for.
  Instant now() override {
    shown_ = std::max(shown_, true_now_ + offset_);
    return shown_;
  }
  Instant true_now() const { return true_now_; }
  // The true time at which now() reaches `seen`; not before the present.
  Instant true_time_of(Instant seen) const {
    if (seen == Instant::never()) return seen;
    return std::max(true_now_, seen - offset_);
  }
  // Requires a time not before true_now().
  void advance_to(Instant true_time) {
    LOAM_ASSERT(true_time >= true_now_);
    true_now_ = true_time;
  }
  // Steps the engine's clock, forwards or back.
  void step(Duration by) { offset_ += by; }

 private:
  Instant true_now_;
  Instant shown_;
  Duration offset_;
};

}  // namespace loam::sim
