// SchedulerImage: a plain copy of what a scheduler knows besides its settings, from which another
// goes on alike. Fractions are kept as their bits, so that they come back as they were. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <vector>

#include "schedule/order/job.hpp"
#include "schedule/order/lengths.hpp"
#include "schedule/order/shares.hpp"

namespace loam::schedule {

struct PlanImage {
  TaskId task;
  Instant at;
  Place place;
  bool leaving = false;
  TaskId moved_for;
};
BOOST_DESCRIBE_STRUCT(PlanImage, (), (task, at, place, leaving, moved_for))

struct MovingImage {
  TaskId task;
  TaskId asker;
  Place to;
};
BOOST_DESCRIBE_STRUCT(MovingImage, (), (task, asker, to))

struct MovedImage {
  Instant at;
  TaskId task;
};
BOOST_DESCRIBE_STRUCT(MovedImage, (), (at, task))

struct LearnedImage {
  HazardImage lengths;
  HazardImage ratios;
  Instant learned_at;
  bool stale = false;
  std::int64_t arrivals = 0;
  std::int64_t preemptions = 0;
};
BOOST_DESCRIBE_STRUCT(LearnedImage, (), (lengths, ratios, learned_at, stale, arrivals, preemptions))

struct SchedulerImage {
  std::vector<Standing> standings;
  std::vector<PlanImage> plans;
  std::vector<LearnedImage> learned;  // by queue
  std::vector<UsageImage> usages;
  std::vector<MovingImage> moves;
  std::vector<MovedImage> moved;
};
BOOST_DESCRIBE_STRUCT(SchedulerImage, (), (standings, plans, learned, usages, moves, moved))

}  // namespace loam::schedule
