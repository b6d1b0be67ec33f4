// Auditor, the rules about order: plans are kept (5), victims are the right ones (6), members of a
// cohort lend what idles (7), nothing idles that a task could use (13), and no spot task waits so
// long for spot that on demand would miss its deadline (15).
#include <algorithm>
#include <tuple>

#include "sim/auditor.hpp"

namespace loam::sim {
namespace {

constexpr Duration back_off_least = Duration::seconds(5);  // after a first start that failed
constexpr Duration turns_within = Duration::minutes(1);    // a daemon that is there decides by then

}  // namespace

// What members lend one another is what others of them leave idle, and each may keep a part of its
// own to itself and be bound in what it borrows. In the dimensions that one member's quota bounds:
// what that one takes has not brought the others beyond theirs.
void Auditor::check_cohort(const Quota& of) {
  const std::string& name = of.cohort;
  struct Dimension {
    const char* name;
    std::optional<std::int64_t> (*most)(const Quota&);
    std::int64_t (*used)(const TenantBook&);
  };
  static const Dimension dimensions[] = {
      {"milli-CE", [](const Quota& q) { return q.ce ? std::optional(q.ce->value) : std::nullopt; },
       [](const TenantBook& t) { return t.ce_used.value; }},
      {"MiB",
       [](const Quota& q) { return q.memory ? std::optional(q.memory->value) : std::nullopt; },
       [](const TenantBook& t) { return t.memory_used.value; }},
      {"milli-device",
       [](const Quota& q) { return q.devices ? std::optional(q.devices->value) : std::nullopt; },
       [](const TenantBook& t) { return t.devices_used.value; }},
      {"tasks", [](const Quota& q) { return q.tasks; },
       [](const TenantBook& t) { return t.running; }},
  };
  for (const Dimension& dimension : dimensions) {
    if (!dimension.most(of)) continue;
    std::int64_t stock = 0;
    std::int64_t taken = 0;
    for (const TenantBook& tenant : tenants_) {
      const Quota& quota = tenant.spec.quota;
      const auto most = dimension.most(quota);
      if (quota.cohort != name || !most) continue;
      const auto part = [&](const std::optional<BasisPoints>& of, std::int64_t otherwise) {
        return of ? static_cast<std::int64_t>(Int128{*most} * of->value / 10'000) : otherwise;
      };
      const std::int64_t used = dimension.used(tenant);
      const std::int64_t kept = *most - part(quota.lend, *most);
      stock += *most - kept;
      taken += std::max<std::int64_t>(0, used - kept);
      if (quota.borrow && used > *most + part(quota.borrow, 0)) {
        fail(7, tenant.spec.name + " uses " + std::to_string(used) + " " + dimension.name +
                    ", more than it may borrow");
      }
    }
    if (taken > stock) {
      fail(7, "the cohort " + name + " uses " + std::to_string(taken) + " " + dimension.name +
                  " of the " + std::to_string(stock) + " that its members lend");
    }
  }
}

void Auditor::on(const Record&, const SchedulingSet& event) {
  settings_ = event.settings;
  const Oversubscription& lent = event.settings.oversubscription;
  lent_.ce_permille = std::max(lent_.ce_permille, lent.ce_permille);
  lent_.memory_permille = std::max(lent_.memory_permille, lent.memory_permille);
  for (auto& [id, book] : tasks_) {
    book.moved = true;
    book.planned_before = book.planned_before || book.promise.has_value();
    forget_place(book);
  }
}

void Auditor::on(const Record&, const TaskPromised& event) {
  TaskBook* book = task(event.task, 5);
  if (book == nullptr) return;
  if (book->stage != Stage::waiting) fail(5, event.task.text() + " is promised a start and runs");
  if (event.members.size() != static_cast<std::size_t>(book->spec.gang))
    fail(2, event.task.text() + " is promised a place for some of its members");
  book->promise = event;
  book->promised_at = records_;
  book->planned_before = false;
  if (!event.leaving) return;
  begun_.erase(event.task);
  check_victims(*book);
  victims_.clear();  // the next one asks for its own
}

void Auditor::on(const Record&, const PromiseDropped& event) {
  TaskBook* book = task(event.task, 5);
  if (book == nullptr) return;
  forget_place(*book);
  book->move.reset();
  book->planned_before = false;
}

void Auditor::on(const Record&, const NodeMarked& event) {
  if (event.until == Instant{}) {
    marked_.erase(event.node);
    return;
  }
  marked_.insert(event.node);
  for (std::size_t i = 0; i < devices_.size(); ++i) {  // what was promised there is off
    if (devices_[i].node == event.node) forget_places_on(DeviceId{i + 1});
  }
}

void Auditor::on(const Record&, const TaskLate& event) {
  TaskBook* book = task(event.task, 3);
  if (book == nullptr) return;
  if (book->stage != Stage::waiting || event.waited < event.promised)
    fail(5, event.task.text() + " is late and does not wait so long");
  if (event.kind != LateStepKind::larger_queue && event.kind != LateStepKind::on_demand) return;
  book->spec.queue = event.queue;
  book->spec.purchase_model = event.purchase_model;
  forget_place(*book);
  book->move.reset();
  book->preempted_at.clear();
}

void Auditor::on(const Record&, const SpotPlanned& event) {
  TaskBook* book = task(event.task, 15);
  if (book == nullptr) return;
  if (book->spec.purchase_model != PurchaseModel::spot || !book->spec.deadline) {
    fail(15, event.task.text() + " has a plan, and is no spot task with a deadline");
    return;
  }
  book->changeover = event.tick * event.changeover;
  if (now_ + book->spec.limit + *book->changeover > *book->spec.deadline)
    fail(15, event.task.text() + " was accepted, and cannot meet its deadline");
}

void Auditor::on(const Record&, const DeadlineNoticed& event) {
  TaskBook* book = task(event.task, 15);
  if (book == nullptr) return;
  const bool for_spot = book->spec.purchase_model == PurchaseModel::spot;
  if (for_spot != (event.kind == DeadlineNoticeKind::on_demand) || !book->changeover)
    fail(15, event.task.text() + " is told of a deadline that is none of its");
  if (!for_spot) return;
  if (book->stage != Stage::waiting) fail(15, event.task.text() + " is turned, and does not wait");
  book->spec.purchase_model = PurchaseModel::on_demand;
  forget_place(*book);
  book->move.reset();
  book->preempted_at.clear();
}

// Rule 15, between batches. By the last record, so that nothing is asked of a daemon that was away;
// one that comes back too late for its deadline, such as after a clock that jumped, is turned then.
void Auditor::check_deadlines() {
  for (const auto& [id, book] : tasks_) {
    const bool for_spot = book.spec.purchase_model == PurchaseModel::spot;
    if (!book.changeover || !for_spot || book.stage != Stage::waiting) continue;
    const Duration left = book.spec.limit - book.rounds;
    const Instant latest = *book.spec.deadline - left - *book.changeover;
    if (now_ > std::max(latest, book.waits_since) + turns_within)
      fail(15, id.text() + " waits for spot, and only on demand would meet its deadline");
  }
}

bool Auditor::admits(const TaskSpec& spec, const DeviceBook& device) const {
  const QueueSettings& queue = queue_of(spec);
  const NodeBook& node = nodes_.at(device.node.value - 1);
  const auto among = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  return (queue.region.empty() || queue.region == node.region) &&
         (queue.device_types.empty() || among(queue.device_types, device.facts.type)) &&
         std::all_of(queue.labels.begin(), queue.labels.end(),
                     [&](const std::string& label) { return among(node.labels, label); });
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
    // Spot is below all else, also where it was not asked for.
    TaskSpec sold = victim->spec;
    if (victim->sold_as_spot) sold.purchase_model = PurchaseModel::spot;
    const bool lower = level_of(sold) < level_of(asker.spec);
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

// Whether it fits when it was promised to, on devices of the types that were promised.
bool Auditor::fits_as_promised(const TaskBook& book) const {
  std::set<std::string> types;
  for (const PromisedMember& member : book.promise->members) {
    for (const PromisedSlice& slice : member.slices)
      types.insert(devices_.at(slice.device.value - 1).facts.type);
  }
  return fits_somewhere(book.spec, still_to_come(book.promise->start), types);
}

// A later promise to one that goes before it, on devices that it was promised, too, takes the
// place.
bool Auditor::is_overtaken(const TaskBook& book) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& entry) {
    const TaskBook& other = entry.second;
    if (!other.promise || other.promised_at <= book.promised_at || !goes_before(other, book))
      return false;
    return share_device(other.promise->members, book.promise->members);
  });
}

