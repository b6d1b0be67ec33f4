// Scenario: a test as text, read into statements whose values are checked. The grammar is in
// docs/scenarios.md. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "domain/command.hpp"
#include "engine/state.hpp"
#include "sim/scenario_text.hpp"

namespace loam::sim {

// When a statement happens, or what it speaks of: so long after the clock's start, after the
// statement before, or at an instant.
struct At {
  enum class Kind { after_start, after_last, instant } kind = Kind::after_start;
  Duration after;
  Instant instant;
};

struct SetClock {
  Instant start;
};
// A device type that nodes may have.
struct DefineDevice {
  DeviceFacts facts;  // no UUID yet
};
struct AddNode {
  AttachNode node;
  std::vector<std::string> device_types;  // one entry a device
  std::int64_t links = 0;                 // devices of a link group, in order; 0: unknown
};
struct SetRate {
  PurchaseModel model = PurchaseModel::on_demand;
  std::string amount;
  std::string currency;
  MilliCe ce_per_gibibyte{1250};
  std::optional<Instant> from;
  std::optional<Duration> from_after;  // from the present
  PriceTerms terms;
};
struct MakeBudget {
  std::string tenant;
  Budget budget;  // its scope's tenant is filled in when it is made
};
struct AnswerBudgetStep {
  std::string budget;
  std::optional<Money> up_to;  // nothing: refused
  Duration lasts;              // of the approval
};
struct CreditStep {
  std::string tenant;  // whose last invoice
  std::optional<Money> amount;
};
struct CommitStep {
  std::string tenant;
  BuyCommitment order;  // its tenant is filled in when it is bought
};
// A node's report that a task's last lease got less than it was promised.
struct ShortfallStep {
  std::string task;
  Duration ago;  // when the interval ended
  Duration lasts;
  BasisPoints promised{10'000};
  BasisPoints delivered;
  std::int64_t slice = 0;
  std::optional<std::int64_t> epoch;
};
BuyCommitment order_of(const CommitStep& step, TenantId tenant);
struct ReserveStep {
  std::string tenant;
  ReservationOrder order;  // its interval is filled in when it is made
  std::optional<At> from;  // nothing: from the decision on
  At to;
};
MakeReservation order_of(const ReserveStep& step, TenantId tenant, Instant start, Instant now);
ReportShortfall report_of(const ShortfallStep& step, LeaseId lease, Epoch last, Instant now);
struct MakeTenant {
  TenantSpec spec;
  std::optional<Money> wallet;
  bool change = false;
};
// Each changes one thing of the settings in force.
struct SetQueue {
  QueueSettings queue;
};
struct SetClass {
  ServiceClass service_class;
};
struct SetWeight {
  ShareWeight weight;
};
struct SetPlacement {
  std::string policy;
};
struct SetDefrag {
  DefragSettings defrag;
};
struct SetOversubscription {
  Oversubscription lent;
};
struct SetHoldExpires {
  std::optional<Duration> after;  // nothing: never
};
struct Submit {
  std::string tenant;
  TaskSpec spec;    // its name is what the scenario calls it
  std::string key;  // idempotency key
  bool quote_only = false;
};
enum class TaskVerb { stop, pause, resume };
struct AskOfTask {
  TaskVerb verb = TaskVerb::stop;
  std::string task;
  std::optional<PurchaseModel> purchase{};  // resumed by another than before
};
struct Drain {
  std::string device;
  bool draining = true;
};
// Money into the wallet, or out of it.
struct Pay {
  std::string tenant;
  Money amount;
  bool out = false;
};
// Turns the tenant's last payment round, or one by its number.
struct Reverse {
  std::string tenant;
  std::optional<TransactionId> transaction;
};
// Ends the commitment, or the reservation, of that number.
struct CancelStep {
  CommitmentId commitment;
  ReservationId reservation;
};
Command order_of(const CancelStep& step);
struct InvoiceNow {
  std::string tenant;
  std::string month;  // of its billing zone: "2025-03"; empty: all that was charged
};
IssueInvoice order_of(const InvoiceNow& step, TenantId tenant, const engine::State& state);
// A node's report made by hand, for stale, late, repeated and impossible ones.
struct Report {
  enum class Kind { started, ended, services };

  std::string task;
  Kind kind = Kind::started;
  std::optional<std::int64_t> epoch;  // of the last lease where absent
  Duration ago;                       // what it reports happened so long ago
  std::optional<Duration> began;      // ended: its program started so long ago
  std::int64_t exit_code = 0;
  AttemptEnd end = AttemptEnd::exited;
  // ended and services: what was counted since it began, below zero too.
  std::int64_t mib_seconds = 0;
  std::int64_t bytes = 0;
  std::optional<Duration> busy;  // its devices
};
Command report_of(const Report& step, LeaseId lease, Epoch last, Instant now);
enum class DaemonFault { killed, down, up, killed_before_effects };
struct FaultDaemon {
  DaemonFault fault = DaemonFault::killed;
};
struct FaultJournal {
  bool full = false;
  std::optional<std::size_t> torn_at;
};
struct FaultClock {
  Duration step;
};
struct FaultDevice {
  std::string name;  // "n1/0", or "n1" for every device of the node
  DeviceHealth health = DeviceHealth::lost;
  Duration unseen;
};
struct TakeSnapshot {};
struct Expect {
  std::vector<Word> words;
};
struct Quiet {};
enum class BlockKind { bill, ledger, issued };
struct Block {
  BlockKind kind = BlockKind::bill;
  std::string tenant;
  std::vector<Line> lines;
  std::size_t line_last = 0;
};

using Step = std::variant<std::monostate, SetClock, DefineDevice, AddNode, SetRate, MakeBudget,
                          AnswerBudgetStep, CreditStep, CommitStep, ReserveStep, ShortfallStep,
                          MakeTenant, SetQueue, SetClass, SetWeight, SetPlacement, SetHoldExpires,
                          SetDefrag, SetOversubscription, Submit, AskOfTask, Drain, Pay, Reverse,
                          CancelStep, InvoiceNow, Report, FaultDaemon, FaultJournal, FaultClock,
                          FaultDevice, TakeSnapshot, Expect, Quiet, Block>;

struct Statement {
  Line line;
  std::optional<At> at;
  Step step;  // monostate: `at` alone
};

struct Scenario {
  std::string file;
  std::vector<Statement> statements;
};

// When its clock begins.
Instant start_of(const Scenario& scenario);

// Error: the first bad line, with file, line and column, and what to write instead.
Result<Scenario> parse_scenario(std::string_view file, std::string_view text);

}  // namespace loam::sim
