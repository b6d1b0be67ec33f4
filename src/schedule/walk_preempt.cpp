// Walk, the part that stops running tasks for others: who may be stopped, and who is.
#include <algorithm>
#include <cmath>
#include <set>

#include "schedule/walk.hpp"

namespace loam::schedule {
namespace {

// The walk's scratch copies with some victims away.
class Absence final : public Stage {
 public:
  Absence(Room& room, Quotas& quotas, const std::vector<const Standing*>& victims, const Job& asker,
          Kinds barred, bool reclaim, bool spares_cohort)
      : room_(room),
        quotas_(quotas),
        victims_(victims),
        asker_(asker),
        barred_(barred),
        reclaim_(reclaim),
        spares_cohort_(spares_cohort) {}

  // Once it no longer borrows, a tenant has given back what it must.
  bool allowed(std::size_t i) override {
    return !is_spared(i) || quotas_.borrows(victims_[i]->job.tenant);
  }
  // Nor is anyone put aside whose tenant could have it back within its own: it would come back and
  // take its place again, and so on.
  bool fair() override {
    return std::all_of(away_.begin(), away_.end(), [&](std::size_t i) {
      const Job& job = victims_[i]->job;
      return !is_spared(i) || !quotas_.within_nominal(job.tenant, job.takes);
    });
  }
  void remove(std::size_t i) override {
    const Standing& victim = *victims_[i];
    away_.insert(i);
    room_.give_back(victim.place);
    quotas_.release(victim.job.tenant, victim.job.takes, victim.job.limit);
  }
  void restore(std::size_t i) override {
    const Standing& victim = *victims_[i];
    away_.erase(i);
    room_.take(victim.place);
    quotas_.charge(victim.job.tenant, victim.job.takes, victim.job.limit);
  }
  bool enough() override {
    return !quotas_.check(asker_.tenant, asker_.takes, asker_.limit) &&
           room_.find(asker_.ask, barred_);
  }

 private:
  bool is_spared(std::size_t i) const {
    const TenantId tenant = victims_[i]->job.tenant;
    return reclaim_ || (spares_cohort_ && quotas_.same_cohort(tenant, asker_.tenant));
  }

  Room& room_;
  Quotas& quotas_;
  const std::vector<const Standing*>& victims_;
  const Job& asker_;
  std::set<std::size_t> away_;
  Kinds barred_;
  bool reclaim_;
  bool spares_cohort_;
};

}  // namespace

bool Walk::is_safe(const Standing& victim, bool for_overdue) const {
  const Discipline& discipline = scheduler_.queues()[victim.job.queue].discipline;
  const Duration served = victim.served_at(now_);
  Duration most = discipline.safe_max;
  if (for_overdue && discipline.overdue_safe_max.ms > 0)
    most = std::min(most, discipline.overdue_safe_max);
  const Duration safe = std::min(std::max(discipline.safe_min, Duration{served.ms / 4}), most);
  if (now_ - victim.since < safe + victim.owed) return true;
  if (for_overdue || discipline.preemptions_max == 0) return false;
  std::int64_t count = 0;
  for (const Instant at : victim.preempted_at) {
    const Duration window = discipline.preemption_window;
    if (window.ms == 0 || at > now_ - window) ++count;
  }
  std::int64_t most_often = discipline.preemptions_max;
  if (discipline.preemption_earned.ms > 0)
    most_often += served.ms / discipline.preemption_earned.ms;
  return count >= most_often;
}

bool Walk::spares_cohort(const Job& asker) const {
  return quotas_.in_cohort(asker.tenant) && !quotas_.within_nominal(asker.tenant, asker.takes);
}

bool Walk::may_stop(const Standing& victim, const Standing& asker, bool reclaim) const {
  if (victim.stopping || gone_.count(victim.job.id) != 0 || victim.job.reservation.valid())
    return false;
  if ((room_->kinds(asker.job.ask) & room_->kinds_of(victim.place)) == 0) return false;
  if (reclaim) {
    return quotas_.borrows(victim.job.tenant) &&
           quotas_.same_cohort(victim.job.tenant, asker.job.tenant) && !is_safe(victim, false);
  }
  const Discipline& of_asker = scheduler_.queues()[asker.job.queue].discipline;
  const Discipline& of_victim = scheduler_.queues()[victim.job.queue].discipline;
  const bool overdue = scheduler_.is_overdue(asker, now_);
  if (overdue) {
    return victim.job.queue == asker.job.queue && !victim.overdue && !is_safe(victim, true) &&
           of_asker.preemption != Preemption::none;
  }
  if (victim.overdue || is_safe(victim, false)) return false;
  // Who would borrow stops nobody of its cohort who is within its own, itself included: that one
  // would take a place back at once, and so on.
  if (spares_cohort(asker.job) && quotas_.same_cohort(victim.job.tenant, asker.job.tenant) &&
      !quotas_.borrows(victim.job.tenant)) {
    return false;
  }
  if (victim.job.level < asker.job.level &&
      (victim.job.preemptible || of_victim.preemption == Preemption::level)) {
    return true;
  }
  return of_asker.preemption == Preemption::urgency && victim.job.queue == asker.job.queue &&
         std::log(of_asker.urgency_factor) + urgency(scheduler_, victim, now_) <
             urgency(scheduler_, asker, now_);
}

std::vector<const Standing*> Walk::stoppable_for(const Standing& asker, bool reclaim) const {
  std::vector<const Standing*> found;
  const auto look_at = [&](const std::set<TaskId>& tasks) {
    for (const TaskId task : tasks) {
      if (++victims_looked_at_ > limits_.victims_max) return;
      const Standing& standing = scheduler_.standing(task);
      if (may_stop(standing, asker, reclaim)) found.push_back(&standing);
    }
  };
  const Discipline& discipline = scheduler_.queues()[asker.job.queue].discipline;
  if (reclaim) {
    for (const auto& [tenant, tasks] : scheduler_.running_by_tenant()) {
      if (quotas_.borrows(tenant) && quotas_.same_cohort(tenant, asker.job.tenant)) look_at(tasks);
    }
  } else if (discipline.preemption == Preemption::urgency || scheduler_.is_overdue(asker, now_)) {
    look_at(scheduler_.running());
  } else {
    const auto& levels = scheduler_.running_by_level();
    for (auto level = levels.begin(); level != levels.end() && level->first < asker.job.level;
         ++level) {
      look_at(level->second);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Standing* a, const Standing* b) { return a->job.id < b->job.id; });
  return found;
}

// Where it goes once they have left, beside what is reserved by the time it ends.
std::optional<Place> Walk::place_without(const Standing& asker,
                                         const std::vector<const Standing*>& victims,
                                         const std::vector<std::size_t>& chosen) const {
  const auto then = room_->copy();
  for (const std::size_t i : chosen) then->give_back(victims[i]->place);
  if (!plans_.any_reserved()) return then->find(asker.job.ask, blocked_);
  // They may take their notice to leave.
  const Instant ends = ends_if_started(asker, now_ + spot_notice);
  return plans_.beside_claims(asker.job.ask, blocked_, *then, ends, asker.job.preemptible,
                              [](TaskId) { return false; });
}

// The most urgent last.
void Walk::rank_by_urgency(std::vector<const Standing*>& victims) const {
  std::vector<std::pair<Rank, const Standing*>> ranked;
  for (const Standing* victim : victims) {
    Rank rank = rank_of(scheduler_, shares_, *victim, now_);
    rank.key = -urgency(scheduler_, *victim, now_);
    ranked.emplace_back(rank, victim);
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return b.first < a.first; });
  for (std::size_t i = 0; i < victims.size(); ++i) victims[i] = ranked[i].second;
}

