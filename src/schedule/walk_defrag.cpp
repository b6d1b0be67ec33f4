// Walk, the part that moves running tasks for a waiting one of a higher level which nothing else
// lets start: where nothing else is decided, within what the operator allows, and only where the
// start gains more than the moves lose.
#include <algorithm>

#include "schedule/walk.hpp"

namespace loam::schedule {
namespace {

// What a start now is worth where nobody knows how long the task would wait else.
constexpr Duration gain_if_unknown = Duration::hours(1);
// Those who leave are gone by then.
constexpr Duration leave_within = spot_notice;
// Of the tasks that could be moved, the cheapest, so that the sets of them stay few.
constexpr std::size_t movable_max = 64;

// In a pool with more tasks than are looked at, each pass begins with others.
TaskId begin_with(const std::set<TaskId>& tasks, Instant now) {
  constexpr std::uint64_t golden = 0x9e37'79b9'7f4a'7c15;  // 2^64 over the golden ratio: spreads
  const std::uint64_t first = tasks.begin()->value;
  const std::uint64_t range = tasks.rbegin()->value - first + 1;
  return TaskId{first + (static_cast<std::uint64_t>(now.ms) * golden >> 16) % range};
}

}  // namespace

bool Walk::make_room(const Turn& turn) {
  if (preempt_for(turn, false)) return true;
  note_asker(turn);
  return false;
}

void Walk::note_asker(const Turn& turn) {
  const Job& job = turn.standing->job;
  const auto& levels = scheduler_.running_by_level();
  if (limits_.move_tries_max == 0 || askers_.size() >= limits_.move_askers_max) return;
  if (levels.empty() || levels.begin()->first >= job.level) return;
  if (scheduler_.moves_left(now_) == 0) return;
  // A queue that is filled anew reckons with quota that others have to give back first.
  if (quotas_.check(job.tenant, job.takes, job.limit)) return;
  const std::set<TaskId>* none_for = limits_.nobody_moves_for;
  if (none_for != nullptr && none_for->count(job.id) != 0) return;
  const auto plan = scheduler_.plans().find(job.id);
  if (plan != scheduler_.plans().end() && plan->second.leaving) return;  // it has a place
  askers_.push_back({turn, blocked_});
}

// The new place of one that is on its way there is nobody else's. Its quota it has kept.
void Walk::lock_moves() {
  for (const auto& [task, move] : scheduler_.moves()) {
    const Standing& standing = scheduler_.standing(task);
    room_->take(move.to);
    plans_.starts(task, move.to, ends_if_moved(standing, std::max(now_, standing.stops_by)));
  }
}

bool Walk::may_move(const Standing& standing) const {
  return !standing.stopping && !standing.overdue && !standing.job.stays &&
         !standing.job.reservation.valid() &&
         standing.lost_at(now_) <= scheduler_.defrag().lost_work_max &&
         !scheduler_.was_moved(standing.job.id, now_) && !is_safe(standing, false);
}

std::vector<Movable> Walk::movable_tasks() const {
  std::int64_t highest = askers_.front().turn.standing->job.level;
  for (const Asker& asker : askers_) highest = std::max(highest, asker.turn.standing->job.level);
  std::vector<Movable> found;
  std::size_t left = limits_.movers_max;
  const auto look_at = [&](auto from, auto to) {
    for (; from != to && left > 0; ++from, --left) {
      const Standing& standing = scheduler_.standing(*from);
      if (may_move(standing)) found.push_back({&standing, standing.loss_at(now_)});
    }
  };
  for (const auto& [level, tasks] : scheduler_.running_by_level()) {
    if (level >= highest) break;
    const auto begin =
        tasks.size() > left ? tasks.lower_bound(begin_with(tasks, now_)) : tasks.begin();
    look_at(begin, tasks.end());
    look_at(tasks.begin(), begin);
  }
  std::sort(found.begin(), found.end(), [](const Movable& a, const Movable& b) {
    return a.loss != b.loss ? a.loss < b.loss : a.standing->job.id < b.standing->job.id;
  });
  return found;
}

// How long it would wait for others to end, by their limits, rather than for those who move.
Duration Walk::wait_without_moves(const Asker& asker) const {
  const Standing& standing = *asker.turn.standing;
  const Job& job = standing.job;
  std::optional<Instant> at = plans_.planned_at(job.id);
  if (!at) {
    const auto start = plans_.earliest(job.ask, asker.barred, lasts_if_started(standing, now_),
                                       now_, *room_, [&](TaskId task) { return task != job.id; });
    if (!start) return gain_if_unknown;
    at = start->at;
  }
  return std::max(Duration{}, *at - (now_ + leave_within));
}

namespace {

// The asker and those who move, beside all that was promised and reserved.
class BesidePlans final : public MoveStage {
 public:
  BesidePlans(const Scheduler& scheduler, const Plans& plans, const Room& room, Instant now,
              TaskId asker, Kinds barred)
      : scheduler_(scheduler),
        plans_(plans),
        room_(room),
        leave_(now + leave_within),
        asker_(asker),
        barred_(barred) {}

