// Backend: everything that the API wants of the daemon. The daemon implements it; tests bring
// a small one over a real engine loop. Pure declarations.
//
// Threads: every member may be called from several worker threads of the API at once, never
// from the loop's thread. Members may block (disk, a device) unless they say otherwise: a worker
// waits, no connection does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/command.hpp"
#include "engine/loop.hpp"

namespace loam::api {

// ---- history: what the projections know, finished tasks included ------------------------------

struct LeaseRecord {
  LeaseId id;
  MilliCe ce;
  MilliCe billable_ce;
  std::string isolation;  // software, hardware, or advisory where nothing bound it
  std::vector<Slice> slices;
  std::optional<Instant> started_at;
  std::optional<Instant> ended_at;
  // What of its time was measured (0: nobody did), and how long its devices were busy in that,
  // added up.
  Duration measured;
  Duration device_time;
};

// A lease among those of other tasks.
struct LeaseUse {
  LeaseRecord lease;
  TaskId task;
  TenantId tenant;
  std::string name;   // of the task
  Instant queued_at;  // since when the task had waited for it
  Instant granted_at;
  StopReason stop_reason = StopReason::none;
  TaskOutcome outcome = TaskOutcome::none;  // none while it lives
  Money net;                                // of its usage records
  std::optional<std::int64_t> output;       // thousandths; what it said it made
};
struct LeaseFilter {
  std::optional<TenantId> tenant{};
  std::vector<TaskId> tasks{};  // empty: of any
  // Those that ran in [from, to), and what was measured of them in it; the default: all there are.
  Instant from{};
  Instant to = Instant::never();
  LeaseId before{};  // only ids below it; none: from the newest
  std::int64_t limit = 100;
};

// A device that could give so much (work class general) over [from, to).
struct CapacityPiece {
  std::string device;  // "n1/0"
  Instant from;
  Instant to;
  MilliCe ce;
};

struct TaskRecord {
  TaskId id;
  TenantId tenant;
  TaskSpec spec;
  TaskState state = TaskState::waiting;
  TaskOutcome outcome = TaskOutcome::none;
  std::int64_t exit_code = 0;
  std::string reason;
  Instant submitted_at;
  std::optional<Instant> started_at;  // of the first attempt
  std::optional<Instant> finished_at;
  std::int64_t attempts = 0;
  Duration run_time;     // in ended attempts, as the launcher measured it
  Duration billed_time;  // in usage records
  Money list;
  Money net;
  Money tax;                           // charged with it
  std::optional<LeaseRecord> lease;    // the last one
  std::optional<std::int64_t> output;  // thousandths; what its attempts said they made
};

struct TaskFilter {
  std::optional<TenantId> tenant;
  std::vector<TaskState> states;  // empty: any
  std::string name;               // exactly this one; empty: any
  TaskId before;                  // only ids below it; none: from the newest
  std::int64_t limit = 100;
};

struct TransactionRecord {
  Instant at;
  Transaction transaction;
};

struct InvoiceRecord {
  Instant issued_at;
  Invoice invoice;
  // What it could take in: usage up to this record, and adjustments before this journal row.
  UsageId usage_upto{};
  std::uint64_t sequence = 0;
};

struct AdjustmentRecord {
  Instant from;
  Instant to;
  CommitmentId commitment;  // of a fee
  LeaseId lease;            // whose use it charges or gives back
  AdjustmentLine line;
  std::uint64_t sequence = 0;   // journal row that told it
  ReservationId reservation{};  // of what it did not use, or used beyond its size
  TaskId task{};                // whose it is, with its tags and group; none: nobody's
  // Where it is of no task: of its commitment or reservation, or as tokens were reported.
  std::map<std::string, std::string> tags{};
  std::string region{};  // of its lease, of its task's last one or of its reservation; may be empty
};

struct ReservationRecord {
  Reservation reservation;            // without its request and its members
  std::string devices;                // where: "n1/0 0.6, n1/1 1", with the share of each
  std::optional<ReservationEnd> end;  // none while it locks something
  std::string reason;                 // of its end, or of its last move
};

struct SpotPriceRecord {
  Instant from;
  Money price;
  MilliCe supply;
  MilliCe demand;
};

struct CreditNoteRecord {
  Instant issued_at;
  CreditNote note;
};
struct CreditNoteFilter {
  TenantId tenant{};    // none: of every tenant
  InvoiceId invoice{};  // none: of any
  CreditNoteId only{};  // just this one; none: any
};

// Who a tenant is on paper. Personal data: kept outside the journal.
struct Party {
  std::string name;
  std::string address;  // lines are separated by newlines
  std::string tax_id;

  bool empty() const { return name.empty() && address.empty() && tax_id.empty(); }
};

// ---- logs, devices, health ---------------------------------------------------------------

enum class LogStream { out, err };

struct LogPiece {
  std::string bytes;
  std::int64_t offset = 0;       // of the first byte given: above the one asked where it is gone
  std::int64_t next_offset = 0;  // offset + bytes
  bool ended = false;            // the task is over and next_offset is the end
};

// A device that was found but is not attached, and why.
struct RefusedDevice {
  std::string uuid;
  std::string name;  // as its driver calls it
  std::string type;
  Backend backend = Backend::opencl;
  std::string driver_version;
  Mebibytes memory;
  std::string note;  // with the command that helps
};

// What is measured of a live lease, as of now.
struct LeaseLive {
  std::optional<double> share_measured;  // of the device's time, lately; none before the first
  Mebibytes memory_used;
  bool advisory = false;           // no sandbox binds it
  std::string isolation_detail{};  // what keeps it apart less than it might, in words
};

struct BackupDone {
  std::int64_t bytes = 0;
  std::int64_t sequence = 0;
};

// Since the daemon started. For metrics.
struct Counters {
  std::int64_t commands = 0;  // through the loop, of any origin
  std::int64_t batches = 0;
  std::int64_t journal_failures = 0;  // appends that failed
  std::int64_t journal_bytes = 0;     // of the file and its write-ahead log
};

class Backend {
 public:
  virtual ~Backend() = default;

