#include "schedule/scheduler.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "schedule/order/rank.hpp"

namespace loam::schedule {
namespace {

// A start that failed is tried again after 5 s, 10 s, 20 s, … up to ten minutes: long enough that a
// broken node does not win every pass, short enough that a passing fault costs little.
constexpr Duration back_off_first = Duration::seconds(5);
constexpr Duration back_off_most = Duration::minutes(10);

// What was learned is computed anew so often at most, and so often at least where tasks ran on.
constexpr Duration learn_every = Duration::seconds(300);
// The more tasks there are to learn from, the less one more changes: 10 ms of waiting for each.
constexpr std::int64_t learn_pause_per_task_ms = 10;

// Moves are counted over so long.
constexpr Duration moves_window = Duration::hours(1);
// Where tasks may be moved it is looked again so often: others are protected no more, or the count
// of moves has fallen.
constexpr Duration moves_look_again = Duration::minutes(1);

bool learns(const Discipline& discipline) {
  return discipline.order == Order::blind || discipline.order == Order::semi_blind;
}

}  // namespace

void Scheduler::set_queue(std::uint32_t number, QueueSpec spec) {
  LOAM_ASSERT(number <= queues_.size());
  if (number == queues_.size()) {
    learned_.emplace_back();
    if (spec.discipline.order == Order::semi_blind)
      learned_.back().lengths = Lengths(Lengths::trust_limited);
    queues_.push_back(std::move(spec));
    in_order_.emplace_back();
    held_milli_.push_back(0);
    return;
  }
  queues_[number] = std::move(spec);
  const bool limited = queues_[number].discipline.order == Order::semi_blind;
  learned_[number].lengths.set_trust(limited ? Lengths::trust_limited : Lengths::trust_blind);
  in_order_[number].clear();
  for (const auto& line : lines_) {
    if (line.first.queue == number) note_order(line);
  }
}

const Scheduler::InOrder* Scheduler::in_order(std::uint32_t queue) const {
  return is_still(queues_.at(queue).discipline) ? &in_order_[queue] : nullptr;
}

// A line stands where its first task does.
void Scheduler::note_order(const Lines::value_type& line) {
  const std::uint32_t queue = line.first.queue;
  if (line.second.empty() || !is_still(queues_[queue].discipline)) return;
  const Standing& first = standings_.at(line.second.begin()->second);
  in_order_[queue].emplace(rank_of(*this, shares_, first, Instant{}), &line);
}

void Scheduler::forget_order(const Lines::value_type& line) {
  const std::uint32_t queue = line.first.queue;
  if (line.second.empty() || !is_still(queues_[queue].discipline)) return;
  const Standing& first = standings_.at(line.second.begin()->second);
  in_order_[queue].erase(rank_of(*this, shares_, first, Instant{}));
}

namespace {

using Ends = std::set<std::pair<Instant, TaskId>>;

void note_end(Ends& ends, const Standing& standing) {
  if (const Instant by = standing.ends_by(); by != Instant::never())
    ends.insert({by, standing.job.id});
}
void forget_end(Ends& ends, const Standing& standing) {
  ends.erase({standing.ends_by(), standing.job.id});
}

}  // namespace

void Scheduler::note_running(const Standing& standing) {
  const Job& job = standing.job;
  running_.insert(job.id);
  note_end(ends_, standing);
  by_level_[job.level].insert(job.id);
  by_tenant_[job.tenant].insert(job.id);
  if (standing.stopping) stopping_.insert(job.id);
  if (job.preemptible) preemptible_.insert(job.id);
  held_milli_[job.queue] += job.milli;
}

void Scheduler::forget_running(const Standing& standing) {
  const Job& job = standing.job;
  const auto drop = [&](auto& groups, const auto& key) {
    const auto group = groups.find(key);
    group->second.erase(job.id);
    if (group->second.empty()) groups.erase(group);
  };
  running_.erase(job.id);
  forget_end(ends_, standing);
  drop(by_level_, job.level);
  drop(by_tenant_, job.tenant);
  stopping_.erase(job.id);
  preemptible_.erase(job.id);
  held_milli_[job.queue] -= job.milli;
}

void Scheduler::reserve(Reservation reservation) {
  LOAM_ASSERT(reservation.id.valid() && reservation.from < reservation.to);
  reservations_[reservation.id] = std::move(reservation);
}

void Scheduler::unreserve(ReservationId id) {
  reservations_.erase(id);
}

std::size_t Scheduler::intern(const Ask& ask) {
  const auto [at, fresh] = ask_numbers_.try_emplace(ask, asks_.size());
  if (fresh) asks_.push_back(&at->first);
  return at->second;
}

Line Scheduler::line_of(const Standing& standing) {
  const Job& job = standing.job;
  Line line;
  line.queue = job.queue;
  line.level = job.level;
  line.tenant = job.tenant;
  line.project = job.project;
  line.environment = job.environment;
  line.ask = intern(job.ask);
  line.takes = job.takes;
  line.milli = job.milli;
  line.limit = job.limit;
  line.length = job.length;
  line.served = standing.served;
  line.on_devices = standing.on_devices;
  line.preemptible = job.preemptible;
  line.reservation = job.reservation;
  line.not_before = standing.not_before;
  if (plans_.count(job.id) != 0) line.alone = job.id;
  return line;
}

void Scheduler::enqueue(Standing& standing) {
  const auto line = lines_.try_emplace(line_of(standing)).first;
  const std::pair place{standing.job.arrival, standing.job.id};
  const bool leads = line->second.empty() || place < *line->second.begin();
  if (leads) forget_order(*line);
  line->second.insert(place);
  if (leads) note_order(*line);
  line_of_task_[standing.job.id] = &line->first;
  if (standing.not_before.ms > 0) backing_off_.insert({standing.not_before, standing.job.id});
}

void Scheduler::dequeue(const Standing& standing) {
  const auto known = line_of_task_.find(standing.job.id);
  LOAM_ASSERT(known != line_of_task_.end());
  const auto line = lines_.find(*known->second);
  const bool leads = line->second.begin()->second == standing.job.id;
  if (leads) forget_order(*line);
  line->second.erase({standing.job.arrival, standing.job.id});
  if (leads) note_order(*line);
  backing_off_.erase({known->second->not_before, standing.job.id});
  if (line->second.empty()) lines_.erase(line);
  line_of_task_.erase(known);
}

void Scheduler::arrives(Job job, Instant now) {
  LOAM_ASSERT(job.id.valid() && job.queue < queues_.size() && job.milli > 0);
  Standing standing;
  standing.job = std::move(job);
  standing.since = now;
  standing.not_before = standing.job.due;
  ++learned_[standing.job.queue].arrivals;
  const auto [at, fresh] = standings_.emplace(standing.job.id, std::move(standing));
  LOAM_ASSERT(fresh);
  enqueue(at->second);
}

void Scheduler::starts(TaskId task, Instant now, Place place, Duration owed) {
  Standing& standing = standings_.at(task);
  LOAM_ASSERT(!standing.running());
  dequeue(standing);
  plans_.erase(task);
  standing.overdue = is_overdue(standing, now);
  standing.state = JobState::running;
  standing.since = standing.saved_at = now;
  standing.owed = owed;
  standing.place = std::move(place);
  standing.started_before = true;
  standing.not_before = Instant{};
  note_running(standing);
  served_.insert(task);
  quotas_.charge(standing.job.tenant, standing.job.takes, standing.job.limit);
  shares_.charge(standing.job.tenant, standing.job.project, standing.job.takes, now);
}

void Scheduler::is_sold_as_spot(TaskId task, bool spot) {
  Standing& standing = standings_.at(task);
  LOAM_ASSERT(standing.running());
  if (standing.job.preemptible == spot) return;
  forget_running(standing);
  standing.job.preemptible = spot;
  standing.job.level += spot ? -spot_levels_below : spot_levels_below;
  note_running(standing);
}

void Scheduler::is_up(TaskId task, Instant at) {
  Standing& standing = standings_.at(task);
  LOAM_ASSERT(standing.running());
  forget_end(ends_, standing);
  standing.owed = std::max(Duration{}, at - standing.since);
  note_end(ends_, standing);
}

void Scheduler::shrinks(TaskId task, Place left) {
  Standing& standing = standings_.at(task);
  LOAM_ASSERT(standing.running());
  standing.place = std::move(left);
}

void Scheduler::saves(TaskId task, Instant now) {
  Standing& standing = standings_.at(task);
  LOAM_ASSERT(standing.running() && now >= standing.saved_at);
  standing.saved_at = now;
  standing.failures = 0;
}

void Scheduler::is_stopping(TaskId task, Instant by) {
  Standing& standing = standings_.at(task);
  LOAM_ASSERT(standing.running());
  forget_end(ends_, standing);
  standing.stopping = true;
  standing.stops_by = by;
  stopping_.insert(task);
  note_end(ends_, standing);
}

void Scheduler::stop_running(Standing& standing, Instant now, Duration served) {
  LOAM_ASSERT(standing.running() && now >= standing.since);
  forget_running(standing);
  standing.on_devices = standing.on_devices_at(now);
  standing.served = served;
  standing.state = JobState::waiting;
  standing.since = now;
  standing.owed = Duration{};
  standing.stopping = false;
  standing.place.clear();
  moves_.erase(standing.job.id);
  quotas_.release(standing.job.tenant, standing.job.takes, standing.job.limit);
  shares_.release(standing.job.tenant, standing.job.project, standing.job.takes, now);
}

void Scheduler::is_preempted(TaskId task, Instant now, std::optional<Duration> kept) {
  Standing& standing = standings_.at(task);
  const Duration served = standing.served_at(now);
  LOAM_ASSERT(!kept || (kept->ms >= 0 && *kept <= served));
  stop_running(standing, now, kept.value_or(served));
  const Discipline& discipline = queues_[standing.job.queue].discipline;
  const Instant forgotten = now - discipline.preemption_window;
  if (discipline.preemption_window.ms > 0) {
    std::erase_if(standing.preempted_at, [&](Instant at) { return at <= forgotten; });
  }
  standing.preempted_at.push_back(now);
  standing.failures = 0;
  ++learned_[standing.job.queue].preemptions;
  enqueue(standing);
}

void Scheduler::is_moving(TaskId task, Instant now, TaskId asker, Place to) {
  LOAM_ASSERT(standings_.at(task).running() && !standings_.at(asker).running());
  std::erase_if(moved_, [&](const auto& move) { return move.first <= now - moves_window; });
  moved_.emplace_back(now, task);
  moves_[task] = {asker, std::move(to)};
}

void Scheduler::is_moved(TaskId task, Instant now, std::optional<Duration> kept) {
  Standing& standing = standings_.at(task);
  const Duration served = standing.served_at(now);
  LOAM_ASSERT(!kept || (kept->ms >= 0 && *kept <= served));
  auto move = moves_.extract(task);
  stop_running(standing, now, kept.value_or(served));
  if (!move.empty()) {
    Moving& to = move.mapped();
    plans_[task] = {Promise{task, now, std::move(to.to)}, true, to.asker};
  }
  enqueue(standing);
}

std::int64_t Scheduler::moves_left(Instant now) const {
  const auto counted = std::count_if(moved_.begin(), moved_.end(), [&](const auto& move) {
    return move.first > now - moves_window;
  });
  return std::max<std::int64_t>(0, defrag_.moves_per_hour - counted);
}

bool Scheduler::was_moved(TaskId task, Instant now) const {
  return std::any_of(moved_.begin(), moved_.end(), [&](const auto& move) {
    return move.second == task && move.first > now - moves_window;
  });
}

void Scheduler::comes_back(TaskId task, Instant now, Duration kept) {
  Standing& standing = standings_.at(task);
  LOAM_ASSERT(kept.ms >= 0 && kept <= standing.served_at(now));
  stop_running(standing, now, kept);
  enqueue(standing);
}

void Scheduler::fails_to_start(TaskId task, Instant now) {
  Standing& standing = standings_.at(task);
  if (standing.running()) {
    stop_running(standing, now, standing.served);
  } else {
    dequeue(standing);
  }
  const auto doublings = std::min<std::int64_t>(standing.failures++, 16);
  standing.not_before =
      now + std::min(back_off_first * (std::int64_t{1} << doublings), back_off_most);
  enqueue(standing);
}

void Scheduler::leaves(TaskId task, Instant now, bool completed) {
  const auto found = standings_.find(task);
  LOAM_ASSERT(found != standings_.end());
  Standing& standing = found->second;
  Learned& learned = learned_[standing.job.queue];
  if (completed && learns(queues_[standing.job.queue].discipline)) {
    learned.lengths.end(standing.served_at(now), standing.job.limit.value_or(Duration{}));
    learned.stale = true;
  }
  if (standing.running()) {
    stop_running(standing, now, standing.served);
  } else {
    dequeue(standing);
  }
  plans_.erase(task);
  served_.erase(task);
  standings_.erase(found);
}

void Scheduler::is_promised(TaskId task, Instant, Promise promise, bool leaving) {
  Standing& standing = standings_.at(task);
  LOAM_ASSERT(!standing.running());
  dequeue(standing);
  plans_[task] = {std::move(promise), leaving, {}};
  enqueue(standing);
}

void Scheduler::forget_promise(TaskId task) {
  Standing& standing = standings_.at(task);
  if (plans_.count(task) == 0) return;
  dequeue(standing);
  plans_.erase(task);
  enqueue(standing);
}

const Line* Scheduler::line(TaskId task) const {
  const auto known = line_of_task_.find(task);
  return known == line_of_task_.end() ? nullptr : known->second;
}

SchedulerImage Scheduler::image() const {
  SchedulerImage image;
  image.standings.reserve(standings_.size());
  for (const auto& [task, standing] : standings_) image.standings.push_back(standing);
  std::sort(image.standings.begin(), image.standings.end(),
            [](const Standing& a, const Standing& b) { return a.job.id < b.job.id; });
  for (const auto& [task, plan] : plans_)
    image.plans.push_back(
        {task, plan.promise.at, plan.promise.place, plan.leaving, plan.moved_for});
  for (const Learned& learned : learned_) {
    image.learned.push_back({learned.lengths.lengths_image(), learned.lengths.ratios_image(),
                             learned.learned_at, learned.stale, learned.arrivals,
                             learned.preemptions});
  }
  image.usages = shares_.image();
  for (const auto& [task, move] : moves_) image.moves.push_back({task, move.asker, move.to});
  for (const auto& [at, task] : moved_) image.moved.push_back({at, task});
  return image;
}

void Scheduler::restore(SchedulerImage image) {
  LOAM_ASSERT(standings_.empty() && image.learned.size() <= queues_.size());
  for (std::size_t queue = 0; queue < image.learned.size(); ++queue) {
    const LearnedImage& from = image.learned[queue];
    Learned& learned = learned_[queue];
    learned.lengths.restore(from.lengths, from.ratios);
    learned.learned_at = from.learned_at;
    learned.stale = from.stale;
    learned.arrivals = from.arrivals;
    learned.preemptions = from.preemptions;
  }
  for (const UsageImage& usage : image.usages) shares_.restore(usage);
  for (PlanImage& plan : image.plans)
    plans_[plan.task] = {Promise{plan.task, plan.at, std::move(plan.place)}, plan.leaving,
                         plan.moved_for};
  for (MovingImage& move : image.moves) moves_[move.task] = {move.asker, std::move(move.to)};
  for (const MovedImage& move : image.moved) moved_.emplace_back(move.at, move.task);
  for (Standing& from : image.standings) {
    const TaskId task = from.job.id;
    Standing& standing = standings_.emplace(task, std::move(from)).first->second;
    if (standing.started_before) served_.insert(task);
    if (standing.running()) {
      note_running(standing);
      quotas_.charge(standing.job.tenant, standing.job.takes, standing.job.limit);
    } else {
      enqueue(standing);
    }
  }
}

void Scheduler::learn(std::uint32_t queue, Instant now) {
  std::vector<Lengths::Alive> alive;
  for (const TaskId task : served_) {
    const Standing& standing = standings_.at(task);
    if (standing.job.queue != queue) continue;
    alive.push_back({standing.served_at(now), standing.job.limit.value_or(Duration{})});
  }
  Learned& learned = learned_[queue];
  learned.lengths.learn(alive);
  learned.learned_at = now;
  learned.stale = false;
}

void Scheduler::tick(Instant now) {
  const Duration pause = std::min(
      learn_every, Duration{static_cast<std::int64_t>(served_.size()) * learn_pause_per_task_ms});
  for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) {
    if (!learns(queues_[queue].discipline)) continue;
    const Learned& learned = learned_[queue];
    const Duration age = now - learned.learned_at;
    if (age >= learn_every || (learned.stale && age >= pause)) learn(queue, now);
  }
}

