// Rate cards, usage records and charges. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <map>
#include <string>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/task.hpp"

namespace loam {

// Prices from `effective_from` on, until the next card of the same currency. Never edited.
struct RateCard {
  RateCardId id;
  Instant effective_from;
  Currency currency;
  Money on_demand;                // per CE-hour
  MilliCe ce_per_gibibyte{1250};  // floor of billable CE per GiB of device memory held

  friend bool operator==(const RateCard&, const RateCard&) = default;
};
BOOST_DESCRIBE_STRUCT(RateCard, (), (id, effective_from, currency, on_demand, ce_per_gibibyte))

// One lease over [from, to): the records of a lease tile its run time, no gap, no overlap. Where
// the end of a lease became known after its time was rated, the last records run backwards, to <
// from, and take back what was charged too much: lengths and amounts add up to what was run.
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
  Money unit_price;  // per CE-hour, list
  Money list;        // before discount
  Money net;         // what is owed

  Duration length() const { return to - from; }
  friend bool operator==(const UsageRecord&, const UsageRecord&) = default;
};
BOOST_DESCRIBE_STRUCT(UsageRecord, (),
                      (id, lease, task, tenant, from, to, billable_ce, memory, card, purchase_model,
                       unit_price, list, net))

}  // namespace loam