// Whether those who were promised a start and go before it still start then.
bool Walk::keeps_promises(const Turn& turn, const std::vector<const Standing*>& victims,
                          const std::vector<std::size_t>& chosen, const Place& place) const {
  const Place nowhere;
  std::vector<Plans::Shift> shifts;
  const Instant ends = ends_if_started(*turn.standing, now_ + spot_notice);
  shifts.push_back({turn.standing->job.id, nullptr, &place, ends});
  for (const std::size_t i : chosen)
    shifts.push_back({victims[i]->job.id, &victims[i]->place, &nowhere, now_});
  return plans_.allows(shifts, *room_, [&](TaskId planned) {
    return scheduler_.plans().count(planned) != 0 && binds(planned, turn);
  });
}

std::optional<std::vector<std::size_t>> Walk::choose_victims(
    const Standing& asker, const std::vector<const Standing*>& victims, bool reclaim,
    bool by_urgency) {
  Absence absence(*room_, quotas_, victims, asker.job, blocked_, reclaim, spares_cohort(asker.job));
  if (by_urgency) return first_victims(victims.size(), absence);
  std::vector<PossibleVictim> candidates;
  for (const Standing* victim : victims)
    candidates.push_back({victim->job.id, victim->job.level, victim->loss_at(now_)});
  return fewest_victims(candidates, absence, limits_.victim_tries_max);
}

bool Walk::preempt_for(const Turn& turn, bool reclaim) {
  const Standing& asker = *turn.standing;
  const std::uint32_t queue = asker.job.queue;
  const Discipline& discipline = scheduler_.queues()[queue].discipline;
  const bool overdue = turn.rank.tier == Tier::overdue;
  if (discipline.preemptions_per_arrival_max > 0 && !overdue && !reclaim &&
      scheduler_.preemptions(queue) + preempted_[queue] >=
          discipline.preemptions_per_arrival_max * scheduler_.arrivals(queue)) {
    return false;
  }
  // What is within the tenant's own quota comes back from borrowers in any case.
  if (!reclaim && quotas_.in_cohort(asker.job.tenant) &&
      quotas_.within_nominal(asker.job.tenant, asker.job.takes) && preempt_for(turn, true)) {
    return true;
  }
  if (victims_looked_at_ > limits_.victims_max) return false;
  std::vector<const Standing*> victims = stoppable_for(asker, reclaim);
  const bool by_urgency = discipline.preemption == Preemption::urgency && !reclaim;
  if (by_urgency) rank_by_urgency(victims);
  constexpr int places_tried_max = 4;
  for (int tried = 0; tried < places_tried_max && !victims.empty(); ++tried) {
    const auto chosen = choose_victims(asker, victims, reclaim, by_urgency);
    if (!chosen || chosen->empty()) return false;
    auto place = place_without(asker, victims, *chosen);
    if (!place) return false;
    if (reclaim || overdue || keeps_promises(turn, victims, *chosen, *place)) {
      std::vector<TaskId> tasks;
      for (const std::size_t i : *chosen) {
        free_up(victims[i]->place);
        tasks.push_back(victims[i]->job.id);
      }
      decide_preempt(&asker, {}, tasks, std::move(*place));
      return true;
    }
    // That place is promised: elsewhere, then.
    std::erase_if(victims, [&](const Standing* victim) { return touch(victim->place, *place); });
  }
  return false;
}

}  // namespace loam::schedule
