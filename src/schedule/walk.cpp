#include "schedule/walk.hpp"

#include <algorithm>
#include <map>
#include <queue>

#include "base/assert.hpp"

namespace loam::schedule {

Instant ends_if_moved(const Standing& standing, Instant at) {
  Standing then = standing;
  then.served = standing.served_at(at);
  return ends_if_started(then, at);
}

std::optional<Duration> lasts_if_started(const Standing& standing, Instant now) {
  const Instant ends = ends_if_started(standing, now);
  if (ends == Instant::never()) return std::nullopt;
  return ends - now;
}

Instant ends_if_started(const Standing& standing, Instant now) {
  const std::optional<Duration>& most =
      standing.job.length ? standing.job.length : standing.job.limit;
  if (!most) return standing.job.until;
  const Duration load = standing.started_before ? standing.job.load : Duration{};
  return std::min(standing.job.until, now + (*most - standing.served) + load);
}

Wait kept_for(const Plans::Conflict& conflict) {
  Wait why;
  why.code = conflict.task.valid() ? WaitCode::would_delay : WaitCode::held_by_reservation;
  why.other = conflict.task;
  why.reservation = conflict.reservation;
  return why;
}

Walk::Walk(const Scheduler& scheduler, Instant now, const Room& room,
           const Scheduler::PassLimits& limits)
    : scheduler_(scheduler),
      now_(now),
      real_(room),
      limits_(limits),
      room_(room.copy()),
      quotas_(Quotas::on_top_of(scheduler.quotas(), now)),
      shares_(Shares::on_top_of(scheduler.shares())),
      plans_(scheduler.ends(), scheduler.standings(), limits.ends_max),
      preempted_(scheduler.queues().size(), 0) {}

Pass Walk::run() {
  lock();
  keep_promises();
  std::vector<std::uint32_t> order(scheduler_.queues().size());
  std::vector<double> held(order.size(), 0);
  for (std::uint32_t queue = 0; queue < order.size(); ++queue) order[queue] = queue;
  if (order.size() > 1) {
    for (const std::uint32_t queue : order) {
      held[queue] = static_cast<double>(scheduler_.held_milli(queue)) /
                    static_cast<double>(scheduler_.queues()[queue].weight);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const QueueSpec& of_a = scheduler_.queues()[a];
      const QueueSpec& of_b = scheduler_.queues()[b];
      if (of_a.rank != of_b.rank) return of_a.rank > of_b.rank;
      return held[a] < held[b];
    });
  }
  for (const std::uint32_t queue : order) {
    if (full()) break;
    blocked_ = 0;
    drop_provisional(queue);
    if (scheduler_.queues()[queue].discipline.preemption == Preemption::refill) {
      refill_queue(queue);
    } else {
      walk_queue(queue);
    }
  }
  defrag();
  return std::move(pass_);
}

// --- What is free
// ---------------------------------------------------------------------------------

Kinds Walk::kinds_for(const Turn& turn) {
  AskFacts& facts = facts_of(turn);
  if (!facts.kinds) facts.kinds = room_->kinds(turn.standing->job.ask);
  return *facts.kinds;
}

// Within a pass there is ever less, unless victims are decided upon: what did not fit does not.
std::optional<Place> Walk::find_for(const Turn& turn, Kinds barred) {
  AskFacts& facts = facts_of(turn);
  if (facts.no_room_beside && (*facts.no_room_beside & ~barred) == 0) return std::nullopt;
  auto place = room_->find(turn.standing->job.ask, barred);
  if (!place) facts.no_room_beside = barred;
  return place;
}

void Walk::free_up(const Place& place) {
  room_->give_back(place);
  for (auto& [number, facts] : asks_) facts.no_room_beside.reset();
}

// --- What is decided
// ------------------------------------------------------------------------------

void Walk::wait(const Turn& turn, Wait why) {
  if (limits_.reasons) pass_.waits.emplace_back(turn.line, why);
}

void Walk::drop_promise(TaskId task) {
  const auto dropped = pass_.dropped.begin();
  if (std::find(dropped, pass_.dropped.end(), task) == pass_.dropped.end())
    pass_.dropped.push_back(task);
}

void Walk::decide_start(const Standing& standing, Place place) {
  const Job& job = standing.job;
  room_->take(place);
  // What is reserved is kept until its end in any case.
  if (!job.reservation.valid()) plans_.starts(job.id, place, ends_if_started(standing, now_));
  quotas_.charge(job.tenant, job.takes, job.limit);
  shares_.charge(job.tenant, job.project, job.takes, now_);
  started_.insert(job.id);
  pass_.actions.emplace_back(Start{job.id, std::move(place)});
}

