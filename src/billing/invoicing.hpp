// Invoicing: open charges gathered by attribution and price, then closed into an invoice whose
// payable lines sum to its total by construction. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "domain/ledger.hpp"
#include "domain/rate.hpp"

namespace loam::billing {

// What one line of an invoice to come adds up so far.
struct OpenLine {
  std::int64_t milli_ce_ms = 0;  // as in InvoiceLine
  std::int64_t tasks = 0;
  Money list;
  Money net;

  OpenLine& operator+=(const OpenLine& other);
};

// What was charged of one month.
struct MonthCharges {
  std::map<LineKey, OpenLine> lines;
  // Σ net that each tax applies to.
  std::map<std::pair<std::string, std::int64_t>, Money> taxed;
  Money tax;  // taken so far, each charge's rounded at the last decimal; zero: of any currency
};

// A tenant's charges since its last invoice. Its size grows with the number of distinct
// attributions, prices and months, not with the number of tasks.
struct OpenCharges {
  Instant from;  // end of the last invoiced period; the tenant's first charge where there was none
  bool follows_invoice = false;  // what lies before `from` was invoiced already
  // By the month's end. Under 1970: what is told of months that were invoiced, and what nobody told
  // the month of; it is on the next invoice, whichever that is. None is without lines.
  std::map<Instant, MonthCharges> months;

  // What was used or taken back before `from` is a correction.
  void add(const Attribution& who, const UsageRecord& record, const std::vector<Tax>& taxes);
  // What belongs to `at` and is charged or given back besides usage.
  void add(const AdjustmentLine& line, const std::vector<Tax>& taxes, Instant at);
  bool empty() const { return months.empty(); }
  // Of the months that end by then.
  bool empty_to(Instant months_to) const;
  Money tax_to(Instant months_to, Currency currency) const;
  // They were invoiced, in an invoice over what was before `to`.
  void take(Instant months_to, Instant to);

 private:
  MonthCharges& month(Instant end);
};

// Splits the rounded total over the lines: each is rounded down to the currency's payable unit,
// and the units left over go to the largest remainders, ties to the earlier line (largest
// remainder method). Fills `payable`; returns the total.
Money settle(std::vector<InvoiceLine>& lines, Currency currency,
             Rounding rounding = Rounding::half_even);

// A tax's share of `base`, rounded once to the payable unit, as is the base before.
TaxLine tax_line(const std::string& name, std::int64_t parts_per_million, Money base,
                 Rounding rounding = Rounding::half_even);

// Which open charges an invoice takes in, and the end of the time that it is over.
struct InvoicePeriod {
  Instant to;
  Instant months_to;  // of months that end by then
};

// The invoice for what is open of that period. Requires that there is something. Where its rounded
// total would take more than `spare` beyond what was charged, it is rounded down: an invoice never
// overdraws a wallet.
Invoice close(const OpenCharges& open, InvoiceId id, TenantId tenant, Currency currency,
              InvoicePeriod period, Money spare);

}  // namespace loam::billing
