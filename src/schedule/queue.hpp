// Queue: the order in which waiting tasks are tried. The order seam: today first come, first
// served, strictly (a head that does not fit holds the others back); a task that comes back after
// a loss keeps its place, since ids are given out in order of arrival. Pure.
#pragma once

#include <set>

#include "domain/ids.hpp"

namespace loam::schedule {

class Queue {
 public:
  void add(TaskId task) { waiting_.insert(task); }
  void remove(TaskId task) { waiting_.erase(task); }

  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }
  // The next task to try; none when nothing waits. O(1).
  TaskId head() const { return waiting_.empty() ? TaskId{} : *waiting_.begin(); }

 private:
  std::set<TaskId> waiting_;
};

}  // namespace loam::schedule