void Walk::decide_preempt(const Standing* standing, ReservationId reservation,
                          const std::vector<TaskId>& victims, Place place) {
  for (const TaskId task : victims) {
    const Job& job = scheduler_.standing(task).job;
    quotas_.release(job.tenant, job.takes, job.limit);
    shares_.release(job.tenant, job.project, job.takes, now_);
    gone_.insert(task);
    plans_.leaves(task);
    ++preempted_[job.queue];
  }
  room_->take(place);
  if (standing != nullptr) {
    const Job& job = standing->job;
    plans_.starts(job.id, place, ends_if_started(*standing, now_));
    quotas_.charge(job.tenant, job.takes, job.limit);
    shares_.charge(job.tenant, job.project, job.takes, now_);
    started_.insert(job.id);
  }
  pass_.actions.emplace_back(
      Preempt{standing == nullptr ? TaskId{} : standing->job.id, reservation, victims, place});
}

// --- What is locked
// -------------------------------------------------------------------------------

// Whether the place is free, or somebody is leaving it; if neither, what was cleared is lost again.
bool Walk::is_clearing(const Place& place) const {
  if (real_.holds(place)) return true;
  return std::any_of(scheduler_.stopping().begin(), scheduler_.stopping().end(), [&](TaskId task) {
    const Place& leaving = scheduler_.standing(task).place;
    return touch(leaving, place) || near(leaving, place);
  });
}

void Walk::lock() {
  for (const auto& [task, plan] : scheduler_.plans()) {
    if (!plan.leaving || !is_clearing(plan.promise.place)) continue;
    // Neither the place nor the quota that victims leave is for anybody else, and others' plans
    // reckon with when it will be free again.
    const Place& place = plan.promise.place;
    const Standing& standing = scheduler_.standing(task);
    const Instant from = real_.holds(place) ? now_ : std::max(now_, plan.promise.at);
    room_->take(place);
    plans_.starts(task, place, ends_if_started(standing, from));
    quotas_.charge(standing.job.tenant, standing.job.takes, standing.job.limit);
  }
  lock_moves();
  for (const auto& [id, reservation] : scheduler_.reservations()) {
    if (reservation.to <= now_) continue;
    if (now_ >= reservation.from - reservation.notice && !full()) clear_for(reservation);
    if (reservation.from <= now_) {
      room_->take(left_of(reservation));
      plans_.keeps(id, reservation.to, reservation.place);
    } else {
      // Once those on it were told to leave, nobody comes.
      const bool yields = now_ < reservation.from - reservation.notice;
      plans_.claim({}, id, reservation.from, reservation.to, reservation.place, yields);
    }
  }
}

// --- A queue
// --------------------------------------------------------------------------------------

std::vector<Walk::Turn> Walk::turns_of(std::uint32_t queue) const {
  std::vector<Turn> turns;
  Line first;
  first.queue = queue;
  first.level = std::numeric_limits<std::int64_t>::min();
  for (auto line = scheduler_.lines().lower_bound(first);
       line != scheduler_.lines().end() && line->first.queue == queue; ++line) {
    turns.push_back(turn_of(*line));
  }
  return turns;
}

Walk::Turn Walk::turn_of(const Lines::value_type& line) const {
  Turn turn;
  turn.line = &line.first;
  turn.tasks = &line.second;
  turn.at = line.second.begin();
  turn.standing = &scheduler_.standing(turn.at->second);
  turn.rank = rank_of(scheduler_, shares_, *turn.standing, now_);
  return turn;
}

// To the next task of its line; false: that was the last.
bool Walk::advance(Turn& turn) const {
  if (++turn.at == turn.tasks->end()) return false;
  turn.standing = &scheduler_.standing(turn.at->second);
  turn.rank = rank_of(scheduler_, shares_, *turn.standing, now_);
  return true;
}

void Walk::walk_queue(std::uint32_t queue) {
  if (const Scheduler::InOrder* lines = scheduler_.in_order(queue)) {
    walk_in_order(queue, *lines);
  } else {
    walk_by_rank(queue);
  }
}

