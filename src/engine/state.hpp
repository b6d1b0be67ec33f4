// State: everything the engine knows, in tables indexed for a big pool. Only evolve() changes it;
// decide() reads it. Finished tasks are not in it. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "billing/accounts.hpp"
#include "billing/budgets.hpp"
#include "billing/invoicing.hpp"
#include "billing/lease_rating.hpp"
#include "domain/event.hpp"
#include "engine/commitments.hpp"
#include "engine/months.hpp"
#include "engine/reservations.hpp"
#include "engine/run_uses.hpp"
#include "engine/spot_deadlines.hpp"
#include "schedule/pool_room.hpp"
#include "schedule/scheduler.hpp"

namespace loam::engine {

// The next id of each noun that decide() may give out.
struct NextIds {
  std::uint64_t task = 1;
  std::uint64_t lease = 1;
  std::uint64_t usage = 1;
  std::uint64_t transaction = 1;
  std::uint64_t invoice = 1;
  std::uint64_t credit_note = 1;
  std::uint64_t commitment = 1;
  std::uint64_t reservation = 1;

  friend bool operator==(const NextIds&, const NextIds&) = default;
};

// The answer remembered under an idempotency key.
struct RecordedRequest {
  std::string fingerprint;
  std::string subject;
  Instant at;
};

// What is left of an issued invoice to give back.
struct InvoiceStanding {
  InvoiceId id;
  TenantId tenant;
  Money subtotal;
  std::vector<TaxLine> taxes;
  Money credited;  // before tax
};
BOOST_DESCRIBE_STRUCT(InvoiceStanding, (), (id, tenant, subtotal, taxes, credited))

// Money that came in from outside, or went there, and can be reversed once.
struct Payment {
  TransactionId id;
  TenantId tenant;
  Money amount;  // into the wallet; below zero: out of it
  bool reversed = false;
};
BOOST_DESCRIBE_STRUCT(Payment, (), (id, tenant, amount, reversed))

// Compute in the pool, in general CE, for the price of spot.
struct Market {
  MilliCe ready;   // of devices in service
  MilliCe firm;    // held by leases that nobody interrupts
  MilliCe spot;    // held by spot leases
  MilliCe wanted;  // by tasks that wait for spot

  // What firm leases leave, and what spot holds and wants of it.
  billing::SpotMarket spot_market() const;
};

// What a tenant's leases have held of a calendar month (UTC) so far.
struct MonthUse {
  Instant until;  // the month's end
  Int128 milli_ce_ms = 0;
};

class State {
 public:
  State();

  std::uint64_t sequence = 0;  // of the last event applied
  Instant now;                 // of the last event applied

  std::vector<Node> nodes;      // by id - 1; never removed
  std::vector<Device> devices;  // by id - 1; never removed
  std::vector<Tenant> tenants;  // by id - 1; never removed
  std::map<TaskId, Task> tasks;
  std::map<LeaseId, Lease> leases;
  billing::Tables rates;
  std::map<TenantId, billing::TierCounters> tiers;  // where tiered prices stand
  billing::Accounts accounts;
  std::map<TenantId, billing::OpenCharges> open_charges;
  std::map<InvoiceId, InvoiceStanding> invoices;
  std::map<TransactionId, Payment> payments;
  billing::BudgetBook budgets;
  std::map<TenantId, CommitmentBook> commitment_books;
  std::map<ReservationId, ReservationBook> reservations;  // long after they ended, not for ever
  std::map<TaskId, SpotPlan> spot_plans;                  // of spot tasks with a deadline
  std::map<TenantId, MonthUse> month_uses;
  std::map<TenantId, RunUses> run_uses;               // of tasks that take their compute from them
  std::map<std::string, std::int64_t> token_sources;  // the last sequence of each
  std::map<Currency, TaskId> reviews;  // holds to be reviewed, from after this task on
  std::map<std::pair<std::string, std::string>, RecordedRequest> requests;  // by scope and key
  NextIds next;
  SchedulingSettings settings;
  Seller seller;  // on invoices
  // Who waits and runs, in what order, and what was learned and promised. Follows the tables above,
  // and has a memory of its own.
  schedule::Scheduler scheduler;