bool Auditor::share_device(const std::vector<PromisedMember>& a,
                           const std::vector<PromisedMember>& b) {
  return std::any_of(b.begin(), b.end(), [&](const PromisedMember& member) {
    return std::any_of(member.slices.begin(), member.slices.end(),
                       [&](const PromisedSlice& slice) { return is_at(a, slice.device); });
  });
}

// In a queue that promises all its tasks a start, what was to follow there one that is late may be
// late, too. Spot that is late goes before spot alone.
bool Auditor::follows_late(const TaskBook& book) const {
  const QueueSettings& queue = queue_of(book.spec);
  if (queue.discipline != "conservative") return false;
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& entry) {
    const TaskBook& other = entry.second;
    if (other.stage != Stage::waiting || !other.promise || other.promise->start >= now_)
      return false;
    if (queue_of(other.spec).name != queue.name) return false;
    const bool spot = other.spec.purchase_model == PurchaseModel::spot;
    if (spot && book.spec.purchase_model != PurchaseModel::spot) return false;
    return share_device(other.promise->members, book.promise->members);
  });
}

// Promises that can be kept, by the limits of what runs, and that no other has overtaken.
std::vector<TaskId> Auditor::plans_that_hold() const {
  std::vector<TaskId> found;
  for (const auto& [id, book] : tasks_) {
    if (book.stage != Stage::waiting || !book.promise || book.promise->leaving) continue;
    if (book.promise->start < now_) continue;  // what runs beyond its limit has delayed it already
    if (fits_as_promised(book) && !is_overtaken(book) && !follows_late(book)) found.push_back(id);
  }
  return found;
}

