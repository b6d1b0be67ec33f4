#include "schedule/order/discipline.hpp"

#include <functional>
#include <string>
#include <utility>

namespace loam::schedule {
namespace {

Discipline plain(Order order, Overtaking overtaking, Preemption preemption = Preemption::none) {
  Discipline discipline;
  discipline.order = order;
  discipline.overtaking = overtaking;
  discipline.preemption = preemption;
  return discipline;
}

// Tasks of unknown length: the mean wait needs preemption, its cost asks for restraint.
Discipline unknown_lengths(Order order, double factor) {
  Discipline discipline = plain(order, Overtaking::any, Preemption::urgency);
  discipline.urgency_factor = factor;
  discipline.look_again = Duration::seconds(300);
  discipline.overdue_after = Duration::hours(24);
  discipline.safe_min = Duration::minutes(10);
  discipline.safe_max = Duration::hours(6);
  discipline.overdue_safe_max = Duration::hours(1);
  discipline.preemptions_max = 4;
  discipline.preemption_earned = Duration::hours(6);
  discipline.preemptions_per_arrival_max = 2;
  return discipline;
}

Discipline levels() {
  Discipline discipline = plain(Order::priority, Overtaking::easy, Preemption::level);
  discipline.look_again = Duration::minutes(1);  // running tasks become stoppable with time
  discipline.safe_min = Duration::minutes(5);
  discipline.safe_max = Duration::minutes(5);
  discipline.preemptions_max = 3;
  discipline.preemption_window = Duration::hours(24);
  return discipline;
}

Discipline attained(std::vector<std::int64_t> steps_device_s, Duration quantum) {
  Discipline discipline = plain(Order::mlfq, Overtaking::any, Preemption::refill);
  discipline.steps_device_s = std::move(steps_device_s);
  discipline.look_again = quantum;
  return discipline;
}

// Steps a factor of ten apart, so that within one lengths are alike, and time enough on a device
// to be worth the change.
Discipline queues_of_attained_service() {
  Discipline discipline = attained({3'600, 36'000, 360'000}, Duration::minutes(2));
  discipline.safe_min = discipline.safe_max = Duration::minutes(10);
  return discipline;
}

struct Named {
  std::string_view name;
  Discipline discipline;
};

const std::vector<Named>& all() {
  static const std::vector<Named> named{
      {"fifo", plain(Order::fifo, Overtaking::none)},
      {"priority", levels()},
      {"drf", plain(Order::drf, Overtaking::easy)},
      {"mlfq", queues_of_attained_service()},
      {"blind", unknown_lengths(Order::blind, 1.5)},
      {"semi_blind", unknown_lengths(Order::semi_blind, 3)},
      {"easy", plain(Order::fifo, Overtaking::easy)},
      {"conservative", plain(Order::fifo, Overtaking::conservative)},
      {"any", plain(Order::fifo, Overtaking::any)},
      {"sjf", plain(Order::shortest, Overtaking::any)},
      {"srtf", plain(Order::remaining, Overtaking::any, Preemption::refill)},
      {"srsf", plain(Order::area, Overtaking::any, Preemption::refill)},
      {"las2", attained({3'600}, Duration::minutes(2))},
  };
  return named;
}

}  // namespace

Result<Discipline> discipline_named(std::string_view name) {
  for (const Named& one : all()) {
    if (one.name == name) return one.discipline;
  }
  std::string known;
  for (const Named& one : all()) known += (known.empty() ? "" : ", ") + std::string(one.name);
  return invalid("'" + std::string(name) + "' is no discipline", "use one of: " + known);
}

const std::vector<std::string_view>& discipline_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> found;
    for (const Named& one : all()) found.push_back(one.name);
    return found;
  }();
  return names;
}

}  // namespace loam::schedule
