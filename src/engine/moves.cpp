#include "engine/moves.hpp"

#include <algorithm>
#include <vector>

#include "engine/scheduling.hpp"

namespace loam::engine {
namespace {

constexpr std::int64_t moves_per_hour_max = 1'000;
constexpr std::int64_t moves_at_once_max = 4;  // the sets that are looked at grow with its power

bool is_on(const schedule::Place& place, DeviceId device) {
  return std::any_of(place.begin(), place.end(), [&](const schedule::UnitPlacement& unit) {
    return std::any_of(unit.slices.begin(), unit.slices.end(),
                       [&](const schedule::Placement& slice) { return slice.device == device; });
  });
}

}  // namespace

std::optional<Reject> validate(const DefragSettings& settings) {
  const auto bad = [](const std::string& what, std::int64_t least, std::int64_t most) {
    return Reject{RejectCode::invalid_argument, what,
                  "use " + std::to_string(least) + " to " + std::to_string(most)};
  };
  const std::int64_t an_hour = settings.moves_per_hour;
  if (an_hour < 0 || an_hour > moves_per_hour_max)
    return bad(std::to_string(an_hour) + " moves an hour", 0, moves_per_hour_max);
  const std::int64_t at_once = settings.moves_at_once;
  if (at_once < 1 || at_once > moves_at_once_max)
    return bad(std::to_string(at_once) + " moves at once", 1, moves_at_once_max);
  constexpr Duration lost_max = Duration::hours(24);
  if (settings.lost_work_max.ms < 0 || settings.lost_work_max > lost_max) {
    return Reject{RejectCode::invalid_argument,
                  "a move that loses " + to_text(settings.lost_work_max) + " of work",
                  "use 0ms to " + to_text(lost_max)};
  }
  return std::nullopt;
}

schedule::DefragRules rules_of(const DefragSettings& settings) {
  schedule::DefragRules rules;
  rules.moves_per_hour = settings.moves_per_hour;
  rules.moves_at_once = static_cast<std::size_t>(settings.moves_at_once);
  rules.lost_work_max = settings.lost_work_max;
  return rules;
}

std::string move_words(const State& state, TaskId task) {
  const auto move = state.scheduler.moves().find(task);
  const bool known = move != state.scheduler.moves().end();
  return "moved to make room for " + (known ? move->second.asker.text() : "another task");
}

void apply_to_books(State& state, const MoveBegun& event, Instant at) {
  state.scheduler.is_moving(event.task, at, event.asker, place_of(state, event.members));
}

void forget_promises_on(State& state, DeviceId device) {
  std::vector<TaskId> off;
  for (const auto& [task, plan] : state.scheduler.plans()) {
    if (is_on(plan.promise.place, device)) off.push_back(task);
  }
  for (const TaskId task : off) state.scheduler.forget_promise(task);
  off.clear();
  for (const auto& [task, move] : state.scheduler.moves()) {
    if (is_on(move.to, device)) off.push_back(task);
  }
  for (const TaskId task : off) state.scheduler.forget_move(task);
}

}  // namespace loam::engine
