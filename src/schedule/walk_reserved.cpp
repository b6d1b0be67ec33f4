// Walk, the part that locks what is reserved, clears it in time, and starts on it what belongs
// there.
#include <algorithm>
#include <set>

#include "schedule/walk.hpp"

namespace loam::schedule {
namespace {

template <class Quantity>
void take_off(Quantity& from, Quantity& wanted) {
  const Quantity part = std::min(from, wanted);
  from -= part;
  wanted -= part;
}

// What `used` takes of a reserved place is no longer left of it, whichever member's part it is.
// Gives whether all of it lay there.
bool leave_out(Place& left, const UnitPlacement& used) {
  bool inside = true;
  for (Placement slice : used.slices) {
    for (UnitPlacement& unit : left) {
      for (Placement& part : unit.slices) {
        if (part.device != slice.device) continue;
        take_off(part.share, slice.share);
        take_off(part.memory, slice.memory);
      }
    }
    inside = inside && slice.share.value == 0 && slice.memory.value == 0;
  }
  for (HostShare host : used.hosts) {
    for (UnitPlacement& unit : left) {
      for (HostShare& part : unit.hosts) {
        if (part.node != host.node) continue;
        take_off(part.cpu, host.cpu);
        take_off(part.memory, host.memory);
      }
    }
    inside = inside && host.cpu.value == 0 && host.memory.value == 0;
  }
  return inside;
}

// A member of the demand on devices that `unit` has.
std::optional<UnitPlacement> find_within(const Room& room, const Demand& demand,
                                         const UnitPlacement& unit) {
  UnitPlacement member;
  std::set<DeviceId> seen;
  for (const Placement& part : unit.slices) {
    if (demand.device.valid() && demand.device != part.device) continue;
    if (!seen.insert(part.device).second) continue;
    Ask slice{demand, 1};
    slice.demand.devices = 1;
    slice.demand.device = part.device;
    const auto found = room.find(slice, 0);
    if (!found) continue;
    member.slices.push_back(found->front().slices.front());
    member.hosts = found->front().hosts;
    if (static_cast<std::int64_t>(member.slices.size()) == demand.devices) return member;
  }
  return std::nullopt;
}

}  // namespace

// The part of a reservation's place that its own tasks do not use yet.
Place Walk::left_of(const Reservation& reservation) const {
  Place left = reservation.place;
  const auto theirs = scheduler_.running_by_tenant().find(reservation.tenant);
  if (theirs == scheduler_.running_by_tenant().end()) return left;
  for (const TaskId task : theirs->second) {
    const Standing& standing = scheduler_.standing(task);
    if (standing.job.reservation != reservation.id) continue;
    for (const UnitPlacement& unit : standing.place) leave_out(left, unit);
  }
  return left;
}

bool Walk::sits_on(const Standing& standing, const Reservation& reservation,
                   const Place& left) const {
  return standing.job.reservation != reservation.id && gone_.count(standing.job.id) == 0 &&
         touch(standing.place, left);
}

// Whether one that starts now at a place that lock() keeps for it would be there when that, or a
// part of it, is reserved; or it is reserved by now, which lock() took then, too.
bool Walk::sits_on_reserved(const Standing& standing, const Place& place) {
  const auto without = room_->copy();
  without->give_back(place);
  if (real_.holds(place) && !without->holds(place)) return true;
  const auto none = [](TaskId) { return false; };
  return plans_
      .conflict(place, *without, ends_if_started(standing, now_), standing.job.preemptible, none)
      .has_value();
}

// Only what was sold as spot is there beyond its time: the others' limits were reckoned with.
void Walk::clear_for(const Reservation& reservation) {
  const Place left = left_of(reservation);
  if (room_->holds(left)) return;
  std::vector<const Standing*> stoppable;
  for (const TaskId task : scheduler_.running_preemptible()) {
    const Standing& standing = scheduler_.standing(task);
    if (sits_on(standing, reservation, left) && standing.ends_by() > reservation.from)
      stoppable.push_back(&standing);
  }
  if (stoppable.empty()) return;
  const auto then = room_->copy();
  for (const TaskId task : scheduler_.running()) {
    const Standing& standing = scheduler_.standing(task);
    if (sits_on(standing, reservation, left) && standing.ends_by() <= reservation.from)
      then->give_back(standing.place);
  }
  std::vector<TaskId> victims;
  for (const Standing* victim : stoppable) {
    if (then->holds(left)) break;
    then->give_back(victim->place);
    victims.push_back(victim->job.id);
  }
  if (victims.empty()) return;
  for (const TaskId task : victims) free_up(scheduler_.standing(task).place);
  decide_preempt(nullptr, reservation.id, victims, {});
}

Walk::Outcome Walk::start_reserved(const Turn& turn) {
  const Job& job = turn.standing->job;
  Wait why;
  why.code = WaitCode::no_reservation;
  why.reservation = job.reservation;
  const auto found = scheduler_.reservations().find(job.reservation);
  const bool open = found != scheduler_.reservations().end() && found->second.from <= now_ &&
                    now_ < found->second.to && found->second.tenant == job.tenant;
  if (!open) {
    wait(turn, why);
    return Outcome::waits;
  }
  const Place left = left_of(found->second);
  auto place = find_reserved(job.ask, found->second, left);
  if (!place) {
    wait(turn, why);
    return Outcome::waits;
  }
  room_->give_back(*place);  // lock() took it
  decide_start(*turn.standing, std::move(*place));
  return Outcome::decided;
}

// Only what the reservation still holds, whatever else is free. A member lies on what was reserved
// for one.
std::optional<Place> Walk::find_reserved(const Ask& ask, const Reservation& reservation,
                                         Place left) const {
  for (const Action& action : pass_.actions) {  // those started in this pass do not run yet
    const auto* start = std::get_if<Start>(&action);
    if (start == nullptr || scheduler_.standing(start->task).job.reservation != reservation.id)
      continue;
    for (const UnitPlacement& unit : start->place) leave_out(left, unit);
  }
  const auto inside = room_->copy();
  inside->give_back(left);
  Place place;
  for (const UnitPlacement& unit : reservation.place) {
    while (auto member = find_within(*inside, ask.demand, unit)) {
      Place rest = left;
      if (!inside->holds({*member}) || !leave_out(rest, *member)) break;
      left = std::move(rest);
      inside->take({*member});
      place.push_back(std::move(*member));
      if (static_cast<std::int64_t>(place.size()) == ask.count) return place;
    }
  }
  return std::nullopt;
}

// --- The scheduler's side
// -------------------------------------------------------------------------

std::optional<Place> Scheduler::reservable(const Ask& ask, Instant now, Instant from, Instant to,
                                           const Room& room, ReservationId but) const {
  const auto then = room.copy();
  for (const TaskId task : running_) {
    const Standing& standing = standings_.at(task);
    const bool leaves = standing.job.preemptible || standing.ends_by() <= from;
    if (leaves || (but.valid() && standing.job.reservation == but)) then->give_back(standing.place);
  }
  for (const auto& [task, plan] : plans_) {
    const Instant at = std::max(plan.promise.at, now);
    if (at < to && ends_if_started(standings_.at(task), at) > from) then->take(plan.promise.place);
  }
  for (const auto& [task, move] : moves_) {
    const Standing& standing = standings_.at(task);
    const Instant at = std::max(standing.stops_by, now);
    if (at < to && ends_if_moved(standing, at) > from) then->take(move.to);
  }
  for (const auto& [id, other] : reservations_) {
    const bool at_once = other.from < to && other.to > std::max(from, now);
    if (at_once && id != but) then->take(other.place);
  }
  return then->find(ask, 0);
}

}  // namespace loam::schedule
