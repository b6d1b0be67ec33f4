// Quotes: what a task will cost, by the same code that bills it. Pure.
#pragma once

#include <string>

#include "billing/lease_rating.hpp"

namespace loam::billing {

struct QuoteRequest {
  Terms terms;
  MilliCe ce;  // billable, of each member
  std::int64_t members = 1;
  Instant start;
  Duration expected;  // run time
  Duration longest;   // limit and grace
};

struct PriceQuote {
  MilliCe ce;
  Money unit_price;  // list, at the start
  Money expected;    // starts then, runs as long as expected
  Money best;        // the same work at the cheapest price of the card
  Money worst;       // the longest run at the dearest price known from then on
  std::string rule;  // how it is billed, in words
};

// ErrorKind::not_found where the card sells no such thing.
// `counters`: where the tenant's tiers stand. Amounts are of all members, without tax.
Result<PriceQuote> quote(const Tables& tables, Payer payer, const QuoteRequest& request,
                         const TierCounters& counters = {});

// Whether a card sells such terms. ErrorKind::not_found with the terms; a service class that the
// card does not name is not sold either, although it would find a price.
Result<void> sold(const PriceTable& table, const Terms& terms);

}  // namespace loam::billing