// The order is kept by the scheduler: only the lines that are looked at cost anything.
void Walk::walk_in_order(std::uint32_t queue, const Scheduler::InOrder& lines) {
  std::priority_queue<Turn, std::vector<Turn>, Later> begun(Later{}, {});  // lines further on
  auto fresh = lines.begin();
  std::size_t in_vain = 0;
  std::size_t in_vain_max = limits_.turns_max;
  bool beyond = false;
  while (!full()) {
    const bool go_on = !begun.empty() && (fresh == lines.end() || begun.top().rank < fresh->first);
    if (!go_on && fresh == lines.end()) break;
    if (in_vain >= in_vain_max) {
      if (beyond || limits_.turns_beyond == 0) {
        const Rank& next = go_on ? begun.top().rank : fresh->first;
        pass_.next.emplace(queue, next);
        break;
      }
      beyond = true;
      in_vain_max += limits_.turns_beyond;
      const auto from = limits_.beyond.find(queue);
      if (from != limits_.beyond.end() && fresh != lines.end() && fresh->first < from->second)
        fresh = lines.lower_bound(from->second);
      continue;
    }
    Turn turn = go_on ? begun.top() : turn_of(*fresh->second);
    if (go_on) {
      begun.pop();
    } else {
      ++fresh;
    }
    if (take_turn(turn) == Outcome::waits) {
      ++in_vain;
    } else if (advance(turn)) {
      begun.push(turn);
    }
  }
}

void Walk::walk_by_rank(std::uint32_t queue) {
  const bool shares_move = scheduler_.queues()[queue].discipline.order == Order::drf;
  std::priority_queue<Turn, std::vector<Turn>, Later> turns(Later{}, turns_of(queue));
  std::size_t in_vain = 0;
  while (!turns.empty() && !full() && in_vain < limits_.turns_max) {
    Turn turn = turns.top();
    turns.pop();
    if (shares_move) {  // a start since has moved its tenant back
      turn.rank = rank_of(scheduler_, shares_, *turn.standing, now_);
      if (!turns.empty() && turns.top().rank < turn.rank) {
        turns.push(turn);
        continue;
      }
    }
    if (take_turn(turn) == Outcome::waits) {
      ++in_vain;
    } else if (advance(turn)) {
      turns.push(turn);
    }
  }
}

std::optional<Wait> Walk::hindrance(const Turn& turn) const {
  const Job& job = turn.standing->job;
  const QueueSpec& queue = scheduler_.queues()[job.queue];
  Wait why;
  if (queue.barred_environments.count(job.environment) != 0) {
    why.code = WaitCode::barred_environment;
    return why;
  }
  if (limits_.left_out != nullptr && limits_.left_out->count(job.id) != 0) {
    why.code = WaitCode::funds;
    return why;
  }
  if (turn.line->not_before > now_) {
    why.code = turn.line->not_before == job.due ? WaitCode::not_due : WaitCode::backing_off;
    why.at = turn.line->not_before;
    return why;
  }
  return std::nullopt;
}

Walk::Outcome Walk::take_turn(const Turn& turn) {
  if (started_.count(turn.standing->job.id) != 0) return Outcome::decided;  // before its queue
  if (const auto why = hindrance(turn)) {
    wait(turn, *why);
    return Outcome::waits;
  }
  const Job& job = turn.standing->job;
  if (has_place_cleared(turn)) return start_cleared(turn);
  if (const auto shortfall = quotas_.check(job.tenant, job.takes, job.limit)) {
    // What is the tenant's own comes back from those who borrowed it; but the place that they leave
    // is none of a reservation.
    const bool lent = shortfall->kind == Shortfall::Kind::lent && !job.reservation.valid();
    if (lent && preempt_for(turn, true)) return Outcome::decided;
    // Nothing is kept free for what its tenant may not have.
    if (scheduler_.plans().count(job.id) != 0) drop_promise(job.id);
    Wait why;
    why.code = WaitCode::quota_exceeded;
    why.shortfall = *shortfall;
    wait(turn, why);
    return Outcome::waits;
  }
  if (job.reservation.valid()) return start_reserved(turn);
  const Kinds wanted = kinds_for(turn);
  if (wanted == 0) {
    Wait why;
    why.code = WaitCode::never_fits;
    wait(turn, why);
    return Outcome::waits;
  }
  return start_or_plan(turn, wanted);
}

bool Walk::has_place_cleared(const Turn& turn) const {
  return turn.rank.tier == Tier::place_cleared &&
         is_clearing(scheduler_.plans().at(turn.standing->job.id).promise.place);
}

