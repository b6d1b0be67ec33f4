// Commitments: capacity bought by the month, the quarter or the year. What they cost, and what of a
// tenant's use on demand they cover. Pure and exact.
#pragma once

#include <optional>
#include <vector>

#include "billing/price_table.hpp"
#include "billing/purchase.hpp"
#include "domain/commitment.hpp"
#include "domain/rate.hpp"

namespace loam::billing {

// --- Buying
// --------------------------------------------------------------------------------------

// The hours that a period's fee is reckoned for: a year's 8760, its quarter, its twelfth.
constexpr std::int64_t hours_of_month = 730;

// A year of it in milli-CE × ms stays within 63 bits.
constexpr MilliCe committed_ce_max{100'000'000};  // 100,000 CE

// What is asked for; the rest follows from the card.
struct CommitmentOrder {
  MilliCe ce;                     // 0 where money is committed
  std::int64_t months = 1;        // of a period: 1, 3 or 12
  std::optional<Instant> from;    // its local day; nothing: today
  std::optional<Instant> until;   // the end of its local day before; nothing: after one period
  std::optional<Instant> anchor;  // whose local day of the month periods begin on; nothing: `from`
  std::optional<Money> spend;     // an hour, instead of CE
};

// The commitment with its price and every fee that it will come to, by the days of the card's zone.
// ErrorKind::invalid_argument for no CE and no money, or both, another number of months, a day
// before today, an end that is not after the start, more than ten years; ErrorKind::not_found where
// the card sells none.
Result<CommitmentTerms> commitment_on(const PriceTable& table, const CommitmentOrder& order,
                                      BasisPoints tenant_discount, Instant now);

// --- Covering
// ------------------------------------------------------------------------------------

// A record's stretch of time that may be covered.
struct CoverUse {
  Instant since;  // when the lease began: earlier ones are covered first
  LeaseId lease;
  Period period;
  MilliCe ce;
};
struct Covered {
  std::vector<Int128> milli_ce_ms;  // of each use, by its place
  Int128 unused = 0;                // of the rights, in milli-CE × ms
};
// At every instant of `period` the uses in force, by `since` and lease, take of all rights together
// until they are used up. What is covered and unused adds up to the rights. O(uses × cuts).
Covered cover(const std::vector<CoverUse>& uses, const std::vector<CapacityRight>& rights,
              const Period& period);

// Use worth so much an hour, at the price of a committed CE-hour.
struct SpendRight {
  Period period;
  Money spend;  // an hour
  Money unit_price;
};
// Of what `covered` left of the uses the rights take, in the same order, what is worth their money
// for their part of `period`: at most that, and no instant counts more than another. Adds to
// `covered`; `unused` grows by what use there was none for. O(uses · log uses + rights).
void cover_spend(const std::vector<CoverUse>& uses, const std::vector<SpendRight>& rights,
                 const Period& period, Covered& covered);

// The part of a record's price that `covered` milli-CE·ms of it come to, rounded once half to even.
// Requires a record with a length.
Money covered_part(Money net, Int128 covered, MilliCe ce, Duration length);

}  // namespace loam::billing
