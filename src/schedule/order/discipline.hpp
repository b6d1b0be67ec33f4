// Discipline: in what order a queue's tasks are tried, what may overtake one that does not fit, and
// who may be stopped for whom. Named presets are what people choose. Pure.
//
//   fifo, priority, drf, mlfq       what a queue can choose
//   blind, semi_blind               for tasks of unknown length, and with stated limits (default)
//   any, easy, conservative, sjf, srtf, srsf, las2: known orders to compare with
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace loam::schedule {

enum class Order {
  fifo,       // arrival
  priority,   // level, each `ageing` of waiting counting as one level more
  drf,        // the tenant, then the project, with the least weighted dominant share
  mlfq,       // device time had so far, in steps; arrival within a step
  shortest,   // known or stated length
  remaining,  // what is left of it
  area,       // what is left of it × devices
  blind,      // waiting relative to a typical length; longer than most counts half
  semi_blind  // Gittins index of what is left, given the stated limit
};

enum class Overtaking {
  none,          // nothing passes one that does not fit where they want the same devices
  easy,          // what does not delay the first that does not fit
  conservative,  // what delays no one before it
  any,           // whatever fits
};

enum class Preemption {
  none,
  refill,   // at every pass the pool is filled anew in order
  urgency,  // for one that is `urgency_factor` as urgent
  level,    // for one of a higher level
};

struct Discipline {
  Order order = Order::fifo;
  Overtaking overtaking = Overtaking::none;
  Preemption preemption = Preemption::none;
  // Look again this long after the last event: as priorities change with time alone. 0: no need.
  Duration look_again;
  Duration ageing = Duration::minutes(30);
  // mlfq: a task moves down a step when its device time passes one of these, in device-seconds.
  std::vector<std::int64_t> steps_device_s;
  double urgency_factor = 1.5;
  // One that has waited for so long is overdue at the latest: it is tried before all others, in
  // order of arrival, the pool drains for it, and once started it runs to its end. 0: never.
  Duration overdue_after;
  // A started task is left alone for the least of max(safe_min, served/4) and safe_max.
  Duration safe_min;
  Duration safe_max;
  // For an overdue one it is left alone no longer than this.
  Duration overdue_safe_max;
  // It is preempted at most so often within a window (0: in its life), once more for each
  // `preemption_earned` of useful time (0: never), then protected. 0: no such protection.
  std::int64_t preemptions_max = 0;
  Duration preemption_window;
  Duration preemption_earned;
  // The queue preempts no more than this often for each task that arrived. 0: no such bound.
  std::int64_t preemptions_per_arrival_max = 0;
  // Plans that are kept at once (conservative); those behind wait without one.
  std::size_t plans_max = 64;
};

// "fifo", "easy", "semi_blind", ...
Result<Discipline> discipline_named(std::string_view name);
// All names that discipline_named() knows.
const std::vector<std::string_view>& discipline_names();

}  // namespace loam::schedule