Walk::Outcome Walk::start_cleared(const Turn& turn) {
  const Place& place = scheduler_.plans().at(turn.standing->job.id).promise.place;
  const Job& job = turn.standing->job;
  if (!scheduler_.reservations().empty() && sits_on_reserved(*turn.standing, place)) {
    // Those who left took too long for it to end in time.
    drop_promise(job.id);
    Wait why;
    why.code = WaitCode::no_room;
    wait(turn, why);
    return Outcome::waits;
  }
  if (real_.holds(place)) {  // lock() took it, and its quota
    shares_.charge(job.tenant, job.project, job.takes, now_);
    started_.insert(job.id);
    pass_.actions.emplace_back(Start{job.id, place});
    return Outcome::decided;
  }
  Wait why;
  why.other = scheduler_.plans().at(job.id).moved_for;
  why.code = why.other.valid() ? WaitCode::moving : WaitCode::victims_leaving;
  wait(turn, why);
  return Outcome::waits;
}

// The place where it can start now without delaying anyone, whatever kinds are blocked.
Walk::Outcome Walk::start_or_plan(const Turn& turn, Kinds wanted) {
  const Job& job = turn.standing->job;
  if ((wanted & ~blocked_) == 0) {
    std::size_t kind = 0;
    while ((wanted >> kind & 1) == 0) ++kind;
    wait(turn, blocked_by_[kind]);
    return Outcome::waits;
  }
  const Discipline& discipline = scheduler_.queues()[job.queue].discipline;
  if (discipline.overtaking == Overtaking::conservative) return start_in_time(turn);
  const Instant ends = ends_if_started(*turn.standing, now_);
  Kinds barred = blocked_;
  Wait why;
  while (auto place = find_for(turn, barred)) {
    const Kinds there = room_->kinds_of(*place);
    auto conflict = plans_.conflict(*place, *room_, ends, job.preemptible, binding(turn));
    if (conflict && conflict->claimed) {
      place = plans_.beside_claims(job.ask, barred, *room_, ends, job.preemptible, binding(turn));
      if (place) conflict = plans_.conflict(*place, *room_, ends, job.preemptible, binding(turn));
    }
    if (place && !conflict) {
      decide_start(*turn.standing, std::move(*place));
      return Outcome::decided;
    }
    why = kept_for(*conflict);
    // A plan on one kind may be in the way on another: by its host, or as nobody knows its end.
    barred |= conflict->kinds | there | (place ? room_->kinds_of(*place) : Kinds{0});
  }
  if (make_room(turn)) return Outcome::decided;
  if (why.code == WaitCode::no_room) {
    block(turn, wanted);
  } else if (discipline.overtaking == Overtaking::easy && plans_are_fixed()) {
    plan(turn, wanted);  // what it was promised beside the others' places, they must know
  }
  wait(turn, why);
  return Outcome::waits;
}

// Why nothing starts beside what is planned: for whom the place that is free is kept, if there is
// one.
Wait Walk::why_not_now(const Turn& turn) {
  Wait why;
  const auto place = find_for(turn, blocked_);
  if (!place) return why;
  const Instant ends = ends_if_started(*turn.standing, now_);
  const bool preemptible = turn.standing->job.preemptible;
  const auto conflict = plans_.conflict(*place, *room_, ends, preemptible, binding(turn));
  return conflict ? kept_for(*conflict) : why;
}

// What was promised by now, at its place: looked for anew, what begins there later but after others
// will have ended would be in its way.
std::optional<Plans::Start> Walk::due_start(const Turn& turn) const {
  const auto known = scheduler_.plans().find(turn.standing->job.id);
  if (known == scheduler_.plans().end() || known->second.promise.at > now_) return std::nullopt;
  const Plans::Start start{now_, known->second.promise.place};
  if ((room_->kinds_of(start.place) & blocked_) != 0 || !room_->holds(start.place))
    return std::nullopt;
  const std::optional<Duration> lasts = lasts_if_started(*turn.standing, now_);
  return plans_.can_keep(start, lasts, *room_, binding(turn)) ? std::optional(start) : std::nullopt;
}

