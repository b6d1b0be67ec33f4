// Questions about the past and the present, answered from the projections. Read only.
// Not pure: reads a database.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "domain/budget.hpp"
#include "domain/event.hpp"
#include "domain/lease.hpp"
#include "domain/ledger.hpp"
#include "store/sqlite.hpp"

namespace loam::store {

struct TaskRow {
  TaskId id;
  TenantId tenant;
  std::string tenant_name;
  std::string name;
  TaskState state = TaskState::waiting;
  TaskOutcome outcome = TaskOutcome::none;
  std::optional<std::int64_t> exit_code;  // finished tasks only
  std::string reason;
  std::string project;
  std::string environment;
  std::string model;
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  Tariff tariff = Tariff::flat;
  std::string service_class;
  // As asked.
  std::optional<MilliCe> ce;
  std::optional<MilliDevice> share;
  std::optional<Mebibytes> memory;
  Duration limit;
  Instant submitted_at;
  Instant started_at = Instant::never();   // of the first attempt
  Instant finished_at = Instant::never();  // never: not finished
  std::int64_t attempts = 0;
  LeaseId lease;       // of the last attempt; none before the first
  std::string device;  // "n1/0", or several with ", ", of the last attempt
  Duration run_time;   // of ended attempts
  Duration billed_time;
  Money list;
  Money discount;
  Money net;
  Money tax;                           // as charged with it
  std::string submitted_by;            // "issuer:subject"
  std::optional<Isolation> isolation;  // as given to the last attempt; none before the first
  std::optional<std::int64_t> output;  // thousandths; what its attempts said they made
};

struct TaskFilter {
  std::optional<TenantId> tenant;
  std::vector<TaskState> states;  // empty: all
  std::string name_prefix;        // empty: all
  std::optional<Instant> since;   // submitted at or after
};
struct TaskPage {
  std::vector<TaskRow> tasks;  // newest first
  TaskId next;                 // pass as `after` for the next page; none: this was the last
};

struct SliceRow {
  DeviceId device;
  std::string name;  // "n1/0"
  std::string device_type;
  MilliDevice share;
  Mebibytes memory;
};
struct LeaseRow {
  LeaseId id;
  TaskId task;
  Epoch epoch;
  MilliCe ce;
  MilliCe billable_ce;
  Isolation isolation = Isolation::software;
  StopReason stop_reason = StopReason::none;
  Instant granted_at;
  Instant started_at = Instant::never();
  Instant stop_at = Instant::never();
  Instant ended_at = Instant::never();
  std::optional<Mebibytes> memory_peak;     // measured; ended leases only
  std::int64_t rank = 0;                    // in its gang
  TaskOutcome outcome = TaskOutcome::none;  // of the attempt; none while it lives
  std::optional<std::int64_t> exit_code;
  std::string reason;
  Instant queued_at;                   // since when its task had waited for it
  std::optional<std::int64_t> output;  // thousandths; what it said it made
  // What of its time was measured, and how long its devices were busy in that, added up. 0: nobody
  // measured.
  Duration measured;
  Duration device_time;
  std::vector<SliceRow> slices;
};
struct LeaseFilter {
  std::optional<TenantId> tenant;
  std::vector<TaskId> tasks{};  // empty: of any
  // Those that ran in [from, to), and what was measured of them in it; the default: all there are.
  Instant from{};
  Instant to = Instant::never();
};
// A lease among those of other tasks.
struct LeaseUseRow {
  LeaseRow lease;
  TenantId tenant;
  std::string task_name;
  Money net;  // of its usage records
};
// A device that could give so much (work class general) over [from, to).
struct CapacityRow {
  DeviceId device;
  std::string name;  // "n1/0"
  Instant from;
  Instant to;
  MilliCe ce;
};
struct TaskDetail {
  TaskRow task;
  TaskSpec spec;                 // as it was accepted
  std::vector<LeaseRow> leases;  // oldest first
};

// One task at one price, size and isolation.
struct BillLine {
  TaskId task;
  std::string name;
  std::string project;
  std::string environment;
  std::string model;
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  MilliCe billable_ce;
  Duration length;
  Money unit_price;  // list, per CE-hour
  Money list;
  Money discount;
  Money net;
  Isolation isolation = Isolation::software;  // as given
};
// That billed time is run time: over the task's whole life, from the attempts on one side and the
// usage records on the other. Equal for every task whose attempts have ended.
struct BilledTime {
  TaskId task;
  Duration run_time;          // sum of (ended - started) over its ended attempts
  Duration billed_time;       // sum of its usage records
  bool attempt_open = false;  // an attempt is running: the two may differ until it ends
};
struct Bill {
  TenantId tenant;
  Currency currency;
  std::vector<BillLine> lines;    // by task, then in order of time
  std::vector<BilledTime> proof;  // one for each task of the lines
  Duration length;
  Money list;
  Money discount;
  Money net;
};

struct InvoiceFilter {
  TenantId tenant;           // none: of every tenant
  InvoiceId before;          // only older ones; none: from the newest
  InvoiceId only;            // just this one; none: any
  std::int64_t limit = 100;  // 1 … 1000
};
struct InvoiceRow {
  Invoice invoice;
  Instant issued_at;
  // What it could take in: usage up to this record, and adjustments before this journal row.
  UsageId usage_upto;
  std::uint64_t sequence = 0;
};
struct CreditNoteFilter {
  TenantId tenant;    // none: of every tenant
  InvoiceId invoice;  // none: of any
  CreditNoteId only;  // just this one; none: any
};
struct CreditNoteRow {
  CreditNote note;
  Instant issued_at;
};
struct SpotPriceRow {
  Instant from;
  Money price;
  MilliCe supply;
  MilliCe demand;
};
struct BudgetNoticeRow {
  BudgetNotice notice;  // without channels
};
struct AdjustmentRow {
  Instant from;
  Instant to;
  CommitmentId commitment;
  LeaseId lease;
  ReservationId reservation;
  AdjustmentLine line;
  std::uint64_t sequence = 0;  // journal row that told it
  TaskId task;
  // Where it is of no task: of its commitment or reservation, or as tokens were reported.
  std::map<std::string, std::string> tags;
  std::string region;  // of its lease, of its task's last one or of its reservation; may be empty
};
struct ReservationRow {
  Reservation reservation;  // without its request and its members
  Instant made_at;
  std::string devices;                // where: "n1/0 0.6, n1/1 1", with the share of each
  std::optional<ReservationEnd> end;  // none while it locks something
  std::string reason;                 // of its end, or of its last move
};
struct TransactionRow {
  Transaction transaction;
  Instant at;
};

// Thread-safe: each call uses a connection of its own, kept for the next one.
class Queries {
 public:
  // Requires an open journal at `path` (SqliteJournal::path()).
  explicit Queries(std::string path);
  ~Queries();

