#include "schedule/time/plans.hpp"

#include <algorithm>

namespace loam::schedule {

void Plans::runs(TaskId task, Instant ends, Place place) {
  running_.push_back({task, ends, std::move(place)});
}

void Plans::leaves(TaskId task) {
  std::erase_if(running_, [&](const Running& one) { return one.task == task; });
}

void Plans::claim(TaskId task, ReservationId reservation, Instant from, Instant to, Place place,
                  bool yields_to_preemptible) {
  claims_.push_back({task, reservation, from, to, std::move(place), yields_to_preemptible});
}

void Plans::unclaim(TaskId task) {
  std::erase_if(claims_, [&](const Claim& claim) { return claim.task == task; });
}

std::optional<Plans::Conflict> Plans::conflict(const Place& place, const Room& room, Instant ends,
                                               bool preemptible) {
  for (First& first : first_) {
    if (ends <= first.at) continue;
    bool delays = !first.then->holds(place);
    if (!delays) {
      first.then->take(place);
      delays = !first.then->find(first.ask, 0);
      first.then->give_back(place);
    }
    if (delays) return Conflict{first.task, {}, first.kinds};
  }
  for (const Claim& claim : claims_) {
    if (claim.from >= ends || (preemptible && claim.yields)) continue;
    if (!touch(place, claim.place)) continue;
    // On the same device there may still be room for both.
    const auto both = room.copy();
    for (const Running& one : running_) {
      if (one.ends <= claim.from) both->give_back(one.place);
    }
    both->take(place);
    if (!both->holds(claim.place)) {
      return Conflict{claim.task, claim.reservation, room.kinds_of(claim.place)};
    }
  }
  return std::nullopt;
}

std::optional<Place> Plans::beside_claims(const Ask& ask, Kinds barred, const Room& room,
                                          Instant ends, bool preemptible) const {
  if (claims_.empty()) return std::nullopt;
  const auto beside = room.copy();
  take_claims(*beside, Instant{std::numeric_limits<std::int64_t>::min()}, ends, preemptible);
  return beside->find(ask, barred);
}

void Plans::take_claims(Room& room, Instant from, Instant to, bool preemptible) const {
  for (const Claim& claim : claims_) {
    if (claim.from < to && claim.to > from && !(preemptible && claim.yields))
      room.take(claim.place);
  }
}

void Plans::starts(TaskId task, const Place& place, Instant ends) {
  for (First& first : first_) {
    if (ends > first.at) first.then->take(place);
  }
  runs(task, ends, place);
}

std::vector<Plans::Running> Plans::by_end() const {
  std::vector<Running> sorted;
  for (const Running& one : running_) {
    if (one.ends != Instant::never()) sorted.push_back(one);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Running& a, const Running& b) { return a.ends < b.ends; });
  return sorted;
}

std::optional<Plans::Start> Plans::plan_first(TaskId task, const Ask& ask, Kinds kinds, Instant now,
                                              const Room& room) {
  auto then = room.copy();
  const std::vector<Running> ends = by_end();
  for (std::size_t i = 0; i < ends.size();) {
    const Instant at = std::max(now, ends[i].ends);
    for (; i < ends.size() && std::max(now, ends[i].ends) == at; ++i)
      then->give_back(ends[i].place);
    const auto place = then->find(ask, 0);
    if (!place) continue;
    first_.push_back({task, ask, kinds, at, std::move(then)});
    return Start{at, *place};
  }
  return std::nullopt;
}

std::optional<Plans::Start> Plans::earliest(const Ask& ask, Kinds barred,
                                            std::optional<Duration> lasts, Instant now,
                                            const Room& room) const {
  const std::vector<Running> ends = by_end();
  std::vector<Instant> times{now};
  for (const Running& one : ends) times.push_back(std::max(now, one.ends));
  for (const Claim& claim : claims_) {
    if (claim.to != Instant::never()) times.push_back(std::max(now, claim.to));
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto then = room.copy();
  std::size_t ended = 0;
  for (const Instant at : times) {
    for (; ended < ends.size() && ends[ended].ends <= at; ++ended)
      then->give_back(ends[ended].place);
    if (!then->find(ask, barred)) continue;
    const auto window = then->copy();
    take_claims(*window, at, lasts ? at + *lasts : Instant::never(), false);
    if (const auto place = window->find(ask, barred)) return Start{at, *place};
  }
  return std::nullopt;
}

Kinds Plans::planned() const {
  Kinds kinds = 0;
  for (const First& first : first_) kinds |= first.kinds;
  return kinds;
}

}  // namespace loam::schedule
