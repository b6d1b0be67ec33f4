// Events: facts, with every computed amount in them, so that replay never prices or places
// anything again. Only events are journaled; each has a type name and a version. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "domain/budget.hpp"
#include "domain/commitment.hpp"
#include "domain/device.hpp"
#include "domain/ids.hpp"
#include "domain/lease.hpp"
#include "domain/ledger.hpp"
#include "domain/place.hpp"
#include "domain/rate.hpp"
#include "domain/reservation.hpp"
#include "domain/scheduling.hpp"
#include "domain/task.hpp"
#include "domain/tenant.hpp"
#include "domain/token_use.hpp"

namespace loam {

// Each event type names itself and its version for the journal. A change of shape raises the
// version and adds a lift in event_codec.cpp.
#define LOAM_EVENT(name_text, version_number)    \
  static constexpr const char* type = name_text; \
  static constexpr int version = version_number;

// Also: the same node again with other figures, after a restart.
struct NodeAttached {
  LOAM_EVENT("node_attached", 2)
  NodeId node;
  std::string name;
  std::string region;
  std::vector<std::string> labels;
  MilliCpu cpu;
  Mebibytes memory;
  bool sandboxed = true;
};
BOOST_DESCRIBE_STRUCT(NodeAttached, (), (node, name, region, labels, cpu, memory, sandboxed))

// Also: the same device again with other facts: calibrated or with a new driver, when it holds no
// lease; near other devices, at any time.
struct DeviceAttached {
  LOAM_EVENT("device_attached", 2)
  DeviceId device;
  NodeId node;
  std::uint32_t index = 0;
  DeviceFacts facts;
};
BOOST_DESCRIBE_STRUCT(DeviceAttached, (), (device, node, index, facts))

struct DeviceHealthChanged {
  LOAM_EVENT("device_health_changed", 1)
  DeviceId device;
  DeviceHealth health = DeviceHealth::healthy;
  std::string reason;
  Instant seen_at;  // its last sign of life before
};
BOOST_DESCRIBE_STRUCT(DeviceHealthChanged, (), (device, health, reason, seen_at))

struct DeviceDrainChanged {
  LOAM_EVENT("device_drain_changed", 1)
  DeviceId device;
  bool draining = false;
};
BOOST_DESCRIBE_STRUCT(DeviceDrainChanged, (), (device, draining))

struct TenantCreated {
  LOAM_EVENT("tenant_created", 3)
  TenantId tenant;
  TenantSpec spec;
};
BOOST_DESCRIBE_STRUCT(TenantCreated, (), (tenant, spec))

struct TenantChanged {
  LOAM_EVENT("tenant_changed", 3)
  TenantId tenant;
  TenantSpec spec;
};
BOOST_DESCRIBE_STRUCT(TenantChanged, (), (tenant, spec))

struct RateCardPublished {
  LOAM_EVENT("rate_card_published", 4)
  RateCard card;
};
BOOST_DESCRIBE_STRUCT(RateCardPublished, (), (card))

// It gets no leases until then, or does again (0).
struct NodeMarked {
  LOAM_EVENT("node_marked", 1)
  NodeId node;
  Instant until;
  std::string reason;
};
BOOST_DESCRIBE_STRUCT(NodeMarked, (), (node, until, reason))

struct SchedulingSet {
  LOAM_EVENT("scheduling_set", 3)
  SchedulingSettings settings;
};
BOOST_DESCRIBE_STRUCT(SchedulingSet, (), (settings))

struct TransactionPosted {
  LOAM_EVENT("transaction_posted", 2)
  Transaction transaction;
};
BOOST_DESCRIBE_STRUCT(TransactionPosted, (), (transaction))

struct TaskAccepted {
  LOAM_EVENT("task_accepted", 6)
  TaskId task;
  TenantId tenant;
  std::shared_ptr<const TaskSpec> spec;  // as in Task; never null
  Instant not_before;  // when it is due, or cheapest before its deadline; 1970: at once
};
BOOST_DESCRIBE_STRUCT(TaskAccepted, (), (task, tenant, spec, not_before))

// The members of a gang follow one another, by rank, in one batch.
struct LeaseGranted {
  LOAM_EVENT("lease_granted", 3)
  LeaseId lease;
  TaskId task;
  Epoch epoch;
  std::int64_t rank = 0;
  std::vector<Slice> slices;
  MilliCpu cpu;
  Mebibytes host_memory;
  MilliCe ce;
  MilliCe billable_ce;
  Isolation isolation = Isolation::software;
  PurchaseModel purchase_model = PurchaseModel::on_demand;  // by which it is billed
};
BOOST_DESCRIBE_STRUCT(LeaseGranted, (),
                      (lease, task, epoch, rank, slices, cpu, host_memory, ce, billable_ce,
                       isolation, purchase_model))

// A start that the scheduler promises a waiting task. leaving: others were asked to leave the place
// for it, so nobody else takes it.
struct TaskPromised {
  LOAM_EVENT("task_promised", 2)
  TaskId task;
  Instant start;
  bool leaving = false;
  std::vector<PromisedMember> members;  // by rank
};
BOOST_DESCRIBE_STRUCT(TaskPromised, (), (task, start, leaving, members))

// It is off: it cannot be kept, or need not be.
struct PromiseDropped {
  LOAM_EVENT("promise_dropped", 1)
  TaskId task;
};
BOOST_DESCRIBE_STRUCT(PromiseDropped, (), (task))

// A running task makes room for `asker`, which is promised a start next: it is asked to stop, and
// goes on at this place, which nobody else takes.
struct MoveBegun {
  LOAM_EVENT("move_begun", 1)
  TaskId task;
  TaskId asker;
  std::vector<PromisedMember> members;  // by rank
  Duration lost;                        // of its work, at most
};
BOOST_DESCRIBE_STRUCT(MoveBegun, (), (task, asker, members, lost))

struct AttemptStarted {
  LOAM_EVENT("attempt_started", 1)
  LeaseId lease;
  Instant started_at;
  Instant stop_at;
  Isolation isolation = Isolation::software;  // as found when the program started
};
BOOST_DESCRIBE_STRUCT(AttemptStarted, (), (lease, started_at, stop_at, isolation))

struct StopRequested {
  LOAM_EVENT("stop_requested", 1)
  LeaseId lease;
  StopReason reason = StopReason::none;
};
BOOST_DESCRIBE_STRUCT(StopRequested, (), (lease, reason))

// One piece of a lease was rated. Also moves the lease's rating forward.
struct UsageRated {
  LOAM_EVENT("usage_rated", 3)
  UsageRecord record;
};
BOOST_DESCRIBE_STRUCT(UsageRated, (), (record))

struct LeaseEnded {
  LOAM_EVENT("lease_ended", 2)
  LeaseId lease;
  Instant ended_at;
  Duration device_time;  // measured by the guard; reports and credits only, never the charge
  Mebibytes memory_peak;
  AttemptVerdict verdict;
  std::optional<std::int64_t> output{};  // what it says it made, in thousandths of its own unit
};
BOOST_DESCRIBE_STRUCT(LeaseEnded, (), (lease, ended_at, device_time, memory_peak, verdict, output))

// Back in the queue.
// unable: its node could not start it; tried again later. segment: a piece of it is done. resold:
// it goes on by another purchase model. moved: it goes on at the place that it was to have.
BOOST_DEFINE_ENUM_CLASS(RequeueCause, resumed, lost, preempted, unable, segment, resold, moved)
struct TaskRequeued {
  LOAM_EVENT("task_requeued", 2)
  TaskId task;
  RequeueCause cause = RequeueCause::resumed;
  std::string reason;                             // in words, for people
  std::optional<PurchaseModel> purchase_model{};  // another than before, from now on
};
BOOST_DESCRIBE_STRUCT(TaskRequeued, (), (task, cause, reason, purchase_model))

struct TaskPaused {
  LOAM_EVENT("task_paused", 1)
  TaskId task;
};
BOOST_DESCRIBE_STRUCT(TaskPaused, (), (task))

struct TaskFinished {
  LOAM_EVENT("task_finished", 1)
  TaskId task;
  TaskOutcome outcome = TaskOutcome::none;
  std::int64_t exit_code = 0;  // 128 + signal where a signal ended it
  std::string reason;          // in words, for people
};
BOOST_DESCRIBE_STRUCT(TaskFinished, (), (task, outcome, exit_code, reason))

// Who sells here, on invoices from now on.
struct SellerSet {
  LOAM_EVENT("seller_set", 1)
  Seller seller;
};
BOOST_DESCRIBE_STRUCT(SellerSet, (), (seller))

struct InvoiceIssued {
  LOAM_EVENT("invoice_issued", 5)
  Invoice invoice;
};
BOOST_DESCRIBE_STRUCT(InvoiceIssued, (), (invoice))

struct CreditNoteIssued {
  LOAM_EVENT("credit_note_issued", 1)
  CreditNote note;
};
BOOST_DESCRIBE_STRUCT(CreditNoteIssued, (), (note))

// The price of spot moved, from what was offered and wanted.
struct SpotPriceMoved {
  LOAM_EVENT("spot_price_moved", 1)
  Currency currency;
  Money price;  // per CE-hour
  MilliCe supply;
  MilliCe demand;
};
BOOST_DESCRIBE_STRUCT(SpotPriceMoved, (), (currency, price, supply, demand))

// A card was published, and the holds of a currency's tasks up to `through` cover it now.
struct HoldsReviewed {
  LOAM_EVENT("holds_reviewed", 1)
  Currency currency;
  TaskId through;  // none: of all
};
BOOST_DESCRIBE_STRUCT(HoldsReviewed, (), (currency, through))

// A new budget, or other terms for one.
struct BudgetSet {
  LOAM_EVENT("budget_set", 3)
  Budget budget;
  Money spent;  // of the present month, before it was made
};
BOOST_DESCRIBE_STRUCT(BudgetSet, (), (budget, spent))

struct BudgetRemoved {
  LOAM_EVENT("budget_removed", 1)
  std::string name;
};
BOOST_DESCRIBE_STRUCT(BudgetRemoved, (), (name))

struct BudgetNoticed {
  LOAM_EVENT("budget_noticed", 1)
  BudgetNotice notice;
};
BOOST_DESCRIBE_STRUCT(BudgetNoticed, (), (notice))

struct BudgetApproved {
  LOAM_EVENT("budget_approved", 1)
  std::string name;
  Approval approval;
};
BOOST_DESCRIBE_STRUCT(BudgetApproved, (), (name, approval))

struct CommitmentBought {
  LOAM_EVENT("commitment_bought", 4)
  Commitment commitment;
};
BOOST_DESCRIBE_STRUCT(CommitmentBought, (), (commitment))

// The fee of its next period was charged.
struct CommitmentCharged {
  LOAM_EVENT("commitment_charged", 3)
  TenantId tenant;
  CommitmentId commitment;
  std::int64_t fee = 0;  // index
  Instant from;          // of the days that it is for
  Instant to;
  AdjustmentLine line;
};
BOOST_DESCRIBE_STRUCT(CommitmentCharged, (), (tenant, commitment, fee, from, to, line))

// Before its time: it covers nothing from `at` on, and no further fee is charged.
struct CommitmentEnded {
  LOAM_EVENT("commitment_ended", 2)
  TenantId tenant;
  CommitmentId commitment;
  Instant at;
  bool cancelled = false;  // by its tenant or an operator; else a fee was not paid
  std::string reason;      // in words, for people
};
BOOST_DESCRIBE_STRUCT(CommitmentEnded, (), (tenant, commitment, at, cancelled, reason))

// What of a tenant's use in an hour its commitments cover is given back, lease by lease; again for
// the same hour, with the difference, where use was told or taken back later.
struct UseCovered {
  LOAM_EVENT("use_covered", 3)
  TenantId tenant;
  Instant hour;  // its start
  std::vector<AdjustmentLine> lines;
};
BOOST_DESCRIBE_STRUCT(UseCovered, (), (tenant, hour, lines))

// Capacity is locked for an interval to come, and what it may cost is set aside.
struct ReservationMade {
  LOAM_EVENT("reservation_made", 2)
  Reservation reservation;
};
BOOST_DESCRIBE_STRUCT(ReservationMade, (), (reservation))

// It lies elsewhere from now on: what it had was lost, or is taken out of service.
struct ReservationMoved {
  LOAM_EVENT("reservation_moved", 2)
  TenantId tenant;
  ReservationId reservation;
  std::vector<PromisedMember> members;
  std::string reason;  // in words, for people
};
BOOST_DESCRIBE_STRUCT(ReservationMoved, (), (tenant, reservation, members, reason))

// A piece of it, an hour at most, is over: what was not used of it is charged, and what was used
// beyond it given back. Again for the same piece, with the difference, where use was told or taken
// back later.
struct ReservationCharged {
  LOAM_EVENT("reservation_charged", 2)
  TenantId tenant;
  ReservationId reservation;
  Instant from;
  Instant to;
  std::vector<AdjustmentLine> lines;
};
BOOST_DESCRIBE_STRUCT(ReservationCharged, (), (tenant, reservation, from, to, lines))

// It locks nothing any more. over: its time is. Nothing is charged for it from `at` on.
BOOST_DEFINE_ENUM_CLASS(ReservationEnd, over, cancelled, unpaid, lost)
struct ReservationEnded {
  LOAM_EVENT("reservation_ended", 1)
  TenantId tenant;
  ReservationId reservation;
  Instant at;
  ReservationEnd end = ReservationEnd::over;
  std::string reason;  // in words, for people
};
BOOST_DESCRIBE_STRUCT(ReservationEnded, (), (tenant, reservation, at, end, reason))

// What is set aside for it changed: more was, or what is not needed was given back.
struct ReservationHeld {
  LOAM_EVENT("reservation_held", 1)
  TenantId tenant;
  ReservationId reservation;
  Money held;
};
BOOST_DESCRIBE_STRUCT(ReservationHeld, (), (tenant, reservation, held))

// A lease got less of a device than it was promised, and what that was worth is given back.
struct ShortfallCredited {
  LOAM_EVENT("shortfall_credited", 3)
  TenantId tenant;
  TaskId task;
  LeaseId lease;
  std::int64_t slice = 0;  // index
  Instant from;
  Instant to;
  BasisPoints promised;  // of the device
  BasisPoints delivered;
  AdjustmentLine line;
};
BOOST_DESCRIBE_STRUCT(ShortfallCredited, (),
                      (tenant, task, lease, slice, from, to, promised, delivered, line))

// A run was cut short by others or by the loss of a device, and what it cost is given back by the
// rule of its rate card.
BOOST_DEFINE_ENUM_CLASS(LostWorkCause, displaced, device_lost)
struct LostWorkCredited {
  LOAM_EVENT("lost_work_credited", 3)
  TenantId tenant;
  TaskId task;
  LeaseId lease;
  LostWorkCause cause = LostWorkCause::displaced;
  Instant from;  // the run
  Instant to;
  AdjustmentLine line;
};
BOOST_DESCRIBE_STRUCT(LostWorkCredited, (), (tenant, task, lease, cause, from, to, line))

// What a tenant used of a model was counted: charged to it, and credited to the model's owner where
// that is another. Events of one batch share source and sequence; a sequence that is not above the
// source's last was recorded before.
struct TokensUsed {
  LOAM_EVENT("tokens_used", 3)
  std::string source;  // who counted
  std::int64_t sequence = 0;
  TokenUse use;
  std::vector<AdjustmentLine> charged;
  std::vector<AdjustmentLine> earned;
};
BOOST_DESCRIBE_STRUCT(TokensUsed, (), (source, sequence, use, charged, earned))

// What a task held and moved in [from, to) was counted, and charged where its card sells it. With a
// lease: of that attempt; without: of the storage that is kept while the task does not run.
struct ServicesUsed {
  LOAM_EVENT("services_used", 3)
  TenantId tenant;
  TaskId task;
  LeaseId lease;
  Instant from;
  Instant to;
  ServiceUse use;
  Mebibytes kept;
  std::vector<AdjustmentLine> lines;
  // Of the lease from its start up to `to`, measured by the guard; none: not told. Reports only.
  std::optional<Duration> device_time{};
  Mebibytes backed_up{};
};
BOOST_DESCRIBE_STRUCT(ServicesUsed, (),
                      (tenant, task, lease, from, to, use, kept, lines, device_time, backed_up))

// A write with an idempotency key took effect: the same key again gives the same answer.
struct RequestRecorded {
  LOAM_EVENT("request_recorded", 1)
  std::string scope;  // who sent it: keys of different callers never meet
  std::string key;
  std::string
      fingerprint;      // digest of what was asked; another one under the same key is a conflict
  std::string subject;  // what the request made: "t17"
};
BOOST_DESCRIBE_STRUCT(RequestRecorded, (), (scope, key, fingerprint, subject))

// Recorded requests up to `before` are forgotten: keys are promised for a day.
struct RequestsForgotten {
  LOAM_EVENT("requests_forgotten", 1)
  Instant before;
};
BOOST_DESCRIBE_STRUCT(RequestsForgotten, (), (before))

// A task waits longer than its class promises: the alarm, or a step that follows it. `queue` and
// `purchase_model` are what it waits in, and for, from now on.
struct TaskLate {
  LOAM_EVENT("task_late", 1)
  TaskId task;
  std::int64_t step = 0;  // 0: the alarm; then by the class's list
  LateStepKind kind = LateStepKind::alarm;
  Duration waited;
  Duration promised;
  std::string queue;
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  std::int64_t parts = 0;  // split: as many of which one could start now
};
BOOST_DESCRIBE_STRUCT(TaskLate, (),
                      (task, step, kind, waited, promised, queue, purchase_model, parts))

// A spot task with a deadline was accepted, and is run by this policy from now on. Lengths are in
// ticks.
struct SpotPlanned {
  LOAM_EVENT("spot_planned", 1)
  TaskId task;
  SpotPolicy policy = SpotPolicy::reserve;
  Duration tick;
  std::int64_t work = 0;
  std::int64_t deadline = 0;        // from now
  std::int64_t changeover = 0;      // from a decision until it works again
  std::int64_t spot_price_ppm = 0;  // of the price on demand
};
BOOST_DESCRIBE_STRUCT(SpotPlanned, (),
                      (task, policy, tick, work, deadline, changeover, spot_price_ppm))

// What a look for spot found, for tasks that run on demand and would go back.
struct SpotSighted {
  LOAM_EVENT("spot_sighted", 1)
  std::vector<TaskId> there;
  std::vector<TaskId> gone;
};
BOOST_DESCRIBE_STRUCT(SpotSighted, (), (there, gone))

// on_demand: such a task waits no longer for spot; it is bought on demand from now on. at_risk: it
// has no place on demand either, and misses its deadline should it need its whole limit.
BOOST_DEFINE_ENUM_CLASS(DeadlineNoticeKind, on_demand, at_risk)
struct DeadlineNoticed {
  LOAM_EVENT("deadline_noticed", 1)
  TaskId task;
  DeadlineNoticeKind kind = DeadlineNoticeKind::on_demand;
  Instant deadline;
  Duration left;  // of its limit
};
BOOST_DESCRIBE_STRUCT(DeadlineNoticed, (), (task, kind, deadline, left))

#undef LOAM_EVENT

using AnyEvent =
    std::variant<NodeAttached, DeviceAttached, DeviceHealthChanged, DeviceDrainChanged,
                 TenantCreated, TenantChanged, RateCardPublished, TransactionPosted, TaskAccepted,
                 LeaseGranted, AttemptStarted, StopRequested, UsageRated, LeaseEnded, TaskRequeued,
                 TaskPaused, TaskFinished, InvoiceIssued, RequestRecorded, RequestsForgotten,
                 CreditNoteIssued, SpotPriceMoved, HoldsReviewed, BudgetSet, BudgetRemoved,
                 BudgetNoticed, BudgetApproved, SchedulingSet, TaskPromised, PromiseDropped,
                 NodeMarked, CommitmentBought, CommitmentCharged, CommitmentEnded, UseCovered,
                 ShortfallCredited, TokensUsed, LostWorkCredited, TaskLate, SellerSet, ServicesUsed,
                 ReservationMade, ReservationMoved, ReservationCharged, ReservationEnded,
                 ReservationHeld, SpotPlanned, SpotSighted, DeadlineNoticed, MoveBegun>;

// A type of its own for two reasons: a symbol that names the variant names its forty types too, and
// every translation unit would make its own copies and moves of all of them. These are made once.
struct Event : AnyEvent {
  using AnyEvent::variant;
  Event();
  Event(const Event&);
  Event(Event&&) noexcept;
  Event& operator=(const Event&);
  Event& operator=(Event&&) noexcept;
  ~Event();
};

// Who caused an event: the issuer vouches for the subject ("socket" + "uid:0", "token" + "ci").
struct Actor {
  std::string issuer;
  std::string subject;
  friend bool operator==(const Actor&, const Actor&) = default;
};
BOOST_DESCRIBE_STRUCT(Actor, (), (issuer, subject))

// One journal row. Sequence numbers start at 1 and have no gap; instants never fall.
struct Record {
  std::uint64_t sequence = 0;
  Instant at;
  Actor actor;
  Event event;
};

}  // namespace loam
