#include "schedule/defrag/defrag.hpp"

#include <algorithm>
#include <vector>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

struct Movable {
  const Standing* standing = nullptr;
  std::int64_t loss = 0;  // milli-device × ms
};

std::int64_t loss_of(const Standing& standing, Instant now) {
  const Duration lost = (now - standing.saved_at) + standing.job.save + standing.job.load;
  return standing.job.milli * std::max<std::int64_t>(0, lost.ms);
}

std::vector<Movable> movable_for(const Scheduler& scheduler, const Job& job, Instant now,
                                 std::size_t most) {
  std::vector<Movable> found;
  for (const TaskId task : scheduler.running()) {
    const Standing& standing = scheduler.standing(task);
    const Discipline& how = scheduler.queues()[standing.job.queue].discipline;
    if (standing.job.level >= job.level || standing.stopping || standing.overdue) continue;
    if (standing.job.reservation.valid()) continue;
    if (now - standing.since < how.safe_min + standing.owed) continue;
    found.push_back({&standing, loss_of(standing, now)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Movable& a, const Movable& b) { return a.loss < b.loss; });
  if (found.size() > most) found.resize(most);
  return found;
}

// How long the task would wait for enough of the running ones to end, by their limits.
Duration wait_without(const Scheduler& scheduler, const Job& job, Instant now, const Room& room,
                      Duration if_unknown) {
  std::vector<std::pair<Instant, const Place*>> ends;
  for (const TaskId task : scheduler.running()) {
    const Standing& standing = scheduler.standing(task);
    if (standing.ends_by() != Instant::never())
      ends.emplace_back(std::max(now, standing.ends_by()), &standing.place);
  }
  std::stable_sort(ends.begin(), ends.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto then = room.copy();
  for (const auto& [at, place] : ends) {
    if (at - now >= if_unknown) break;
    then->give_back(*place);
    if (then->find(job.ask, 0)) return at - now;
  }
  return if_unknown;
}

// With these away, both the task and they have a place.
std::optional<Defrag> rearranged(const Job& job, const std::vector<const Movable*>& moved,
                                 const Room& room) {
  const auto then = room.copy();
  for (const Movable* one : moved) then->give_back(one->standing->place);
  Defrag defrag;
  defrag.task = job.id;
  auto place = then->find(job.ask, 0);
  if (!place) return std::nullopt;
  then->take(*place);
  defrag.place = std::move(*place);
  for (const Movable* one : moved) {
    auto to = then->find(one->standing->job.ask, 0);
    if (!to) return std::nullopt;
    then->take(*to);
    defrag.moves.push_back({one->standing->job.id, one->standing->place, std::move(*to)});
  }
  return defrag;
}

}  // namespace

std::optional<Defrag> find_moves(const Scheduler& scheduler, TaskId task, Instant now,
                                 const Room& room, const DefragLimits& limits) {
  const Standing& asker = scheduler.standing(task);
  LOAM_ASSERT(!asker.running() && limits.moves_max >= 1 && limits.moves_max <= 2);
  if (room.find(asker.job.ask, 0)) return std::nullopt;
  const std::vector<Movable> movable =
      movable_for(scheduler, asker.job, now, limits.tasks_tried_max);
  if (movable.empty()) return std::nullopt;
  const Duration saved = wait_without(scheduler, asker.job, now, room, limits.gain_if_unknown);
  const std::int64_t gain = asker.job.milli * saved.ms;
  for (const Movable& one : movable) {  // cheapest first
    if (one.loss >= gain) return std::nullopt;
    if (auto defrag = rearranged(asker.job, {&one}, room)) return defrag;
  }
  if (limits.moves_max < 2) return std::nullopt;
  std::optional<Defrag> best;
  std::int64_t best_loss = gain;
  for (std::size_t a = 0; a < movable.size(); ++a) {
    for (std::size_t b = a + 1; b < movable.size(); ++b) {
      const std::int64_t loss = movable[a].loss + movable[b].loss;
      if (loss >= best_loss) break;
      if (auto defrag = rearranged(asker.job, {&movable[a], &movable[b]}, room)) {
        best = std::move(defrag);
        best_loss = loss;
      }
    }
  }
  return best;
}

}  // namespace loam::schedule
