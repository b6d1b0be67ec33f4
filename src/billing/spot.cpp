#include "billing/spot.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t whole_bp = 10'000;

}  // namespace

Money spot_price(const SpotTerms& terms, Money on_demand, SpotMarket market) {
  const Int128 floor = terms.floor.value;
  const Int128 span = terms.ceiling.value - terms.floor.value;
  if (market.supply.value <= 0 || market.demand >= market.supply)
    return on_demand.times_ratio(terms.ceiling.value, whole_bp, Rounding::half_even);
  const Int128 demand = std::max<std::int64_t>(0, market.demand.value);
  // Rounded up, so that no rounding undercuts the floor.
  return on_demand.times_ratio(floor * market.supply.value + span * demand,
                               static_cast<Int128>(whole_bp) * market.supply.value, Rounding::up);
}

Money within(Money price, const SpotTerms& terms, Money on_demand) {
  const auto share = [&](BasisPoints of) {
    return on_demand.times_ratio(of.value, whole_bp, Rounding::half_even);
  };
  return std::clamp(price, share(terms.floor), std::max(share(terms.floor), share(terms.ceiling)));
}

std::optional<Money> SpotSeries::next(Instant now, const SpotTerms& terms, Money on_demand,
                                      SpotMarket market) const {
  const Money price = spot_price(terms, on_demand, market);
  if (!moves_.empty()) {
    LOAM_ASSERT(now >= moves_.back().from);
    if (price == moves_.back().price || now - moves_.back().from < spot_move_min)
      return std::nullopt;
  }
  return price;
}

std::optional<Money> SpotSeries::offer(Instant now, const SpotTerms& terms, Money on_demand,
                                       SpotMarket market) {
  const std::optional<Money> price = next(now, terms, on_demand, market);
  if (price) move(now, *price);
  return price;
}

void SpotSeries::move(Instant from, Money price) {
  constexpr std::size_t moves_max = 8192;  // at one a minute the last five days
  LOAM_ASSERT(moves_.empty() || from >= moves_.back().from);
  if (moves_.size() >= moves_max)
    moves_.erase(moves_.begin(), moves_.begin() + static_cast<std::ptrdiff_t>(moves_max / 2));
  moves_.push_back({from, price});
}

Money SpotSeries::at(Instant instant) const {
  const auto next = std::upper_bound(moves_.begin(), moves_.end(), instant,
                                     [](Instant t, const Move& m) { return t < m.from; });
  LOAM_ASSERT(!moves_.empty());
  return (next == moves_.begin() ? next : std::prev(next))->price;
}

Instant SpotSeries::next_change(Instant instant) const {
  const auto next = std::upper_bound(moves_.begin(), moves_.end(), instant,
                                     [](Instant t, const Move& m) { return t < m.from; });
  return next == moves_.end() ? Instant::never() : next->from;
}

Duration billed_when_interrupted(InterruptionRule rule, Duration ran) {
  switch (rule) {
    case InterruptionRule::ran:
      return ran;
    case InterruptionRule::free:
      return {};
    case InterruptionRule::first_hour_free:
      return ran < Duration::hours(1) ? Duration{} : ran;
  }
  return ran;
}

std::string words_of(InterruptionRule rule) {
  switch (rule) {
    case InterruptionRule::ran:
      return "what it ran is billed";
    case InterruptionRule::free:
      return "what it ran is not billed";
    case InterruptionRule::first_hour_free:
      return "what it ran is not billed where it was less than an hour";
  }
  return {};
}

}  // namespace loam::billing
