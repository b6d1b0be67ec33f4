// Walk, the part that keeps what was promised before: for whom a plan holds, and in which order.
#include <algorithm>
#include <tuple>

#include "schedule/walk.hpp"

namespace loam::schedule {

// A plan holds for those who come after it: in a queue kept by level in its order, and among what
// is sold as spot there; else spot gives way to all others, and what another queue promised to a
// higher level, or at the same level to one that was promised an earlier start.
bool Walk::binds(TaskId planned, const Turn& turn) const {
  const Standing& other = scheduler_.standing(planned);
  const Job& theirs = other.job;
  const Job& ours = turn.standing->job;
  if (theirs.id == ours.id || !scheduler_.share_devices(theirs.queue, ours.queue)) return false;
  const bool both_spot = theirs.preemptible && ours.preemptible;
  const bool by_level = scheduler_.queues()[ours.queue].discipline.order == Order::priority;
  if (theirs.queue == ours.queue && (by_level || both_spot))
    return rank_of(scheduler_, shares_, other, now_) < turn.rank;
  if (theirs.preemptible != ours.preemptible) return !theirs.preemptible;
  if (theirs.queue == ours.queue || theirs.level != ours.level)
    return theirs.queue == ours.queue || theirs.level > ours.level;
  const auto& plans = scheduler_.plans();
  const auto their_plan = plans.find(theirs.id);
  const auto our_plan = plans.find(ours.id);
  if (their_plan == plans.end() || our_plan == plans.end()) return true;
  return std::pair(their_plan->second.promise.at, theirs.id) <
         std::pair(our_plan->second.promise.at, ours.id);
}

// Conservative: what was promised stays promised, so each task finds the others' plans in place
// when its own is looked for anew. But a plan whose time has passed is late, and what was to follow
// it there and can no longer do so is, too: those are made again, in order, and until then are kept
// from other queues only. Kept in their own, each would wait for the others' places.
void Walk::keep_claims(std::uint32_t queue) {
  std::vector<std::pair<Instant, TaskId>> late;
  std::vector<std::pair<Instant, TaskId>> others;
  for (const auto& [task, plan] : scheduler_.plans()) {
    if (scheduler_.standing(task).job.queue != queue || plan.leaving) continue;
    (plan.promise.at < now_ ? late : others).emplace_back(plan.promise.at, task);
  }
  std::vector<std::pair<Instant, TaskId>> follow;
  for (const auto& [at, task] : others) {
    const Turn turn = planned_turn(task);
    const bool follows = std::any_of(late.begin(), late.end(), [&](const auto& other) {
      return touch(promise_of(other.second).place, promise_of(task).place) &&
             binds(other.second, turn);
    });
    if (follows) {
      follow.emplace_back(at, task);
    } else {
      claim_as_promised(turn);
      in_time_.insert(task);
    }
  }
  std::sort(late.begin(), late.end());
  for (const auto& [at, task] : late) {
    const Turn turn = planned_turn(task);
    if (hindrance(turn)) continue;
    const std::optional<Duration> lasts = lasts_if_started(*turn.standing, now_);
    auto start = plans_.earliest(turn.standing->job.ask, 0, lasts, now_, *room_, binding(turn));
    if (!start) continue;
    const Instant until = lasts ? start->at + *lasts : Instant::never();
    plans_.claim(task, {}, start->at, until, std::move(start->place), false);
    provisional_.insert(task);
  }
  std::sort(follow.begin(), follow.end());
  for (const auto& [at, task] : follow) {
    const Turn turn = planned_turn(task);
    const Promise& promise = promise_of(task);
    const bool in_time = plans_.can_keep(
        {promise.at, promise.place}, lasts_if_started(*turn.standing, now_), *room_, binding(turn));
    claim_as_promised(turn);
    (in_time ? in_time_ : provisional_).insert(task);
  }
}

void Walk::claim_as_promised(const Turn& turn) {
  const Promise& promise = promise_of(turn.standing->job.id);
  const std::optional<Duration> lasts = lasts_if_started(*turn.standing, now_);
  plans_.claim(promise.task, {}, promise.at, lasts ? promise.at + *lasts : Instant::never(),
               promise.place, false);
}

const Promise& Walk::promise_of(TaskId task) const {
  return scheduler_.plans().at(task).promise;
}

// One that has a plan stands alone in its line.
Walk::Turn Walk::planned_turn(TaskId task) const {
  return turn_of(*scheduler_.lines().find(*scheduler_.line(task)));
}

// The plan of one that is not the first of its queue: it has no turn yet, but others keep to it.
void Walk::keep_plan(const Turn& turn) {
  const Job& job = turn.standing->job;
  const Kinds wanted = kinds_for(turn);
  if (wanted == 0) return;
  // Where places are fixed, what was promised is: others plan by that, not by what it may get.
  const Plans::Start promised{promise_of(job.id).at, promise_of(job.id).place};
  const std::optional<Duration> lasts = lasts_if_started(*turn.standing, now_);
  if (plans_are_fixed() && promised.at >= now_ &&
      plans_.can_keep(promised, lasts, *room_, binding(turn))) {
    return plans_.plan_at(job.id, job.ask, wanted, lasts, promised);
  }
  if (auto place = find_for(turn, 0)) {
    plans_.claim(job.id, {}, now_, ends_if_started(*turn.standing, now_), std::move(*place), false);
    provisional_.insert(job.id);
    return;
  }
  std::optional<Plans::Start> start;
  plan_first(turn, wanted, start);
}

// EASY's plan of a task that does not fit now. Its place may still change, unless others keep
// places of their own for later: a reservation, or a conservative queue, whose plans know of no
// other's that may move onto them. Beside those its place is fixed, and known to them.
Plans::Foresight Walk::plan_first(const Turn& turn, Kinds wanted,
                                  std::optional<Plans::Start>& start) {
  const Job& job = turn.standing->job;
  if (!plans_are_fixed()) return plans_.plan_first(job.id, job.ask, wanted, now_, *room_, start);
  return plans_.plan_beside(job.id, job.ask, wanted, lasts_if_started(*turn.standing, now_), now_,
                            *room_, binding(turn), start);
}

void Walk::drop_provisional(std::uint32_t queue) {
  std::erase_if(provisional_, [&](TaskId task) {
    if (scheduler_.standing(task).job.queue != queue) return false;
    plans_.unclaim(task);
    return true;
  });
}

// What one queue was promised no other takes, whichever is tried first; of several promises the
// higher level's, then the earlier one, is kept first.
void Walk::keep_promises() {
  const auto& queues = scheduler_.queues();
  for (std::uint32_t queue = 0; queue < queues.size(); ++queue) {
    if (queues[queue].discipline.overtaking != Overtaking::conservative) continue;
    any_conservative_ = queues.size() > 1;
    keep_claims(queue);
  }
  if (queues.size() == 1) return;
  std::vector<std::tuple<std::int64_t, Instant, TaskId>> promised;
  for (const auto& [task, plan] : scheduler_.plans()) {
    const Job& job = scheduler_.standing(task).job;
    const bool easy = queues[job.queue].discipline.overtaking == Overtaking::easy;
    if (!plan.leaving && easy) promised.emplace_back(-job.level, plan.promise.at, task);
  }
  std::sort(promised.begin(), promised.end());
  for (const auto& [level, at, task] : promised) {
    if (full()) break;
    const Turn turn = planned_turn(task);
    const Scheduler::InOrder* lines = scheduler_.in_order(turn.line->queue);
    blocked_ = 0;
    if (lines != nullptr && lines->begin()->second->first == *turn.line) {
      take_turn(turn);
    } else {
      keep_plan(turn);
    }
  }
}

}  // namespace loam::schedule
