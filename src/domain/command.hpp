// Commands: what somebody asks or a machine reports. Never journaled; decide() turns them into
// events or a rejection. Pure.
#pragma once

#include <boost/describe/enum.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "domain/event.hpp"

namespace loam {

// What an operator asks.
struct AttachNode {
  std::string name;
  std::string region;
  MilliCpu cpu;      // to be lent; 0: not counted
  Mebibytes memory;  // likewise
  std::vector<std::string> labels{};
  bool sandboxed = true;  // it keeps apart what runs on it
};
struct AttachDevice {
  std::string node;
  DeviceFacts facts;
};
struct ReportDeviceHealth {
  DeviceId device;
  DeviceHealth health = DeviceHealth::healthy;
  std::string reason;
  Instant seen_at;  // last heartbeat: time is billed to here
};
struct DrainDevice {
  DeviceId device;
  bool draining = true;
};
struct CreateTenant {
  TenantSpec spec;
};
struct ChangeTenant {
  TenantId tenant;
  TenantSpec spec;
};
struct PublishRateCard {
  RateCard card;  // id is given by the engine; effective_from 0: from the decision on
};
// Queues that are no longer listed are closed, not removed.
struct SetScheduling {
  SchedulingSettings settings;
};
// On invoices from now on.
struct SetSeller {
  Seller seller;
};
struct TopUp {
  TenantId tenant;
  Money amount;
  std::string note;
};
// From the wallet to whom it belongs: at most what is free of it.
struct PayOut {
  TenantId tenant;
  Money amount;
  std::string note;
};
// A top-up or a payout that did not happen, or was written down wrong: once each.
struct ReverseTransaction {
  TransactionId transaction;
  std::string note;
};
struct IssueInvoice {
  TenantId tenant;
  // The end of a month in the tenant's billing zone: what belongs to later ones stays open.
  // Nothing: all that was charged so far.
  std::optional<Instant> to{};
};

// `net` before tax; nothing: all that is left of the invoice.
struct CreditInvoice {
  InvoiceId invoice;
  std::optional<Money> net;
  std::string reason;
};
// A new budget, or other terms for the one of that name.
struct SetBudget {
  Budget budget;
};
struct RemoveBudget {
  std::string name;
};
// Answers a budget's open request.
struct AnswerBudget {
  std::string name;
  bool approve = false;
  Approval approval;  // who answers; the rest where approved
};

// Buys capacity, or use worth so much an hour, by the month (1), the quarter (3) or the year (12),
// under the card in force; days are those of its zone.
struct BuyCommitment {
  TenantId tenant;
  MilliCe ce;  // 0 where money is committed
  std::int64_t months = 1;
  std::optional<Instant> from;   // its day; nothing: today
  std::optional<Instant> until;  // the last day's end; nothing: after one period
  std::optional<Instant>
      anchor;                    // whose day of the month periods begin on; nothing: that of `from`
  Attribution attribution;       // whose cost the fee is
  std::optional<Money> spend{};  // an hour
};

// Ends a commitment before its first day, or with the period that is paid.
struct CancelCommitment {
  CommitmentId commitment;
  std::string reason;
};

// Locks capacity for an interval to come. A preview of it: engine/queries.hpp.
struct MakeReservation {
  TenantId tenant;
  ReservationOrder order;
};
// Before it begins.
struct CancelReservation {
  ReservationId reservation;
  std::string reason;
};

// What a tenant asks.
struct SubmitTask {
  SubmitTask(TenantId whose, TaskSpec what)
      : tenant(whose), spec(std::make_shared<const TaskSpec>(std::move(what))) {}