  // Takes a command to the loop and returns at once. `reply` is called exactly once, after the
  // durable commit, on the loop's thread, and does not block.
  virtual void post(Command command, Actor actor, RequestKey key,
                    std::function<void(const engine::Answer&)> reply) = 0;
  // Runs `look` on the loop's thread between two batches and returns when it is done. `look` is
  // short and keeps no reference.
  virtual void read(const std::function<void(const engine::State&, Instant now)>& look) = 0;

  // Newest first; at most filter.limit.
  virtual Result<std::vector<TaskRecord>> tasks(const TaskFilter& filter) = 0;
  virtual Result<std::optional<TaskRecord>> task(TaskId id) = 0;
  // Newest first; at most filter.limit.
  virtual Result<std::vector<LeaseUse>> leases(const LeaseFilter& filter) = 0;
  // What devices could give in [from, to): by device, then in order of time; nothing where they
  // were not in service.
  virtual Result<std::vector<CapacityPiece>> capacity(Instant from, Instant to) = 0;
  // Every usage record of the tenant that meets [from, to), in order of their ids.
  using EachUsage = std::function<void(const UsageRecord&, const UsageFacts&)>;
  virtual Result<void> usage(TenantId tenant, Instant from, Instant to, const EachUsage& each) = 0;
  // What was charged or given back besides, with from <= record.from < to, in order of time.
  virtual Result<std::vector<AdjustmentRecord>> adjustments(TenantId tenant, Instant from,
                                                            Instant to) = 0;
  // By id, ended ones too; of one tenant, or of all.
  virtual Result<std::vector<ReservationRecord>> reservations(std::optional<TenantId> tenant) = 0;
  // Newest first; ids below `before` where it is valid.
  virtual Result<std::vector<TransactionRecord>> transactions(TenantId tenant, TransactionId before,
                                                              std::int64_t limit) = 0;
  virtual Result<std::vector<InvoiceRecord>> invoices(std::optional<TenantId> tenant,
                                                      InvoiceId before, std::int64_t limit) = 0;
  virtual Result<std::optional<InvoiceRecord>> invoice(InvoiceId id) = 0;
  // Oldest first.
  virtual Result<std::vector<CreditNoteRecord>> credit_notes(const CreditNoteFilter& filter) = 0;
  // Newest first: at most `limit` that began before `to`, back to the one that held at `from`.
  virtual Result<std::vector<SpotPriceRecord>> spot_prices(Currency currency, Instant from,
                                                           Instant to, std::int64_t limit) = 0;
  // Of one budget, newest first.
  virtual Result<std::vector<BudgetNotice>> budget_notices(const std::string& budget,
                                                           std::int64_t limit) = 0;
  // Who the tenant was at an instant; empty where nobody said, or it was forgotten since.
  virtual Result<Party> buyer(TenantId tenant, Instant at) = 0;
  // From now on; an empty one forgets all that was known of the tenant.
  virtual Result<void> set_buyer(TenantId tenant, const Party& party, Instant now) = 0;
  // Whether the settings let notices be sent there; the error says why not.
  virtual Result<void> channel_allowed(const std::string& channel) = 0;

  // At most `bytes_max` from `offset` on. No log yet is an empty piece, no error.
  virtual Result<LogPiece> read_log(TaskId task, LogStream stream, std::int64_t offset,
                                    std::int64_t bytes_max) = 0;

  // Looks for devices anew, attaches those that are known by measurement or catalogue and returns
  // when that is durable.
  virtual Result<void> discover() = 0;
  // What the last discovery refused. Does not block.
  virtual std::vector<RefusedDevice> refused_devices() = 0;
  // What an operator should know of attached devices' figures, by UUID. Does not block.
  virtual std::map<std::string, std::string> device_notes() { return {}; }
  // Measures a device, attached or refused, by UUID, and attaches it with the factors measured.
  // `progress` is called on the calling thread.
  virtual Result<void> calibrate(
      const std::string& uuid,
      const std::function<void(double fraction, const std::string& step)>& progress) = 0;
  // Nothing where nothing is known. Does not block.
  virtual std::optional<LeaseLive> live(LeaseId lease) = 0;
  // Share of the device's time in use lately, 0–1, by device; absent where not measured. Does
  // not block.
  virtual std::map<DeviceId, double> device_busy() = 0;

  // Whether the node's policy lets a task of this tenant have this mount; the error says why not.
  // Operators may mount some folders for a tenant's task that the tenant itself may not.
  virtual Result<void> mount_allowed(const std::string& tenant, bool by_operator,
                                     const Mount& mount) = 0;

  // Writes a restorable copy while everything goes on. conflict where the path exists.
  virtual Result<BackupDone> backup(const std::string& path) = 0;
  // Reads the configuration file again; what changed, in words.
  virtual Result<std::string> reload() = 0;

  // These do not block.
  virtual bool journal_healthy() = 0;
  virtual Counters counters() = 0;
  virtual std::string version() = 0;
  virtual Instant started_at() = 0;
};

}  // namespace loam::api
