#include "schedule/defrag/defrag.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

bool is_on(const Place& place, DeviceId device) {
  return std::any_of(place.begin(), place.end(), [&](const UnitPlacement& unit) {
    return std::any_of(unit.slices.begin(), unit.slices.end(),
                       [&](const Placement& slice) { return slice.device == device; });
  });
}

std::vector<DeviceId> devices_of(const Place& place) {  // ascending
  std::vector<DeviceId> devices;
  for (const UnitPlacement& unit : place) {
    for (const Placement& slice : unit.slices) devices.push_back(slice.device);
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

class Search {
 public:
  Search(const Standing& asker, const std::vector<Movable>& movable, Instant now, const Room& room,
         const MoveStage& stage, MoveBounds& bounds)
      : asker_(asker),
        movable_(movable),
        now_(now),
        stage_(stage),
        bounds_(bounds),
        ask_(asker.job.ask),
        then_(room.copy()) {}

  std::optional<Defrag> run() {
    if (movable_.empty() || stage_.place_for(asker_, ask_, *then_)) return std::nullopt;
    const DeviceId wanted = ask_.demand.device;
    if (ask_.count > 1 || ask_.demand.devices != 1) {
      for (std::size_t i = 0; i < movable_.size(); ++i) group_.push_back(i);
      explore(0);
      return std::move(best_);
    }
    std::vector<DeviceId> seen;
    for (const Movable& cheapest : movable_) {
      for (const DeviceId device : devices_of(cheapest.standing->place)) {
        const bool known = std::find(seen.begin(), seen.end(), device) != seen.end();
        if (known || (wanted.valid() && wanted != device)) continue;
        seen.push_back(device);
        look_at(device);
      }
    }
    return std::move(best_);
  }

 private:
  void look_at(DeviceId device) {
    ask_.demand.device = device;
    group_.clear();
    for (std::size_t i = 0; i < movable_.size(); ++i) {
      if (is_on(movable_[i].standing->place, device)) group_.push_back(i);
    }
    explore(0);
  }

  // Every set of those of the group from `next` on, beside those that are away already.
  void explore(std::size_t next) {
    for (; next < group_.size() && is_better(group_[next]) && bounds_.tries_max > 0; ++next) {
      --bounds_.tries_max;
      remove(group_[next]);
      if (const auto place = stage_.place_for(asker_, ask_, *then_)) {
        settle(*place);
      } else if (away_.size() < bounds_.moves_max) {
        explore(next + 1);
      }
      restore(group_[next]);
    }
  }

  // The asker has a place: those who left need one, too. Else one more makes room for them.
  void settle(const Place& place) {
    then_->take(place);
    if (!keep_if_all_have_a_place(place) && away_.size() < bounds_.moves_max) {
      for (std::size_t i = 0; i < movable_.size() && is_better(i) && bounds_.tries_max > 0; ++i) {
        if (std::find(away_.begin(), away_.end(), i) != away_.end()) continue;
        --bounds_.tries_max;
        remove(i);
        keep_if_all_have_a_place(place);
        restore(i);
      }
    }
    then_->give_back(place);
  }

  // The widest first: what is left holds the smaller ones.
  bool keep_if_all_have_a_place(const Place& place) {
    std::vector<const Standing*> movers;
    for (const std::size_t i : away_) movers.push_back(movable_[i].standing);
    std::sort(movers.begin(), movers.end(), [](const Standing* a, const Standing* b) {
      return a->job.milli != b->job.milli ? a->job.milli > b->job.milli : a->job.id < b->job.id;
    });
    Defrag defrag{asker_.job.id, {}, place};
    bool all = true;
    for (const Standing* mover : movers) {
      auto to = stage_.place_for(*mover, mover->job.ask, *then_);
      all = to && devices_of(*to) != devices_of(mover->place);
      if (!all) break;
      then_->take(*to);
      defrag.moves.push_back({mover->job.id, mover->place, std::move(*to), mover->lost_at(now_)});
    }
    for (const Move& move : defrag.moves) then_->give_back(move.to);
    if (!all || !stage_.allows(defrag)) return false;
    best_ = std::move(defrag);
    best_loss_ = loss_;
    return true;
  }

  bool is_better(std::size_t with) const { return loss_ + movable_[with].loss < best_loss_; }

  void remove(std::size_t i) {
    away_.push_back(i);
    loss_ += movable_[i].loss;
    then_->give_back(movable_[i].standing->place);
  }
  void restore(std::size_t i) {
    then_->take(movable_[i].standing->place);
    loss_ -= movable_[i].loss;
    away_.pop_back();
  }

  const Standing& asker_;
  const std::vector<Movable>& movable_;
  Instant now_;
  const MoveStage& stage_;
  MoveBounds& bounds_;
  Ask ask_;  // the asker's, on one device where one is looked at
  std::unique_ptr<Room> then_;
  std::vector<std::size_t> group_;  // ascending
  std::vector<std::size_t> away_;
  std::int64_t loss_ = 0;  // of those that are away
  std::optional<Defrag> best_;
  std::int64_t best_loss_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace

std::optional<Defrag> find_moves(const Standing& asker, const std::vector<Movable>& movable,
                                 Instant now, const Room& room, const MoveStage& stage,
                                 MoveBounds& bounds) {
  LOAM_ASSERT(!asker.running() && bounds.moves_max >= 1);
  return Search(asker, movable, now, room, stage, bounds).run();
}

}  // namespace loam::schedule
