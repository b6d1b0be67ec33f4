// Invoicing: open charges gathered by attribution and price, then closed into an invoice whose
// payable lines sum to its total by construction. Pure.
#pragma once

#include <map>
#include <vector>

#include "domain/ledger.hpp"
#include "domain/rate.hpp"

namespace loam::billing {

// A tenant's charges since its last invoice. Its size grows with the number of distinct
// attributions and prices, not with the number of tasks.
struct OpenCharges {
  Instant from;  // end of the last invoiced period; the tenant's first charge where there was none
  std::map<LineKey, InvoiceLine> lines;

  void add(const LineKey& key, const UsageRecord& record);
  bool empty() const { return lines.empty(); }
};

// Splits the rounded total over the lines: each is rounded down to the currency's payable unit,
// and the units left over go to the largest remainders, ties to the earlier line (largest
// remainder method). Fills `payable`; returns the total.
Money settle(std::vector<InvoiceLine>& lines, Currency currency);

// The invoice for everything open. Requires open charges.
Invoice close(const OpenCharges& open, InvoiceId id, TenantId tenant, Currency currency,
              Instant to);

}  // namespace loam::billing
