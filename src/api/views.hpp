// The domain's types as the API shows them. Pure.
#pragma once

#include <functional>
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

// The share of the devices' time in which they were busy; nothing where none was measured.
std::optional<double> share_of(Duration device_time, Duration measured);
// `use` as the history has it; one that is alive is charged up to `now`.
LeaseView view_of(const engine::State& state, Instant now, const LeaseUse& use);
CapacityPieceView view_of(const CapacityPiece& piece);
DeviceView view_of(const engine::State& state, const Device& device);
DeviceView view_of(const RefusedDevice& device);
TenantView view_of(const engine::State& state, const Tenant& tenant);
RateView view_of(const RateCard& card);
CreditNoteView view_of(const CreditNoteRecord& record, const std::string& tenant);
BudgetNoticeView view_of(const BudgetNotice& notice);
// Requires a budget of that name.
BudgetView budget_view(const engine::State& state, Instant now, const std::string& name);
// `notes`: those that give back of it, and of others. `buyer`: as it was at issue.
InvoiceView view_of(const InvoiceRecord& record, const std::string& tenant, const Party& buyer,
                    const std::vector<CreditNoteRecord>& notes);
PartyView view_of(const Party& party);
LedgerEntry view_of(const TransactionRecord& record);

// "0.05" of a CE-hour, in millionths: rounded for people. Nothing for tokens.
std::string ce_hours_text(const LineKey& key, std::int64_t milli_ce_ms);
// The quantity of storage and network, likewise; empty for others.
std::string gib_text(const LineKey& key, std::int64_t quantity);
TaxLineView view_of(const TaxLine& tax);

}  // namespace loam::api
