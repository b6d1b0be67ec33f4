#include "api/views.hpp"

#include <algorithm>
#include <boost/describe/enum_to_string.hpp>
#include <cmath>

#include "billing/accounts.hpp"
#include "billing/lease_rating.hpp"
#include "engine/moves.hpp"
#include "engine/oversubscription.hpp"

namespace loam::api {
namespace {

template <class Enum>
std::string word(Enum value) {
  return boost::describe::enum_to_string(value, "?");
}

double fraction(MilliDevice share) {
  return static_cast<double>(share.value) / 1000.0;
}

double rounded_share(double share) {
  constexpr double places = 1e4;
  return static_cast<double>(static_cast<std::int64_t>(share * places + 0.5)) / places;
}

std::optional<std::string> time_text(const std::optional<Instant>& instant) {
  return instant ? std::optional(to_text(*instant)) : std::nullopt;
}

std::string device_names(const engine::State& state, const std::vector<Slice>& slices) {
  std::string names;
  for (const Slice& slice : slices) {
    if (!slice.device.valid() || slice.device.value > state.devices.size()) continue;
    const Device& device = state.device(slice.device);
    names += (names.empty() ? "" : ",") + device_name(state.node(device.node), device);
  }
  return names;
}

// A word for people on why a running attempt was asked to stop.
std::string stop_words(const engine::State& state, const Lease& lease) {
  switch (lease.stopping) {
    case StopReason::none:
      return {};
    case StopReason::by_tenant:
      return "stopping on request";
    case StopReason::paused:
      return "stopping to pause";
    case StopReason::limit:
      return "its time is up";
    case StopReason::device_lost:
      return "its device was lost";
    case StopReason::funds:
      return "the wallet does not cover it any more";
    case StopReason::preempted:
      return "preempted by a task that goes first";
    case StopReason::gang:
      return "another member of its gang ended";
    case StopReason::budget:
      return "its budget is used up";
    case StopReason::segment:
      return "a segment of it is done; it goes on from its checkpoint";
    case StopReason::resold:
      return "it goes on from its checkpoint, bought by another purchase model";
    case StopReason::moved:
      return engine::move_words(state, lease.task);
  }
  return {};
}

void put_lease(const engine::State& state, const LeaseRecord& lease, TaskView& view) {
  view.device = device_names(state, lease.slices);
  view.isolation = lease.isolation;
  view.ce = to_text(lease.ce);
  view.billable_ce = to_text(lease.billable_ce);
  MilliDevice share;
  Mebibytes memory;
  for (const Slice& slice : lease.slices) {
    share += slice.share;
    memory += slice.memory;
  }
  view.share = fraction(share);
  view.memory_mib = memory.value;
  if (!lease.slices.empty() && lease.slices.front().device.valid() &&
      lease.slices.front().device.value <= state.devices.size()) {
    view.device_type = state.device(lease.slices.front().device).facts->type;
  }
  view.share_measured = share_of(lease.device_time, lease.measured);
}

void put_live(const engine::State& state, Instant now, const Task& task, const TaskRecord& record,
              const LiveLookup& live, TaskViewOptions options, TaskView& view) {
  view.state = word(task.state);
  view.held = amount_text(task.held);
  view.backed_up_mib = task.backed_up.value;
  const engine::LiveCost cost = engine::live_cost(state, std::max(now, state.now), task);
  view.run_ms = cost.run_time.ms;
  view.cost = amount_text(cost.net);
  // What runs since the last record is taxed as the card in force says.
  Money tax = record.tax;
  if (const auto* card = state.rates.at(cost.net.currency(), std::max(now, state.now)))
    tax += billing::tax_on(card->terms(), cost.net - record.net);
  view.cost_with_tax = amount_text(cost.net + tax);
  if (task.state == TaskState::waiting && options.why_it_waits)
    view.reason =
        (options.reasons == nullptr ? engine::why_waits(state, task) : options.reasons->of(task))
            .words;
  if (const Instant end = engine::expires_at(state, task.id); end != Instant::never())
    view.expires_at = to_text(end);
  if (task.leases.empty()) return;
  LeaseRecord now_held;  // of all members together
  std::optional<double> share;
  bool advisory = false;
  for (const LeaseId id : task.leases) {
    const Lease& lease = state.leases.at(id);
    now_held.isolation = word(lease.isolation);
    now_held.slices.insert(now_held.slices.end(), lease.slices.begin(), lease.slices.end());
    view.promise = engine::promise_words(lease.slices.front());  // the others' are alike
    now_held.ce += lease.ce;
    now_held.billable_ce += lease.billable_ce;
    if (task.state == TaskState::stopping && lease.stopping != StopReason::none)
      view.reason = stop_words(state, lease);
    if (lease.started() && !view.started_at) view.started_at = to_text(lease.started_at);
    const auto measured = live ? live(id) : std::nullopt;
    if (!measured) continue;
    if (view.isolation_note.empty()) view.isolation_note = measured->isolation_detail;
    if (measured->share_measured && std::isfinite(*measured->share_measured))
      share = share.value_or(0) + *measured->share_measured;
    advisory |= measured->advisory;
  }
  put_lease(state, now_held, view);
  view.share_measured.reset();
  if (share) view.share_measured = rounded_share(*share);
  if (advisory) view.isolation = "advisory";
}

}  // namespace

std::string tenant_name(const engine::State& state, TenantId id) {
  if (!id.valid() || id.value > state.tenants.size()) return {};
  return state.tenant(id).spec.name;
}

QuoteView view_of(const engine::Quote& quote, const std::string& tenant) {
  QuoteView view;
  view.tenant = tenant;
  view.device = quote.device;
  view.device_type = quote.device_type;
  view.devices = quote.devices;
  view.share = fraction(quote.share);
  view.memory_mib = quote.memory.value;
  view.ce = to_text(quote.ce);
  view.billable_ce = to_text(quote.billable_ce);
  view.ce_per_gibibyte = to_text(quote.ce_per_gibibyte);
  view.currency = std::string(quote.unit_price.currency().code());
  view.unit_price = amount_text(quote.unit_price);
  view.discount_percent = decimal_text(quote.discount.value, 2);
  view.per_task = quote.per_task;
  view.per_hour = amount_text(quote.per_hour);
  view.expected = amount_text(quote.expected);
  view.best = amount_text(quote.best);
  view.worst = amount_text(quote.worst);
  view.tax_percent = decimal_text(quote.tax_parts_per_million, 4);
  const auto with_tax = [&](Money net) {
    constexpr std::int64_t whole_ppm = 1'000'000;
    return amount_text(
        net + net.times_ratio(quote.tax_parts_per_million, whole_ppm, Rounding::half_even));
  };
  view.expected_with_tax = with_tax(quote.expected);
  view.best_with_tax = with_tax(quote.best);
  view.worst_with_tax = with_tax(quote.worst);
  view.rule = quote.rule;
  view.expected_ms = quote.expected_time.ms;
  view.at_most = amount_text(quote.at_most);
  view.limit_ms = quote.limit.ms;
  view.starts_now = quote.starts_now;
  view.waits_for = quote.waits_for;
  if (quote.room_by) view.room_by = to_text(Instant{(quote.room_by->ms + 999) / 1000 * 1000});
  if (quote.turns_at) view.turns_at = to_text(Instant{(quote.turns_at->ms + 999) / 1000 * 1000});
  view.purchase_model = word(quote.purchase_model);
  view.tariff = word(quote.tariff);
  view.service_class = quote.service_class;
  view.isolation = word(quote.isolation);
  view.takes = quote.takes;
  view.promise = quote.promise;
  return view;
}

bool is_current(const engine::State& state, const TaskRecord& record) {
  return record.state == TaskState::finished || state.find_task(record.id) != nullptr;
}

TaskView view_of(const engine::State& state, Instant now, const TaskRecord& record,
                 const LiveLookup& live, TaskViewOptions options) {
  TaskView view;
  const TaskSpec& spec = record.spec;
  view.id = record.id.text();
  view.name = spec.name;
  view.tenant = tenant_name(state, record.tenant);
  view.state = word(record.state);
  view.outcome = word(record.outcome);
  view.exit_code = record.exit_code;
  view.reason = record.reason;
  view.command = spec.command;
  view.project = spec.attribution.project;
  view.environment = spec.attribution.environment;
  view.model = spec.attribution.model;
  view.model_version = spec.attribution.model_version;
  view.role = word(spec.role);
  view.group = spec.group;
  view.tags = spec.attribution.tags;
  if (spec.request.ce) view.ce = to_text(*spec.request.ce);
  if (spec.auto_ce && spec.request.ce)
    view.takes = engine::words_of(*spec.auto_ce, *spec.request.ce);
  if (spec.request.share) view.share = fraction(*spec.request.share);
  if (spec.request.memory) view.memory_mib = spec.request.memory->value;
  view.submitted_at = to_text(record.submitted_at);
  view.started_at = time_text(record.started_at);
  view.finished_at = time_text(record.finished_at);
  view.limit_ms = spec.limit.ms;
  view.backups = spec.backups;
  view.run_ms = record.run_time.ms;
  view.billed_ms = record.billed_time.ms;
  view.attempts = record.attempts;
  view.currency = std::string(record.net.currency().code());
  view.cost = amount_text(record.net);
  view.cost_with_tax = amount_text(record.net + record.tax);
  view.held = "0";
  view.purchase_model = word(spec.purchase_model);
  view.tariff = word(spec.tariff);
  if (spec.reservation.valid() && spec.purchase_model == PurchaseModel::reservation)
    view.reservation = spec.reservation.text();
  if (record.output) view.output = decimal_text(*record.output, 3);
  if (record.lease) put_lease(state, *record.lease, view);
  if (record.state == TaskState::finished) return view;
  if (const Task* task = state.find_task(record.id))
    put_live(state, now, *task, record, live, options, view);
  return view;
}

std::optional<double> share_of(Duration device_time, Duration measured) {
  if (measured.ms <= 0) return std::nullopt;
  return rounded_share(static_cast<double>(device_time.ms) / static_cast<double>(measured.ms));
}

LeaseView view_of(const engine::State& state, Instant now, const LeaseUse& use) {
  const LeaseRecord& lease = use.lease;
  LeaseView view;
  view.id = lease.id.text();
  view.task = use.task.text();
  view.name = use.name;
  view.tenant = tenant_name(state, use.tenant);
  MilliDevice share;
  for (const Slice& slice : lease.slices) {
    share += slice.share;
    view.slices.push_back(
        {device_names(state, {slice}), fraction(slice.share), slice.memory.value});
  }
  view.share = fraction(share);
  view.share_measured = share_of(lease.device_time, lease.measured);
  view.ce = to_text(lease.ce);
  view.billable_ce = to_text(lease.billable_ce);
  view.isolation = lease.isolation;
  view.queued_at = to_text(use.queued_at);
  view.granted_at = to_text(use.granted_at);
  view.started_at = time_text(lease.started_at);
  view.ended_at = time_text(lease.ended_at);
  if (lease.started_at)
    view.run_ms = std::max<std::int64_t>(0, (lease.ended_at.value_or(now) - *lease.started_at).ms);
  view.outcome = word(use.outcome);
  view.stop_reason = word(use.stop_reason);
  view.currency = std::string(use.net.currency().code());
  Money net = use.net;
  if (const Lease* alive = state.find_lease(lease.id)) net += engine::unrated(state, now, *alive);
  view.cost = amount_text(net);
  if (use.output) view.output = decimal_text(*use.output, 3);
  return view;
}

CapacityPieceView view_of(const CapacityPiece& piece) {
  return {piece.device, to_text(piece.from), to_text(piece.to), to_text(piece.ce)};
}

DeviceView view_of(const engine::State& state, const Device& device) {
  DeviceView view;
  const DeviceFacts& facts = *device.facts;
  view.id = device.id.text();
  view.name = device_name(state.node(device.node), device);
  view.uuid = facts.uuid;
  view.type = facts.type;
  view.backend = word(facts.backend);
  view.driver_version = facts.driver_version;
  view.state = device.health == DeviceHealth::lost ? "lost"
               : device.draining                   ? "draining"
                                                   : "ready";
  view.memory_mib = facts.memory.value;
  view.memory_used_mib = device.memory_used.value;
  view.used = fraction(device.used);
  view.promised = fraction(device.promised());
  view.memory_promised_mib = device.memory_promised().value;
  view.leases = device.leases;
  view.ce = to_text(facts.factors.general);
  view.ce_train = to_text(facts.factors.train);
  view.ce_prefill = to_text(facts.factors.prefill);
  view.ce_decode = to_text(facts.factors.decode);
  view.factors_source = facts.factors_source;
  view.link_group = facts.link_group;
  view.numa_node = facts.numa_node;
  if (const Node& node = state.node(device.node); node.marked())
    view.note = "its node fails to start tasks and is tried again at " + to_text(node.marked_until);
  return view;
}

DeviceView view_of(const RefusedDevice& device) {
  DeviceView view;
  view.name = device.name;
  view.uuid = device.uuid;
  view.type = device.type;
  view.backend = word(device.backend);
  view.driver_version = device.driver_version;
  view.state = "refused";
  view.note = device.note;
  view.memory_mib = device.memory.value;
  return view;
}

TenantView view_of(const engine::State& state, const Tenant& tenant) {
  TenantView view;
  const TenantSpec& spec = tenant.spec;
  view.id = tenant.id.text();
  view.name = spec.name;
  view.payment = word(spec.payment);
  view.currency = std::string(spec.currency.code());
  view.wallet = amount_text(state.accounts.balance(billing::wallet_of(tenant.id, spec.currency)));
  view.held = amount_text(state.accounts.balance(billing::held_of(tenant.id, spec.currency)));
  view.available = amount_text(engine::available(state, tenant.id));
  view.credit_limit = amount_text(spec.credit_limit);
  view.discount_percent = decimal_text(spec.discount.value, 2);
  if (spec.quota.ce) view.quota_ce = to_text(*spec.quota.ce);
  if (spec.quota.memory) view.quota_memory = to_text(*spec.quota.memory);
  view.quota_tasks = spec.quota.tasks;
  view.quota_queued = spec.quota.queued;
  if (spec.quota.devices) view.quota_devices = decimal_text(spec.quota.devices->value, 3);
  if (spec.quota.longest) view.quota_longest = to_text(*spec.quota.longest);
  if (spec.quota.ce_hours_month) view.quota_ce_hours = decimal_text(*spec.quota.ce_hours_month, 3);
  if (!spec.quota.cohort.empty()) view.cohort = spec.quota.cohort;
  if (spec.quota.borrow) view.borrow_percent = decimal_text(spec.quota.borrow->value, 2);
  if (spec.quota.lend) view.lend_percent = decimal_text(spec.quota.lend->value, 2);
  view.ce_used = to_text(tenant.ce_used);
  view.tasks_running = tenant.tasks_running;
  view.tasks_waiting = tenant.tasks_waiting;
  view.billing_zone = tenant.spec.billing_zone;
  view.invoicing = word(tenant.spec.invoicing);
  return view;
}

RateView view_of(const RateCard& card) {
  return {card.id.text(),
          std::string(card.currency.code()),
          amount_text(card.on_demand),
          to_text(card.ce_per_gibibyte),
          to_text(card.effective_from),
          card.terms};
}

CreditNoteView view_of(const CreditNoteRecord& record, const std::string& tenant) {
  const CreditNote& note = record.note;
  CreditNoteView view{note.id.text(),
                      note.invoice.text(),
                      tenant,
                      note.tenant.text(),
                      std::string(note.currency.code()),
                      to_text(record.issued_at),
                      amount_text(note.net),
                      amount_text(note.total - note.net),
                      amount_text(note.total),
                      note.reason,
                      {}};
  for (const TaxLine& tax : note.taxes) view.taxes.push_back(view_of(tax));
  return view;
}

BudgetNoticeView view_of(const BudgetNotice& notice) {
  return {to_text(notice.at), word(notice.kind), amount_text(notice.spent),
          amount_text(notice.limit), notice.words};
}

BudgetView budget_view(const engine::State& state, Instant now, const std::string& name) {
  const Budget& budget = state.budgets.budget(name);
  const auto standing = state.budgets.standing(name, now);
  const auto share = [](BasisPoints of) { return decimal_text(of.value, 2); };
  BudgetView view;
  view.name = name;
  view.tenant = tenant_name(state, budget.scope.tenant);
  view.project = budget.scope.project;
  view.environment = budget.scope.environment;
  view.model = budget.scope.model;
  view.currency = std::string(budget.monthly.currency().code());
  view.monthly = amount_text(budget.monthly);
  view.zone = budget.zone;
  view.remind_percent = share(budget.remind_at);
  view.limit_percent = share(budget.limit_at);
  view.approve_percent = share(budget.approve_at);
  view.running = word(budget.running);
  view.approval_wait = to_text(budget.approval_wait);
  view.channels = budget.channels;
  view.spent = amount_text(standing.spent);
  view.reserved = amount_text(standing.reserved);
  view.available = amount_text(standing.available);
  view.limit = amount_text(standing.limit);
  view.request_open = standing.request_open;
  if (const auto approval = state.budgets.approval(name)) {
    view.approved_by = approval->by;
    view.approved_until = to_text(approval->until);
  }
  return view;
}

// milli-CE ms to millionths of a CE-hour: / 1000 / 3,600,000 * 1,000,000, half away from zero.
std::string ce_hours_text(const LineKey& key, std::int64_t milli_ce_ms) {
  if (counts_tokens(key.kind) || counts_service(key.kind)) milli_ce_ms = 0;
  return decimal_text(milli_ce_ms / 3600 + (milli_ce_ms % 3600) / 1800, 6);
}

// In millionths, half away from zero; nothing below zero is ever held or moved.
std::string gib_text(const LineKey& key, std::int64_t quantity) {
  if (!counts_service(key.kind)) return {};
  const Int128 one = counts_held(key.kind) ? Int128{1024} * 3'600'000  // MiB × ms
                                           : Int128{1} << 30;          // bytes
  const Int128 millionths = (static_cast<Int128>(quantity) * 1'000'000 + one / 2) / one;
  return decimal_text(static_cast<std::int64_t>(millionths), 6);
}

TaxLineView view_of(const TaxLine& tax) {
  return {tax.name, decimal_text(tax.parts_per_million, 4), amount_text(tax.base),
          amount_text(tax.amount)};
}

PartyView view_of(const Party& party) {
  return {party.name, party.address, party.tax_id};
}

InvoiceView view_of(const InvoiceRecord& record, const std::string& tenant, const Party& buyer,
                    const std::vector<CreditNoteRecord>& notes) {
  const Invoice& invoice = record.invoice;
  InvoiceView view;
  view.id = invoice.id.text();
  view.tenant = tenant;
  view.tenant_id = invoice.tenant.text();
  view.currency = std::string(invoice.currency.code());
  view.from = to_text(invoice.from);
  view.to = to_text(invoice.to);
  view.issued_at = to_text(record.issued_at);
  for (const InvoiceLine& line : invoice.lines) {
    view.lines.push_back({word(line.key.kind), line.key.project, line.key.environment,
                          line.key.model, line.key.model_version, word(line.key.purchase_model),
                          word(line.key.tariff), line.key.window, amount_text(line.key.unit_price),
                          ce_hours_text(line.key, line.milli_ce_ms), line.tasks,
                          counts_tokens(line.key.kind) ? line.milli_ce_ms : 0,
                          gib_text(line.key, line.milli_ce_ms), amount_text(line.list),
                          amount_text(line.net), amount_text(line.payable)});
  }
  view.subtotal = amount_text(invoice.subtotal);
  for (const TaxLine& tax : invoice.taxes) view.taxes.push_back(view_of(tax));
  view.total = amount_text(invoice.total);
  view.rounding = amount_text(invoice.rounding);
  Money credited = Money::zero(invoice.currency);
  for (const CreditNoteRecord& note : notes) {
    if (note.note.invoice == invoice.id) credited += note.note.total;
  }
  view.credited = amount_text(credited);
  view.seller = {invoice.seller.name, invoice.seller.address, invoice.seller.tax_id};
  view.buyer = view_of(buyer);
  view.terms = invoice.seller.terms;
  if (invoice.due) view.due = amount_text(*invoice.due);
  view.due_at = time_text(invoice.due_at);
  return view;
}

LedgerEntry view_of(const TransactionRecord& record) {
  const Transaction& transaction = record.transaction;
  LedgerEntry entry;
  entry.id = transaction.id.text();
  entry.at = to_text(record.at);
  entry.kind = word(transaction.kind);
  if (transaction.task.valid()) entry.task = transaction.task.text();
  if (transaction.reverses.valid()) entry.reverses = transaction.reverses.text();
  entry.note = transaction.note;
  for (const Posting& posting : transaction.postings)
    entry.postings.push_back({word(posting.account.kind), amount_text(posting.amount)});
  return entry;
}

}  // namespace loam::api
