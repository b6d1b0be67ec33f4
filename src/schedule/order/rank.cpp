#include "schedule/order/rank.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace loam::schedule {
namespace {

// One that was sold as spot is tried as if it had come a day later, so that it comes after all
// others that are in time, and yet not after all that are ever to come.
constexpr Duration spot_comes_later = Duration::hours(24);

constexpr double growth_max = 50;  // e^50: beyond any other factor, far below overflow

double seconds(Duration duration) {
  return static_cast<double>(duration.ms) / 1000;
}

double length_s(const Job& job) {
  if (job.length) return seconds(*job.length);
  return job.limit ? seconds(*job.limit) : std::numeric_limits<double>::infinity();
}

// That of its service class, where it was put below all of them because it is spot.
std::int64_t class_level(const Job& job) {
  const bool below = job.preemptible && job.level < -spot_levels_below / 2;
  return below ? job.level + spot_levels_below : job.level;
}

// How many of the steps its device time has passed.
double step_of(const Standing& standing, const Discipline& discipline, Instant now) {
  const double device_s =
      seconds(standing.served_at(now)) * static_cast<double>(standing.job.milli) / 1000;
  double step = 0;
  for (const std::int64_t edge : discipline.steps_device_s)
    step += device_s >= static_cast<double>(edge);
  return step;
}

}  // namespace

bool is_still(const Discipline& discipline) {
  if (discipline.overdue_after.ms > 0 || discipline.preemption == Preemption::refill) return false;
  return discipline.order == Order::fifo || discipline.order == Order::priority ||
         discipline.order == Order::mlfq || discipline.order == Order::shortest;
}

double urgency(const Scheduler& scheduler, const Standing& standing, Instant now) {
  const Job& job = standing.job;
  const Lengths& lengths = scheduler.lengths(job.queue);
  const Duration served = standing.served_at(now);
  const double typical_s = std::max(lengths.median_s(), seconds(served));
  const double waited_s = std::max(0.0, seconds(standing.waited_at(now)));
  const double devices = static_cast<double>(job.milli) / 1000;
  if (scheduler.queues()[job.queue].discipline.order == Order::semi_blind) {
    return std::log(lengths.gittins(served, job.limit.value_or(Duration{}))) -
           0.75 * std::log(devices) + std::min(growth_max, waited_s / (0.85 * typical_s));
  }
  const double halved = seconds(served) >= lengths.long_s() ? std::log(2.0) : 0;
  return -halved - 0.5 * std::log(devices) + std::min(growth_max, waited_s / (2 * typical_s));
}

Rank rank_of(const Scheduler& scheduler, const Shares& shares, const Standing& standing,
             Instant now) {
  const Job& job = standing.job;
  const Discipline& discipline = scheduler.queues()[job.queue].discipline;
  Rank rank;
  rank.id = job.id;
  rank.arrival = job.arrival;
  const auto plan = scheduler.plans().find(job.id);
  const bool planned = plan != scheduler.plans().end();
  // A promise counts among those that are tried as they came. It puts nobody before a task that
  // pays for a higher level, and what is sold as spot before nobody at all.
  const bool first = discipline.order == Order::fifo && !job.preemptible;
  if (planned && (plan->second.leaving || first)) {
    rank.tier = plan->second.leaving ? Tier::place_cleared : Tier::promised;
  } else if (scheduler.is_overdue(standing, now)) {
    rank.tier = Tier::overdue;
    return rank;  // by arrival, whatever the order
  }
  const Instant came = job.preemptible ? job.arrival + spot_comes_later : job.arrival;
  const double left_s = length_s(job) - seconds(standing.served_at(now));
  switch (discipline.order) {
    case Order::fifo:
      rank.key = static_cast<double>(came.ms);
      break;
    case Order::priority:
      rank.key = static_cast<double>(came.ms - class_level(job) * discipline.ageing.ms);
      if (discipline.ageing.ms == 0) rank.key = -static_cast<double>(job.level);
      break;
    case Order::drf:
      rank.key = shares.of(job.tenant, now);
      rank.second_key = shares.of(job.tenant, job.project, now);
      break;
    case Order::mlfq:
      rank.key = step_of(standing, discipline, now);
      break;
    case Order::shortest:
      rank.key = length_s(job);
      rank.arrival = Instant{};
      break;
    case Order::remaining:
      rank.key = left_s;
      rank.arrival = Instant{};
      break;
    case Order::area:
      rank.key = left_s * static_cast<double>(job.milli);
      rank.arrival = Instant{};
      break;
    case Order::blind:
    case Order::semi_blind:
      rank.key = -urgency(scheduler, standing, now);
      break;
  }
  return rank;
}

}  // namespace loam::schedule
