// Rater: usage records to charges, over card versions, windows of the local week, tiers and started
// units. Every record is one exact sum, rounded once; its charges are that sum's growth, so that
// they add up to it to the last unit. Pure.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "billing/price_table.hpp"
#include "billing/rating.hpp"
#include "billing/usage.hpp"

namespace loam::billing {

// The checked cards of every currency by effective date; versions are only ever added.
class Tables {
 public:
  // ErrorKind::conflict for an effective date not after those of the currency already there.
  Result<void> add(PriceTable table);
  // nullptr before the first.
  const PriceTable* at(Currency currency, Instant instant) const;
  Instant next_change(Currency currency, Instant instant) const;
  bool knows(Currency currency) const { return by_currency_.contains(currency); }

 private:
  std::map<Currency, std::vector<std::shared_ptr<const PriceTable>>> by_currency_;
};

enum class Meter : std::uint8_t { compute, storage, backup, network };
const char* name_of(Meter meter) noexcept;  // "compute"
// "CE-Hours", "GiB-Hours", "GiB", "Tasks": what one unit price is for.
const char* unit_of(Meter meter, Granularity granularity) noexcept;

// Usage under one price: a row of a bill.
struct Charge {
  Meter meter = Meter::compute;
  Instant from;  // billed time: begun units reach past the record's end
  Instant to;
  RateCardId card;
  std::uint32_t window = 0;  // of the card
  std::uint32_t tier = 0;    // the one reached at the end
  Int128 quantity = 0;       // in 1/quantity_scale(meter) of a unit
  Money unit_price;          // list
  Money list;
  Money net;
};
// Units per `quantity`: milli-CE·ms, MiB·ms and bytes to CE-hours, GiB-hours and GiB; tasks are
// whole.
Int128 quantity_scale(Meter meter, Granularity granularity);

// How much each purchase model of one tenant has used in its month: where tiers stand.
class TierCounters {
 public:
  // milli-CE × ms before now in the month that holds `instant`.
  Int128 used(const PriceTable& table, PurchaseModel model, Instant instant) const;
  void add(const PriceTable& table, PurchaseModel model, Instant instant, Int128 quantity);

 private:
  std::map<std::pair<PurchaseModel, Instant>, Int128> used_;  // by month's start
};

class Rater {
 public:
  Rater(const Tables& tables, Payer payer) : tables_(tables), payer_(payer) {}

  // Appends the charges of one record. `counters` moves along where the price has tiers; without it
  // tiers count from zero. ErrorKind::not_found where no card is in force or the card does not sell
  // what the record names; nothing is appended then. Requires a record that passes check().
  Result<void> rate(const Usage& usage, std::vector<Charge>& charges,
                    TierCounters* counters = nullptr) const;

  // Whole periods, of one tenant: sorted by time and id first, so that neither the order nor the
  // duplication of records changes anything. Requires each id once.
  Result<std::vector<Charge>> rate_all(std::vector<Usage> usages) const;

 private:
  struct Piece;
  struct Pieces;
  Result<void> compute_pieces(const Usage& usage, Pieces& pieces, TierCounters* counters) const;
  Result<void> service_pieces(const Usage& usage, Pieces& pieces) const;

  const Tables& tables_;
  Payer payer_;
};

// Σ list and Σ net. Requires charges of one currency.
Amount total_of(const std::vector<Charge>& charges, Currency currency);

}  // namespace loam::billing
