#include "engine/service_books.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "billing/attribution.hpp"
#include "billing/rater.hpp"
#include "engine/adjustment_books.hpp"

namespace loam::engine {
namespace {

constexpr Duration kept_hour = Duration::hours(1);       // as the usage of runs is cut
constexpr std::int64_t sum_max = std::int64_t{1} << 60;  // of one attempt: beyond any machine

Reject bad(std::string message) {
  return {RejectCode::invalid_argument, std::move(message), "report what was counted, 0 or more"};
}

std::optional<Reject> fault_of(const ServiceReport& report) {
  for (const std::int64_t sum : {report.use.storage_mib_ms, report.use.received_bytes,
                                 report.use.sent_bytes, report.kept.value}) {
    if (sum < 0 || sum > sum_max) return bad(std::to_string(sum) + " is out of range");
  }
  return std::nullopt;
}

// The usage of a task's services as the rater takes it.
billing::Usage usage_of(const ServicesUsed& event, const Task& task) {
  billing::Usage usage;
  usage.id = "services";
  usage.lease = event.lease;
  usage.task = event.task;
  usage.tenant = event.tenant;
  usage.from = usage.run_from = event.from;
  usage.to = event.to;
  usage.storage_mib_ms = event.use.storage_mib_ms;
  usage.network_bytes = event.use.received_bytes + event.use.sent_bytes;
  usage.who = task.spec->attribution;
  return usage;
}

AdjustmentLine line_of(const State& state, const billing::Charge& charge, const Task& task) {
  AdjustmentLine line;
  const bool storage = charge.meter == billing::Meter::storage;
  line.key = billing::key_of(task.spec->attribution);
  line.key.kind = storage ? InvoiceLineKind::storage : InvoiceLineKind::network;
  line.key.unit_price = charge.unit_price;
  line.card = charge.card;
  line.milli_ce_ms = static_cast<std::int64_t>(charge.quantity);
  line.list = charge.list;
  line.net = charge.net;
  line.month_end = month_end(state, task.tenant, charge.from);
  return line;
}

// Where nothing is sold it is recorded all the same.
void record(Draft& draft, const Task& task, ServicesUsed event) {
  const State& state = draft.state();
  const Tenant& tenant = state.tenant(task.tenant);
  std::vector<billing::Charge> charges;
  const billing::Rater rater(state.rates, payer_of(tenant));
  if (state.rates.at(tenant.spec.currency, event.from) != nullptr)
    LOAM_ASSERT(rater.rate_services(usage_of(event, task), charges).ok());
  for (const billing::Charge& charge : charges) event.lines.push_back(line_of(state, charge, task));
  const LineSum sum = sum_of(state, event.lines, tenant.spec.currency);
  draft.add(std::move(event));
  if (sum.whole().is_zero()) return;
  Transaction charge =
      billing::charge(TransactionId{draft.next().transaction++}, task.tenant, task.id, sum.net,
                      sum.tax, Money::zero(tenant.spec.currency));
  charge.note = "storage and network";
  draft.add(TransactionPosted{std::move(charge)});
}

Instant end_of_hour(Instant at) {
  return Instant{(at.ms / kept_hour.ms + 1) * kept_hour.ms};
}

}  // namespace

void settle_services(Draft& draft, const Lease& lease, Instant started_at,
                     const ServiceReport& report, Instant to) {
  const Task& task = draft.state().tasks.at(lease.task);
  if (report == ServiceReport{}) return;  // nobody counted
  const ServiceUse& known = lease.services;
  ServicesUsed event;
  event.tenant = lease.tenant;
  event.task = lease.task;
  event.lease = lease.id;
  event.from = lease.services_until == Instant::never() ? started_at : lease.services_until;
  event.to = to;
  event.use = {std::max<std::int64_t>(0, report.use.storage_mib_ms - known.storage_mib_ms),
               std::max<std::int64_t>(0, report.use.received_bytes - known.received_bytes),
               std::max<std::int64_t>(0, report.use.sent_bytes - known.sent_bytes)};
  event.kept = lease.rank == 0 ? report.kept : task.kept;  // one checkpoint of the whole gang
  if (event.to <= event.from || (event.use.empty() && event.kept == task.kept)) return;
  record(draft, task, std::move(event));
}

namespace {

void settle_kept(Draft& draft, const Task& task, Instant to) {
  if (task.kept_from == Instant::never() || to <= task.kept_from) return;
  ServicesUsed event;
  event.tenant = task.tenant;
  event.task = task.id;
  event.from = task.kept_from;
  event.to = to;
  event.use.storage_mib_ms = task.kept.value * (event.to - event.from).ms;
  event.kept = task.kept;
  record(draft, task, std::move(event));
}

}  // namespace

void settle_kept(Draft& draft, const Task& task) {
  settle_kept(draft, task, draft.now());
}

bool settle_kept_hours(Draft& draft) {
  const State& state = draft.state();
  if (state.kept_hours.empty() || state.kept_hours.begin()->first > draft.now()) return false;
  const auto& [due, id] = *state.kept_hours.begin();
  settle_kept(draft, state.tasks.at(id), due);
  return true;
}

Instant kept_due(const State& state) {
  return state.kept_hours.empty() ? Instant::never() : state.kept_hours.begin()->first;
}

Decision decide_on(const State& state, Instant now, const ReportServices& asked) {
  const Lease* lease = state.find_lease(asked.lease);
  if (lease == nullptr || lease->epoch != asked.epoch) {
    return Draft::rejected(
        {RejectCode::stale_epoch, "the lease " + asked.lease.text() + " is over", {}});
  }
  if (auto reject = fault_of(asked.services)) return Draft::rejected(std::move(*reject));
  Draft draft(state, now);
  draft.subject(lease->task.text());
  if (lease->started())
    settle_services(draft, *lease, lease->started_at, asked.services, std::min(asked.at, now));
  return draft.done();
}

void apply_to_books(State& state, const ServicesUsed& event, Instant at) {
  Task& task = state.tasks.at(event.task);
  if (event.lease.valid()) {
    Lease& lease = state.leases.at(event.lease);
    lease.services.storage_mib_ms += event.use.storage_mib_ms;
    lease.services.received_bytes += event.use.received_bytes;
    lease.services.sent_bytes += event.use.sent_bytes;
    lease.services_until = event.to;
    task.kept = event.kept;
  } else {
    end_keeping(state, task);
    begin_keeping(state, task, event.to);
  }
  for (const AdjustmentLine& line : event.lines) {
    add_open(state, event.tenant, line, event.from);
    count_in_budgets(state, event.tenant, line, at);
  }
}

void begin_keeping(State& state, Task& task, Instant at) {
  if (task.kept.value == 0 || task.kept_from != Instant::never()) return;
  task.kept_from = at;
  state.kept_hours.insert({end_of_hour(at), task.id});
}

void end_keeping(State& state, Task& task) {
  if (task.kept_from == Instant::never()) return;
  state.kept_hours.erase({end_of_hour(task.kept_from), task.id});
  task.kept_from = Instant::never();
}

}  // namespace loam::engine
