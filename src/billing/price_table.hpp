// PriceTable: a rate card checked and made ready for rating: which window an instant lies in, and
// what the price is there. Pure; opening the card's zone reads its file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "billing/calendar.hpp"
#include "domain/price.hpp"
#include "domain/rate.hpp"

namespace loam::billing {

// What a price depends on besides time.
struct Terms {
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  Tariff tariff = Tariff::flat;
  WorkClass work_class = WorkClass::general;
  Isolation isolation = Isolation::software;
  std::string service_class = "standard";

  friend bool operator==(const Terms&, const Terms&) = default;
};

class PriceTable {
 public:
  // Refuses, with the reason: unknown zones, other currencies than the card's, negative prices,
  // tiers that do not rise from 0, two prices for the same thing, windows that leave a gap or
  // overlap in the week, a dated window that never occurs, a window without price, shares out of
  // range.
  static Result<PriceTable> compile(RateCard card);
  static Result<PriceTable> compile(RateCard card, PriceTerms terms) {
    card.terms = std::move(terms);
    return compile(std::move(card));
  }

  const RateCard& card() const { return card_; }  // as it was published
  // The card's, and the general price that every card has.
  const PriceTerms& terms() const { return terms_; }
  const Zone& zone() const { return zone_; }

  // Which window holds at an instant, and up to when. Without windows: none, for ever.
  struct Stretch {
    std::uint32_t window = 0;  // index for window_name()
    Instant until;
  };
  Stretch stretch_at(Instant instant) const;
  const std::string& window_name(std::uint32_t window) const { return window_names_[window]; }

  // The price of `terms` in a window; nullptr where the card does not sell it. Spot has none: its
  // price is made as time goes on.
  const Price* price(const Terms& terms, std::uint32_t window) const;
  // Whether there is a price at every time.
  bool sells(const Terms& terms) const;
  // Whether a price of the card is for this service class alone.
  bool names_class(const std::string& service_class) const;
  // The highest list price of `terms` at any time; nothing where it is not sold.
  std::optional<Money> dearest(const Terms& terms) const;
  std::optional<Money> cheapest(const Terms& terms) const;
  // The card's discounts for a purchase model together with the tenant's own: at most the whole.
  BasisPoints discount(PurchaseModel model, BasisPoints of_tenant) const;

 private:
  struct Boundary {
    std::int64_t ms_of_week;  // local, from Sunday midnight
    std::uint32_t window;
  };
  struct Special {
    Period span;
    std::uint32_t window;
  };

  std::uint32_t name_index(const std::string& name);
  Result<void> compile_windows();
  Result<void> compile_week(const std::vector<const Window*>& weekly);
  Result<void> compile_special(const Window& window);
  Result<void> check_prices();
  auto group_of(std::uint32_t price) const {
    const Price& of = terms_.prices[price];
    return std::tuple(of.purchase_model, of.tariff, price_windows_[price]);
  }

  RateCard card_;
  PriceTerms terms_;
  Zone zone_;
  std::vector<std::string> window_names_{""};  // 0: no windows
  std::vector<std::uint32_t> price_windows_;   // of terms_.prices, by index; 0: any
  std::vector<std::uint32_t> by_group_;        // indices of prices by model, tariff and window
  std::vector<Boundary> week_;                 // in order, the first at 0; empty: no windows
  std::vector<Special> specials_;              // in order, apart
};

// A card's terms from JSON, as in docs/billing.md; unknown members are errors, absent ones take
// their defaults.
Result<PriceTerms> read_price_terms(std::string_view json);
std::string to_json(const PriceTerms& terms);

}  // namespace loam::billing