  // Indexes: derived from the tables above, rebuilt when a snapshot is loaded.
  std::map<std::string, NodeId, std::less<>> node_by_name;
  std::map<std::string, TenantId, std::less<>> tenant_by_name;
  // house-allow unordered: only looked up, never walked
  std::unordered_map<std::string, DeviceId> device_by_uuid;
  std::map<DeviceId, std::set<LeaseId>> leases_by_device;
  schedule::Pool pool;
  schedule::PoolKinds kinds;
  schedule::Amounts capacity;                    // of the pool in all
  std::set<std::pair<Instant, LeaseId>> timers;  // next due per started lease
  std::vector<std::uint64_t> sharing;            // by queue: those it has devices in common with
  std::set<TenantId> month_limited;              // tenants with a quota of CE-hours a month
  // Waiting tasks whose class promises a wait, by when their next step is due.
  std::set<std::pair<Instant, TaskId>> late_due;
  std::map<TaskId, Instant> late_at;
  // Waiting tasks that do not wait for ever, by when they have expired.
  std::set<std::pair<Instant, TaskId>> expiries;
  std::map<TaskId, Instant> expiry_of;
  std::set<std::pair<Instant, NodeId>> marked;      // nodes that get no leases until then
  std::set<std::pair<Instant, TaskId>> kept_hours;  // when the storage of one is charged next
  std::set<DeviceId> lost_in_use;                   // lost devices whose leases are not ended yet
  CommitmentDues commitment_dues;
  ReservationDues reservation_dues;
  SpotDues spot_dues;
  std::map<std::string, billing::Zone> zones;           // of tenants' months, by name
  std::set<std::pair<Instant, TenantId>> invoice_dues;  // of monthly tenants with open charges
  std::map<TenantId, Instant> invoice_due_of;           // likewise
  Market market;
  std::map<TaskId, MilliCe> spot_waiting;           // what each counts for in market.wanted
  std::set<std::pair<std::string, TaskId>> ending;  // by budget: running tasks that it ends
  std::set<std::pair<Instant, std::pair<std::string, std::string>>> requests_by_age;

  // Require that the thing exists.
  const Node& node(NodeId id) const { return nodes.at(id.value - 1); }
  const Device& device(DeviceId id) const { return devices.at(id.value - 1); }
  const Tenant& tenant(TenantId id) const { return tenants.at(id.value - 1); }
  const billing::PriceTable& card(RateCardId id) const { return *rates.all().at(id.value - 1); }

  // nullptr where there is none.
  const Task* find_task(TaskId id) const;
  const Lease* find_lease(LeaseId id) const;
  // By UUID, or by "node/index".
  const Device* find_device(std::string_view name) const;
  const Tenant* find_tenant(std::string_view name) const;
  // Where the tiers of a tenant's prices stand; at zero where none were reached.
  const billing::TierCounters& tiers_of(TenantId tenant) const;
};

// When the lease next needs the clock: its next metering hour or its run time limit.
// Instant::never() for one that has not started.
Instant next_due(const Lease& lease);

// When time alone brings something next: a lease's, the price of spot, a budget's request.
// Instant::never() for nothing. What is due and would change nothing at `now` does not count.
Instant next_due(const State& state, Instant now);

// Usage totals are journaled at every full hour.
inline constexpr Duration metering_interval = Duration::hours(1);
// How long after the hour, so that reports of what ended before it arrive first.
inline constexpr Duration metering_slack = Duration::minutes(1);

// Applies one fact. Requires an event that decide() gave for this very state (or its replay):
// anything else is a programmer error.
void evolve(State& state, const Record& record);

}  // namespace loam::engine
