// Walk, the part that fills a queue anew: in order, running and waiting tasks alike, each that
// fits.
#include <queue>

#include "schedule/walk.hpp"

namespace loam::schedule {

void Walk::refill_queue(std::uint32_t queue) {
  // Which tasks belong on the devices is decided on a room that the queue's own tasks have left.
  const auto empty = room_->copy();
  Quotas quotas = quotas_;
  std::priority_queue<Turn, std::vector<Turn>, Later> turns(Later{}, turns_of(queue));
  for (const TaskId task : scheduler_.running()) {
    const Standing& standing = scheduler_.standing(task);
    if (standing.job.queue != queue || gone_.count(task) != 0) continue;
    empty->give_back(standing.place);
    if (standing.stopping) continue;  // it will be free for whom it leaves
    quotas.release(standing.job.tenant, standing.job.takes);
    Turn turn;
    turn.standing = &standing;
    turn.rank = rank_of(scheduler_, shares_, standing, now_);
    if (is_safe(standing, false)) turn.rank.tier = Tier::place_cleared;  // it stays
    turns.push(turn);
  }
  std::vector<Turn> chosen;
  std::vector<TaskId> victims;
  while (!turns.empty()) {
    Turn turn = turns.top();
    turns.pop();
    const Job& job = turn.standing->job;
    std::optional<Wait> why = turn.line == nullptr ? std::nullopt : hindrance(turn);
    if (!why) {
      const auto shortfall = quotas.check(job.tenant, job.takes, job.limit);
      if (shortfall) why = Wait{WaitCode::quota_exceeded, {}, {}, {}, *shortfall};
    }
    std::optional<Place> place;
    if (!why && !(place = empty->find(job.ask, 0)))
      why = Wait{
          empty->kinds(job.ask) == 0 ? WaitCode::never_fits : WaitCode::no_room, {}, {}, {}, {}};
    if (why) {
      if (turn.line == nullptr) {
        victims.push_back(job.id);
      } else {
        wait(turn, *why);
      }
      continue;
    }
    empty->take(*place);
    quotas.charge(job.tenant, job.takes);
    if (turn.line == nullptr) continue;
    chosen.push_back(turn);
    if (++turn.at == scheduler_.lines().at(*turn.line).end()) continue;
    turn.standing = &scheduler_.standing(turn.at->second);
    turn.rank = rank_of(scheduler_, shares_, *turn.standing, now_);
    turns.push(turn);
  }
  for (const TaskId task : victims) room_->give_back(scheduler_.standing(task).place);
  if (!victims.empty()) decide_preempt(nullptr, {}, victims, {});
  for (const Turn& turn : chosen) {
    if (full()) break;
    // Those that stay may lie otherwise than in the plan: then it starts at a later pass.
    if (auto place = room_->find(turn.standing->job.ask, 0)) {
      decide_start(*turn.standing, std::move(*place));
    } else {
      wait(turn, Wait{WaitCode::victims_leaving, {}, {}, {}, {}});
    }
  }
}

}  // namespace loam::schedule
