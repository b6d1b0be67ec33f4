// Auditor, the rules about order: plans are kept (5), victims are the right ones (6), members of a
// cohort lend what idles (7), and nothing idles that a task could use (13).
#include <algorithm>

#include "sim/auditor.hpp"

namespace loam::sim {
namespace {

constexpr Duration back_off_least = Duration::seconds(5);  // after a first start that failed

}  // namespace

// What members lend one another is what others of them leave idle.
void Auditor::check_cohort(const std::string& name) {
  MilliCe ce, ce_used;
  std::int64_t tasks = 0, running = 0;
  bool limits_ce = true, limits_tasks = true;
  for (const TenantBook& tenant : tenants_) {
    const Quota& quota = tenant.spec.quota;
    if (quota.cohort != name) continue;
    limits_ce = limits_ce && quota.ce;
    limits_tasks = limits_tasks && quota.tasks;
    ce += quota.ce.value_or(MilliCe{});
    ce_used += tenant.ce_used;
    tasks += quota.tasks.value_or(0);
    running += tenant.running;
  }
  if ((limits_ce && ce_used > ce) || (limits_tasks && running > tasks))
    fail(7, "the cohort " + name + " uses " + to_text(ce_used) + " CE and " +
                std::to_string(running) + " tasks, more than its members' quotas");
}

bool Auditor::is_at(const TaskPromised& promise, DeviceId device) {
  for (const PromisedMember& member : promise.members) {
    for (const PromisedSlice& slice : member.slices) {
      if (slice.device == device) return true;
    }
  }
  return false;
}

void Auditor::on(const Record&, const SchedulingSet& event) {
  settings_ = event.settings;
}

void Auditor::on(const Record&, const TaskPromised& event) {
  TaskBook* book = task(event.task, 5);
  if (book == nullptr) return;
  if (book->stage != Stage::waiting) fail(5, event.task.text() + " is promised a start and runs");
  if (event.members.size() != static_cast<std::size_t>(book->spec.gang))
    fail(2, event.task.text() + " is promised a place for some of its members");
  book->promise = event;
  if (!event.leaving) return;
  check_victims(*book);
  victims_.clear();  // the next one asks for its own
}

void Auditor::on(const Record&, const PromiseDropped& event) {
  if (TaskBook* book = task(event.task, 5)) book->promise.reset();
}

void Auditor::on(const Record&, const NodeMarked& event) {
  if (event.until == Instant{}) {
    marked_.erase(event.node);
    return;
  }
  marked_.insert(event.node);
  for (auto& [id, book] : tasks_) {  // what was promised there is off
    if (book.promise && book.promise->members.front().node == event.node) book.promise.reset();
  }
}

const QueueSettings& Auditor::queue_of(const TaskSpec& spec) const {
  const QueueSettings* first = nullptr;
  for (const QueueSettings& queue : settings_.queues) {
    if (first == nullptr && !queue.closed) first = &queue;
    if (queue.name == spec.queue) return queue;
  }
  return first == nullptr ? settings_.queues.front() : *first;
}

std::int64_t Auditor::level_of(const TaskSpec& spec) const {
  std::int64_t level = 0;
  for (const ServiceClass& known : settings_.classes) {
    if (known.name == spec.service_class) level = known.level;
  }
  return spec.purchase_model == PurchaseModel::spot ? level - 1'000'000 : level;
}

// Rule 6: a victim is of a lower level, or its queue preempts by something else than level.
void Auditor::check_victims(const TaskBook& asker) {
  static const std::set<std::string> by_order{"blind", "semi_blind", "mlfq",
                                              "las2",  "srtf",       "srsf"};
  for (const TaskId id : victims_) {
    const TaskBook* victim = task(id, 6);
    if (victim == nullptr) return;
    const QueueSettings& queue = queue_of(victim->spec);
    const bool lower = level_of(victim->spec) < level_of(asker.spec);
    const bool same_queue = queue.name == queue_of(asker.spec).name;
    // One that its own queue has just put aside is not this one's victim.
    const bool reordered = by_order.count(queue.discipline) != 0 || (same_queue && queue.overdue);
    const std::string& cohort = tenants_.at(victim->tenant.value - 1).spec.quota.cohort;
    const bool lent =
        !cohort.empty() && cohort == tenants_.at(asker.tenant.value - 1).spec.quota.cohort;
    if (!lower && !reordered && !lent)
      fail(6, id.text() + " has to leave for " + asker.id.text() + ", which is no higher");
  }
}

// A promise is judged by who will be gone when it begins; when that is now, by who is.
std::optional<Instant> Auditor::still_to_come(Instant start) const {
  return start > now_ ? std::optional(start) : std::nullopt;
}

// Promises to tasks of one slice that can be kept, by the limits of what runs.
std::vector<TaskId> Auditor::plans_that_hold() const {
  std::vector<TaskId> found;
  for (const auto& [id, book] : tasks_) {
    if (book.stage != Stage::waiting || !book.promise || book.promise->leaving) continue;
    // A promise supposes that the tenant's quota lets it start.
    if (!(tenants_.at(book.tenant.value - 1).spec.quota == Quota{})) continue;
    if (book.promise->start < now_) continue;  // what runs beyond its limit has delayed it already
    if (book.spec.gang > 1 || book.spec.request.devices > 1) continue;
    if (fits_somewhere(book.spec, still_to_come(book.promise->start))) found.push_back(id);
  }
  return found;
}

// Rule 5: what starts now leaves every plan that could be kept before as it was. One that has a
// plan of its own takes what was promised, and is not asked.
void Auditor::check_plans_kept(TaskId started, const TaskBook& book) {
  // An overdue task goes before all.
  const QueueSettings& ours = queue_of(book.spec);
  if (ours.overdue) return;
  for (const TaskId kept : plans_kept_) {
    const TaskBook& other = tasks_.at(kept);
    const bool near = std::any_of(book.leases.begin(), book.leases.end(), [&](LeaseId id) {
      const auto& slices = leases_.at(id).slices;
      return std::any_of(slices.begin(), slices.end(),
                         [&](const Slice& slice) { return is_at(*other.promise, slice.device); });
    });
    // What another queue promises holds where it plans its first.
    const QueueSettings& theirs = queue_of(other.spec);
    const bool binds = theirs.name == ours.name || theirs.discipline != "conservative";
    if (kept != started && near && binds &&
        !fits_somewhere(other.spec, still_to_come(other.promise->start)))
      fail(5, started.text() + " delays " + kept.text() + ", which was promised " +
                  to_text(other.promise->start));
  }
}

bool Auditor::fits_somewhere(const TaskSpec& spec, std::optional<Instant> at) const {
  const ResourceRequest& request = spec.request;
  for (const DeviceBook& device : devices_) {
    if (!device.healthy || device.draining || marked_.count(device.node) != 0) continue;
    if (!request.device_type.empty() && request.device_type != device.facts.type) continue;
    if (!request.device.empty() && request.device != device.name &&
        request.device != device.facts.uuid) {
      continue;
    }
    const std::int64_t worth = device.facts.factors.of(request.work_class).value;
    const std::int64_t share = request.share
                                   ? request.share->value
                                   : std::max<std::int64_t>(1, request.ce->value * 1000 / worth);
    const std::int64_t mib =
        request.memory ? request.memory->value
                       : std::max<std::int64_t>(1, share * device.facts.memory.value / 1000);
    std::int64_t used = 0;
    std::int64_t mib_used = 0;
    for (const LeaseId id : device.leases) {
      const LeaseBook& lease = leases_.at(id);
      if (at && lease.ends_by <= *at) continue;
      for (const Slice& slice : lease.slices) {
        if (devices_.at(slice.device.value - 1).name != device.name) continue;
        used += slice.share.value;
        mib_used += slice.memory.value;
      }
    }
    if (used + share <= 1000 && mib_used + mib <= device.facts.memory.value) return true;
  }
  return false;
}

bool Auditor::is_on_marked(const std::string& device) const {
  return std::any_of(devices_.begin(), devices_.end(), [&](const DeviceBook& book) {
    return (book.name == device || book.facts.uuid == device) && marked_.count(book.node) != 0;
  });
}

void Auditor::check_nothing_idles() {
  // Quotas are open to all when this is asked. A place that is being cleared, and what a plan is
  // kept for, is claimed.
  std::vector<const TaskBook*> waiting;
  for (const auto& [id, book] : tasks_) {
    if (book.promise) return;
    if (book.stage == Stage::waiting) waiting.push_back(&book);
  }
  std::sort(waiting.begin(), waiting.end(), [](const TaskBook* a, const TaskBook* b) {
    return std::pair(a->arrival, a->id) < std::pair(b->arrival, b->id);
  });
  static const std::set<std::string> whatever_fits{"any", "sjf"};
  // In a pool where nothing runs there is nothing to wait for but nodes that are marked. Else a
  // queue may keep room for its first without a promise.
  const bool all_idle = leases_.empty() && marked_.empty();
  for (const QueueSettings& queue : settings_.queues) {
    const bool plans = whatever_fits.count(queue.discipline) == 0 && queue.discipline != "fifo";
    if (!queue.closed && plans && !all_idle) return;
  }
  std::set<std::string> seen;  // queues kept in order: what comes after their first may wait
  for (const TaskBook* book : waiting) {
    const QueueSettings& queue = queue_of(book->spec);
    const bool any = all_idle || whatever_fits.count(queue.discipline) != 0;
    if (queue.overdue || (!any && queue.discipline != "fifo")) continue;
    // One that surely waits before its next try holds nobody back, nor one that only a marked node
    // could serve.
    if (book->unable_at && now_ < *book->unable_at + back_off_least) continue;
    if (!book->spec.request.device.empty() && is_on_marked(book->spec.request.device)) continue;
    if (!any && !seen.insert(queue.name).second) continue;
    // How long it waits before its next try is not reckoned here. And one that has run keeps the
    // types of device that its tenant's quota allowed when it came.
    if (book->unable_at || book->epoch.value != 0) continue;
    // Whether several slices fit together is not a matter of one device after the other; and CE
    // that no single device has may be split over several.
    if (book->spec.gang > 1 || book->spec.request.devices > 1 || book->spec.request.ce) continue;
    if (fits_somewhere(book->spec, std::nullopt)) {
      fail(13, book->id.text() + " waits although there is room for it");
      return;
    }
  }
}

}  // namespace loam::sim
