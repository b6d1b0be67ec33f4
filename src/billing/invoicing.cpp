#include "billing/invoicing.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/apportion.hpp"
#include "billing/attribution.hpp"
#include "billing/lease_rating.hpp"

namespace loam::billing {

namespace {

void add_taxed(MonthCharges& open, Money net, const std::vector<Tax>& taxes) {
  for (const Tax& tax : taxes) {
    const Money zero = Money::zero(net.currency());
    open.taxed.try_emplace({tax.name, tax.parts_per_million}, zero).first->second += net;
  }
  const Money tax = tax_on(taxes, net);
  open.tax = open.tax.is_zero() ? tax : open.tax + tax;
}

void add_to(MonthCharges& month, const LineKey& key, const OpenLine& sum) {
  const auto [found, fresh] = month.lines.try_emplace(key, sum);
  if (!fresh) found->second += sum;
}

}  // namespace

OpenLine& OpenLine::operator+=(const OpenLine& other) {
  milli_ce_ms += other.milli_ce_ms;
  tasks += other.tasks;
  list += other.list;
  net += other.net;
  return *this;
}

MonthCharges& OpenCharges::month(Instant end) {
  const bool late = follows_invoice && end <= from;
  return months[late ? Instant{} : end];
}

void OpenCharges::add(const AdjustmentLine& adjustment, const std::vector<Tax>& taxes, Instant at) {
  if (empty() && from == Instant{}) from = at;
  MonthCharges& of = month(adjustment.month_end);
  add_to(of, adjustment.key, {adjustment.milli_ce_ms, 0, adjustment.list, adjustment.net});
  add_taxed(of, adjustment.net, taxes);
}

void OpenCharges::add(const Attribution& who, const UsageRecord& record,
                      const std::vector<Tax>& taxes) {
  LineKey key = key_of(who);
  if (follows_invoice && std::max(record.from, record.to) <= from)
    key.kind = InvoiceLineKind::correction;
  if (follows_invoice && record.to < record.from && record.to < from)
    key.kind = InvoiceLineKind::correction;
  key.purchase_model = record.purchase_model;
  key.tariff = record.tariff;
  key.window = record.window;
  key.per_task = record.tasks != 0;
  key.unit_price = record.unit_price;
  if (empty() && from == Instant{}) from = record.from;
  MonthCharges& of = month(record.month_end);
  const std::int64_t quantity = record.tasks == 0 ? record.billable_ce.value * record.billed.ms : 0;
  add_to(of, key, {quantity, record.tasks, record.list, record.net});
  add_taxed(of, record.net, taxes);
}

bool OpenCharges::empty_to(Instant months_to) const {
  return months.empty() || months.begin()->first > months_to;
}

Money OpenCharges::tax_to(Instant months_to, Currency currency) const {
  Money sum = Money::zero(currency);
  for (auto at = months.begin(); at != months.end() && at->first <= months_to; ++at) {
    if (!at->second.tax.is_zero()) sum += at->second.tax;
  }
  return sum;
}

void OpenCharges::take(Instant months_to, Instant to) {
  months.erase(months.begin(), months.upper_bound(months_to));
  from = to;
  follows_invoice = true;
}

TaxLine tax_line(const std::string& name, std::int64_t parts_per_million, Money base,
                 Rounding rounding) {
  constexpr std::int64_t whole_ppm = 1'000'000;
  const Money payable = base.rounded(rounding);
  const Int128 unit = payable_unit(base.currency());
  // In one step to the payable unit: rounded once.
  const Int128 units = Money(payable.units() / unit, base.currency())
                           .times_ratio(parts_per_million, whole_ppm, rounding)
                           .units();
  return {name, parts_per_million, payable, Money(units * unit, base.currency())};
}

Money settle(std::vector<InvoiceLine>& lines, Currency currency, Rounding rounding) {
  std::vector<Money> exact;
  exact.reserve(lines.size());
  for (const InvoiceLine& line : lines) exact.push_back(line.net);
  const Settled settled = settle(exact, currency, rounding);
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i].payable = settled.payable[i];
  return settled.total;
}

namespace {

using Taxed = std::map<std::pair<std::string, std::int64_t>, Money>;

void add_up(Invoice& invoice, const Taxed& taxed, Rounding rounding) {
  invoice.subtotal = invoice.total = settle(invoice.lines, invoice.currency, rounding);
  invoice.taxes.clear();
  for (const auto& [tax, base] : taxed) {
    invoice.taxes.push_back(tax_line(tax.first, tax.second, base, rounding));
    invoice.total += invoice.taxes.back().amount;
  }
}

using Lines = std::map<LineKey, OpenLine>;

// One line a key, in the order of keys; lines of several months under one key are one line.
std::vector<InvoiceLine> lines_of(const std::vector<const Lines*>& months) {
  Lines joined;
  for (std::size_t i = 1; i < months.size(); ++i) {
    if (i == 1) joined = *months.front();
    for (const auto& [key, sum] : *months[i]) {
      const auto [found, fresh] = joined.try_emplace(key, sum);
      if (!fresh) found->second += sum;
    }
  }
  const Lines& all = months.size() == 1 ? *months.front() : joined;
  std::vector<InvoiceLine> lines;
  lines.reserve(all.size());
  for (const auto& [key, sum] : all)
    lines.push_back({key, sum.milli_ce_ms, sum.tasks, sum.list, sum.net, {}});
  return lines;
}

}  // namespace

Invoice close(const OpenCharges& open, InvoiceId id, TenantId tenant, Currency currency,
              InvoicePeriod period, Money spare) {
  LOAM_ASSERT(!open.empty_to(period.months_to));
  Invoice invoice;
  invoice.id = id;
  invoice.tenant = tenant;
  invoice.currency = currency;
  invoice.from = open.from;
  invoice.to = period.to;
  invoice.months_to = period.months_to;
  Taxed taxed;
  Money charged = open.tax_to(period.months_to, currency);
  std::vector<const Lines*> months;
  const auto end = open.months.upper_bound(period.months_to);
  for (auto at = open.months.begin(); at != end; ++at) {
    months.push_back(&at->second.lines);
    for (const auto& [key, sum] : at->second.lines) charged += sum.net;
    for (const auto& [tax, base] : at->second.taxed) {
      const auto [sum, fresh] = taxed.try_emplace(tax, base);
      if (!fresh) sum->second += base;
    }
  }
  invoice.lines = lines_of(months);
  add_up(invoice, taxed, Rounding::half_even);
  if (invoice.total - charged > spare) add_up(invoice, taxed, Rounding::down);
  // Taxes were taken record by record, rounded at the last decimal: they may be that much less.
  if (invoice.total - charged > spare && !invoice.taxes.empty()) {
    const Money unit(payable_unit(currency), currency);
    invoice.taxes.back().amount -= unit;
    invoice.total -= unit;
  }
  invoice.rounding = invoice.total - charged;
  return invoice;
}

}  // namespace loam::billing