bool Scheduler::is_overdue(const Standing& standing, Instant now) const {
  if (standing.overdue) return true;
  const Discipline& discipline = queues_[standing.job.queue].discipline;
  const Duration waited = standing.waited_at(now);
  if (discipline.overdue_after.ms > 0 && waited > discipline.overdue_after) return true;
  if (!learns(discipline)) return false;
  // Eight times a typical length, or its own so far.
  const double served_s = static_cast<double>(standing.served_at(now).ms) / 1000;
  const double typical_s = std::max(learned_[standing.job.queue].lengths.median_s(), served_s);
  return discipline.order == Order::blind && static_cast<double>(waited.ms) / 1000 > 8 * typical_s;
}

Instant Scheduler::look_again(Instant last_event) const {
  Instant next = Instant::never();
  for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) {
    const Discipline& discipline = queues_[queue].discipline;
    if (discipline.look_again.ms == 0) continue;
    const bool refills = discipline.preemption == Preemption::refill;
    if (waiting() == 0 && !(refills && !running_.empty())) continue;
    next = std::min(next, last_event + discipline.look_again);
  }
  if (defrag_.moves_per_hour > 0 && waiting() > 0 && !running_.empty())
    next = std::min(next, last_event + moves_look_again);
  const auto later = backing_off_.upper_bound({last_event, TaskId{~std::uint64_t{0}}});
  if (later != backing_off_.end()) next = std::min(next, later->first);
  for (const auto& [id, reservation] : reservations_) {
    for (const Instant at :
         {reservation.from - reservation.notice, reservation.from, reservation.to}) {
      if (at > last_event) next = std::min(next, at);
    }
  }
  return next;
}

}  // namespace loam::schedule
