#include "billing/invoicing.hpp"

#include "base/assert.hpp"
#include "billing/apportion.hpp"

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
  std::vector<Money> exact;
  exact.reserve(lines.size());
  for (const InvoiceLine& line : lines) exact.push_back(line.net);
  const Settled settled = settle(exact, currency);
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i].payable = settled.payable[i];
  return settled.total;
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
