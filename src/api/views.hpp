// The domain's types as the API shows them. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "api/backend.hpp"
#include "api/money_types.hpp"
#include "api/types.hpp"
#include "engine/queries.hpp"
#include "engine/state.hpp"

namespace loam::api {

std::string tenant_name(const engine::State& state, TenantId id);  // empty where there is none

QuoteView view_of(const engine::Quote& quote, const std::string& tenant);

// What is known of a live lease, by its id.
using LiveLookup = std::function<std::optional<LeaseLive>(LeaseId)>;
struct TaskViewOptions {
  bool why_it_waits = true;                // costs a look at the queue
  engine::WaitReasons* reasons = nullptr;  // of the same state, where several are shown
};
// `record` as the history has it, with what the state knows better of a live task.
TaskView view_of(const engine::State& state, Instant now, const TaskRecord& record,
                 const LiveLookup& live, TaskViewOptions options = {});
// Whether history and state tell the same story: false where the task finished in between.
bool is_current(const engine::State& state, const TaskRecord& record);

DeviceView view_of(const engine::State& state, const Device& device);
DeviceView view_of(const RefusedDevice& device);
TenantView view_of(const engine::State& state, const Tenant& tenant);
RateView view_of(const RateCard& card);
CreditNoteView view_of(const CreditNoteRecord& record);
BudgetNoticeView view_of(const BudgetNotice& notice);
// Requires a budget of that name.
BudgetView budget_view(const engine::State& state, Instant now, const std::string& name);
InvoiceView view_of(const InvoiceRecord& record, const std::string& tenant);
LedgerEntry view_of(const TransactionRecord& record);

// A bill from usage records, one line for each task and price.
class BillMaker {
 public:
  BillMaker(std::string tenant, Currency currency);

  void add(const UsageRecord& record);
  void add(const AdjustmentRecord& record);
  // Ids of the tasks billed, for which describe() is called before view().
  std::vector<TaskId> tasks() const;
  void describe(const TaskRecord& task);
  // `from` none: the beginning of the first usage.
  BillView view(std::optional<Instant> from, Instant to) const;

 private:
  static AdjustmentView view_of(const AdjustmentRecord& record);
  struct Line {
    Duration length;
    Duration units;  // in the units begun that the card bills by
    std::int64_t tasks = 0;
    Money list;
    Money net;
  };
  struct Price {
    MilliCe billable_ce;
    Money unit_price;
    PurchaseModel purchase_model;
    Tariff tariff;
    std::string window;
    bool operator<(const Price& other) const;
  };
  struct TaskLines {
    std::map<Price, Line> lines;
    std::optional<TaskRecord> record;
    Duration length;
  };

  std::string tenant_;
  Currency currency_;
  Instant first_ = Instant::never();
  std::map<TaskId, TaskLines> tasks_;
  std::vector<AdjustmentView> adjustments_;
  std::map<LineKey, AdjustmentRecord> tokens_;  // added up: gateways report often
  Money adjusted_;
};

}  // namespace loam::api
