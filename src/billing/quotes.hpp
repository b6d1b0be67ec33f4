// Quotes: what a task will cost, by the same code that bills it. Pure.
#pragma once

#include <string>

#include "billing/purchase.hpp"
#include "billing/rater.hpp"

namespace loam::billing {

struct QuoteRequest {
  Terms terms;
  MilliCe ce;  // billable
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

// ErrorKind::not_found where the card sells no such thing. For spot: `spot` is the price now.
Result<PriceQuote> quote(const Tables& tables, Payer payer, const QuoteRequest& request,
                         std::optional<Money> spot = std::nullopt);

}  // namespace loam::billing
