#include "billing/invoicing.hpp"

#include <algorithm>
#include <iterator>

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

InvoiceLine& line_in(MonthCharges& month, const LineKey& key, Currency currency) {
  const auto [found, fresh] = month.lines.try_emplace(key);
  InvoiceLine& line = found->second;
  if (fresh) {
    line.key = key;
    line.list = line.net = line.payable = Money::zero(currency);
  }
  return line;
}

void add_to(InvoiceLine& sum, const InvoiceLine& line) {
  sum.milli_ce_ms += line.milli_ce_ms;
  sum.tasks += line.tasks;
  sum.list += line.list;
  sum.net += line.net;
}

}  // namespace

MonthCharges& OpenCharges::month(Instant end) {
  const bool late = follows_invoice && end <= from;
  return months[late ? Instant{} : end];
}

void OpenCharges::add(const AdjustmentLine& adjustment, const std::vector<Tax>& taxes, Instant at) {
  if (empty() && from == Instant{}) from = at;
  MonthCharges& of = month(adjustment.month_end);
  InvoiceLine& line = line_in(of, adjustment.key, adjustment.net.currency());
  line.milli_ce_ms += adjustment.milli_ce_ms;
  line.list += adjustment.list;
  line.net += adjustment.net;
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
  InvoiceLine& line = line_in(of, key, record.net.currency());
  if (record.tasks == 0) line.milli_ce_ms += record.billable_ce.value * record.billed.ms;
  line.tasks += record.tasks;
  line.list += record.list;
  line.net += record.net;
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

// Lines of several months under one key are one line.
void join_alike(std::vector<InvoiceLine>& lines) {
  std::stable_sort(lines.begin(), lines.end(),
                   [](const InvoiceLine& a, const InvoiceLine& b) { return a.key < b.key; });
  std::vector<InvoiceLine> joined;
  for (InvoiceLine& line : lines) {
    if (!joined.empty() && joined.back().key == line.key) {
      add_to(joined.back(), line);
    } else {
      joined.push_back(std::move(line));
    }
  }
  lines = std::move(joined);
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
  const auto end = open.months.upper_bound(period.months_to);
  for (auto at = open.months.begin(); at != end; ++at) {
    for (const auto& [key, line] : at->second.lines) {
      invoice.lines.push_back(line);
      charged += line.net;
    }
    for (const auto& [tax, base] : at->second.taxed) {
      const auto [sum, fresh] = taxed.try_emplace(tax, base);
      if (!fresh) sum->second += base;
    }
  }
  if (end != std::next(open.months.begin())) join_alike(invoice.lines);
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
