// Leases to usage records: what the engine bills as time goes on, back where an end was told late,
// and what an interruption gives back. All of it by the rater. Pure and exact.
#pragma once

#include <vector>

#include "billing/rater.hpp"
#include "domain/lease.hpp"

namespace loam::billing {

// By what a lease is priced: its task's terms, and what it was given.
Terms terms_of(const TaskSpec& spec, PurchaseModel model, Isolation given);
Terms terms_of(const TaskSpec& spec, const Lease& lease);

// The usage records that carry a lease's billing from where it stands to `to`, one for each price
// on the way. Ids are not given; amounts are the growth of the lease's exact sum, so that any
// cutting into records comes to the same money. Empty when nothing is to be billed. Requires a
// started lease whose terms some card has sold.
std::vector<UsageRecord> rate_until(const Lease& lease, const Terms& terms, const Payer& payer,
                                    const Tables& tables, const TierCounters& counters, Instant to);

// The records that take a lease's billing back from where it stands to `to`, because it ended
// earlier than was known when it was rated: each begins where the last one ended and ends earlier,
// with what was billed for that time as a negative amount. Requires the same, and `to` not before
// the lease's start. Empty when nothing is to be taken back.
std::vector<UsageRecord> rate_back(const Lease& lease, const Terms& terms, const Payer& payer,
                                   const Tables& tables, const TierCounters& counters, Instant to);

// The record without length that gives back what was billed of an interrupted lease, all of it;
// nothing where the rule bills what ran. Requires that it was rated to its end.
std::vector<UsageRecord> give_back_interrupted(const Lease& lease, const Terms& terms,
                                               const Payer& payer, const Tables& tables);

// Counts a record in the tiers of its price, where that has some.
void count(TierCounters& tiers, const UsageRecord& record);

// Moves the lease's rating past `record`. The only other writer of those fields is the start.
void advance(Lease& lease, const UsageRecord& record);

// Net cost of holding `ce` for at most `longest`, at the dearest price known from `from` on: what a
// hold must reckon with. Without tax. Requires terms that a card in force sells.
Money dearest_cost(const Tables& tables, const Payer& payer, const Terms& terms, MilliCe ce,
                   Instant from, Duration longest);
// The same for what is still to be billed of a started lease that runs until `stop` at the latest.
Money dearest_rest(const Tables& tables, const Payer& payer, const Terms& terms, const Lease& lease,
                   Instant stop);

// All taxes of a card together, in parts per million, and what they are of an amount (rounded once
// at 12 decimals).
std::int64_t tax_rate(const PriceTerms& terms);
Money tax_on(const PriceTerms& terms, Money net);
Money tax_on(const std::vector<Tax>& taxes, Money net);
// The highest rate of the cards that may price such a lease from `from` on: the one that sells it
// then, which may be older than the one in force, and all later ones.
std::int64_t highest_tax(const Tables& tables, Currency currency, const Terms& terms, Instant from);

}  // namespace loam::billing