  // One that moves stays on its kind of device: it goes on at the same price.
  std::optional<Place> place_for(const Standing& task, const Ask& ask,
                                 const Room& then) const override {
    const Kinds barred = task.running() ? ~then.kinds_of(task.place) : barred_;
    if (!plans_.any_claims()) return then.find(ask, barred);
    return plans_.beside_claims(ask, barred, then, ends(task), false,
                                [this](TaskId planned) { return planned != asker_; });
  }

  bool allows(const Defrag& defrag) const override {
    std::vector<Plans::Shift> shifts;
    const auto add = [&](TaskId id, const Place& to) {
      const Standing& task = scheduler_.standing(id);
      const Place* from = task.running() ? &task.place : nullptr;
      shifts.push_back({id, from, &to, ends(task)});
    };
    add(defrag.task, defrag.place);
    for (const Move& move : defrag.moves) add(move.task, move.to);
    return leaves_promises(shifts) &&
           plans_.allows(shifts, room_, [this](TaskId planned) { return planned != asker_; });
  }

 private:
  Instant ends(const Standing& task) const {
    return task.running() ? ends_if_moved(task, leave_) : ends_if_started(task, leave_);
  }

  // Some were promised by earlier passes, and this one has not looked at them.
  bool leaves_promises(const std::vector<Plans::Shift>& shifts) const {
    return std::all_of(
        scheduler_.plans().begin(), scheduler_.plans().end(), [&](const auto& entry) {
          const Promise& promise = entry.second.promise;
          if (entry.second.leaving || promise.task == asker_) return true;
          return std::none_of(shifts.begin(), shifts.end(), [&](const Plans::Shift& shift) {
            return shift.ends > promise.at && touch(*shift.to, promise.place);
          });
        });
  }

  const Scheduler& scheduler_;
  const Plans& plans_;
  const Room& room_;
  Instant leave_;
  TaskId asker_;
  Kinds barred_;
};

}  // namespace

std::optional<Defrag> Walk::moves_for(const Asker& asker, const std::vector<Movable>& movable,
                                      std::size_t& tries) const {
  const Standing& standing = *asker.turn.standing;
  const Kinds wanted = room_->kinds(standing.job.ask) & ~asker.barred;
  std::vector<Movable> lower;
  for (const Movable& one : movable) {
    const bool on_its_kinds = (room_->kinds_of(one.standing->place) & wanted) != 0;
    if (one.standing->job.level < standing.job.level && on_its_kinds) lower.push_back(one);
    if (lower.size() == movable_max) break;
  }
  const DefragRules& rules = scheduler_.defrag();
  MoveBounds bounds;
  bounds.moves_max = std::min<std::size_t>(rules.moves_at_once,
                                           static_cast<std::size_t>(scheduler_.moves_left(now_)));
  bounds.tries_max = tries;
  const BesidePlans stage(scheduler_, plans_, *room_, now_, standing.job.id, asker.barred);
  auto found = find_moves(standing, lower, now_, *room_, stage, bounds);
  tries = bounds.tries_max;
  if (!found) return std::nullopt;
  std::int64_t loss = 0;
  for (const Move& move : found->moves) loss += scheduler_.standing(move.task).loss_at(now_);
  if (loss >= standing.job.milli * wait_without_moves(asker).ms) return std::nullopt;
  return found;
}

// One start in a pass: the plans of the next are made with it in mind.
void Walk::defrag() {
  if (askers_.empty() || !pass_.actions.empty() || !pass_.dropped.empty()) return;
  const std::vector<Movable> movable = movable_tasks();
  if (movable.empty()) return;
  std::size_t tries = limits_.move_tries_max;
  for (const Asker& asker : askers_) {
    auto found = moves_for(asker, movable, tries);
    if (found) {
      std::erase_if(pass_.waits, [&](const auto& wait) { return wait.first == asker.turn.line; });
      pass_.actions.emplace_back(std::move(*found));
      return;
    }
    if (tries == 0) return;
  }
}

}  // namespace loam::schedule
