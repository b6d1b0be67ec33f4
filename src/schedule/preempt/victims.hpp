// Victims: which running tasks to stop so that another fits. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "domain/ids.hpp"

namespace loam::schedule {

// A running task that may be stopped.
struct PossibleVictim {
  TaskId task;
  std::int64_t level = 0;
  std::int64_t loss = 0;  // what stopping it costs, in milli-device × ms
};

// What would be if some candidates had left.
class Stage {
 public:
  virtual ~Stage() = default;
  // Whether this one may leave too, given those that have.
  virtual bool allowed(std::size_t) { return true; }
  virtual void remove(std::size_t candidate) = 0;
  virtual void restore(std::size_t candidate) = 0;
  // Whether the one they leave for can run now. More removed never makes it worse.
  virtual bool enough() = 0;
  // Whether exactly those that are removed now may leave; only asked where they are enough.
  virtual bool fair() { return true; }
};

// Of all sets that suffice, the one whose highest level is lowest, then with the fewest tasks, then
// with the least loss, then the first in the candidates' order. Exact as long as it needs no more
// than `tries_max` looks at the stage, beyond that the greedy choice: by level, then loss, and
// those that turn out not to be needed are spared. Nothing: even all of them would not suffice. The
// stage is left as it was found. Indices ascend.
std::optional<std::vector<std::size_t>> fewest_victims(
    const std::vector<PossibleVictim>& candidates, Stage& stage, std::size_t tries_max = 20'000);

// Takes the first `count` candidates, in their order, until they suffice; then spares those not
// needed, the last taken first. Nothing: all of them would not suffice. Leaves the stage as it was.
std::optional<std::vector<std::size_t>> first_victims(std::size_t count, Stage& stage);

}  // namespace loam::schedule
