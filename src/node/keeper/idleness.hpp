// IdleWatch: whether a lease leaves its device unused for long, so that it can be released or
// parked. With hysteresis: one threshold to be called idle, over a long time, and a higher one to
// be called active again, over a short one; a pause or a single kernel changes nothing. Pure: the
// caller gives the time, nanoseconds on a clock that never falls.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "schedule/quantum.hpp"

namespace loam::node {

using schedule::Nanoseconds;

struct IdleTerms {
  Nanoseconds idle_after_ns = 300'000'000'000;  // with use below `idle_permille` all the while
  std::int32_t idle_permille = 50;
  std::int32_t active_permille = 100;  // above it over one look_ns: active again

  // How often the use is to be noted: a tenth of the time that makes idle.
  Nanoseconds look_ns() const { return idle_after_ns / 10; }
};

class IdleWatch {
 public:
  IdleWatch(const IdleTerms& terms, Nanoseconds now) : terms_(terms), look_ns_(now) {}

  // `busy_ns`: all device time that the lease ever had. Tells true when it has become idle, false
  // when it has become active again, nothing while that did not change. Call about every look_ns();
  // calls in between cost nothing.
  std::optional<bool> note(Nanoseconds now, Nanoseconds busy_ns);
  bool idle() const { return idle_; }

 private:
  static constexpr std::size_t looks = 10;

  IdleTerms terms_;
  Nanoseconds look_ns_;
  std::optional<Nanoseconds> busy_ns_;
  std::array<Nanoseconds, looks> used_ns_{};   // of the last looks, and
  std::array<Nanoseconds, looks> spans_ns_{};  // how long they were
  std::size_t count_ = 0;
  bool idle_ = false;
};

}  // namespace loam::node
