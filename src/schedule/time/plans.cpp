#include "schedule/time/plans.hpp"

#include <algorithm>

namespace loam::schedule {

void Plans::leaves(TaskId task) {
  gone_.insert(task);
}

void Plans::claim(TaskId task, ReservationId reservation, Instant from, Instant to, Place place,
                  bool yields_to_preemptible) {
  claims_.push_back({task, reservation, from, to, std::move(place), yields_to_preemptible});
  any_reserved_ = any_reserved_ || reservation.valid();
}

void Plans::keeps(ReservationId reservation, Instant until, const Place& place) {
  in_force_.insert(reservation);
  started_.emplace(until, Running{{}, place});
}

void Plans::unclaim(TaskId task) {
  std::erase_if(claims_, [&](const Claim& claim) { return claim.task == task; });
}

bool Plans::is_planned(TaskId task) const {
  return std::any_of(first_.begin(), first_.end(),
                     [&](const First& first) { return first.task == task; });
}

void Plans::forget(TaskId task) {
  std::erase_if(first_, [&](const First& first) { return first.task == task; });
}

std::optional<Plans::Conflict> Plans::delays(const Place& place, Instant ends, const Binds& binds) {
  for (First& first : first_) {
    if (ends <= first.at || !binds(first.task)) continue;
    bool delays = first.then == nullptr || !first.then->holds(place);
    if (!delays && (touch(place, first.place) ||
                    near(place, first.place))) {  // elsewhere it takes nothing from the plan
      first.then->take(place);
      delays = !first.then->find(first.ask, 0);
      first.then->give_back(place);
    }
    if (delays) return Conflict{first.task, {}, first.kinds};
  }
  return std::nullopt;
}

std::optional<Plans::Conflict> Plans::conflict(const Place& place, const Room& room, Instant ends,
                                               bool preemptible, const Binds& binds,
                                               const std::set<TaskId>& away) {
  if (auto delayed = delays(place, ends, binds)) return delayed;
  for (const Claim& claim : claims_) {
    if (claim.from >= ends || (preemptible && claim.yields)) continue;
    if (!touch(place, claim.place) && !near(place, claim.place)) continue;
    if (claim.task.valid() && !binds(claim.task)) continue;
    // On the same devices there may still be room for both, alone or with what else is claimed
    // then; where that is in the way by itself, it is not this one that delays it, nor is it by
    // what happens on other devices.
    const Conflict delayed{claim.task, claim.reservation, room.kinds_of(claim.place), true};
    const Place shared = part_beside(claim.place, place);
    const auto then = room.copy();
    walk_ends(claim.from, [&](TaskId task, Instant, const Place& freed) {
      if (away.count(task) == 0) then->give_back(freed);
      return true;
    });
    then->take(place);
    if (!then->holds(shared)) return delayed;
    then->give_back(place);
    for (const Claim& other : claims_) {
      const bool at_once = &other != &claim && other.from <= claim.from && other.to > claim.from;
      // A plan was made beside what is reserved, whoever may use that until then.
      if (!at_once || (claim.reservation.valid() && preemptible && other.yields)) continue;
      if (!other.task.valid() || binds(other.task)) then->take(other.place);
    }
    if (!then->holds(shared)) continue;
    then->take(place);
    if (!then->holds(shared)) return delayed;
  }
  return std::nullopt;
}

std::optional<Place> Plans::beside_claims(const Ask& ask, Kinds barred, const Room& room,
                                          Instant ends, bool preemptible,
                                          const Binds& binds) const {
  if (claims_.empty()) return std::nullopt;
  const auto beside = room.copy();
  take_claims(*beside, Instant{std::numeric_limits<std::int64_t>::min()}, ends, preemptible, binds);
  return beside->find(ask, barred);
}

void Plans::take_claims(Room& room, Instant from, Instant to, bool preemptible,
                        const Binds& binds) const {
  for (const Claim& claim : claims_) {
    if (claim.from >= to || claim.to <= from || (preemptible && claim.yields)) continue;
    if (!claim.task.valid() || binds(claim.task)) room.take(claim.place);
  }
}

void Plans::starts(TaskId task, const Place& place, Instant ends) {
  for (First& first : first_) {
    if (ends <= first.at || first.then == nullptr) continue;
    first.then->take(place);
    if (!touch(place, first.place) && !near(place, first.place)) continue;
    if (auto other = first.then->find(first.ask, 0)) first.place = std::move(*other);
  }
  if (ends != Instant::never()) started_.emplace(ends, Running{task, place});
}

void Plans::walk_ends(Instant until,
                      const std::function<bool(TaskId, Instant, const Place&)>& each) const {
  auto running = ends_.begin();
  auto started = started_.begin();
  for (;;) {
    const auto passed_over = [&](TaskId task) {
      return gone_.count(task) != 0 ||
             (!in_force_.empty() && in_force_.count(standings_.at(task).job.reservation) != 0);
    };
    while (running != ends_.end() && passed_over(running->second)) ++running;
    while (started != started_.end() && gone_.count(started->second.task) != 0) ++started;
    const bool any = running != ends_.end();
    const bool fresh = started != started_.end() && (!any || started->first < running->first);
    if (!any && !fresh) return;
    const Instant at = fresh ? started->first : running->first;
    if (at > until) return;
    const TaskId task = fresh ? started->second.task : running->second;
    const Place& place = fresh ? started->second.place : standings_.at(task).place;
    if (fresh) {
      ++started;
    } else {
      ++running;
    }
    if (!each(task, at, place)) return;
  }
}

std::vector<Plans::Freed> Plans::freed_from(Instant now, bool& all) const {
  std::vector<Freed> groups;
  std::size_t looked_at = 0;
  all = true;
  walk_ends(Instant::never(), [&](TaskId, Instant ends, const Place& place) {
    const Instant at = std::max(now, ends);
    if (groups.empty() || groups.back().at != at) groups.push_back({at, {}});
    all = ++looked_at <= ends_max_;
    if (all) groups.back().places.push_back(&place);
    return all;
  });
  return groups;
}

// One member: what was just freed holds it, or nothing new does.
std::optional<Plans::Start> Plans::first_fit(const Ask& ask, const std::vector<Freed>& groups,
                                             Room& then) {
  const bool fits_elsewhere = then.find(ask, 0).has_value();  // where it was barred
  for (const Freed& group : groups) {
    std::optional<Place> place;
    for (const Place* freed : group.places) then.give_back(*freed);
    if (fits_elsewhere) place = then.find(ask, 0);
    for (std::size_t i = 0; i < group.places.size() && !place; ++i)
      place = then.find_after(ask, 0, *group.places[i]);
    if (place) return Start{group.at, std::move(*place)};
  }
  return std::nullopt;
}

// Several members: doubling steps until they fit, then halving them. More that is free never makes
// it worse.
std::optional<Plans::Start> Plans::first_fit_of_many(const Ask& ask,
                                                     const std::vector<Freed>& groups,
                                                     std::unique_ptr<Room>& then) {
  std::optional<Start> found;
  std::unique_ptr<Room> found_in;
  std::size_t low = 0;  // so many groups do not suffice; `then` has them back
  const auto fits_with = [&](std::size_t high) {
    auto trial = then->copy();
    for (std::size_t i = low; i < high; ++i) {
      for (const Place* freed : groups[i].places) trial->give_back(*freed);
    }
    if (auto place = trial->find(ask, 0)) {
      found = Start{groups[high - 1].at, std::move(*place)};
      found_in = std::move(trial);
      return true;
    }
    low = high;
    then = std::move(trial);
    return false;
  };
  std::size_t high = 0;
  for (std::size_t step = 1; !found && low < groups.size(); step *= 2) {
    high = std::min(groups.size(), low + step);
    fits_with(high);
  }
  if (!found) return std::nullopt;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    if (fits_with(middle)) high = middle;
  }
  then = std::move(found_in);
  return found;
}