// What its queue tries it after: by arrival, spot as if it had come a day later; in a queue kept by
// level each `ageing` that it has waited counts as a level.
std::int64_t Auditor::key_of(const TaskBook& book) const {
  const QueueSettings& queue = queue_of(book.spec);
  const Duration ageing = queue.ageing.value_or(Duration::minutes(30));
  const bool spot = book.spec.purchase_model == PurchaseModel::spot;
  const Instant came = book.arrival + (spot ? Duration::hours(24) : Duration{});
  if (queue.discipline != "priority") return came.ms;
  if (ageing.ms == 0) return -level_of(book.spec);
  const std::int64_t level = spot ? level_of(book.spec) + 1'000'000 : level_of(book.spec);
  return came.ms - level * ageing.ms;
}

// A promise holds against those who come after it: spot's against spot alone, there and in a queue
// kept by level against those that are tried later, in another queue against those of no higher
// level.
bool Auditor::goes_before(const TaskBook& started, const TaskBook& planned) const {
  const QueueSettings& queue = queue_of(started.spec);
  const bool same_queue = queue.name == queue_of(planned.spec).name;
  const bool ours = started.spec.purchase_model == PurchaseModel::spot;
  const bool theirs = planned.spec.purchase_model == PurchaseModel::spot;
  // Those behind one that waits for its next try are promised starts meanwhile; it keeps its turn.
  const bool kept_its_turn = started.unable_at && ours == theirs;
  if (same_queue && (queue.discipline == "priority" || (ours && theirs) || kept_its_turn)) {
    return std::tuple(key_of(started), started.arrival, started.id) <
           std::tuple(key_of(planned), planned.arrival, planned.id);
  }
  if (ours != theirs) return theirs;
  return !same_queue && level_of(started.spec) > level_of(planned.spec);
}

// Rule 5: what starts now leaves every plan that could be kept before as it was, but for those of
// tasks that it goes before. One that has a plan of its own takes what was promised, and is not
// asked.
void Auditor::check_plans_kept(TaskId started, const TaskBook& book) {
  if (queue_of(book.spec).overdue) return;    // an overdue task goes before all
  if (book.spec.reservation.valid()) return;  // what it takes was no plan's
  for (const TaskId kept : plans_kept_) {
    const TaskBook& other = tasks_.at(kept);
    if (kept == started || !other.promise || goes_before(book, other)) continue;
    const bool near = std::any_of(book.leases.begin(), book.leases.end(), [&](LeaseId id) {
      const auto& slices = leases_.at(id).slices;
      return std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
        return is_at(other.promise->members, slice.device);
      });
    });
    if (!near) continue;
    // On devices of any type: the promise may move to another that its tenant's quota allows.
    if (!fits_somewhere(other.spec, still_to_come(other.promise->start))) {
      fail(5, started.text() + " delays " + kept.text() + ", which was promised " +
                  to_text(other.promise->start));
    }
  }
}

// How many slices of it a device has room for.
std::int64_t Auditor::slices_on(const DeviceBook& device, const TaskSpec& spec,
                                std::optional<Instant> at) const {
  const ResourceRequest& request = spec.request;
  const std::int64_t worth = device.facts.factors.of(request.work_class).value;
  const std::int64_t share = request.share
                                 ? request.share->value
                                 : std::max<std::int64_t>(1, request.ce->value * 1000 / worth);
  const std::int64_t mib =
      request.memory ? request.memory->value
                     : std::max<std::int64_t>(1, share * device.facts.memory.value / 1000);
  std::int64_t free = 1000;
  std::int64_t mib_free = device.facts.memory.value;
  for (const LeaseId id : device.leases) {
    const LeaseBook& lease = leases_.at(id);
    if (at && (lease.ends_by <= *at || lease.reservation.valid())) continue;  // see below
    for (const Slice& slice : lease.slices) {
      if (devices_.at(slice.device.value - 1).name != device.name) continue;
      free -= slice.promised().value;
      mib_free -= slice.memory_promised().value;
    }
  }
  // What is reserved then, whether it is used or not.
  const Load reserved = at ? locked_on(device, *at) : reserved_on(device);
  free -= reserved.share.value;
  mib_free -= reserved.memory.value;
  if (share > 1000 || mib > device.facts.memory.value) return 0;
  const Oversubscription lent = lent_to(spec, share, device);
  const std::int64_t least = divided(share, lent.ce_permille);
  const std::int64_t least_mib = divided(mib, lent.memory_permille);
  return std::min(free / least, mib_free / least_mib);
}

