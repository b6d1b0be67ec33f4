// Rater: usage records to charges, over card versions, windows of the local week, tiers and started
// units. Every record is one exact sum, rounded once; its charges are that sum's growth, so that
// they add up to it to the last unit. Pure.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "billing/price_table.hpp"
#include "billing/rating.hpp"
#include "billing/spot.hpp"
#include "billing/usage.hpp"

namespace loam::billing {

// The checked cards of every currency by effective date, and the prices that spot has had; both are
// only ever added to.
class Tables {
 public:
  // Whether add() would take it. ErrorKind::conflict for an effective date not after those of the
  // currency already there, and for a card per task after one by time.
  Result<void> check(const PriceTable& table) const;
  Result<void> add(PriceTable table);
  // nullptr before the first.
  const PriceTable* at(Currency currency, Instant instant) const;
  Instant next_change(Currency currency, Instant instant) const;
  bool knows(Currency currency) const { return by_currency_.contains(currency); }
  // The last card in force at or before `instant` that sells `terms`; nullptr where none did.
  const PriceTable* selling(Currency currency, const Terms& terms, Instant instant) const;
  // In order of publication.
  const std::vector<std::shared_ptr<const PriceTable>>& all() const { return all_; }
  // Of one currency, by effective date.
  const std::vector<std::shared_ptr<const PriceTable>>& of(Currency currency) const;

  std::vector<Currency> currencies() const;
  bool sells_spot() const { return sells_spot_; }   // some card does, at some time
  const SpotSeries* spot(Currency currency) const;  // nullptr before its first price
  void move_spot(Currency currency, Instant from, Money price) {
    spot_[currency].move(from, price);
  }

 private:
  std::vector<std::shared_ptr<const PriceTable>> all_;
  std::map<Currency, std::vector<std::shared_ptr<const PriceTable>>> by_currency_;
  std::map<Currency, SpotSeries> spot_;
  bool sells_spot_ = false;
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
  const PriceTable* table = nullptr;  // of the tables that rated it
  Instant tier_month;                 // whose counter it moved; 1970: none
  std::int64_t list_residue = 0;      // what rounding has left over with it, see Carry
  std::int64_t net_residue = 0;
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
  // By the month's start. Forgets months that began more than a quarter before it: no usage comes
  // that late.
  void add(PurchaseModel model, Instant month, Int128 quantity);
  const std::map<std::pair<PurchaseModel, Instant>, Int128>& used() const { return used_; }

 private:
  std::map<std::pair<PurchaseModel, Instant>, Int128> used_;  // by month's start
};

// The sums of a run's records so far and what rounding has left over of them, so that a run that is
// rated in pieces comes to the exact sum of all of it, rounded once.
struct Carry {
  Money list;
  Money net;
  std::int64_t list_residue = 0;  // in 1/quantity_scale of the last decimal
  std::int64_t net_residue = 0;   // in 1/(10,000 × quantity_scale)
};

class Rater {
 public:
  Rater(const Tables& tables, Payer payer) : tables_(tables), payer_(payer) {}

  // Appends the charges of one record. `counters` moves along where the price has tiers; without it
  // tiers count from zero. ErrorKind::not_found where no card is in force or the card does not sell
  // what the record names; nothing is appended then. Requires a record that passes check().
  Result<void> rate(const Usage& usage, std::vector<Charge>& charges,
                    TierCounters* counters = nullptr) const;

  // What the record holds and moves besides compute, alone: a charge for each service and card that
  // sells it; none where no card does. ErrorKind::not_found where no card is in force.
  Result<void> rate_services(const Usage& usage, std::vector<Charge>& charges) const;

  // The same for the next piece of a run: amounts go on from `carry`, which moves along. Where a
  // later card no longer sells what the run was begun under, it keeps the price that it had. Gives
  // at least one charge, of zero where no further unit was begun.
  Result<void> rate_on(const Usage& usage, std::vector<Charge>& charges, TierCounters* counters,
                       Carry& carry) const;
  // Takes back what the last piece of a run was rated: charges from its end back to its beginning,
  // with from > to and quantities and amounts below zero.
  Result<void> take_back(const Usage& usage, std::vector<Charge>& charges, TierCounters* counters,
                         Carry& carry) const;

 private:
  struct Piece;
  struct Pieces;
  enum class Withdrawn { refused, keeps_its_price };  // what a card does not sell any more
  Result<void> compute_pieces(const Usage& usage, Pieces& pieces, Withdrawn withdrawn) const;
  Result<void> run_pieces(const Usage& usage, Pieces& pieces) const;
  Result<Piece> piece_at(const Usage& usage, Instant at, Instant end, Withdrawn withdrawn) const;
  const PriceTable* table_at(const Usage& usage, Instant at, Withdrawn withdrawn) const;
  void count(const Usage& usage, Pieces& pieces, TierCounters& counters) const;
  void price(const Pieces& pieces, std::vector<Charge>& charges, Carry* carry) const;
  Result<void> service_pieces(const Usage& usage, Pieces& pieces) const;

  const Tables& tables_;
  Payer payer_;
};

// Σ list and Σ net. Requires charges of one currency.
Amount total_of(const std::vector<Charge>& charges, Currency currency);

}  // namespace loam::billing
