#include "billing/invoicing.hpp"

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"

namespace loam::billing {

void OpenCharges::add(const LineKey& key, const UsageRecord& record) {
  const auto [at, fresh] = lines.try_emplace(key);
  InvoiceLine& line = at->second;
  if (fresh) {
    line.key = key;
    line.list = line.net = line.payable = Money::zero(record.net.currency());
    if (lines.size() == 1 && from == Instant{}) from = record.from;
  }
  line.milli_ce_ms += record.billable_ce.value * record.length().ms;
  line.list += record.list;
  line.net += record.net;
}

Money settle(std::vector<InvoiceLine>& lines, Currency currency) {
  Money exact = Money::zero(currency);
  Money given = Money::zero(currency);
  for (InvoiceLine& line : lines) {
    exact += line.net;
    line.payable = line.net.rounded(Rounding::down);
    given += line.payable;
  }
  const Money total = exact.rounded(Rounding::half_even);
  Int128 unit = 1;
  for (int i = currency.exponent(); i < Money::decimals; ++i) unit *= 10;
  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lines[a].net - lines[a].payable > lines[b].net - lines[b].payable;
  });
  for (std::size_t i = 0; given < total; ++i) {
    LOAM_ASSERT(i < order.size());
    lines[order[i]].payable += Money(unit, currency);
    given += Money(unit, currency);
  }
  LOAM_ASSERT(given == total);
  return total;
}

Invoice close(const OpenCharges& open, InvoiceId id, TenantId tenant, Currency currency,
              Instant to) {
  LOAM_ASSERT(!open.empty());
  Invoice invoice;
  invoice.id = id;
  invoice.tenant = tenant;
  invoice.currency = currency;
  invoice.from = open.from;
  invoice.to = to;
  for (const auto& [key, line] : open.lines) invoice.lines.push_back(line);
  invoice.total = settle(invoice.lines, currency);
  return invoice;
}

}  // namespace loam::billing
