// Queue: the order in which waiting tasks are tried. The order seam: today first come, first
// served within a tenant and between tenants; a task that comes back after a loss keeps its place,
// since ids are given out in order of arrival. Pure.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "domain/ids.hpp"

namespace loam::schedule {

class Queue {
 public:
  // The first waiting task of each tenant, in the order in which they are tried.
  using Heads = std::set<std::pair<TaskId, TenantId>>;

  // O(log waiting) each. remove() of a task that does not wait does nothing.
  void add(TaskId task, TenantId tenant);
  void remove(TaskId task, TenantId tenant);

  const Heads& heads() const { return heads_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::map<TenantId, std::set<TaskId>> waiting_;
  Heads heads_;
  std::size_t size_ = 0;
};

}  // namespace loam::schedule
