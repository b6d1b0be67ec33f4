#include "engine/expiry.hpp"

#include "engine/queries.hpp"
#include "engine/reservations.hpp"
#include "engine/service_books.hpp"
#include "engine/start_times.hpp"

namespace loam::engine {
namespace {

std::optional<Duration> longest_wait(const State& state, const Task& task) {
  if (task.spec->wait_at_most) return task.spec->wait_at_most;
  if (paid_by_reservation(state, task)) return std::nullopt;
  return state.settings.hold_expires;
}

}  // namespace

Instant expires_at(const State& state, TaskId task) {
  const auto known = state.expiry_of.find(task);
  return known == state.expiry_of.end() ? Instant::never() : known->second;
}

bool expire_waiting(Draft& draft) {
  const State& state = draft.state();
  if (state.expiries.empty() || state.expiries.begin()->first > draft.now()) return false;
  const Task& task = state.tasks.at(state.expiries.begin()->second);
  std::string reason = "it waited " +
                       to_text(state.scheduler.standing(task.id).waited_at(draft.now())) +
                       " and did not start";
  release_hold(draft, task);
  settle_kept(draft, task);
  if (const std::string none = accept_next(draft, task, task.held); !none.empty())
    reason += "; recurs no more: " + none;
  draft.add(TaskFinished{task.id, TaskOutcome::expired, 0, std::move(reason)});
  return true;
}

void note_expiry(State& state, const Task& task) {
  forget_expiry(state, task.id);
  if (task.state != TaskState::waiting || task.run_time.ms > 0) return;
  const std::optional<Duration> wait = longest_wait(state, task);
  if (!wait) return;
  // What its nodes took to find that they cannot start it was no wait.
  const schedule::Standing& standing = state.scheduler.standing(task.id);
  const Instant due = standing.job.arrival + standing.on_devices + *wait;
  state.expiry_of[task.id] = due;
  state.expiries.insert({due, task.id});
}

void forget_expiry(State& state, TaskId task) {
  const auto known = state.expiry_of.find(task);
  if (known == state.expiry_of.end()) return;
  state.expiries.erase({known->second, task});
  state.expiry_of.erase(known);
}

void count_expiries(State& state) {
  state.expiry_of.clear();
  state.expiries.clear();
  for (const auto& [id, task] : state.tasks) note_expiry(state, task);
}

}  // namespace loam::engine