// Conservative: everybody in turn gets the earliest start that delays no one before.
Walk::Outcome Walk::start_in_time(const Turn& turn) {
  const Job& job = turn.standing->job;
  const std::optional<Duration> lasts = lasts_if_started(*turn.standing, now_);
  plans_.unclaim(job.id);
  Wait why;
  Kinds barred = blocked_;
  auto start = due_start(turn);
  if (!start) start = plans_.earliest(job.ask, barred, lasts, now_, *room_, binding(turn));
  while (start && start->at == now_) {
    const auto delayed =
        plans_.delays(start->place, ends_if_started(*turn.standing, now_), binding(turn));
    if (!delayed) {
      decide_start(*turn.standing, start->place);
      return Outcome::decided;
    }
    // Another queue's first: what it was promised holds here, too.
    why = kept_for(*delayed);
    barred |= delayed->kinds | room_->kinds_of(start->place);
    start = plans_.earliest(job.ask, barred, lasts, now_, *room_, binding(turn));
  }
  if (make_room(turn)) return Outcome::decided;
  wait(turn, why.code == WaitCode::no_room ? why_not_now(turn) : why);
  const auto known = scheduler_.plans().find(job.id);
  const bool promised = known != scheduler_.plans().end();
  const bool better = start && (!promised || start->at < known->second.promise.at);
  if (promised && !better && in_time_.count(job.id) != 0)
    start = Plans::Start{known->second.promise.at, known->second.promise.place};
  if (!start) {
    if (why.code == WaitCode::no_room) block(turn, kinds_for(turn));
    return Outcome::waits;
  }
  plans_.claim(job.id, {}, start->at, lasts ? start->at + *lasts : Instant::never(), start->place,
               false);
  if (limits_.promises && better)
    pass_.actions.emplace_back(Promise{job.id, start->at, start->place});
  return ++planned_ < scheduler_.queues()[job.queue].discipline.plans_max ? Outcome::decided
                                                                          : Outcome::waits;
}

// Under EASY, of one that did not fit: true where it is known that what goes on behind it does not
// delay it.
bool Walk::plan(const Turn& turn, Kinds wanted) {
  const Job& job = turn.standing->job;
  const auto known = scheduler_.plans().find(job.id);
  const bool promised = known != scheduler_.plans().end();
  if (plans_.is_planned(job.id)) return true;           // before its queue was walked
  if ((plans_.planned(binding(turn)) & wanted) != 0) {  // behind another that has a plan
    // Two queues may each have promised a start: neither takes back the other's.
    const bool alone = scheduler_.queues().size() == 1;
    if (promised && alone) drop_promise(job.id);
    return true;
  }
  std::optional<Plans::Start> start;
  const auto foresight = plan_first(turn, wanted, start);
  if (foresight == Plans::Foresight::later) return true;
  if (foresight != Plans::Foresight::planned) return false;
  const Discipline& discipline = scheduler_.queues()[job.queue].discipline;
  const bool news = !promised || start->at < known->second.promise.at;
  // Who is next by fair shares changes with every start and end: that is no promise to anyone.
  if (limits_.promises && news && discipline.order != Order::drf)
    pass_.actions.emplace_back(Promise{job.id, start->at, start->place});
  return true;
}

// One that did not fit: what does that mean for those behind it?
void Walk::block(const Turn& turn, Kinds wanted) {
  const Job& job = turn.standing->job;
  const Discipline& discipline = scheduler_.queues()[job.queue].discipline;
  const bool drains = turn.rank.tier == Tier::overdue;
  if (!drains && discipline.overtaking == Overtaking::any) return;
  // Where nobody knows when it could start, nothing behind it is known not to delay it.
  if (!drains && discipline.overtaking == Overtaking::easy && plan(turn, wanted)) return;
  Wait why;
  why.code = drains ? WaitCode::drains_for : WaitCode::behind;
  why.other = job.id;
  for (std::size_t kind = 0; kind < blocked_by_.size(); ++kind) {
    if ((wanted >> kind & 1) != 0 && (blocked_ >> kind & 1) == 0) blocked_by_[kind] = why;
  }
  blocked_ |= wanted;
}

// --- The scheduler's side
// -------------------------------------------------------------------------

Pass Scheduler::pass(Instant now, const Room& room, const PassLimits& limits) const {
  return Walk(*this, now, room, limits).run();
}

std::optional<Wait> Scheduler::explain(const Pass& pass, TaskId task) const {
  const auto line = line_of_task_.find(task);
  if (line == line_of_task_.end()) return std::nullopt;
  for (const auto& [waiting, why] : pass.waits) {
    if (waiting == line->second) return why;
  }
  return std::nullopt;
}

}  // namespace loam::schedule
