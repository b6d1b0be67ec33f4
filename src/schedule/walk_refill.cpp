// Walk, the part that fills a queue anew: in order, running and waiting tasks alike, each that
// fits.
#include <queue>
#include <set>

#include "schedule/walk.hpp"

namespace loam::schedule {

// A place where it delays no plan of another queue; `why` says what hinders it.
std::optional<Place> Walk::find_in_time(const Turn& turn, const Room& room,
                                        const std::set<TaskId>& away, Wait& why) {
  const Job& job = turn.standing->job;
  if (room.kinds(job.ask) == 0) why.code = WaitCode::never_fits;
  Kinds barred = 0;
  while (auto place = room.find(job.ask, barred)) {
    const auto conflict = plans_.conflict(*place, room, ends_if_started(*turn.standing, now_),
                                          job.preemptible, binding(turn), away);
    if (!conflict) return place;
    why = kept_for(*conflict);
    // A plan on one kind may be in the way of another: by its host, or as nobody knows its end.
    barred |= conflict->kinds | room.kinds_of(*place);
  }
  return std::nullopt;
}

// Who belongs on the devices, in order of rank, were the queue to begin anew; each pass at one
// instant comes to the same, whoever has started or left in between, or two would trade places
// without end. So one that runs counts where it is, and one that is leaving as gone.
void Walk::refill_queue(std::uint32_t queue) {
  Refill refill{room_->copy(), room_->copy(), {}, {}, quotas_, {}, {}, {}};
  for (const TaskId task : scheduler_.running()) {
    const Standing& standing = scheduler_.standing(task);
    if (standing.job.queue != queue || gone_.count(task) != 0) continue;
    if (standing.job.reservation.valid()) continue;  // it stays
    refill.empty->give_back(standing.place);
    refill.away_from_empty.insert(task);
    refill.quotas.release(standing.job.tenant, standing.job.takes, standing.job.limit);
    if (standing.stopping) {
      refill.then->give_back(standing.place);
      refill.away_from_then.insert(task);
      continue;
    }
    Turn turn;
    turn.standing = &standing;
    turn.rank = rank_of(scheduler_, shares_, standing, now_);
    if (is_safe(standing, false)) turn.rank.tier = Tier::place_cleared;  // it stays
    refill.running.push_back(turn);
  }
  choose(queue, refill);
  replace(refill);
}

void Walk::choose(std::uint32_t queue, Refill& refill) {
  std::priority_queue<Turn, std::vector<Turn>, Later> turns(Later{}, turns_of(queue));
  for (const Turn& turn : refill.running) turns.push(turn);
  while (!turns.empty()) {
    Turn turn = turns.top();
    turns.pop();
    const Job& job = turn.standing->job;
    const bool runs = turn.line == nullptr;
    std::optional<Wait> why = runs ? std::nullopt : hindrance(turn);
    if (!why && !runs && has_place_cleared(turn)) {  // `empty` is without it, as `room_` is
      if (start_cleared(turn) == Outcome::decided && advance(turn)) turns.push(turn);
      continue;
    }
    if (!why) {
      const auto shortfall = refill.quotas.check(job.tenant, job.takes, job.limit);
      if (shortfall) why = Wait{WaitCode::quota_exceeded, {}, {}, {}, *shortfall};
    }
    if (!why && job.reservation.valid()) {
      if (start_reserved(turn) == Outcome::waits) continue;
      refill.quotas.charge(job.tenant, job.takes, job.limit);
      if (advance(turn)) turns.push(turn);
      continue;
    }
    std::optional<Place> place;
    if (!why && runs && refill.empty->holds(turn.standing->place)) place = turn.standing->place;
    if (!why && !place) {
      Wait hinders;
      place = runs ? refill.empty->find(job.ask, 0)
                   : find_in_time(turn, *refill.empty, refill.away_from_empty, hinders);
      if (!place) why = hinders;
    }
    if (why) {
      if (runs) {
        refill.victims.push_back(turn.standing);
      } else {
        if (why->code == WaitCode::no_room) note_asker(turn);
        wait(turn, *why);
      }
      continue;
    }
    refill.empty->take(*place);
    refill.quotas.charge(job.tenant, job.takes, job.limit);
    if (runs && touch(*place, turn.standing->place)) refill.away_from_empty.erase(job.id);
    if (runs) continue;
    refill.chosen.push_back(turn);
    if (advance(turn)) turns.push(turn);
  }
}

// Those that stay may lie otherwise than in the plan. So who leaves is who is really in the way of
// one that was chosen, and one that finds no place starts at a later pass.
void Walk::replace(Refill& refill) {
  Quotas quotas = quotas_;
  for (const Standing* victim : refill.victims) {
    refill.then->give_back(victim->place);
    refill.away_from_then.insert(victim->job.id);
    quotas.release(victim->job.tenant, victim->job.takes, victim->job.limit);
  }
  std::vector<std::pair<const Turn*, Place>> starts;
  for (const Turn& turn : refill.chosen) {
    const Job& job = turn.standing->job;
    Wait why;
    why.code = WaitCode::victims_leaving;
    auto place = find_in_time(turn, *refill.then, refill.away_from_then, why);
    if (!place) {
      note_asker(turn);  // it belongs there, and those who stay lie in its way
      wait(turn, why);
      continue;
    }
    refill.then->take(*place);
    quotas.charge(job.tenant, job.takes, job.limit);
    starts.emplace_back(&turn, std::move(*place));
  }
  std::erase_if(refill.victims, [&](const Standing* victim) {
    const Job& job = victim->job;
    if (!refill.then->holds(victim->place)) return false;
    if (quotas.check(job.tenant, job.takes, job.limit)) return false;
    refill.then->take(victim->place);
    quotas.charge(job.tenant, job.takes, job.limit);
    return true;
  });
  for (auto& [turn, place] : starts) {
    if (full()) return;
    const Job& job = turn->standing->job;
    bool free = room_->holds(place) && real_.holds(place);
    if (free && plans_.any_reserved()) {  // beside those who do not leave after all
      free = !plans_.conflict(place, *room_, ends_if_started(*turn->standing, now_),
                              job.preemptible, binding(*turn));
    }
    if (free && !quotas_.check(job.tenant, job.takes, job.limit)) {
      decide_start(*turn->standing, std::move(place));
    } else if (!clear_by_refill(*turn, std::move(place), refill.victims)) {
      Wait why;
      why.code = WaitCode::victims_leaving;
      wait(*turn, why);
    }
  }
}

// Those in its way leave, whose place or quota it needs, and what they leave is kept for it: once
// they are gone, others may be planned otherwise, and the place would go to one of those who left,
// and so on. False: nobody was stopped, for that would not make room enough.
bool Walk::clear_by_refill(const Turn& turn, Place place, std::vector<const Standing*>& victims) {
  const Job& job = turn.standing->job;
  const bool lacks_quota = quotas_.check(job.tenant, job.takes, job.limit).has_value();
  std::set<const Standing*> leaving;
  const auto leave_if = [&](const auto& in_its_way) {
    for (const Standing* victim : victims) {
      if (leaving.count(victim) != 0 || !in_its_way(*victim)) continue;
      leaving.insert(victim);
      room_->give_back(victim->place);
    }
  };
  leave_if([&](const Standing& victim) {
    const TenantId tenant = victim.job.tenant;
    const bool shares_quota = tenant == job.tenant || quotas_.same_cohort(tenant, job.tenant);
    return touch(victim.place, place) || (lacks_quota && shares_quota);
  });
  if (!room_->holds(place))  // then what it lacks is of the host
    leave_if([&](const Standing& victim) { return near(victim.place, place); });
  if (!room_->holds(place)) {
    for (const Standing* victim : leaving) room_->take(victim->place);
    return false;
  }
  std::vector<TaskId> tasks;
  for (const Standing* victim : victims) {
    if (leaving.count(victim) != 0) tasks.push_back(victim->job.id);
  }
  std::erase_if(victims, [&](const Standing* victim) { return leaving.count(victim) != 0; });
  for (auto& [number, facts] : asks_) facts.no_room_beside.reset();
  decide_preempt(turn.standing, {}, tasks, std::move(place));
  return true;
}

}  // namespace loam::schedule
