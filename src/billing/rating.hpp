// Rating: usage to money. A rate is one rational, milli-CE × milliseconds × price, rounded once.
// Pure and exact.
#pragma once

#include <optional>
#include <vector>

#include "domain/lease.hpp"
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

// The cards of every currency by effective date; versions are only ever added.
class RateBook {
 public:
  // Requires an effective date not before those of the currency already there.
  void add(const RateCard& card);
  // The card in force at an instant; none before the first.
  const RateCard* at(Currency currency, Instant instant) const;
  // When the next card after `instant` takes effect; Instant::never() when none is known.
  Instant next_change(Currency currency, Instant instant) const;
  // The highest price from `instant` on among the cards known: what a hold must reckon with.
  const RateCard* dearest_from(Currency currency, Instant instant) const;
  const std::vector<RateCard>& cards() const { return cards_; }

 private:
  std::vector<RateCard> cards_;  // in order of publication
};

// Who pays, and how, for a lease.
struct Payer {
  Currency currency;
  BasisPoints discount;
};

// The usage records that carry a lease's billing from where it stands to `to`, one for each rate
// card in force on the way. Ids are not given; amounts are the growth of the segment's total, so
// that any cutting into records sums to the same money. Requires a started lease.
// Empty when nothing is to be billed.
std::vector<UsageRecord> rate_until(const Lease& lease, const Payer& payer, const RateBook& book,
                                    Instant to);

// The records that take a lease's billing back from where it stands to `to`, because it ended
// earlier than was known when it was rated: each begins where the last one ended and ends earlier,
// with what was billed for that time as a negative amount. The amounts left are those of a lease
// that had been rated to `to` only. Requires a started lease and `to` not before its start.
// Empty when nothing is to be taken back.
std::vector<UsageRecord> rate_back(const Lease& lease, const Payer& payer, const RateBook& book,
                                   Instant to);

// Moves the lease's rating past `record`. The only other writer of those fields is the start.
// After a record that goes back the lease can only end.
void advance(Lease& lease, const UsageRecord& record);

}  // namespace loam::billing