// A member's slices are on devices of one type and one node, each on another: k devices with room
// for s slices each serve m members of d slices where Σ min(s, m) ≥ m·d.
bool Auditor::fits_somewhere(const TaskSpec& spec, std::optional<Instant> at,
                             const std::set<std::string>& types) const {
  const ResourceRequest& request = spec.request;
  std::map<std::pair<NodeId, std::string>, std::vector<std::int64_t>> groups;
  for (const DeviceBook& device : devices_) {
    const std::string& type = device.facts.type;
    if (!device.healthy || device.draining || marked_.count(device.node) != 0) continue;
    if (!request.device_type.empty() && request.device_type != type) continue;
    if ((!types.empty() && types.count(type) == 0) || !admits(spec, device)) continue;
    if (!request.device.empty() && request.device != device.name &&
        request.device != device.facts.uuid) {
      continue;
    }
    if (const std::int64_t slices = slices_on(device, spec, at); slices > 0)
      groups[{device.node, type}].push_back(slices);
  }
  std::int64_t members = 0;
  for (const auto& [where, devices] : groups) {
    std::int64_t here = 0;
    for (bool more = true; more && members + here < spec.gang;) {
      std::int64_t slices = 0;
      for (const std::int64_t one : devices) slices += std::min(one, here + 1);
      more = slices >= (here + 1) * request.devices;
      here += more;
    }
    members += here;
  }
  return members >= spec.gang;
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
    if (book.promise || book.move) return;
    if (book.stage == Stage::waiting) waiting.push_back(&book);
  }
  static const std::set<std::string> whatever_fits{"any", "sjf"};
  static const std::set<std::string> first_of_all{"fifo", "easy", "conservative", "priority"};
  // In a pool where nothing runs there is nothing to wait for but nodes that are marked, and what
  // is reserved. Else a queue may keep room for its first without a promise.
  const bool reserved =
      std::any_of(reservations_.begin(), reservations_.end(),
                  [&](const auto& entry) { return locks_until(entry.second.reservation) > now_; });
  const bool all_idle = leases_.empty() && marked_.empty() && !reserved;
  for (const QueueSettings& queue : settings_.queues) {
    const bool known =
        whatever_fits.count(queue.discipline) + first_of_all.count(queue.discipline) != 0;
    if (!queue.closed && !known && !all_idle) return;
  }
  const auto order = [&](const TaskBook* book) {
    const bool by_level = queue_of(book->spec).discipline == "priority";
    const bool spot = book->spec.purchase_model == PurchaseModel::spot;
    const Instant came = book->arrival + (spot ? Duration::hours(24) : Duration{});
    return std::tuple(by_level ? key_of(*book) : came.ms, book->arrival, book->id);
  };
  std::sort(waiting.begin(), waiting.end(),
            [&](const TaskBook* a, const TaskBook* b) { return order(a) < order(b); });
  std::set<std::string> seen;  // queues kept in order: what comes after their first may wait
  for (const TaskBook* book : waiting) {
    const QueueSettings& queue = queue_of(book->spec);
    const bool any = all_idle || whatever_fits.count(queue.discipline) != 0;
    if (queue.overdue || (!any && first_of_all.count(queue.discipline) == 0)) continue;
    // One that surely waits before its next try holds nobody back, nor one that only a marked node
    // could serve.
    if (book->unable_at && now_ < *book->unable_at + back_off_least) continue;
    if (now_ < book->not_before) continue;  // it is not due
    if (!book->spec.request.device.empty() && is_on_marked(book->spec.request.device)) continue;
    if (!any && !seen.insert(queue.name).second) continue;
    if (book->spec.reservation.valid()) continue;  // it waits for that, and for nothing else
    // How long it waits before its next try is not reckoned here. And one that has run keeps the
    // types of device that its tenant's quota allowed when it came.
    if (book->unable_at || book->epoch.value != 0) continue;
    // CE that no single device has may be split over several.
    if (book->spec.request.ce) continue;
    if (fits_somewhere(book->spec, std::nullopt)) {
      fail(13, book->id.text() + " waits although there is room for it");
      return;
    }
  }
}

}  // namespace loam::sim
