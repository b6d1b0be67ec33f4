// Story: what the events of a run say, in the words of scenarios: what was decided, what was used,
// what was invoiced. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "domain/event.hpp"
#include "engine/queries.hpp"
#include "sim/scenario_text.hpp"

namespace loam::sim {

struct Happening {
  Instant at;               // true time
  std::vector<Word> words;  // as an `expect` would say it
  bool aside = false;       // may be expected, but `quiet` does not mind it
  bool matched = false;
};

// "finish j1 failed" and "fail j1 failed" are the same, and so are "finish j1 succeeded" and
// "finish j1".
std::vector<Word> canonical(std::vector<Word> words);

class Story {
 public:
  explicit Story(Instant start) : start_(start) {}

  void hear(const Record& record, Instant true_time);
  void add(Instant at, std::vector<Word> words, bool aside);
  void quoted(Instant at, const std::string& tenant, const engine::QuoteAnswer& answer);

  std::vector<Happening>& happenings() { return happenings_; }
  // The latest task of that name; an id of 0 where there is none.
  TaskId task_named(const std::string& name) const;
  // The last lease of a task, with its epoch.
  struct LastLease {
    LeaseId lease;
    Epoch epoch;
  };
  LastLease last_lease(TaskId task) const;
  std::string name_of(TaskId task) const;
  // An id of 0 where there is none.
  TenantId tenant_named(const std::string& name) const;

  // The lines of the blocks.
  std::vector<Line> bill_of(TenantId tenant) const;
  std::vector<Line> ledger_of(TenantId tenant) const;
  std::vector<Line> issued_to(TenantId tenant) const;  // the last invoice
  InvoiceId last_invoice(TenantId tenant) const;       // none before the first
  TransactionId last_payment(TenantId tenant) const;   // likewise; into the wallet or out of it

 private:
  std::string device_named(DeviceId device) const;
  std::string devices_of(const std::vector<PromisedMember>& members) const;
  const std::string& tenant_name(TenantId tenant) const;
  // Most events are no news.
  template <class Other>
  void tell(const Other&, Instant) {}
  void tell(const LeaseGranted& event, Instant at);
  void tell(const AttemptStarted& event, Instant at);
  void tell(const StopRequested& event, Instant at);
  void tell(const TaskPromised& event, Instant at);
  void tell(const NodeMarked& event, Instant at);
  void tell(const PromiseDropped& event, Instant at);
  void tell(const MoveBegun& event, Instant at);
  void tell(const TaskRequeued& event, Instant at);
  void tell(const TaskPaused& event, Instant at);
  void tell(const TaskLate& event, Instant at);
  void tell(const DeadlineNoticed& event, Instant at);
  void tell(const TaskFinished& event, Instant at);
  void tell(const SpotPriceMoved& event, Instant at);
  void tell(const BudgetNoticed& event, Instant at);
  void tell(const CreditNoteIssued& event, Instant at);
  void tell(const InvoiceIssued& event, Instant at);
  void tell(const CommitmentBought& event, Instant at);
  void tell(const CommitmentCharged& event, Instant at);
  void tell(const CommitmentEnded& event, Instant at);
  void tell(const ReservationMade& event, Instant at);
  void tell(const ReservationMoved& event, Instant at);
  void tell(const ReservationCharged& event, Instant at);
  void tell(const ReservationEnded& event, Instant at);
  void tell(const ServicesUsed& event, Instant at);
  void tell(const UseCovered& event, Instant at);
  void tell(const ShortfallCredited& event, Instant at);
  void tell(const LostWorkCredited& event, Instant at);
  void tell(const TransactionPosted& event, Instant at);

  Instant start_;
  std::vector<Happening> happenings_;
  std::vector<std::string> nodes_;
  std::vector<std::string> devices_;
  std::vector<TenantSpec> tenants_;
  std::map<std::string, TaskId> task_ids_;
  std::map<TaskId, std::string> task_names_;
  std::map<TaskId, LastLease> leases_;
  std::map<LeaseId, TaskId> tasks_;
  std::map<LeaseId, Instant> granted_;
  std::vector<UsageRecord> usage_;
  std::vector<std::pair<TenantId, AdjustmentLine>> adjustments_;
  std::map<TenantId, Invoice> invoices_;
  std::map<TenantId, TransactionId> payments_;
  std::map<Account, Money> balances_;
};

// Plain words, and attributes.
Word plain(std::string text);
Word attribute(std::string key, std::string text);

}  // namespace loam::sim
