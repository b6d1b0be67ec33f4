#include "schedule/preempt/victims.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace loam::schedule {
namespace {

// All subsets of `size` among `pool`, the first with the least loss that suffices.
class Search {
 public:
  Search(const std::vector<PossibleVictim>& candidates, const std::vector<std::size_t>& pool,
         Stage& stage, std::size_t& tries_left)
      : candidates_(candidates), pool_(pool), stage_(stage), tries_left_(tries_left) {}

  // False: gave up, out of tries.
  bool run(std::size_t size) { return extend(0, size, 0); }
  const std::optional<std::vector<std::size_t>>& best() const { return best_; }

 private:
  bool extend(std::size_t from, std::size_t more, std::int64_t loss) {
    if (best_ && loss >= best_loss_) return true;
    if (more == 0) {
      if (tries_left_ == 0) return false;
      --tries_left_;
      if (stage_.enough() && stage_.fair()) {
        best_ = chosen_;
        best_loss_ = loss;
      }
      return true;
    }
    for (std::size_t i = from; i + more <= pool_.size(); ++i) {
      if (!stage_.allowed(pool_[i])) continue;
      stage_.remove(pool_[i]);
      chosen_.push_back(pool_[i]);
      const bool done = extend(i + 1, more - 1, loss + candidates_[pool_[i]].loss);
      chosen_.pop_back();
      stage_.restore(pool_[i]);
      if (!done) return false;
    }
    return true;
  }

  const std::vector<PossibleVictim>& candidates_;
  const std::vector<std::size_t>& pool_;
  Stage& stage_;
  std::size_t& tries_left_;
  std::vector<std::size_t> chosen_;
  std::optional<std::vector<std::size_t>> best_;
  std::int64_t best_loss_ = 0;
};

// All of them, whether they are allowed or not: if that is too few, so is any part of them.
bool all_suffice(const std::vector<std::size_t>& pool, Stage& stage) {
  for (const std::size_t i : pool) stage.remove(i);
  const bool enough = stage.enough();
  for (auto i = pool.rbegin(); i != pool.rend(); ++i) stage.restore(*i);
  return enough;
}

// Removes in `order` until it suffices, then restores what is not needed, last first.
std::optional<std::vector<std::size_t>> greedy(const std::vector<std::size_t>& order,
                                               Stage& stage) {
  std::vector<std::size_t> taken;
  bool enough = stage.enough();
  for (const std::size_t i : order) {
    if (enough) break;
    if (!stage.allowed(i)) continue;
    stage.remove(i);
    taken.push_back(i);
    enough = stage.enough();
  }
  if (enough) {
    for (std::size_t at = taken.size(); at-- > 0;) {
      stage.restore(taken[at]);
      if (stage.enough()) {
        taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        stage.remove(taken[at]);
      }
    }
  }
  const bool good = enough && stage.fair();
  for (auto i = taken.rbegin(); i != taken.rend(); ++i) stage.restore(*i);
  if (!good) return std::nullopt;
  return taken;
}

std::vector<std::size_t> by_level_and_loss(const std::vector<PossibleVictim>& candidates,
                                           std::vector<std::size_t> pool) {
  std::stable_sort(pool.begin(), pool.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(candidates[a].level, candidates[a].loss) <
           std::pair(candidates[b].level, candidates[b].loss);
  });
  return pool;
}

}  // namespace

std::optional<std::vector<std::size_t>> fewest_victims(
    const std::vector<PossibleVictim>& candidates, Stage& stage, std::size_t tries_max) {
  if (stage.enough()) return std::vector<std::size_t>{};
  std::set<std::int64_t> levels;
  for (const PossibleVictim& candidate : candidates) levels.insert(candidate.level);
  std::vector<std::size_t> pool;
  for (const std::int64_t most : levels) {
    pool.clear();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].level <= most) pool.push_back(i);
    }
    if (!all_suffice(pool, stage)) continue;
    std::size_t tries_left = tries_max;
    Search search(candidates, pool, stage, tries_left);
    bool exact = true;
    for (std::size_t size = 0; exact && size <= pool.size(); ++size) {
      exact = search.run(size);
      if (exact && search.best()) return search.best();
    }
    if (exact) continue;
    if (auto found = greedy(by_level_and_loss(candidates, pool), stage)) {
      std::sort(found->begin(), found->end());
      return found;
    }
  }
  return std::nullopt;
}

std::optional<std::vector<std::size_t>> first_victims(std::size_t count, Stage& stage) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto found = greedy(order, stage);
  if (found) std::sort(found->begin(), found->end());
  return found;
}

}  // namespace loam::schedule
