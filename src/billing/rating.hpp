// Rating: usage to money. A rate is one rational, milli-CE × milliseconds × price, rounded once.
// Pure and exact.
#pragma once

#include "domain/rate.hpp"

namespace loam::billing {

// What a lease is billed for: the CE bought, or what its device memory is worth at the rate
// card's CE per GiB where that is more. Rounded up to a milli-CE.
MilliCe billable_ce(MilliCe bought, Mebibytes memory, const RateCard& card);

struct Amount {
  Money list;  // before discount
  Money net;   // what is owed
};

// `ce` for `length` at `price_per_ce_hour`: list and net, each rounded once (half to even) at 12
// decimals. Requires length >= 0 and a discount of 0 … 10,000.
Amount rate(MilliCe ce, Duration length, Money price_per_ce_hour, BasisPoints discount);

// Who pays, and how, for a lease.
struct Payer {
  Currency currency;
  BasisPoints discount;
};

}  // namespace loam::billing