Plans::Foresight Plans::plan_first(TaskId task, const Ask& ask, Kinds kinds, Instant now,
                                   const Room& room, std::optional<Start>& start) {
  bool all = true;
  const std::vector<Freed> groups = freed_from(now, all);
  auto then = room.copy();
  start = ask.count == 1 ? first_fit(ask, groups, *then) : first_fit_of_many(ask, groups, then);
  if (start) {
    first_.push_back({task, ask, kinds, start->at, start->place, std::move(then)});
    return Foresight::planned;
  }
  if (all) return Foresight::unknown;
  first_.push_back({task, ask, kinds, groups.back().at, {}, nullptr});
  return Foresight::later;
}

Plans::Foresight Plans::plan_beside(TaskId task, const Ask& ask, Kinds kinds,
                                    std::optional<Duration> lasts, Instant now, const Room& room,
                                    const Binds& binds, std::optional<Start>& start) {
  start = earliest(ask, 0, lasts, now, room, binds);
  if (!start) {
    const Foresight foresight = plan_first(task, ask, kinds, now, room, start);
    start.reset();  // it may lie on what is reserved: no promise
    return foresight == Foresight::planned ? Foresight::later : foresight;
  }
  plan_at(task, ask, kinds, lasts, *start);
  return Foresight::planned;
}

void Plans::plan_at(TaskId task, const Ask& ask, Kinds kinds, std::optional<Duration> lasts,
                    const Start& start) {
  claim(task, {}, start.at, lasts ? start.at + *lasts : Instant::never(), start.place, false);
  // The claim keeps others away; this says that its kinds have a plan.
  first_.push_back({task, ask, kinds, Instant::never(), start.place, nullptr});
}