  // At most `limit` tasks (1 … 1000) older than `after`. Cost: a page, or a scan of the tasks where
  // a filter by name or finished state finds few.
  Result<TaskPage> list_tasks(const TaskFilter& filter, TaskId after, std::int64_t limit);
  // What a page's rows leave out, in three queries for all of them: their specifications, and of
  // their leases the last one only. In the order of `rows`.
  Result<std::vector<TaskDetail>> details(const std::vector<TaskRow>& rows);
  // ErrorKind::not_found for an unknown one.
  Result<TaskDetail> task(TaskId id);
  Result<std::vector<UsageRecord>> usage(TaskId id);  // oldest first

  // Newest first, at most `limit` (1 … 1000), older than `before` (none: from the newest).
  Result<std::vector<LeaseUseRow>> leases(const LeaseFilter& filter, LeaseId before,
                                          std::int64_t limit);
  // By device, then in order of time; what was not in service is not there. Cost: a scan of all
  // changes of devices.
  Result<std::vector<CapacityRow>> capacity(Instant from, Instant to);

  // Usage that begins in [from, to). A tenant without usage has an empty bill.
  Result<Bill> bill(TenantId tenant, Instant from, Instant to);
  // Calls `each` for the tenant's usage that meets [from, to), in order of ids. A record without
  // length is where it begins. Records of more than eight days may be left out: there are none.
  using EachUsage = std::function<void(const UsageRecord&, const UsageFacts&)>;
  Result<void> usage_between(TenantId tenant, Instant from, Instant to, const EachUsage& each);
  // What was charged or given back besides, for times that begin in [from, to), in order of time.
  Result<std::vector<AdjustmentRow>> adjustments(TenantId tenant, Instant from, Instant to);
  // By id, of one tenant or (none) of all. Ended ones too.
  Result<std::vector<ReservationRow>> reservations(TenantId tenant);
  Result<std::vector<InvoiceRow>> invoices(const InvoiceFilter& filter);            // newest first
  Result<std::vector<CreditNoteRow>> credit_notes(const CreditNoteFilter& filter);  // oldest first
  // Newest first, at most `limit` (1 … 1000): prices that began before `to`, back to the one that
  // held at `from`.
  Result<std::vector<SpotPriceRow>> spot_prices(Currency currency, Instant from, Instant to,
                                                std::int64_t limit);
  // Of one budget, newest first, at most `limit` (1 … 1000).
  Result<std::vector<BudgetNoticeRow>> budget_notices(const std::string& budget,
                                                      std::int64_t limit);
  // Newest first, older than `after` (none: from the newest), at most `limit` (1 … 1000).
  Result<std::vector<TransactionRow>> transactions(TenantId tenant, TransactionId after,
                                                   std::int64_t limit);

  // Journal records after `after` of these types, oldest first. Cost: a scan of what came after.
  Result<std::vector<Record>> records(std::uint64_t after, const std::vector<std::string>& types);

 private:
  class Borrowed;
  Result<Database> connect();
  void give_back(Database database);

  std::string path_;
  std::mutex guard_;
  std::vector<Database> idle_;
};

}  // namespace loam::store
