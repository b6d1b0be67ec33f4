// evolve: the only code that changes the state. Computes nothing that could come out differently
// another day: amounts and places are in the events.
#include <algorithm>

#include "base/assert.hpp"
#include "billing/calendar.hpp"
#include "engine/adjustment_books.hpp"
#include "engine/budget_books.hpp"
#include "engine/expiry.hpp"
#include "engine/moves.hpp"
#include "engine/scheduling.hpp"
#include "engine/service_books.hpp"
#include "engine/token_books.hpp"

namespace loam::engine {
namespace {

constexpr std::size_t preemptions_remembered = 16;  // more protect a task in any policy

Task& task_of(State& state, TaskId id) {
  const auto found = state.tasks.find(id);
  LOAM_ASSERT(found != state.tasks.end());
  return found->second;
}

Lease& lease_of(State& state, LeaseId id) {
  const auto found = state.leases.find(id);
  LOAM_ASSERT(found != state.leases.end());
  return found->second;
}

Node& node_of(State& state, const Lease& lease) {
  const NodeId node = state.device(lease.slices.front().device).node;
  return state.nodes.at(node.value - 1);
}

Tenant& tenant_of(State& state, TenantId id) {
  return state.tenants.at(id.value - 1);
}

void set_timer(State& state, Instant before, const Lease& lease) {
  if (before != Instant::never()) state.timers.erase({before, lease.id});
  if (const Instant due = next_due(lease); due != Instant::never())
    state.timers.insert({due, lease.id});
}

// Takes (sign +1) or gives back (−1) what a lease holds of its devices, its node and its tenant's
// quota.
void hold_capacity(State& state, const Lease& lease, int sign) {
  Tenant& tenant = tenant_of(state, lease.tenant);
  for (const Slice& slice : lease.slices) {
    Device& device = state.devices.at(slice.device.value - 1);
    device.used += slice.share * sign;
    device.memory_used += slice.memory * sign;
    device.unpromised += slice.unpromised * sign;
    device.memory_unpromised += slice.memory_unpromised * sign;
    device.leases += static_cast<std::uint32_t>(sign);
    LOAM_ASSERT(device.used.value >= 0 && device.promised() <= whole_device);
    LOAM_ASSERT(device.memory_used.value >= 0 && device.memory_promised() <= device.facts->memory);
    if (device.leases == 0) state.lost_in_use.erase(device.id);
    tenant.memory_used += slice.memory * sign;
    if (sign > 0) {
      state.leases_by_device[slice.device].insert(lease.id);
    } else {
      state.leases_by_device[slice.device].erase(lease.id);
    }
  }
  const schedule::UnitPlacement place = place_of(state, lease);
  Node& node = state.nodes.at(place.hosts.front().node.value - 1);
  node.cpu_used += lease.cpu * sign;
  node.memory_used += lease.host_memory * sign;
  if (sign > 0) {
    state.pool.take(place);
  } else {
    state.pool.give_back(place);
  }
  tenant.ce_used += lease.ce * sign;
  (lease.purchase_model == PurchaseModel::spot ? state.market.spot : state.market.firm) +=
      lease.ce * sign;
}

// Around a change of a device: what it counts for while it is in service.
MilliCe ready_ce(const Device& device) {
  const bool ready = device.facts && device.health == DeviceHealth::healthy && !device.draining;
  return ready ? device.facts->factors.general : MilliCe{0};
}

// Paused tasks are not the scheduler's.
void leave_scheduler(State& state, const Task& task, Instant now, bool completed) {
  if (task.state == TaskState::paused) return;
  if (task.state == TaskState::waiting) {
    forget_late(state, task.id);
    forget_expiry(state, task.id);
    want_spot_no_more(state, task.id);
    --tenant_of(state, task.tenant).tasks_waiting;
  }
  state.scheduler.leaves(task.id, now, completed);
}

void begin_round(State& state, Task& task, Epoch epoch) {
  LOAM_ASSERT(task.state == TaskState::waiting && task.epoch < epoch);
  forget_late(state, task.id);
  forget_expiry(state, task.id);
  want_spot_no_more(state, task.id);
  --tenant_of(state, task.tenant).tasks_waiting;
  task.state = TaskState::starting;
  task.epoch = epoch;
  task.members_up = 0;
  task.round_run = Duration{};
  task.verdict = {};
  ++tenant_of(state, task.tenant).tasks_running;
}

void apply(State& state, const Record&, const NodeAttached& event) {
  LOAM_ASSERT(event.node.value <= state.nodes.size() + 1);
  if (event.node.value > state.nodes.size()) state.nodes.emplace_back();
  Node& node = state.nodes[event.node.value - 1];
  node.id = event.node;
  if (!node.name.empty()) count_capacity(state, node, -1);
  node.name = event.name;
  node.region = event.region;
  node.labels = event.labels;
  node.cpu = event.cpu;
  node.memory = event.memory;
  node.sandboxed = event.sandboxed;
  state.node_by_name[event.name] = event.node;
  state.pool.refresh(figures_of(node));
  count_capacity(state, node, +1);
  note_sharing(state, node);
}

void apply(State& state, const Record&, const DeviceAttached& event) {
  const std::uint64_t place = event.device.value - 1;
  LOAM_ASSERT(place <= state.devices.size());
  if (place == state.devices.size()) {
    Device device;
    device.id = event.device;
    device.node = event.node;
    device.index = event.index;
    state.devices.push_back(std::move(device));
    state.nodes.at(event.node.value - 1).devices.push_back(event.device);
  }
  Device& device = state.devices[place];
  state.market.ready -= ready_ce(device);
  if (device.facts != nullptr) count_capacity(state, device, -1);
  device.facts = std::make_shared<const DeviceFacts>(event.facts);
  device.health = DeviceHealth::healthy;
  state.market.ready += ready_ce(device);
  state.lost_in_use.erase(device.id);
  state.device_by_uuid[event.facts.uuid] = event.device;
  refresh_pool(state, device);
  state.kinds.note(device.id, device.facts->type);
  count_capacity(state, device, +1);
  note_sharing(state, state.node(device.node));
}

void apply(State& state, const Record&, const DeviceHealthChanged& event) {
  Device& device = state.devices.at(event.device.value - 1);
  state.market.ready -= ready_ce(device);
  device.health = event.health;
  state.market.ready += ready_ce(device);
  const bool lost = event.health == DeviceHealth::lost;
  device.seen_at = event.seen_at;
  if (lost && device.leases > 0) {
    state.lost_in_use.insert(device.id);
  } else {
    state.lost_in_use.erase(device.id);
  }
  refresh_pool(state, device);
  if (lost) forget_promises_on(state, device.id);
}

void apply(State& state, const Record&, const DeviceDrainChanged& event) {
  Device& device = state.devices.at(event.device.value - 1);
  state.market.ready -= ready_ce(device);
  device.draining = event.draining;
  state.market.ready += ready_ce(device);
  refresh_pool(state, device);
  if (event.draining) forget_promises_on(state, device.id);
}

void apply(State& state, const Record&, const TenantCreated& event) {
  LOAM_ASSERT(event.tenant.value == state.tenants.size() + 1);
  Tenant tenant;
  tenant.id = event.tenant;
  tenant.spec = event.spec;
  state.tenants.push_back(std::move(tenant));
  state.tenant_by_name[event.spec.name] = event.tenant;
  note_zone(state, event.spec);
  apply_tenant(state, state.tenants.back());
}

// Where a task that has not run yet may go was settled by what held when it came: now anew.
void settle_anew(State& state, const Task& task, Instant now) {
  if (task.epoch.value > 0) return;
  const Instant arrival = state.scheduler.standing(task.id).job.arrival;
  state.scheduler.leaves(task.id, now, false);
  state.scheduler.arrives(job_of(state, task, arrival), now);
  note_late(state, task);
}

void apply(State& state, const Record& record, const TenantChanged& event) {
  Tenant& tenant = tenant_of(state, event.tenant);
  const bool same = tenant.spec.quota == event.spec.quota;
  tenant.spec = event.spec;
  note_zone(state, event.spec);
  set_invoice_due(state, event.tenant);
  apply_tenant(state, tenant);
  if (same) return;
  // What a task takes was settled within the quota as it was: for those that have not run yet it is
  // settled anew.
  for (const auto& [id, task] : state.tasks) {
    if (task.tenant == tenant.id && task.state == TaskState::waiting)
      settle_anew(state, task, record.at);
  }
}

void apply(State& state, const Record&, const NodeMarked& event) {
  Node& node = state.nodes.at(event.node.value - 1);
  if (node.marked()) state.marked.erase({node.marked_until, node.id});
  node.marked_until = event.until;
  if (node.marked()) state.marked.insert({event.until, node.id});
  for (const DeviceId id : node.devices) {
    refresh_pool(state, state.device(id));
    if (node.marked()) forget_promises_on(state, id);
  }
}

void apply(State& state, const Record& record, const SchedulingSet& event) {
  const std::vector<QueueSettings> before = state.settings.queues;
  const bool lent_otherwise = state.settings.oversubscription != event.settings.oversubscription;
  apply_settings(state, event.settings);
  const auto moved = [&](const QueueSettings& queue) {
    return std::any_of(before.begin(), before.end(), [&](const QueueSettings& old) {
      return old.name == queue.name && !same_devices(old, queue);
    });
  };
  const auto& queues = state.settings.queues;
  if (lent_otherwise || std::any_of(queues.begin(), queues.end(), moved)) {
    for (const auto& [id, task] : state.tasks) {
      const QueueSettings* queue = queue_of(state, *task.spec);
      const bool asks_otherwise = lent_otherwise && task.spec->request.mode == ShareMode::burstable;
      if (task.state == TaskState::waiting && queue != nullptr && (asks_otherwise || moved(*queue)))
        settle_anew(state, task, record.at);
    }
  }
  count_late(state);
  count_expiries(state);
}

void apply(State& state, const Record&, const RateCardPublished& event) {
  // It was checked when it was published, and when the journal was opened.
  auto table = billing::PriceTable::compile(event.card);
  LOAM_ASSERT(table.ok());
  const Currency currency = event.card.currency;
  const bool first = state.rates.of(currency).empty();
  const Result<void> added = state.rates.add(std::move(*table));
  LOAM_ASSERT(added.ok());
  if (!first) state.reviews[currency] = TaskId{};
}

void note_payment(State& state, const Transaction& transaction) {
  if (transaction.kind == TransactionKind::reversal)
    state.payments.at(transaction.reverses).reversed = true;
  if (transaction.kind != TransactionKind::top_up && transaction.kind != TransactionKind::payout)
    return;
  for (const Posting& posting : transaction.postings) {
    if (posting.account.kind == AccountKind::wallet)
      state.payments[transaction.id] = {transaction.id, transaction.tenant, posting.amount};
  }
}

void apply(State& state, const Record& record, const TransactionPosted& event) {
  const Transaction& transaction = event.transaction;
  state.next.transaction = transaction.id.value + 1;
  state.accounts.apply(transaction);
  note_payment(state, transaction);
  if (!transaction.task.valid()) return;
  Task& task = task_of(state, transaction.task);
  const bool reserved = paid_by_reservation(state, task);
  for (const Posting& posting : transaction.postings) {
    if (posting.account.kind == AccountKind::held) {
      if (reserved) {
        count_held(state, task.spec->reservation, posting.amount, record.at);
      } else {
        task.held += posting.amount;
      }
    }
    if (posting.account.kind == AccountKind::revenue) task.charged += posting.amount;
  }
  // What leaves the wallet for good counts as spent, tax included; what is held as set aside.
  Money spent = Money::zero(task.held.currency());
  for (const Posting& posting : transaction.postings) {
    if (posting.account.kind == AccountKind::revenue || posting.account.kind == AccountKind::tax)
      spent += posting.amount;
  }
  const Attribution& who = task.spec->attribution;
  state.budgets.set_aside(task.id.text(), task.tenant, who, task.held, record.at);
  if (!spent.is_zero()) state.budgets.count(task.tenant, who, spent, record.at);
}

void apply(State& state, const Record& record, const TaskAccepted& event) {
  Task task;
  task.id = event.task;
  task.tenant = event.tenant;
  task.spec = event.spec;
  task.submitted_at = record.at;
  task.not_before = event.not_before;
  Tenant& tenant = tenant_of(state, event.tenant);
  task.held = task.charged = Money::zero(tenant.spec.currency);
  ++tenant.tasks_waiting;
  schedule::Job job = job_of(state, task, record.at);
  state.pool.note_request(job.ask.demand);
  state.scheduler.arrives(std::move(job), record.at);
  want_spot(state, task);
  note_late(state, task);
  note_reserved(state, state.tasks.emplace(event.task, std::move(task)).first->second);
  note_expiry(state, state.tasks.at(event.task));
  state.next.task = event.task.value + 1;
}

void apply(State& state, const Record& record, const LeaseGranted& event) {
  Task& task = task_of(state, event.task);
  LOAM_ASSERT(event.rank == static_cast<std::int64_t>(task.leases.size()));
  if (event.rank == 0) {
    end_keeping(state, task);
    begin_round(state, task, event.epoch);
  }
  LOAM_ASSERT(task.state == TaskState::starting && task.epoch == event.epoch);
  const Currency currency = tenant_of(state, task.tenant).spec.currency;
  Lease lease;
  lease.id = event.lease;
  lease.task = event.task;
  lease.tenant = task.tenant;
  lease.epoch = event.epoch;
  lease.rank = event.rank;
  lease.slices = event.slices;
  lease.cpu = event.cpu;
  lease.host_memory = event.host_memory;
  lease.ce = event.ce;
  lease.billable_ce = event.billable_ce;
  lease.isolation = event.isolation;
  lease.purchase_model = event.purchase_model;
  lease.granted_at = record.at;
  lease.rated_list = lease.rated_net = lease.credited = Money::zero(currency);
  task.leases.push_back(event.lease);
  hold_capacity(state, lease, +1);
  state.leases.emplace(event.lease, std::move(lease));
  state.next.lease = event.lease.value + 1;
  if (event.rank + 1 < task.spec->gang) return;
  state.scheduler.starts(task.id, record.at, place_of(state, task));
  note_sold_as(state, task);
}

void apply(State& state, const Record& record, const TaskPromised& event) {
  schedule::Promise promise{event.task, event.start, place_of(state, event.members)};
  state.scheduler.is_promised(event.task, record.at, std::move(promise), event.leaving);
}

void apply(State& state, const Record&, const PromiseDropped& event) {
  state.scheduler.forget_promise(event.task);
}

void apply(State& state, const Record&, const AttemptStarted& event) {
  Lease& lease = lease_of(state, event.lease);
  LOAM_ASSERT(!lease.started());
  lease.started_at = lease.billed_until = event.started_at;
  lease.stop_at = event.stop_at;
  lease.isolation = event.isolation;
  node_of(state, lease).failures = 0;
  Task& task = task_of(state, lease.task);
  ++task.members_up;
  const bool all_up = task.members_up == static_cast<std::int64_t>(task.leases.size());
  if (task.state == TaskState::starting && all_up) {
    task.state = TaskState::running;
    task.failures = 0;
    // Reports come in any order: the gang is up with its last member, and runs as long.
    Instant up = event.started_at;
    for (const LeaseId id : task.leases) up = std::max(up, state.leases.at(id).started_at);
    state.scheduler.is_up(task.id, up);
  }
  set_timer(state, Instant::never(), lease);
}

void apply(State& state, const Record& record, const StopRequested& event) {
  Lease& lease = lease_of(state, event.lease);
  const Instant due = next_due(lease);
  lease.stopping = event.reason;
  Task& task = task_of(state, lease.task);
  task.state = TaskState::stopping;
  state.scheduler.is_stopping(task.id, record.at + grace_of(task, event.reason));
  if (!state.ending.empty())
    std::erase_if(state.ending, [&](const auto& entry) { return entry.second == task.id; });
  set_timer(state, due, lease);
}

void apply(State& state, const Record& record, const UsageRated& event) {
  const UsageRecord& usage = event.record;
  Lease& lease = lease_of(state, usage.lease);
  count_month(state, usage, lease);
  note_use(state, usage, lease, task_of(state, usage.task), record.at);
  note_reserved_use(state, usage, lease, task_of(state, usage.task));
  const Instant due = next_due(lease);
  billing::advance(lease, usage);
  set_timer(state, due, lease);
  if (usage.tier_month != Instant{}) billing::count(state.tiers[usage.tenant], usage);
  state.open_charges[usage.tenant].add(task_of(state, usage.task).spec->attribution, usage,
                                       state.card(usage.card).terms().taxes);
  set_invoice_due(state, usage.tenant);
  state.next.usage = usage.id.value + 1;
}

void apply(State& state, const Record&, const LeaseEnded& event) {
  Lease& lease = lease_of(state, event.lease);
  Task& task = task_of(state, lease.task);
  LOAM_ASSERT(!lease.started() || lease.billed_until == event.ended_at);  // records tile the lease
  if (lease.started()) {
    const Duration ran = event.ended_at - lease.started_at;
    task.attempt_time += ran;
    task.round_run = std::max(task.round_run, ran);
    --task.members_up;
  }
  if (event.verdict.outcome == TaskOutcome::unable) ++node_of(state, lease).failures;
  if (const auto use = use_of(task, lease, event))
    note_use(state.run_uses[task.tenant], task.spec->name, *use);
  const bool failed = event.verdict.outcome != TaskOutcome::succeeded;
  if (failed && task.verdict.outcome == TaskOutcome::none) task.verdict = event.verdict;
  std::erase(task.leases, event.lease);
  if (!state.ending.empty())
    std::erase_if(state.ending, [&](const auto& entry) { return entry.second == lease.task; });
  if (task.leases.empty()) {
    task.run_time += task.round_run;
    task.round_run = Duration{};
    --tenant_of(state, task.tenant).tasks_running;
  }
  if (const Instant due = next_due(lease); due != Instant::never())
    state.timers.erase({due, lease.id});
  hold_capacity(state, lease, -1);
  state.leases.erase(event.lease);
  if (!task.leases.empty()) state.scheduler.shrinks(task.id, place_of(state, task));
}

// How the scheduler learns of it.
void come_back(State& state, const Task& task, RequeueCause cause, Instant now) {
  schedule::Scheduler& scheduler = state.scheduler;
  if (cause == RequeueCause::resumed) return scheduler.arrives(job_of(state, task, now), now);
  note_sold_as(state, task);  // without leases: as it was asked for
  if (cause == RequeueCause::unable) return scheduler.fails_to_start(task.id, now);
  // All that was run counts against the limit; since it came, or was resumed, it has had this much.
  const schedule::Standing& standing = scheduler.standing(task.id);
  const Duration had = task.run_time - (task.spec->limit - *standing.job.limit);
  const Duration kept = std::clamp(had, Duration{}, standing.served_at(now));
  if (cause == RequeueCause::preempted) return scheduler.is_preempted(task.id, now, kept);
  if (cause == RequeueCause::moved) return scheduler.is_moved(task.id, now, kept);
  scheduler.comes_back(task.id, now, kept);
}

void apply(State& state, const Record& record, const TaskRequeued& event) {
  Task& task = task_of(state, event.task);
  if (event.cause == RequeueCause::lost) ++task.losses;
  if (event.cause == RequeueCause::unable) ++task.failures;
  if (event.cause == RequeueCause::preempted) {
    task.preempted_at.push_back(record.at);
    if (task.preempted_at.size() > preemptions_remembered)
      task.preempted_at.erase(task.preempted_at.begin());
  }
  task.state = TaskState::waiting;
  note_reserved_no_more(state, task);
  if (event.purchase_model) task.spec = resold(*task.spec, *event.purchase_model);
  note_reserved(state, task);
  want_spot(state, task);
  ++tenant_of(state, task.tenant).tasks_waiting;
  come_back(state, task, event.cause, record.at);
  begin_keeping(state, task, record.at);
  note_late(state, task);
  note_expiry(state, task);
}

void apply(State& state, const Record& record, const TaskLate& event) {
  Task& task = task_of(state, event.task);
  LOAM_ASSERT(task.state == TaskState::waiting && task.late_steps <= event.step);
  task.late_steps = event.step + 1;
  if (event.kind == LateStepKind::larger_queue || event.kind == LateStepKind::on_demand) {
    TaskSpec spec = *task.spec;
    spec.queue = event.queue;
    spec.purchase_model = event.purchase_model;
    wait_as(state, task, std::make_shared<const TaskSpec>(std::move(spec)), record.at);
  }
  note_late(state, task);
}

void apply(State& state, const Record&, const SellerSet& event) {
  state.seller = event.seller;
}

void apply(State& state, const Record&, const CreditNoteIssued& event) {
  state.invoices.at(event.note.invoice).credited += event.note.net;
  state.next.credit_note = event.note.id.value + 1;
}

void apply(State& state, const Record& record, const SpotPriceMoved& event) {
  state.rates.move_spot(event.currency, record.at, event.price);
}

void apply(State& state, const Record&, const HoldsReviewed& event) {
  if (event.through.valid()) {
    state.reviews[event.currency] = event.through;
  } else {
    state.reviews.erase(event.currency);
  }
}

template <class OfBudgets>
requires requires(State& state, const OfBudgets& event) {
  apply_to_budgets(state, event, {});
}
void apply(State& state, const Record& record, const OfBudgets& event) {
  apply_to_budgets(state, event, record.at);
}

void apply(State& state, const Record& record, const TaskPaused& event) {
  Task& task = task_of(state, event.task);
  leave_scheduler(state, task, record.at, false);
  task.state = TaskState::paused;
  begin_keeping(state, task, record.at);
}

void apply(State& state, const Record& record, const TaskFinished& event) {
  Task& task = task_of(state, event.task);
  LOAM_ASSERT(task.leases.empty() && task.held.is_zero());
  const bool completed =
      event.outcome == TaskOutcome::succeeded || event.outcome == TaskOutcome::failed;
  leave_scheduler(state, task, record.at, completed);
  end_keeping(state, task);
  note_reserved_no_more(state, task);
  state.tasks.erase(event.task);
}

void apply(State& state, const Record&, const InvoiceIssued& event) {
  state.open_charges[event.invoice.tenant].take(event.invoice.months_to, event.invoice.to);
  set_invoice_due(state, event.invoice.tenant);
  state.next.invoice = event.invoice.id.value + 1;
  state.invoices[event.invoice.id] = {event.invoice.id, event.invoice.tenant,
                                      event.invoice.subtotal, event.invoice.taxes,
                                      Money::zero(event.invoice.currency)};
}

// What has books of its own: commitments, reservations, storage and network, tokens, plans of spot.
template <class OfBooks>
requires requires(State& state, const OfBooks& event) {
  apply_to_books(state, event, Instant{});
}
void apply(State& state, const Record& record, const OfBooks& event) {
  apply_to_books(state, event, record.at);
}

void apply(State& state, const Record&, const ShortfallCredited& event) {
  Lease& lease = lease_of(state, event.lease);
  lease.credited_until.resize(lease.slices.size());
  lease.credited_until.at(static_cast<std::size_t>(event.slice)) = event.to;
  lease.credited -= event.line.net;
  add_open(state, event.tenant, event.line, event.from);
}

void apply(State& state, const Record&, const LostWorkCredited& event) {
  lease_of(state, event.lease).credited -= event.line.net;
  add_open(state, event.tenant, event.line, event.from);
  uncover(state, event);
}

void apply(State& state, const Record& record, const RequestRecorded& event) {
  const std::pair key{event.scope, event.key};
  state.requests[key] = {event.fingerprint, event.subject, record.at};
  state.requests_by_age.insert({record.at, key});
}

void apply(State& state, const Record&, const RequestsForgotten& event) {
  while (!state.requests_by_age.empty() && state.requests_by_age.begin()->first <= event.before) {
    state.requests.erase(state.requests_by_age.begin()->second);
    state.requests_by_age.erase(state.requests_by_age.begin());
  }
}

}  // namespace

void evolve(State& state, const Record& record) {
  LOAM_ASSERT(record.sequence == state.sequence + 1);
  LOAM_ASSERT(record.at >= state.now);
  std::visit([&](const auto& event) { apply(state, record, event); }, record.event);
  if (!state.spot_plans.empty()) note_spot(state, record);
  state.sequence = record.sequence;
  state.now = record.at;
  state.scheduler.tick(record.at);
}

}  // namespace loam::engine
