// Invoicing: open charges gathered by attribution and price, then closed into an invoice whose
// payable lines sum to its total by construction. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "domain/ledger.hpp"
#include "domain/rate.hpp"

namespace loam::billing {

// A tenant's charges since its last invoice. Its size grows with the number of distinct
// attributions and prices, not with the number of tasks.
struct OpenCharges {
  Instant from;  // end of the last invoiced period; the tenant's first charge where there was none
  bool follows_invoice = false;  // what lies before `from` was invoiced already
  std::map<LineKey, InvoiceLine> lines;
  // Σ net that each tax applies to.
  std::map<std::pair<std::string, std::int64_t>, Money> taxed;

  // What was used or taken back before `from` is a correction.
  void add(const Attribution& who, const UsageRecord& record, const std::vector<Tax>& taxes);
  // What belongs to `at` and is charged or given back besides usage.
  void add(const AdjustmentLine& line, const std::vector<Tax>& taxes, Instant at);
  bool empty() const { return lines.empty(); }
};

// Splits the rounded total over the lines: each is rounded down to the currency's payable unit,
// and the units left over go to the largest remainders, ties to the earlier line (largest
// remainder method). Fills `payable`; returns the total.
Money settle(std::vector<InvoiceLine>& lines, Currency currency);

// A tax's share of `base`, rounded once half to even to the payable unit, as is the base before.
TaxLine tax_line(const std::string& name, std::int64_t parts_per_million, Money base);

// The invoice for everything open. Requires open charges.
Invoice close(const OpenCharges& open, InvoiceId id, TenantId tenant, Currency currency,
              Instant to);

}  // namespace loam::billing
