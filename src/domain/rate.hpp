// Rate cards, usage records and charges. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <string>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/price.hpp"
#include "domain/task.hpp"

namespace loam {

// Prices from `effective_from` on, until the next card of the same currency. Never edited.
struct RateCard {
  RateCardId id;
  Instant effective_from;
  Currency currency;
  Money on_demand;                // per CE-hour
  MilliCe ce_per_gibibyte{1250};  // floor of billable CE per GiB of device memory held
  PriceTerms terms;

  friend bool operator==(const RateCard&, const RateCard&) = default;
};
BOOST_DESCRIBE_STRUCT(RateCard, (),
                      (id, effective_from, currency, on_demand, ce_per_gibibyte, terms))

// One lease over [from, to) at one price: the records of a lease tile its run time, no gap, no
// overlap. Where the end of a lease became known after its time was rated, the last records run
// backwards, to < from, and take back what was charged too much: lengths and amounts add up to what
// was run. A record without length (from = to) prices units that were begun and reach past the end,
// or gives back an interrupted piece.
struct UsageRecord {
  UsageId id;
  LeaseId lease;
  TaskId task;
  TenantId tenant;
  Instant from;
  Instant to;
  MilliCe billable_ce;
  Mebibytes memory;
  RateCardId card;
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  Tariff tariff = Tariff::flat;
  std::string window;      // of the card, where its price depends on it
  Duration billed;         // in the card's units begun; its length where the card bills exactly
  std::int64_t tasks = 0;  // priced once a run: how many; then the unit price is a task's
  Instant tier_month;      // start of the month in which tiers count it; 1970 where there are none
  Money unit_price;        // per CE-hour, list
  Money list;              // before discount
  Money net;               // what is owed
  // What rounding has left over of the lease's list and net sums so far, in parts of the last
  // decimal: the next record goes on from there.
  std::int64_t list_residue = 0;
  std::int64_t net_residue = 0;
  // Of the month in its tenant's billing zone that it lies in; 1970 where none was told.
  Instant month_end;

  Duration length() const { return to - from; }
  friend bool operator==(const UsageRecord&, const UsageRecord&) = default;
};
BOOST_DESCRIBE_STRUCT(UsageRecord, (),
                      (id, lease, task, tenant, from, to, billable_ce, memory, card, purchase_model,
                       tariff, window, billed, tasks, tier_month, unit_price, list, net,
                       list_residue, net_residue, month_end))

// What is known of a usage record besides: for reports, never for its charge.
struct UsageFacts {
  Isolation isolation = Isolation::software;  // that its lease was given
  std::string region{};                       // of the node on which it ran
  // What of its time was measured, and how long its devices were busy in that, added up.
  Duration measured{};
  Duration device_time{};
};

}  // namespace loam
