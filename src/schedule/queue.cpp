#include "schedule/queue.hpp"

namespace loam::schedule {

void Queue::add(TaskId task, TenantId tenant) {
  std::set<TaskId>& tasks = waiting_[tenant];
  if (!tasks.empty()) heads_.erase({*tasks.begin(), tenant});
  if (tasks.insert(task).second) ++size_;
  heads_.insert({*tasks.begin(), tenant});
}

void Queue::remove(TaskId task, TenantId tenant) {
  const auto found = waiting_.find(tenant);
  if (found == waiting_.end() || found->second.count(task) == 0) return;
  std::set<TaskId>& tasks = found->second;
  heads_.erase({*tasks.begin(), tenant});
  tasks.erase(task);
  --size_;
  if (tasks.empty()) {
    waiting_.erase(found);
  } else {
    heads_.insert({*tasks.begin(), tenant});
  }
}

}  // namespace loam::schedule
