// Spot: a price made from supply and demand, and what an interruption costs. Pure and exact.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/price.hpp"

namespace loam::billing {

inline constexpr Duration spot_move_min = Duration::minutes(1);  // between two moves of the price
inline constexpr Duration spot_notice = Duration::minutes(2);    // before an interruption

// What is offered to and wanted by spot in a pool.
struct SpotMarket {
  MilliCe supply;
  MilliCe demand;
};

// floor + (ceiling − floor) × demand / supply, at most the ceiling; without supply the ceiling.
// Never under 15 % of on demand.
Money spot_price(const SpotTerms& terms, Money on_demand, SpotMarket market);

// The price, held to what a card says of it: one that comes into force within the minute between
// two moves, or ends what another sold, binds at once.
Money within(Money price, const SpotTerms& terms, Money on_demand);

// A spot price over time: moves at most once a minute.
class SpotSeries {
 public:
  // The new price where it moved; nothing where it stays or moved less than a minute ago. Requires
  // that time does not go back.
  std::optional<Money> offer(Instant now, const SpotTerms& terms, Money on_demand,
                             SpotMarket market);
  // What offer() would make of the price, without making it.
  std::optional<Money> next(Instant now, const SpotTerms& terms, Money on_demand,
                            SpotMarket market) const;
  // Requires that time does not go back. Of very many moves the oldest are forgotten.
  void move(Instant from, Money price);
  // Before the first price known: that one.
  Money at(Instant instant) const;
  Instant next_change(Instant instant) const;
  bool empty() const { return moves_.empty(); }
  struct Move {
    Instant from;
    Money price;
  };
  const std::vector<Move>& moves() const { return moves_; }

 private:
  std::vector<Move> moves_;
};

// How much of `ran` is billed of a piece of work that the operator interrupted.
Duration billed_when_interrupted(InterruptionRule rule, Duration ran);
// In words, for a quote.
std::string words_of(InterruptionRule rule);

}  // namespace loam::billing
