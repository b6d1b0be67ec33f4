#include "sim/auditor.hpp"

#include <algorithm>

#include "base/time.hpp"

namespace loam::sim {
namespace {

Money& balance_in(std::map<Account, Money>& balances, const Account& account) {
  return balances.try_emplace(account, Money::zero(account.currency)).first->second;
}

}  // namespace

void Auditor::fail(int rule, const std::string& what) {
  if (!broken_.empty()) return;
  broken_ = "rule " + std::to_string(rule) + ": " + what + " (record " + std::to_string(sequence_) +
            ", " + to_text(now_) + ")";
}

Auditor::TaskBook* Auditor::task(TaskId id, int rule) {
  const auto found = tasks_.find(id);
  if (found != tasks_.end()) return &found->second;
  fail(rule, id.text() + " is spoken of but not alive");
  return nullptr;
}

Auditor::LeaseBook* Auditor::lease(LeaseId id, int rule) {
  const auto found = leases_.find(id);
  if (found != leases_.end()) return &found->second;
  fail(rule, id.text() + " is spoken of but over");
  return nullptr;
}

void Auditor::hear(const Record& record) {
  if (record.sequence != sequence_ + 1) fail(12, "the journal's numbers have a gap");
  if (record.at < now_) fail(12, "the journal's clock fell to " + to_text(record.at));
  if (!broken_.empty()) return;  // what comes after may speak of what was never heard of
  sequence_ = record.sequence;
  now_ = record.at;
  ++records_;
  const bool asks = std::holds_alternative<StopRequested>(record.event) ||
                    std::holds_alternative<MoveBegun>(record.event);
  if (!asks && !std::holds_alternative<TaskPromised>(record.event)) {
    victims_.clear();
    check_askers_promised();
  }
  const bool pays = std::holds_alternative<TransactionPosted>(record.event) ||
                    std::holds_alternative<ReservationHeld>(record.event);
  if (!pays) paying_ = {};
  std::visit([&](const auto& event) { on(record, event); }, record.event);
}

void Auditor::on(const Record&, const NodeAttached& event) {
  if (event.node.value > nodes_.size()) nodes_.resize(event.node.value);
  nodes_[event.node.value - 1] = {event.name, event.region, event.labels};
}

void Auditor::on(const Record&, const DeviceAttached& event) {
  if (event.device.value > devices_.size()) devices_.resize(event.device.value);
  DeviceBook& device = devices_[event.device.value - 1];
  if (!device.leases.empty() && device.facts != event.facts) {
    fail(1, event.facts.uuid + " changed its facts under its leases");
  }
  device.facts = event.facts;
  device.node = event.node;
  device.name = nodes_.at(event.node.value - 1).name + "/" + std::to_string(event.index);
  device.healthy = true;
}

void Auditor::on(const Record&, const DeviceHealthChanged& event) {
  devices_.at(event.device.value - 1).healthy = event.health == DeviceHealth::healthy;
  if (event.health != DeviceHealth::healthy) forget_places_on(event.device);
}

void Auditor::on(const Record&, const DeviceDrainChanged& event) {
  devices_.at(event.device.value - 1).draining = event.draining;
  if (event.draining) forget_places_on(event.device);
}

void Auditor::on(const Record&, const TenantCreated& event) {
  tenants_.emplace_back();
  TenantBook& tenant = tenants_.back();
  tenant.spec = event.spec;
  tenant.owed = tenant.overrun = Money::zero(event.spec.currency);
}

void Auditor::on(const Record&, const TenantChanged& event) {
  TenantSpec& spec = tenants_.at(event.tenant.value - 1).spec;
  const bool same = spec.quota == event.spec.quota;
  spec = event.spec;
  if (same) return;
  for (auto& [id, book] : tasks_) {
    // What was planned supposed the quota as it was; one that has run before stays as it is.
    if (book.tenant == event.tenant && book.epoch.value == 0) forget_place(book);
    book.moved_for_it.clear();  // in a cohort it concerns the others, too
  }
}

void Auditor::on(const Record&, const RateCardPublished& event) {
  cards_.push_back(event.card);
  // A hold reckons with the prices known when it is made; what is running may now pass it.
  for (auto& [id, book] : tasks_) book.may_overrun = true;
  for (auto& [id, entry] : reservations_) entry.irregular = true;
}

const RateCard* Auditor::card_at(Currency currency, Instant instant) const {
  const RateCard* in_force = nullptr;
  for (const RateCard& card : cards_) {
    if (card.currency != currency || card.effective_from > instant) continue;
    if (in_force == nullptr || card.effective_from >= in_force->effective_from) in_force = &card;
  }
  return in_force;
}

void Auditor::on(const Record&, const TransactionPosted& event) {
  const Transaction& transaction = event.transaction;
  std::map<Currency, Money> sums;
  for (const Posting& posting : transaction.postings) {
    const Currency currency = posting.amount.currency();
    sums.try_emplace(currency, Money::zero(currency)).first->second += posting.amount;
    balance_in(balances_, posting.account) += posting.amount;
  }
  for (const auto& [currency, sum] : sums) {
    if (!sum.is_zero()) fail(9, transaction.id.text() + " is off by " + to_text(sum));
  }
  TenantBook& tenant = tenants_.at(transaction.tenant.value - 1);
  for (const Posting& posting : transaction.postings) {
    const AccountKind kind = posting.account.kind;
    if (kind == AccountKind::revenue || kind == AccountKind::tax || kind == AccountKind::rounding)
      tenant.owed += posting.amount;
  }
  if (transaction.task.valid()) {
    TaskBook* book = task(transaction.task, 9);
    if (book == nullptr) return;
    ReservationEntry* payer = payer_of(*book);
    const bool may_overrun = book->may_overrun || (book->spec.reservation.valid() &&
                                                   (payer == nullptr || payer->irregular));
    for (const Posting& posting : transaction.postings) {
      if (posting.account.kind == AccountKind::held)
        (payer == nullptr ? book->held : payer->held) += posting.amount;
      if (posting.account.kind == AccountKind::revenue) book->charged += posting.amount;
      const bool beyond_hold = transaction.kind == TransactionKind::charge &&
                               posting.account.kind == AccountKind::wallet;
      if (!beyond_hold) continue;
      tenant.overrun -= posting.amount;
      const bool late = std::any_of(book->leases.begin(), book->leases.end(), [&](LeaseId id) {
        return now_ > leases_.at(id).stop_at + book->spec.grace + Duration::seconds(10);
      });
      if (!late && !may_overrun && !book->services && posting.amount.is_negative()) {
        fail(9, book->id.text() + " was charged " + to_text(-posting.amount) +
                    " beyond its hold without a reason");
      }
    }
    if (book->services && book->charged != book->rated)
      fail(9, book->id.text() + " was not charged what its storage and network cost");
    book->services.reset();
    if (book->held.is_negative()) fail(9, book->id.text() + " holds " + to_text(book->held));
    if (payer != nullptr && payer->held.is_negative())
      fail(9, payer->reservation.id.text() + " holds " + to_text(payer->held));
  } else {
    book_held(transaction, tenant);
  }
  check_payment(transaction, tenant);
  check_wallet(transaction.tenant);
}

void Auditor::check_wallet(TenantId id) {
  const TenantBook& tenant = tenants_.at(id.value - 1);
  const Currency currency = tenant.spec.currency;
  const Money wallet = balance_in(balances_, {AccountKind::wallet, id, currency});
  const Money floor = -(tenant.spec.credit_limit + tenant.overrun);
  if (wallet < floor) {
    fail(9, "the wallet of " + tenant.spec.name + " fell to " + to_text(wallet) +
                " and may not pass " + to_text(floor));
  }
}

void Auditor::on(const Record& record, const TaskAccepted& event) {
  if (event.task <= last_task_) fail(3, event.task.text() + " was given out before");
  last_task_ = event.task;
  ++tasks_accepted_;
  TaskBook book;
  book.id = event.task;
  book.tenant = event.tenant;
  book.spec = *event.spec;
  book.not_before = event.not_before;
  book.arrival = book.waits_since = std::max(record.at, event.not_before);
  book.held = book.rated = book.charged =
      Money::zero(tenants_.at(event.tenant.value - 1).spec.currency);
  tasks_.emplace(event.task, std::move(book));
}

void Auditor::check_quota(const TenantBook& tenant) {
  const Quota& quota = tenant.spec.quota;
  if (!quota.cohort.empty()) return check_cohort(quota);
  if ((quota.ce && tenant.ce_used > *quota.ce) ||
      (quota.memory && tenant.memory_used > *quota.memory) ||
      (quota.devices && tenant.devices_used > *quota.devices) ||
      (quota.tasks && tenant.running > *quota.tasks)) {
    fail(7, tenant.spec.name + " uses " + to_text(tenant.ce_used) + " CE, " +
                to_text(tenant.memory_used) + ", " + to_text(tenant.devices_used) +
                " devices and " + std::to_string(tenant.running) + " tasks, more than its quota");
  }
}

void Auditor::take_devices(const TaskBook& book, const LeaseGranted& event, TenantBook& tenant) {
  for (const Slice& slice : event.slices) {
    DeviceBook& device = devices_.at(slice.device.value - 1);
    device.used += slice.share;
    device.memory_used += slice.memory;
    device.leases.insert(event.lease);
    tenant.memory_used += slice.memory;
    tenant.devices_used += slice.share;
    device.promised.share += slice.promised();
    device.promised.memory += slice.memory_promised();
    if (device.promised.share > whole_device || device.promised.memory > device.facts.memory) {
      fail(1, device.name + " is full: " + to_text(device.promised.share) + " and " +
                  to_text(device.promised.memory) + " are given away");
    }
    check_lent(book, event, slice, device);
    if (!device.healthy || device.draining || marked_.count(device.node) != 0)
      fail(1, device.name + " takes no leases, and got one");
    if (!book.moved && !admits(book.spec, device))
      fail(1, event.task.text() + " is on " + device.name + ", which is none of its queue's");
    if (slice.share.value <= 0 || slice.memory.value <= 0) fail(1, "an empty slice");
  }
}

void Auditor::on(const Record& record, const LeaseGranted& event) {
  TaskBook* book = task(event.task, 3);
  if (book == nullptr) return;
  const bool first = book->stage == Stage::waiting;
  if (!first && (event.rank == 0 || event.rank >= book->spec.gang))
    fail(4, event.task.text() + " got a lease without waiting");
  if (event.rank != (first ? 0 : book->granted))
    fail(2, event.lease.text() + " is not the next member of its gang");
  if (record.at < book->not_before) fail(3, event.task.text() + " got a lease before it was due");
  const std::optional<Duration>& wait = book->spec.wait_at_most;
  if (wait && book->epoch.value == 0 && record.at >= book->arrival + *wait)
    fail(3, event.task.text() + " got a lease after its longest wait");
  if (first) plans_kept_ = plans_that_hold();
  if (book->epoch.value + (first ? 1U : 0U) != event.epoch.value)
    fail(4, event.lease.text() + " skips an epoch");
  if (event.lease <= last_lease_) fail(4, event.lease.text() + " was given out before");
  last_lease_ = event.lease;
  if (first) {
    check_kept(*book, record.at);
    book->kept_from.reset();
  }
  book->stage = Stage::leased;
  book->leases.insert(event.lease);
  book->granted = event.rank + 1;
  book->epoch = event.epoch;
  book->may_overrun = false;
  const bool spot = event.purchase_model == PurchaseModel::spot;
  if (event.rank > 0 && spot != book->sold_as_spot)
    fail(6, event.task.text() + " is in part on spot");
  book->sold_as_spot = spot;
  TenantBook& tenant = tenants_.at(book->tenant.value - 1);
  LeaseBook entry;
  entry.task = event.task;
  entry.tenant = book->tenant;
  entry.slices = event.slices;
  entry.ce = event.ce;
  entry.billable = event.billable_ce;
  entry.purchase_model = event.purchase_model;
  entry.isolation = event.isolation;
  entry.net = Money::zero(tenant.spec.currency);
  entry.granted_at = record.at;
  entry.stop_at = Instant{0};
  entry.ends_by = entry.first_ends_by = record.at + (book->spec.limit - book->rounds);
  entry.reservation = book->spec.reservation;
  if (const auto on = reservations_.find(entry.reservation); on != reservations_.end())
    entry.ends_by = entry.first_ends_by = std::min(entry.ends_by, on->second.reservation.order.to);
  take_devices(*book, event, tenant);
  tenant.ce_used += event.ce;
  if (first) ++tenant.running;
  check_quota(tenant);
  const LeaseBook& granted = leases_.emplace(event.lease, std::move(entry)).first->second;
  check_on_reservation(*book, granted, event.lease);
  check_beside_reservations(granted);
  if (event.rank + 1 < book->spec.gang) return;
  if (!book->promise && !book->planned_before) check_plans_kept(event.task, *book);
  forget_place(*book);
  book->move.reset();
  book->planned_before = false;
}

void Auditor::on(const Record& record, const AttemptStarted& event) {
  LeaseBook* book = lease(event.lease, 4);
  if (book == nullptr) return;
  if (book->started_at) fail(4, event.lease.text() + " started twice");
  if (event.started_at < book->granted_at || event.started_at > record.at) {
    fail(8, event.lease.text() + " started before it was granted, or in the future");
  }
  book->started_at = book->rated_until = event.started_at;
  book->stop_at = book->ends_by = event.stop_at;
  // After a segment it has its turn again, and goes on before those who were promised starts since.
  const TaskBook* owner = task(book->task, 3);
  if (owner != nullptr && owner->spec.segments > 1)
    book->ends_by = std::max(event.stop_at, event.started_at + (owner->spec.limit - owner->rounds));
  book->isolation = event.isolation;
}

void Auditor::on(const Record& record, const StopRequested& event) {
  LeaseBook* book = lease(event.lease, 4);
  if (book == nullptr) return;
  const TaskBook* owner = task(book->task, 3);
  if (owner == nullptr) return;
  book->leaving = true;
  const bool moved = event.reason == StopReason::moved;
  if (moved && !owner->move) fail(16, event.lease.text() + " is to move, and has no place to go");
  if (event.reason != StopReason::preempted && !moved) {
    graces_.erase(event.lease);
    book->ends_by = std::min(book->ends_by, record.at + owner->spec.grace);
    return;
  }
  const bool spot = owner->spec.purchase_model == PurchaseModel::spot ||
                    book->purchase_model == PurchaseModel::spot;
  graces_[event.lease] =
      spot ? std::max(owner->spec.grace, Duration::minutes(2)) : owner->spec.grace;
  book->ends_by = std::min(book->ends_by, record.at + graces_[event.lease]);
  if (!moved && !makes_room_for_reservation(*book, *owner)) victims_.insert(book->task);
}

void Auditor::on(const Record& record, const LeaseEnded& event) {
  LeaseBook* book = lease(event.lease, 4);
  if (book == nullptr) return;
  TaskBook* owner = task(book->task, 3);
  if (owner == nullptr) return;
  if (owner->leases.erase(event.lease) == 0)
    fail(4, event.lease.text() + " is not its task's lease");
  if (event.ended_at > record.at) fail(8, event.lease.text() + " ended in the future");
  if (book->started_at) {
    const Duration ran = event.ended_at - *book->started_at;
    if (book->rated_until != event.ended_at || book->billed != ran) {
      fail(8, event.lease.text() + " ran " + to_text(ran) + " and is billed for " +
                  to_text(book->billed));
    }
    owner->ran += ran;
    owner->round = std::max(owner->round, ran);
  }
  if (owner->leases.empty()) {
    owner->rounds += owner->round;
    owner->round = Duration{};
  }
  TenantBook& tenant = tenants_.at(book->tenant.value - 1);
  for (const Slice& slice : book->slices) {
    DeviceBook& device = devices_.at(slice.device.value - 1);
    device.used -= slice.share;
    device.memory_used -= slice.memory;
    device.promised.share -= slice.promised();
    device.promised.memory -= slice.memory_promised();
    device.leases.erase(event.lease);
    tenant.memory_used -= slice.memory;
    tenant.devices_used -= slice.share;
  }
  tenant.ce_used -= book->ce;
  billed_[event.lease] = book->billed;
  if (owner->leases.empty()) {
    --tenant.running;
    owner->stage = Stage::between;
  }
  leases_.erase(event.lease);
}

void Auditor::on(const Record& record, const TaskRequeued& event) {
  TaskBook* book = task(event.task, 3);
  if (book == nullptr) return;
  if (book->stage != Stage::between && book->stage != Stage::paused) {
    fail(3, event.task.text() + " went back to the queue out of nowhere");
  }
  book->unable_at.reset();
  if (event.cause == RequeueCause::unable) book->unable_at = record.at;
  if (event.cause == RequeueCause::preempted) book->preempted_at.push_back(record.at);
  if (event.cause != RequeueCause::moved) book->move.reset();
  book->waits_since = std::max(record.at, book->not_before);
  if (event.cause == RequeueCause::resumed) book->arrival = book->waits_since;
  if (event.purchase_model) {
    book->spec.purchase_model = *event.purchase_model;
    if (*event.purchase_model != PurchaseModel::reservation) book->spec.reservation = {};
  }
  book->stage = Stage::waiting;
  if ((book->kept + book->backed_up).value > 0 && !book->kept_from) book->kept_from = record.at;
}

void Auditor::on(const Record& record, const TaskPaused& event) {
  TaskBook* book = task(event.task, 3);
  if (book == nullptr) return;
  if (book->stage != Stage::between && book->stage != Stage::waiting) {
    fail(3, event.task.text() + " is paused while it has a lease");
  }
  if (!book->held.is_zero())
    fail(9, event.task.text() + " is paused and holds " + to_text(book->held));
  book->stage = Stage::paused;
  forget_place(*book);
  book->move.reset();
  book->preempted_at.clear();
  if ((book->kept + book->backed_up).value > 0 && !book->kept_from) book->kept_from = record.at;
}

void Auditor::on(const Record& record, const TaskFinished& event) {
  TaskBook* book = task(event.task, 3);
  if (book == nullptr) return;
  if (book->stage == Stage::leased) fail(3, event.task.text() + " ended while it has a lease");
  if (event.outcome == TaskOutcome::none) fail(3, event.task.text() + " ended without an outcome");
  if (event.outcome == TaskOutcome::expired) check_expired(*book, record.at);
  check_kept(*book, record.at);
  if (!book->held.is_zero()) fail(9, event.task.text() + " ended and holds " + to_text(book->held));
  if (book->rated != book->charged) {
    fail(9, event.task.text() + " used " + to_text(book->rated) + " and was charged " +
                to_text(book->charged));
  }
  tasks_.erase(event.task);
}

// It had money set aside for so long, and never ran.
void Auditor::check_expired(const TaskBook& book, Instant at) {
  const std::string whose = book.id.text();
  if (book.stage != Stage::waiting) fail(3, whose + " expired and was not waiting");
  if (book.rounds.ms > 0) fail(3, whose + " expired after it had run");
  if (book.spec.wait_at_most && at < book.arrival + *book.spec.wait_at_most)
    fail(3, whose + " expired before its longest wait was over");
}

void Auditor::on(const Record& record, const RequestRecorded& event) {
  const auto [at, fresh] = requests_.try_emplace({event.scope, event.key}, record.at);
  if (!fresh) fail(11, "the request '" + event.key + "' took effect twice");
}

void Auditor::on(const Record& record, const RequestsForgotten& event) {
  if (event.before + Duration::hours(24) > record.at && requests_.size() < 1'000'000) {
    fail(11, "requests were forgotten within a day");
  }
  std::erase_if(requests_, [&](const auto& entry) { return entry.second <= event.before; });
}

void Auditor::compare(const Seen& seen) {
  for (const auto& [id, book] : tasks_) {
    if (book.rated != book.charged) {
      fail(9, id.text() + " used " + to_text(book.rated) + " and was charged " +
                  to_text(book.charged));
    }
    if (book.stage == Stage::between) fail(3, id.text() + " is in no state");
    if (book.stage == Stage::leased && book.granted != book.spec.gang)
      fail(2, id.text() + " started with " + std::to_string(book.granted) + " of " +
                  std::to_string(book.spec.gang) + " members");
  }
  check_deadlines();
  check_askers_started();
  if (seen.tasks.size() != tasks_.size()) fail(3, "the engine has another number of tasks");
  for (const Task& theirs : seen.tasks) {
    const TaskBook* mine = task(theirs.id, 3);
    if (mine == nullptr) return;
    const bool leased = theirs.state == TaskState::starting || theirs.state == TaskState::running ||
                        theirs.state == TaskState::stopping;
    const bool same = leased ? mine->stage == Stage::leased
                             : mine->stage == (theirs.state == TaskState::paused ? Stage::paused
                                                                                 : Stage::waiting);
    const bool same_leases = std::equal(mine->leases.begin(), mine->leases.end(),
                                        theirs.leases.begin(), theirs.leases.end());
    if (!same || !same_leases) fail(3, theirs.id.text() + " is in another state");
    if (mine->held != theirs.held || mine->charged != theirs.charged) {
      fail(9, theirs.id.text() + " has other money in the engine's books");
    }
  }
  for (const Device& theirs : seen.devices) {
    const DeviceBook& mine = devices_.at(theirs.id.value - 1);
    if (mine.used != theirs.used || mine.memory_used != theirs.memory_used ||
        mine.promised.share != theirs.promised() ||
        mine.promised.memory != theirs.memory_promised() || mine.leases.size() != theirs.leases) {
      fail(1, mine.name + " is used otherwise in the engine's books: " + to_text(theirs.used) +
                  " and " + to_text(theirs.memory_used) + " by " + std::to_string(theirs.leases) +
                  " leases, not " + to_text(mine.used) + " and " + to_text(mine.memory_used) +
                  " by " + std::to_string(mine.leases.size()));
    }
  }
  for (const Tenant& theirs : seen.tenants) {
    const TenantBook& mine = tenants_.at(theirs.id.value - 1);
    if (mine.ce_used != theirs.ce_used || mine.memory_used != theirs.memory_used ||
        mine.running != theirs.tasks_running) {
      fail(7, mine.spec.name + " uses another amount in the engine's books");
    }
  }
  for (const auto& [account, amount] : seen.balances) {
    if (balance_in(balances_, account) != amount) {
      fail(9, to_text(account) + " is " + to_text(amount) + " in the engine's books and " +
                  to_text(balance_in(balances_, account)) + " by its postings");
    }
  }
  for (const auto& [account, amount] : balances_) {
    if (!amount.is_zero() && seen.balances.count(account) == 0) {
      fail(9, to_text(account) + " is missing in the engine's books");
    }
  }
  check_held();
  check_reservations(seen);
}

void Auditor::check_drained() {
  check_covers();
  check_reservations_over();
  if (!tasks_.empty()) {
    fail(3, std::to_string(tasks_.size()) + " tasks never ended, the first is " +
                tasks_.begin()->first.text());
  }
  if (!leases_.empty()) fail(4, leases_.begin()->first.text() + " was never given back");
  for (const DeviceBook& device : devices_) {
    if (device.used.value != 0 || device.memory_used.value != 0) {
      fail(1, device.name + " is in use by nobody");
    }
  }
  for (const auto& [account, amount] : balances_) {
    if (account.kind == AccountKind::held && !amount.is_zero()) {
      fail(9, to_text(account) + " still holds " + to_text(amount));
    }
  }
}

void Auditor::check_notice(LeaseId lease, Duration noticed) {
  const auto due = graces_.find(lease);
  if (due == graces_.end() || noticed >= due->second) return;
  fail(6, lease.text() + " was killed " + to_text(noticed) + " after its notice, and has " +
              to_text(due->second));
}

void Auditor::check_ran(LeaseId lease, Duration ran) {
  const auto found = billed_.find(lease);
  if (found == billed_.end()) return;
  if (found->second != ran) {
    fail(8, lease.text() + " ran " + to_text(ran) + " on its node and is billed for " +
                to_text(found->second));
  }
}

}  // namespace loam::sim