  TenantId tenant;
  std::shared_ptr<const TaskSpec> spec;  // the one that the task keeps; never null
};
struct StopTask {
  TaskId task;
};
struct PauseTask {
  TaskId task;
};
struct ResumeTask {
  TaskId task;
  std::optional<PurchaseModel> purchase_model{};  // another than before
};

// What a node reports. `epoch` fences: a report of an older lease changes nothing.
struct ReportStarted {
  LeaseId lease;
  Epoch epoch;
  Instant started_at;
  bool advisory = false;  // no sandbox holds the guard on the task
};
// refused: the program cannot be run, there or anywhere. unable: the node could not start it now.
// limit: its node stopped it at the run time limit, since no daemon did.
BOOST_DEFINE_ENUM_CLASS(AttemptEnd, exited, refused, lost, limit, unable)
struct ReportEnded {
  LeaseId lease;
  Epoch epoch;
  AttemptEnd end = AttemptEnd::exited;
  Instant started_at = Instant::never();  // never() where the program never ran
  Instant ended_at;
  std::int64_t exit_code = 0;
  std::string reason;
  Duration device_time;
  Mebibytes memory_peak;
  bool advisory = false;
  std::optional<std::int64_t> output{};  // thousandths; as in LeaseEnded
  ServiceReport services;
};

// What a running attempt held, moved and used of its devices since it began. Told again, it changes
// nothing.
struct ReportServices {
  LeaseId lease;
  Epoch epoch;
  Instant at;
  ServiceReport services;
  std::optional<Duration> device_time{};  // none: nobody measures it
};

// In [from, to) a lease got `delivered` of a device where it was promised `promised`.
struct ReportShortfall {
  LeaseId lease;
  Epoch epoch;
  std::int64_t slice = 0;  // index
  Instant from;
  Instant to;
  BasisPoints promised;
  BasisPoints delivered;
};

// What a gateway counted since its last report. Reported again, it changes nothing: `sequence`
// rises with every report of a source.
struct RecordTokens {
  std::string source;
  std::int64_t sequence = 0;
  std::vector<TokenUse> uses;
};

// What the loop asks of itself.
// Some decisions of the scheduler at most; repeat while it gives events. `beyond`: by queue, where
// the last one went no further (Decision::beyond).
struct PassMark {
  std::uint32_t queue = 0;
  std::int64_t tier = 0;
  double key = 0;
  double second_key = 0;
  Instant arrival;
  TaskId task;
};
struct SchedulePass {
  std::vector<PassMark> beyond;
};
struct TimePassed {};  // one due timer at most; repeat while it gives events
struct EndLost {};     // one lease on a lost device at most; repeat while it gives events

using AnyCommand =
    std::variant<AttachNode, AttachDevice, ReportDeviceHealth, DrainDevice, CreateTenant,
                 ChangeTenant, PublishRateCard, TopUp, IssueInvoice, SubmitTask, StopTask,
                 PauseTask, ResumeTask, ReportStarted, ReportEnded, SchedulePass, TimePassed,
                 EndLost, SetScheduling, CreditInvoice, SetBudget, RemoveBudget, AnswerBudget,
                 BuyCommitment, ReportShortfall, ReportServices, RecordTokens, PayOut,
                 ReverseTransaction, CancelCommitment, SetSeller, MakeReservation,
                 CancelReservation>;

// As Event: copied and moved in one translation unit.
struct Command : AnyCommand {
  using AnyCommand::variant;
  Command(const Command&);
  Command(Command&&) noexcept;
  Command& operator=(const Command&);
  Command& operator=(Command&&) noexcept;
  ~Command();
};

// An idempotency key with its owner; empty key: none was sent.
struct RequestKey {
  std::string scope;
  std::string key;
  std::string fingerprint;
};

// Why a command was refused: the code is stable, the words are for people.
BOOST_DEFINE_ENUM_CLASS(RejectCode, invalid_argument, not_found, name_taken, no_such_tenant,
                        no_such_device, does_not_fit, quota_exceeded, insufficient_funds,
                        no_rate_card, not_sold, budget_exceeded, unsupported_field, wrong_state,
                        stale_epoch, duplicate_report, key_reused, nothing_to_invoice)

struct Reject {
  RejectCode code = RejectCode::invalid_argument;
  std::string message;
  std::string next_step;
  friend bool operator==(const Reject&, const Reject&) = default;
};

}  // namespace loam
