// Story: a scheduler, a room and a clock that carry decisions out at once, for tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/scheduler.hpp"

namespace loam::schedule {

inline constexpr Duration hour = Duration::hours(1);

inline Discipline discipline(const char* name) {
  return *discipline_named(name);
}

inline Job job(std::uint64_t id, std::int64_t devices, std::uint64_t tenant = 1) {
  Job job;
  job.id = TaskId{id};
  job.tenant = TenantId{tenant};
  job.ask.demand.share = whole_device;
  job.ask.count = devices;
  job.milli = devices * whole_device.value;
  job.takes[Dimension::devices] = job.milli;
  job.takes[Dimension::tasks] = 1;
  return job;
}
inline Job limited(std::uint64_t id, std::int64_t devices, Duration limit) {
  Job made = job(id, devices);
  made.limit = limit;
  return made;
}

inline Limits devices_limit(std::int64_t devices) {
  Limits limits;
  limits[static_cast<std::size_t>(Dimension::devices)] = devices * 1000;
  return limits;
}

inline QuotaSpec quota(std::int64_t devices, const char* cohort = "") {
  QuotaSpec spec;
  spec.nominal = devices_limit(devices);
  spec.cohort = cohort;
  return spec;
}

class Story {
 public:
  explicit Story(Discipline how, std::int64_t devices)
      : Story(std::move(how), CountingRoom(devices)) {}
  Story(Discipline how, CountingRoom devices) : room(std::move(devices)) {
    scheduler.set_queue(0, {"main", std::move(how), 0, 1, {}});
  }

  // `runs`: how long it takes when it is not disturbed.
  void submit(Job job, Duration runs) {
    job.arrival = now;
    lengths[job.id] = runs;
    scheduler.arrives(std::move(job), now);
  }

  // Passes until nothing more is decided; every action is carried out and noted.
  void settle() {
    for (int i = 0;; ++i) {
      ASSERT_LT(i, 1000) << "decides for ever";
      scheduler.tick(now);
      last = scheduler.pass(now, room);
      for (const TaskId task : last.dropped) scheduler.forget_promise(task);
      bool done = !last.dropped.empty();
      const std::vector<Action> actions = last.actions;
      for (const Action& action : actions) {
        // The pass takes those whose time is over for gone; once they are, it starts.
        const auto* begins = std::get_if<Start>(&action);
        if (begins != nullptr && !room.holds(begins->place)) continue;
        carry_out(action);
        done = true;
      }
      if (!done) break;
    }
    check();
  }

  // Moves the clock; what ends on the way ends, and passes follow.
  void run_until(Instant until) {
    for (;;) {
      if (scheduler.standings().empty()) now = std::max(now, until);
      std::pair<Instant, TaskId> first{until + Duration{1}, {}};
      for (const TaskId task : scheduler.running()) first = std::min(first, {end_of(task), task});
      if (first.first > until) first = {until, {}};
      const Instant look = std::max(now, scheduler.look_again(now));
      if (look < first.first && look > now) first = {look, {}};
      now = std::max(now, first.first);
      if (first.second.valid()) end(first.second);
      settle();
      if (!first.second.valid() && now >= until) return;
    }
  }
  void run_for(Duration duration) { run_until(now + duration); }

  void end(TaskId task) {
    room.give_back(scheduler.standing(task).place);
    scheduler.leaves(task, now, true);
    ended.push_back(task);
  }

  Instant end_of(TaskId task) const {
    const Standing& standing = scheduler.standing(task);
    return standing.since + standing.owed + (lengths.at(task) - standing.served);
  }
  bool runs(std::uint64_t id) const { return scheduler.running().count(TaskId{id}) != 0; }
  std::string why(std::uint64_t id) const {
    const auto wait = scheduler.explain(last, TaskId{id});
    return wait ? code_text(*wait) : "";
  }

  Scheduler scheduler;
  CountingRoom room;
  Instant now{1'000'000};
  Pass last;
  std::map<TaskId, Duration> lengths;
  std::vector<TaskId> started;    // in order
  std::vector<TaskId> preempted;  // in order
  std::vector<TaskId> moved;      // in order
  std::vector<TaskId> ended;
  std::map<TaskId, Instant> promised;  // the first promise
  std::map<TaskId, Instant> start_at;

 private:
  void start(TaskId task, const Place& place) {
    ASSERT_TRUE(room.holds(place)) << task.text() << " starts where there is no room";
    room.take(place);
    const Standing& standing = scheduler.standing(task);
    scheduler.starts(task, now, place, standing.started_before ? standing.job.load : Duration{});
    started.push_back(task);
    start_at.try_emplace(task, now);
  }

  void carry_out(const Action& action) {
    if (const auto* begins = std::get_if<Start>(&action)) start(begins->task, begins->place);
    if (const auto* clears = std::get_if<Preempt>(&action)) {
      for (const TaskId victim : clears->victims) {
        room.give_back(scheduler.standing(victim).place);
        scheduler.is_preempted(victim, now);
        preempted.push_back(victim);
      }
      if (clears->task.valid()) start(clears->task, clears->place);
    }
    if (const auto* promise = std::get_if<Promise>(&action)) {
      promised.try_emplace(promise->task, promise->at);
      scheduler.is_promised(promise->task, now, *promise, false);
    }
    if (const auto* defrag = std::get_if<Defrag>(&action)) {
      for (const Move& move : defrag->moves) {
        ASSERT_EQ(scheduler.standing(move.task).place.size(), move.from.size());
        room.give_back(move.from);
      }
      for (const Move& move : defrag->moves) {
        scheduler.is_moving(move.task, now, defrag->task, move.to);
        scheduler.is_moved(move.task, now);
        start(move.task, move.to);
        moved.push_back(move.task);
      }
      start(defrag->task, defrag->place);
    }
  }

  // Everybody who waits has a reason, or starts once its place is free.
  void check() const {
    std::set<TaskId> starting;
    for (const Action& action : last.actions) {
      if (const auto* begins = std::get_if<Start>(&action)) starting.insert(begins->task);
    }
    for (const auto& [line, tasks] : scheduler.lines()) {
      if (starting.count(tasks.begin()->second) != 0) continue;
      EXPECT_TRUE(scheduler.explain(last, tasks.begin()->second).has_value())
          << tasks.begin()->second.text() << " waits without a reason";
    }
  }
};

}  // namespace loam::schedule
