#include "engine/service_books.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "billing/attribution.hpp"
#include "billing/rater.hpp"
#include "billing/usage.hpp"
#include "engine/adjustment_books.hpp"

namespace loam::engine {
namespace {

constexpr Duration kept_hour = Duration::hours(1);       // as the usage of runs is cut
constexpr std::int64_t sum_max = std::int64_t{1} << 60;  // of one attempt: beyond any machine

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
  usage.backup_mib_ms = event.use.backup_mib_ms;
  usage.network_bytes = event.use.received_bytes + event.use.sent_bytes;
  usage.who = task.spec->attribution;
  return usage;
}

InvoiceLineKind kind_of(billing::Meter meter) {
  switch (meter) {
    case billing::Meter::storage:
      return InvoiceLineKind::storage;
    case billing::Meter::backup:
      return InvoiceLineKind::backup;
    case billing::Meter::network:
      return InvoiceLineKind::network;
    case billing::Meter::compute:
      break;
  }
  return InvoiceLineKind::usage;
}

AdjustmentLine line_of(const State& state, const billing::Charge& charge, const Task& task) {
  AdjustmentLine line;
  line.key = billing::key_of(task.spec->attribution);
  line.key.kind = kind_of(charge.meter);
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

// Whether some of it is more than what is known already.
bool exceeds(const ServiceUse& told, const ServiceUse& known) {
  return told.storage_mib_ms > known.storage_mib_ms || told.received_bytes > known.received_bytes ||
         told.sent_bytes > known.sent_bytes;
}

// What a running attempt was reported to have used up to `to`, by the rules of every usage record;
// and a time that was told of before has no other figures.
std::optional<Reject> fault_of(const Lease& lease, const ReportServices& asked, Instant to) {
  if (auto fault = fault_in_counts(asked.services, asked.device_time.value_or(Duration{})))
    return fault;
  billing::Usage usage;
  usage.id = lease.id.text() + "/e" + std::to_string(lease.epoch.value);
  usage.from = usage.run_from = lease.started_at;
  usage.to = to;
  usage.memory = asked.services.kept;
  usage.storage_mib_ms = asked.services.use.storage_mib_ms;
  usage.network_bytes = asked.services.use.received_bytes + asked.services.use.sent_bytes;
  if (const auto good = billing::check(usage); !good) {
    return Reject{RejectCode::invalid_argument, good.error().message, good.error().next_step};
  }
  const bool told = lease.services_until != Instant::never() && to <= lease.services_until;
  if (told && exceeds(asked.services.use, lease.services)) {
    return Reject{RejectCode::duplicate_report,
                  "what " + lease.id.text() + " used up to " + to_text(to) +
                      " overlaps what was reported up to " + to_text(lease.services_until),
                  "report all that was counted, up to a later time"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Reject> fault_in_counts(const ServiceReport& report, Duration device_time) {
  for (const std::int64_t sum :
       {report.use.storage_mib_ms, report.use.received_bytes, report.use.sent_bytes,
        report.kept.value, report.backed_up.value, device_time.ms}) {
    if (sum >= 0 && sum <= sum_max) continue;
    return Reject{RejectCode::invalid_argument, std::to_string(sum) + " is out of range",
                  "report what was counted, 0 or more"};
  }
  return std::nullopt;
}

namespace {

std::int64_t held(Mebibytes size, Instant from, Instant to) {
  return from < to ? size.value * (to - from).ms : 0;
}

}  // namespace

void settle_services(Draft& draft, const Lease& lease, Instant started_at,
                     const ServiceReport& report, std::optional<Duration> device_time, Instant to) {
  const Task& task = draft.state().tasks.at(lease.task);
  const bool counted = report != ServiceReport{};
  if (!counted && !device_time && task.backed_up.value == 0) return;
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
  // One checkpoint of the whole gang.
  event.kept = counted && lease.rank == 0 ? report.kept : task.kept;
  event.backed_up = counted && lease.rank == 0 ? report.backed_up : task.backed_up;
  if (lease.rank == 0) event.use.backup_mib_ms = held(event.backed_up, event.from, event.to);
  event.device_time = device_time;
  const bool nothing = event.use.empty() && event.kept == task.kept &&
                       event.backed_up == task.backed_up && !device_time;
  if (event.to <= event.from || nothing) return;
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
  event.use.storage_mib_ms = held(task.kept, event.from, event.to);
  event.use.backup_mib_ms = held(task.backed_up, event.from, event.to);
  event.kept = task.kept;
  event.backed_up = task.backed_up;
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
  if (!lease->started()) {
    return Draft::rejected({RejectCode::wrong_state,
                            "the lease " + lease->id.text() + " has not started",
                            "report what it uses once it runs"});
  }
  const Instant to = std::min(asked.at, now);
  if (auto reject = fault_of(*lease, asked, to)) return Draft::rejected(std::move(*reject));
  Draft draft(state, now);
  draft.subject(lease->task.text());
  settle_services(draft, *lease, lease->started_at, asked.services, asked.device_time, to);
  return draft.done();
}

void apply_to_books(State& state, const ServicesUsed& event, Instant at) {
  Task& task = state.tasks.at(event.task);
  if (event.lease.valid()) {
    Lease& lease = state.leases.at(event.lease);
    lease.services.storage_mib_ms += event.use.storage_mib_ms;
    lease.services.received_bytes += event.use.received_bytes;
    lease.services.sent_bytes += event.use.sent_bytes;
    lease.services.backup_mib_ms += event.use.backup_mib_ms;
    lease.services_until = event.to;
    task.kept = event.kept;
    task.backed_up = event.backed_up;
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
  if ((task.kept + task.backed_up).value == 0 || task.kept_from != Instant::never()) return;
  task.kept_from = at;
  state.kept_hours.insert({end_of_hour(at), task.id});
}

void end_keeping(State& state, Task& task) {
  if (task.kept_from == Instant::never()) return;
  state.kept_hours.erase({end_of_hour(task.kept_from), task.id});
  task.kept_from = Instant::never();
}

}  // namespace loam::engine
