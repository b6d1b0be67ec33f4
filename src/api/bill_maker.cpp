#include "api/bill_maker.hpp"

#include <algorithm>
#include <boost/describe/enum_to_string.hpp>
#include <tuple>
#include <utility>

#include "api/views.hpp"
#include "billing/record_parts.hpp"

namespace loam::api {
namespace {

template <class Enum>
std::string word(Enum value) {
  return boost::describe::enum_to_string(value, "?");
}

// Of a time within `whole` what lies in a part of it; taken back with a record that is.
Duration part_of(Duration time, const UsageRecord& part, const UsageRecord& whole) {
  if (whole.length().ms == 0) return {};
  const std::int64_t sign = whole.length().ms < 0 ? -1 : 1;
  return Duration{sign * static_cast<std::int64_t>(static_cast<Int128>(time.ms) * part.length().ms /
                                                   whole.length().ms)};
}

}  // namespace

void InvoiceFinder::add(const InvoiceRecord& record) {
  const Invoice& invoice = record.invoice;
  spans_[invoice.id] = {invoice.to, invoice.months_to, record.usage_upto, record.sequence};
}

template <class Takes>
Invoiced InvoiceFinder::first(Instant month_end, const Takes& takes) const {
  Invoiced on;
  for (const auto& [id, span] : spans_) {
    if (month_end <= span.months_to && takes(span)) {
      on.invoice = id;
      break;
    }
    // Old records do not tell their month.
    on.correction = on.correction || (month_end != Instant{} && month_end <= span.to);
  }
  return on;
}

Invoiced InvoiceFinder::of(const UsageRecord& record) const {
  return first(record.month_end, [&](const Span& span) { return !(span.usage_upto < record.id); });
}

Invoiced InvoiceFinder::of(const AdjustmentRecord& record) const {
  return first(record.line.month_end,
               [&](const Span& span) { return record.sequence < span.sequence; });
}

bool BillMaker::Price::operator<(const Price& other) const {
  const auto key = [](const Price& p) {
    return std::tuple(p.billable_ce, p.unit_price.units(), p.discount, p.purchase_model, p.tariff,
                      p.isolation, p.on);
  };
  const auto mine = key(*this), theirs = key(other);
  return mine == theirs ? std::tie(window, region) < std::tie(other.window, other.region)
                        : mine < theirs;
}

BillMaker::BillMaker(std::string tenant, Currency currency, std::string billing_zone,
                     std::string seller, billing::Period period, const CardTaxes& taxes)
    : tenant_(std::move(tenant)),
      currency_(currency),
      billing_zone_(std::move(billing_zone)),
      seller_(std::move(seller)),
      period_(period),
      card_taxes_(taxes),
      adjusted_(Money::zero(currency)) {}

void BillMaker::tax(const Tax& by, Money base, Money amount) {
  const Money zero = Money::zero(currency_);
  Taxed& sum = taxes_.try_emplace({by.name, by.parts_per_million}, Taxed{zero, zero}).first->second;
  sum.base += base;
  sum.amount += amount;
}

// As it was charged: the rates of a card together, rounded once; each tax is what the sum grew by
// with it, so that they add up to it.
void BillMaker::tax(RateCardId card, Money net) {
  constexpr std::int64_t whole_ppm = 1'000'000;
  const auto found = card_taxes_.find(card);
  if (found == card_taxes_.end()) return;
  std::int64_t rates = 0;
  Money before = Money::zero(currency_);
  for (const Tax& each : found->second) {
    rates += each.parts_per_million;
    const Money until = net.times_ratio(rates, whole_ppm, Rounding::half_even);
    tax(each, net, until - before);
    before = until;
  }
}

void BillMaker::add(const UsageRecord& whole, const UsageFacts& facts, const Invoiced& on) {
  const auto part = billing::part_in(whole, period_);
  if (!part) return;
  const UsageRecord& record = *part;
  const Instant begin = std::min(record.from, record.to), end = std::max(record.from, record.to);
  first_ = std::min(first_, begin);
  TaskLines& task = tasks_[record.task];
  task.length += record.length();
  if (const auto told = billing::discount_of(whole.list, whole.net)) task.discount = *told;
  const Money zero = Money::zero(currency_);
  Line& line = task.lines
                   .try_emplace(Price{record.billable_ce, record.unit_price, task.discount,
                                      record.purchase_model, record.tariff, record.window,
                                      facts.isolation, facts.region, on},
                                Line{Instant::never(), {}, {}, {}, 0, zero, zero, {}, {}})
                   .first->second;
  line.first = std::min(line.first, begin);
  line.last = std::max(line.last, end);
  line.length += record.length();
  line.units += record.billed;
  line.tasks += record.tasks;
  line.list += record.list;
  line.net += record.net;
  line.measured += part_of(facts.measured, record, whole);
  line.device_time += part_of(facts.device_time, record, whole);
  tax(record.card, record.net);
}

void BillMaker::add(const AdjustmentRecord& whole, const Invoiced& on) {
  const billing::Period span{whole.from, whole.to};
  const auto part = billing::part_in(whole.line, span, period_);
  if (!part) return;
  AdjustmentRecord record = whole;
  record.line = *part;
  if (record.line.milli_ce_ms != whole.line.milli_ce_ms || record.line.net != whole.line.net) {
    record.from = std::max(whole.from, period_.from);
    record.to = std::min(whole.to, period_.to);
  }
  first_ = std::min(first_, record.from);
  adjusted_ += record.line.net;
  tax(record.line.card, record.line.net);
  // What comes in many small pieces is added up by its price.
  if (!counts_tokens(record.line.key.kind) && !counts_service(record.line.key.kind)) {
    adjustments_.push_back({record.from, record.task, view_of(record, on)});
    return;
  }
  record.lease = {};
  const auto [found, fresh] =
      summed_.try_emplace({on, record.line.key, record.task, record.region, record.tags}, record);
  if (fresh) return;
  AdjustmentRecord& sum = found->second;
  sum.from = std::min(sum.from, record.from);
  sum.to = std::max(sum.to, record.to);
  sum.line.milli_ce_ms += record.line.milli_ce_ms;
  sum.line.list += record.line.list;
  sum.line.net += record.line.net;
}

void BillMaker::add(const InvoiceRecord& record) {
  if (!period_.contains(record.issued_at)) return;
  const Invoice& invoice = record.invoice;
  BilledInvoice view;
  view.id = invoice.id.text();
  view.from = to_text(invoice.from);
  view.to = to_text(invoice.to);
  view.issued_at = to_text(record.issued_at);
  Money net = Money::zero(currency_);
  for (const InvoiceLine& line : invoice.lines) net += line.net;
  view.net = amount_text(net);
  view.subtotal = amount_text(invoice.subtotal);
  for (const TaxLine& line : invoice.taxes) view.taxes.push_back(api::view_of(line));
  view.total = amount_text(invoice.total);
  invoices_.push_back(std::move(view));
  if (!invoice.rounding.is_zero())
    adjust("rounding", record.issued_at, invoice.rounding, invoice.id);
}

AdjustmentView& BillMaker::adjust(const char* kind, Instant at, Money net, InvoiceId invoice) {
  first_ = std::min(first_, at);
  adjusted_ += net;
  AdjustmentView view;
  view.kind = kind;
  view.from = view.to = to_text(at);
  view.unit_price = view.ce_hours = "0";
  view.list = view.net = amount_text(net);
  view.invoice = invoice.text();
  return adjustments_.emplace_back(Adjusted{at, {}, std::move(view)}).view;
}

void BillMaker::add(const CreditNoteRecord& record) {
  if (!period_.contains(record.issued_at)) return;
  const CreditNote& note = record.note;
  for (const TaxLine& line : note.taxes)
    tax({line.name, line.parts_per_million}, -note.net, -line.amount);
  adjust("credit_note", record.issued_at, -note.net, note.invoice).note = note.id.text();
  credit_notes_.push_back(api::view_of(record, tenant_));
}

AdjustmentView BillMaker::view_of(const AdjustmentRecord& record, const Invoiced& on) {
  const LineKey& key = record.line.key;
  AdjustmentView view;
  view.kind = word(key.kind);
  view.from = to_text(record.from);
  view.to = to_text(record.to);
  if (record.commitment.valid()) view.commitment = record.commitment.text();
  if (record.lease.valid()) view.lease = record.lease.text();
  if (record.reservation.valid()) view.reservation = record.reservation.text();
  if (record.task.valid()) view.task = record.task.text();
  view.tags = record.tags;
  view.project = key.project;
  view.environment = key.environment;
  view.model = key.model;
  view.model_version = key.model_version;
  view.purchase_model = word(key.purchase_model);
  view.tariff = word(key.tariff);
  view.window = key.window;
  view.region = record.region;
  view.correction = on.correction;
  view.unit_price = amount_text(key.unit_price);
  view.ce_hours = ce_hours_text(key, record.line.milli_ce_ms);
  view.tokens = counts_tokens(key.kind) ? record.line.milli_ce_ms : 0;
  view.gib = gib_text(key, record.line.milli_ce_ms);
  view.list = amount_text(record.line.list);
  view.net = amount_text(record.line.net);
  if (on.invoice.valid()) view.invoice = on.invoice.text();
  return view;
}

bool BillMaker::empty() const {
  return tasks_.empty() && adjustments_.empty() && summed_.empty() && invoices_.empty();
}

std::set<TaskId> BillMaker::tasks() const {
  std::set<TaskId> ids;
  for (const auto& [id, lines] : tasks_) ids.insert(id);
  for (const Adjusted& each : adjustments_) ids.insert(each.task);
  for (const auto& [key, sum] : summed_) ids.insert(sum.task);
  ids.erase(TaskId{});
  return ids;
}

void BillMaker::describe(const TaskRecord& task) {
  described_[task.id] = task;
}

const TaskRecord* BillMaker::described(TaskId id) const {
  const auto found = described_.find(id);
  return found == described_.end() ? nullptr : &found->second;
}

std::vector<AdjustmentView> BillMaker::adjustment_views() const {
  auto all = adjustments_;
  for (const auto& [key, sum] : summed_)
    all.push_back({sum.from, sum.task, view_of(sum, std::get<Invoiced>(key))});
  std::stable_sort(all.begin(), all.end(),
                   [](const Adjusted& a, const Adjusted& b) { return a.at < b.at; });
  std::vector<AdjustmentView> views;
  for (Adjusted& each : all) {
    if (const TaskRecord* task = described(each.task)) {
      each.view.name = task->spec.name;
      each.view.group = task->spec.group;
      each.view.tags = task->spec.attribution.tags;
    }
    views.push_back(std::move(each.view));
  }
  return views;
}

BillLine BillMaker::line_of(const Price& price, const Line& sum) {
  BillLine line;
  line.ce = to_text(price.billable_ce);
  line.used_from = to_text(sum.first);
  line.used_to = to_text(sum.last);
  line.unit_price = amount_text(price.unit_price);
  line.discount_percent = decimal_text(price.discount.value, 2);
  line.purchase_model = word(price.purchase_model);
  line.tariff = word(price.tariff);
  line.window = price.window;
  line.isolation = word(price.isolation);
  line.region = price.region;
  line.correction = price.on.correction;
  if (price.on.invoice.valid()) line.invoice = price.on.invoice.text();
  line.billed_ms = sum.length.ms;
  line.units_ms = sum.units.ms;
  line.tasks = sum.tasks;
  line.list = amount_text(sum.list);
  line.discount = amount_text(sum.list - sum.net);
  line.net = amount_text(sum.net);
  line.share_measured = share_of(sum.device_time, sum.measured);
  return line;
}

void BillMaker::describe(BillLine& line, const TaskRecord& record) {
  line.name = record.spec.name;
  line.project = record.spec.attribution.project;
  line.environment = record.spec.attribution.environment;
  line.model = record.spec.attribution.model;
  line.model_version = record.spec.attribution.model_version;
  line.group = record.spec.group;
  line.tags = record.spec.attribution.tags;
  if (record.spec.reservation.valid() && line.purchase_model == word(PurchaseModel::reservation))
    line.reservation = record.spec.reservation.text();
  line.state = word(record.state);
  line.outcome = word(record.outcome);
}

BillView BillMaker::view(std::optional<Instant> from, Instant to) const {
  BillView view;
  view.tenant = tenant_;
  view.currency = std::string(currency_.code());
  view.billing_zone = billing_zone_;
  view.seller = seller_;
  view.from = to_text(from ? *from : std::min(first_, to));
  view.to = to_text(to);
  Money list = Money::zero(currency_);
  Money net = Money::zero(currency_);
  bool equal = true;
  for (const auto& [id, task] : tasks_) {
    // In order of time.
    std::vector<std::pair<const Price*, const Line*>> lines;
    for (const auto& [price, sum] : task.lines) lines.emplace_back(&price, &sum);
    std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
      return a.second->first < b.second->first;
    });
    // Only a finished task whose every second is on this bill can be compared.
    const TaskRecord* record = described(id);
    if (record != nullptr && record->state == TaskState::finished &&
        record->billed_time == task.length) {
      ++view.whole_tasks;
      equal = equal && record->run_time == task.length;
    }
    bool first = true;
    for (const auto& [price, sum] : lines) {
      BillLine line = line_of(*price, *sum);
      line.task = id.text();
      if (record != nullptr) describe(line, *record);
      // A task's run time is on its first line.
      if (record != nullptr && std::exchange(first, false)) line.run_ms = record->run_time.ms;
      list += sum->list;
      net += sum->net;
      view.run_ms += line.run_ms;
      view.billed_ms += line.billed_ms;
      view.lines.push_back(std::move(line));
    }
  }
  view.list = amount_text(list);
  view.discount = amount_text(list - net);
  view.adjustments = adjustment_views();
  Money total = net + adjusted_;
  view.total = amount_text(total);
  for (const auto& [by, sum] : taxes_) {
    view.taxes.push_back(api::view_of(TaxLine{by.first, by.second, sum.base, sum.amount}));
    total += sum.amount;
  }
  view.total_with_tax = amount_text(total);
  view.billed_equals_run = equal && view.whole_tasks > 0;
  view.invoices = invoices_;
  view.credit_notes = credit_notes_;
  return view;
}

}  // namespace loam::api
