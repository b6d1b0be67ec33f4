// Job: a task as the scheduler sees it, and how far it has come. Pure.
#pragma once

#include <algorithm>
#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "domain/ids.hpp"
#include "schedule/admission/amounts.hpp"
#include "schedule/room.hpp"

namespace loam::schedule {

// What was sold as spot has so long to leave.
inline constexpr Duration spot_notice = Duration::minutes(2);

// Spot tasks rank so far below all service classes that any other may take their place.
inline constexpr std::int64_t spot_levels_below = 1'000'000;

// What does not change while a task lives.
struct Job {
  TaskId id;
  TenantId tenant;
  std::string project;
  std::string environment;
  std::uint32_t queue = 0;
  std::int64_t level = 0;  // of its service class; a higher one was paid for
  // May be stopped at any time, at the class's notice: it was sold so (spot).
  bool preemptible = false;
  bool stays = false;         // it has a deadline, and is not moved for others
  ReservationId reservation;  // whose capacity it runs on; none: the pool's
  Ask ask;
  Amounts takes;
  std::int64_t milli = 1000;  // milli-device of all slices: how wide it is
  Instant arrival;
  Instant due;                       // not to start before; 1970: at once
  std::optional<Duration> limit;     // as stated; enforced by whoever runs it
  std::optional<Duration> length;    // where it is known exactly, as in a trace
  Instant until = Instant::never();  // it has left by then, whatever its limit
  // To write and to read a checkpoint: together what a preemption costs, besides the time since
  // the last checkpoint.
  Duration save;
  Duration load;
};
BOOST_DESCRIBE_STRUCT(Job, (),
                      (id, tenant, project, environment, queue, level, preemptible, stays,
                       reservation, ask, takes, milli, arrival, due, limit, length, until, save,
                       load))

BOOST_DEFINE_ENUM_CLASS(JobState, waiting, running)

// How far a task has come. Times on devices count from the first attempt on.
struct Standing {
  Job job;
  JobState state = JobState::waiting;
  Duration served;      // useful time, up to `since`
  Duration on_devices;  // useful or not, up to `since`
  Instant since;        // when it last began to run or to wait
  // While it runs:
  Duration owed;     // from `since`: time that is not useful yet, such as loading
  Instant saved_at;  // its last checkpoint; `since` before the first
  Place place;
  bool overdue = false;   // it started as one: nobody may take its place
  bool stopping = false;  // it was asked to leave, and will have left by `stops_by`
  Instant stops_by;
  // Its history:
  bool started_before = false;
  std::vector<Instant> preempted_at;
  std::int64_t failures = 0;  // starts in a row that the node refused
  Instant not_before;         // backing off until then

  bool running() const { return state == JobState::running; }
  Duration served_at(Instant now) const {
    if (!running()) return served;
    const Duration useful = now - since - owed;
    return useful.ms > 0 ? served + useful : served;
  }
  // What stopping it costs: its work since the last checkpoint, and to write and read one.
  Duration lost_at(Instant now) const {
    return std::max(Duration{}, (now - saved_at) + job.save + job.load);
  }
  // The same over all its slices, in milli-device × ms.
  std::int64_t loss_at(Instant now) const { return job.milli * lost_at(now).ms; }
  Duration on_devices_at(Instant now) const {
    return running() ? on_devices + (now - since) : on_devices;
  }
  // Neither running nor done: for how long it has waited in all.
  Duration waited_at(Instant now) const {
    return std::max(Duration{}, now - job.arrival - on_devices_at(now));  // it may be due later
  }
  // When it ends at the latest; never() where nothing was stated.
  Instant ends_by() const;
};
BOOST_DESCRIBE_STRUCT(Standing, (),
                      (job, state, served, on_devices, since, owed, saved_at, place, overdue,
                       stopping, stops_by, started_before, preempted_at, failures, not_before))

// house-allow unordered: looked up for every task that a pass tries; an image is sorted
using Standings = std::unordered_map<TaskId, Standing>;

inline Instant Standing::ends_by() const {
  if (stopping) return stops_by;
  const std::optional<Duration>& most = job.length ? job.length : job.limit;
  if (!most) return job.until;
  return std::min(job.until, since + owed + (*most - served));
}

}  // namespace loam::schedule
