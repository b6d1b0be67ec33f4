#include "billing/invoicing.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/apportion.hpp"
#include "billing/lease_rating.hpp"

namespace loam::billing {

namespace {

void add_taxed(OpenCharges& open, Money net, const std::vector<Tax>& taxes) {
  for (const Tax& tax : taxes) {
    const Money zero = Money::zero(net.currency());
    open.taxed.try_emplace({tax.name, tax.parts_per_million}, zero).first->second += net;
  }
  const Money tax = tax_on(taxes, net);
  open.tax = open.tax.is_zero() ? tax : open.tax + tax;
}

}  // namespace

void OpenCharges::add(const AdjustmentLine& adjustment, const std::vector<Tax>& taxes, Instant at) {
  const auto [found, fresh] = lines.try_emplace(adjustment.key);
  InvoiceLine& line = found->second;
  if (fresh) {
    line.key = adjustment.key;
    line.list = line.net = line.payable = Money::zero(adjustment.net.currency());
    if (lines.size() == 1 && from == Instant{}) from = at;
  }
  line.milli_ce_ms += adjustment.milli_ce_ms;
  line.list += adjustment.list;
  line.net += adjustment.net;
  add_taxed(*this, adjustment.net, taxes);
}

void OpenCharges::add(const Attribution& who, const UsageRecord& record,
                      const std::vector<Tax>& taxes) {
  LineKey key;
  if (follows_invoice && std::max(record.from, record.to) <= from)
    key.kind = InvoiceLineKind::correction;
  if (follows_invoice && record.to < record.from && record.to < from)
    key.kind = InvoiceLineKind::correction;
  key.project = who.project;
  key.environment = who.environment;
  key.model = who.model;
  key.purchase_model = record.purchase_model;
  key.tariff = record.tariff;
  key.window = record.window;
  key.per_task = record.tasks != 0;
  key.unit_price = record.unit_price;
  const auto [at, fresh] = lines.try_emplace(key);
  InvoiceLine& line = at->second;
  if (fresh) {
    line.key = key;
    line.list = line.net = line.payable = Money::zero(record.net.currency());
    if (lines.size() == 1 && from == Instant{}) from = record.from;
  }
  if (record.tasks == 0) line.milli_ce_ms += record.billable_ce.value * record.billed.ms;
  line.tasks += record.tasks;
  line.list += record.list;
  line.net += record.net;
  add_taxed(*this, record.net, taxes);
}

Money OpenCharges::charged() const {
  LOAM_ASSERT(!empty());
  Money sum = Money::zero(lines.begin()->second.net.currency());
  for (const auto& [key, line] : lines) sum += line.net;
  return sum;
}

Money OpenCharges::tax_in(Currency currency) const {
  return tax.is_zero() ? Money::zero(currency) : tax;
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

void add_up(Invoice& invoice, const OpenCharges& open, Rounding rounding) {
  invoice.subtotal = invoice.total = settle(invoice.lines, invoice.currency, rounding);
  invoice.taxes.clear();
  for (const auto& [tax, base] : open.taxed) {
    invoice.taxes.push_back(tax_line(tax.first, tax.second, base, rounding));
    invoice.total += invoice.taxes.back().amount;
  }
}

}  // namespace

Invoice close(const OpenCharges& open, InvoiceId id, TenantId tenant, Currency currency, Instant to,
              Money spare) {
  LOAM_ASSERT(!open.empty());
  Invoice invoice;
  invoice.id = id;
  invoice.tenant = tenant;
  invoice.currency = currency;
  invoice.from = open.from;
  invoice.to = to;
  for (const auto& [key, line] : open.lines) invoice.lines.push_back(line);
  const Money charged = open.charged() + open.tax_in(currency);
  add_up(invoice, open, Rounding::half_even);
  if (invoice.total - charged > spare) add_up(invoice, open, Rounding::down);
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