bool Plans::can_keep(const Start& promised, std::optional<Duration> lasts, const Room& room,
                     const Binds& binds) const {
  const Instant until = lasts ? promised.at + *lasts : Instant::never();
  const auto is_free_at = [&](Instant at) {
    const auto then = room.copy();
    walk_ends(at, [&](TaskId, Instant, const Place& freed) {
      then->give_back(freed);
      return true;
    });
    take_claims(*then, at, at + Duration{1}, false, binds);
    return then->holds(promised.place);
  };
  // There is less only where something else begins.
  return is_free_at(promised.at) &&
         std::all_of(claims_.begin(), claims_.end(), [&](const Claim& other) {
           return other.from <= promised.at || other.from >= until || is_free_at(other.from);
         });
}

std::optional<Plans::Start> Plans::earliest(const Ask& ask, Kinds barred,
                                            std::optional<Duration> lasts, Instant now,
                                            const Room& room, const Binds& binds) const {
  std::vector<std::pair<Instant, const Place*>> ends;
  walk_ends(Instant::never(), [&](TaskId, Instant at, const Place& place) {
    ends.emplace_back(at, &place);
    return ends.size() < ends_max_;
  });
  std::vector<Instant> times{now};
  for (const auto& [at, place] : ends) times.push_back(std::max(now, at));
  for (const Claim& claim : claims_) {
    if (claim.to != Instant::never()) times.push_back(std::max(now, claim.to));
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto then = room.copy();
  std::size_t ended = 0;
  for (const Instant at : times) {
    for (; ended < ends.size() && ends[ended].first <= at; ++ended)
      then->give_back(*ends[ended].second);
    if (!then->find(ask, barred)) continue;
    const auto window = then->copy();
    take_claims(*window, at, lasts ? at + *lasts : Instant::never(), false, binds);
    if (const auto place = window->find(ask, barred)) return Start{at, *place};
  }
  return std::nullopt;
}

std::optional<Instant> Plans::planned_at(TaskId task) const {
  for (const Claim& claim : claims_) {
    if (claim.task == task) return claim.from;
  }
  for (const First& first : first_) {
    if (first.task == task && first.then != nullptr) return first.at;
  }
  return std::nullopt;
}

bool Plans::is_kept(const First& first, const std::vector<Shift>& shifts) const {
  if (first.at == Instant::never())
    return true;  // plan_beside() made it, and a claim that says all
  if (first.then == nullptr) {
    return std::all_of(shifts.begin(), shifts.end(),
                       [&](const Shift& shift) { return shift.ends <= first.at; });
  }
  const auto then = first.then->copy();
  for (const Shift& shift : shifts) {  // who has ended by then is not in `then` any more
    if (shift.from != nullptr && standings_.at(shift.task).ends_by() > first.at)
      then->give_back(*shift.from);
  }
  for (const Shift& shift : shifts) {
    if (shift.ends > first.at) then->take(*shift.to);
  }
  return then->find(first.ask, 0).has_value();
}

bool Plans::is_kept(const Claim& claim, const std::vector<Shift>& shifts, const Room& room,
                    const Binds& binds) const {
  const auto is_there = [&](const Shift& shift) { return shift.ends > claim.from; };
  const bool beside = std::none_of(shifts.begin(), shifts.end(), [&](const Shift& shift) {
    return is_there(shift) && (touch(*shift.to, claim.place) || near(*shift.to, claim.place));
  });
  if (beside) return true;
  const auto then = room.copy();
  walk_ends(claim.from, [&](TaskId task, Instant, const Place& freed) {
    const bool shifts_away = std::any_of(shifts.begin(), shifts.end(), [&](const Shift& shift) {
      return shift.from == &freed && shift.task == task;
    });
    if (!shifts_away) then->give_back(freed);
    return true;
  });
  for (const Shift& shift : shifts) {
    if (shift.from != nullptr) then->give_back(*shift.from);
  }
  for (const Shift& shift : shifts) {
    if (is_there(shift)) then->take(*shift.to);
  }
  for (const Claim& other : claims_) {
    const bool at_once = &other != &claim && other.from <= claim.from && other.to > claim.from;
    if (at_once && (!other.task.valid() || binds(other.task))) then->take(other.place);
  }
  return then->holds(claim.place);
}

bool Plans::allows(const std::vector<Shift>& shifts, const Room& room, const Binds& binds) const {
  const auto keeps_first = [&](const First& first) {
    return !binds(first.task) || is_kept(first, shifts);
  };
  const auto keeps_claim = [&](const Claim& claim) {
    return (claim.task.valid() && !binds(claim.task)) || is_kept(claim, shifts, room, binds);
  };
  return std::all_of(first_.begin(), first_.end(), keeps_first) &&
         std::all_of(claims_.begin(), claims_.end(), keeps_claim);
}

Kinds Plans::planned(const Binds& binds) const {
  Kinds kinds = 0;
  for (const First& first : first_) {
    if (binds(first.task)) kinds |= first.kinds;
  }
  return kinds;
}

}  // namespace loam::schedule
