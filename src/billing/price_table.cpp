#include "billing/price_table.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/token_rating.hpp"
#include "domain/json_codec.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t day_ms = 86'400'000;
constexpr std::int64_t week_ms = 7 * day_ms;
constexpr std::int64_t whole_bp = 10'000;
constexpr std::int64_t whole_ppm = 1'000'000;
constexpr int spot_floor_min_bp = 1500;    // the promise to operators: spot never undercuts this
constexpr std::size_t entries_max = 1000;  // checking a card compares each price with each

std::string clock_text(std::int64_t ms_of_week) {
  static const char* const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                     "Thursday", "Friday", "Saturday"};
  const std::int64_t of_day = ms_of_week % day_ms;
  const auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  return std::string(days[(ms_of_week / day_ms) % 7]) + " " + two(of_day / 3'600'000) + ":" +
         two(of_day / 60'000 % 60) + (of_day % 60'000 == 0 ? "" : ":" + two(of_day / 1000 % 60));
}

std::string words_of(const Price& price) {
  std::string text = boost::describe::enum_to_string(price.purchase_model, "?");
  text += std::string(" ") + boost::describe::enum_to_string(price.tariff, "?");
  if (!price.window.empty()) text += " window '" + price.window + "'";
  if (price.work_class)
    text += std::string(" work class ") + boost::describe::enum_to_string(*price.work_class, "?");
  if (price.isolation)
    text += std::string(" isolation ") + boost::describe::enum_to_string(*price.isolation, "?");
  if (!price.service_class.empty()) text += " service class '" + price.service_class + "'";
  return text;
}

bool same_selectors(const Price& a, const Price& b) {
  return a.purchase_model == b.purchase_model && a.tariff == b.tariff && a.window == b.window &&
         a.work_class == b.work_class && a.isolation == b.isolation &&
         a.service_class == b.service_class;
}

Result<void> check_tiers(const Price& price, Currency currency) {
  if (price.tiers.empty()) {
    return invalid("the price of " + words_of(price) + " has no tier",
                   "give at least one with above_milli_ce_hours 0");
  }
  std::int64_t last = -1;
  for (const Tier& tier : price.tiers) {
    const bool rises = last < 0 ? tier.above_milli_ce_hours == 0 : tier.above_milli_ce_hours > last;
    if (!rises) {
      return invalid("the tiers of " + words_of(price) + " leave a gap: they go from " +
                         (last < 0 ? "nothing" : decimal_text(last, 3)) + " to " +
                         decimal_text(tier.above_milli_ce_hours, 3) + " CE-hours",
                     "begin at 0 and rise");
    }
    last = tier.above_milli_ce_hours;
    if (tier.price.currency() != currency || tier.price.is_negative()) {
      return invalid("the price " + to_text(tier.price) + " of " + words_of(price) +
                         " is not an amount of " + std::string(currency.code()),
                     "give zero or more in the card's currency");
    }
  }
  return {};
}

Result<void> check_share(BasisPoints share, const std::string& what) {
  if (share.value >= 0 && share.value <= whole_bp) return {};
  return invalid(what + " of " + decimal_text(share.value, 2) + " % is out of range",
                 "use 0 % to 100 %");
}

Result<void> check_services(const ServiceRates& services, Currency currency) {
  for (const auto& rate : {services.storage, services.backup, services.network}) {
    if (rate && (rate->currency() != currency || rate->is_negative())) {
      return invalid("the service rate " + to_text(*rate) + " is not an amount of " +
                         std::string(currency.code()),
                     "give zero or more in the card's currency");
    }
  }
  return {};
}

Result<void> check_shares(const PriceTerms& terms) {
  for (const Discount& discount : terms.discounts)
    LOAM_CHECK(check_share(discount.off, "the discount '" + discount.name + "'"));
  for (const Tax& tax : terms.taxes) {
    if (tax.name.empty() || tax.parts_per_million < 0 || tax.parts_per_million > whole_ppm) {
      return invalid("the tax '" + tax.name + "' of " + decimal_text(tax.parts_per_million, 4) +
                         " % is out of range",
                     "name it and use 0 % to 100 %");
    }
  }
  LOAM_CHECK(check_share(terms.reservation_unused, "reservation_unused"));
  LOAM_CHECK(check_share(terms.spot.ceiling, "the spot ceiling"));
  if (terms.spot.floor.value < spot_floor_min_bp || terms.spot.floor > terms.spot.ceiling) {
    return invalid(
        "a spot floor of " + decimal_text(terms.spot.floor.value, 2) + " % is out of range",
        "use 15 % of on demand up to the ceiling, " + decimal_text(terms.spot.ceiling.value, 2) +
            " %");
  }
  return {};
}

}  // namespace

std::uint32_t PriceTable::name_index(const std::string& name) {
  const auto found = std::find(window_names_.begin() + 1, window_names_.end(), name);
  if (found == window_names_.end()) {
    window_names_.push_back(name);
    return static_cast<std::uint32_t>(window_names_.size()) - 1;
  }
  return static_cast<std::uint32_t>(found - window_names_.begin());
}

Result<PriceTable> PriceTable::compile(RateCard card) {
  if (card.on_demand.currency() != card.currency || card.on_demand.is_negative()) {
    return invalid("the price " + to_text(card.on_demand) + " is not an amount of " +
                       std::string(card.currency.code()),
                   "give zero or more in the card's currency");
  }
  if (card.terms.windows.size() > entries_max || card.terms.prices.size() > entries_max)
    return invalid("the card has too many windows or prices", "the most is 1000 of each");
  PriceTable table;
  table.card_ = std::move(card);
  table.terms_ = table.card_.terms;
  LOAM_TRY(zone, Zone::open(table.terms_.zone));
  table.zone_ = zone;
  // What every card sells, unless it says otherwise itself.
  Price general;
  general.tiers = {{0, table.card_.on_demand}};
  const bool told = std::any_of(table.terms_.prices.begin(), table.terms_.prices.end(),
                                [&](const Price& price) { return same_selectors(price, general); });
  if (!told) table.terms_.prices.push_back(general);
  LOAM_CHECK(table.compile_windows());
  LOAM_CHECK(table.check_prices());
  LOAM_CHECK(check_services(table.terms_.services, table.card_.currency));
  LOAM_CHECK(check_shares(table.terms_));
  LOAM_CHECK(check_token_prices(table.terms_, table.card_.currency));
  return table;
}

Result<void> PriceTable::compile_windows() {
  std::vector<const Window*> weekly;
  for (const Window& window : terms_.windows) {
    if (window.name.empty()) return invalid("a window has no name", "name it, such as peak");
    if (window.from.ms < 0 || window.from.ms >= day_ms || window.to.ms < 0 ||
        window.to.ms > day_ms) {
      return invalid("the window '" + window.name + "' from " + loam::to_text(window.from) +
                         " to " + loam::to_text(window.to) + " is not within a day",
                     "use 00:00 to 24:00");
    }
    if (window.from == window.to) {
      return invalid("the window '" + window.name + "' never occurs: it begins and ends at " +
                         loam::to_text(window.from),
                     "for a whole day write 00:00 to 24:00");
    }
    if (window.date.empty()) weekly.push_back(&window);
  }
  LOAM_CHECK(compile_week(weekly));
  for (const Window& window : terms_.windows) {
    if (!window.date.empty()) LOAM_CHECK(compile_special(window));
  }
  std::sort(specials_.begin(), specials_.end(),
            [](const Special& a, const Special& b) { return a.span.from < b.span.from; });
  for (std::size_t i = 1; i < specials_.size(); ++i) {
    if (specials_[i].span.from < specials_[i - 1].span.to) {
      return invalid("two dated windows overlap at " + loam::to_text(specials_[i].span.from),
                     "let one end where the other begins");
    }
  }
  return {};
}

Result<void> PriceTable::compile_week(const std::vector<const Window*>& weekly) {
  if (weekly.empty()) {
    if (terms_.windows.empty()) return {};
    return invalid("the card has dated windows but none for the rest of the year",
                   "add windows that cover the whole week");
  }
  struct Part {
    std::int64_t from, to;
    std::uint32_t window;
  };
  std::vector<Part> parts;
  for (const Window* window : weekly) {
    const std::uint32_t index = name_index(window->name);
    std::vector<std::int64_t> days = window->weekdays;
    if (days.empty()) days = {0, 1, 2, 3, 4, 5, 6};
    for (const std::int64_t day : days) {
      if (day < 0 || day > 6)
        return invalid("the window '" + window->name + "' names the weekday " + std::to_string(day),
                       "use 0 for Sunday to 6 for Saturday");
      const std::int64_t from = day * day_ms + window->from.ms;
      std::int64_t to = day * day_ms + window->to.ms;
      if (to <= from) to += day_ms;
      parts.push_back({from, std::min(to, week_ms), index});
      if (to > week_ms) parts.push_back({0, to - week_ms, index});
    }
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.from < b.from; });
  std::int64_t at = 0;
  for (const Part& part : parts) {
    if (part.from > at)
      return invalid(
          "the windows leave a gap from " + clock_text(at) + " to " + clock_text(part.from),
          "cover every minute of the week once");
    if (part.from < at)
      return invalid("two windows overlap at " + clock_text(part.from),
                     "cover every minute of the week once");
    at = part.to;
    if (week_.empty() || week_.back().window != part.window)
      week_.push_back({part.from, part.window});
  }
  if (at < week_ms)
    return invalid("the windows leave a gap from " + clock_text(at) + " to Saturday 24:00",
                   "cover every minute of the week once");
  return {};
}

Result<void> PriceTable::compile_special(const Window& window) {
  LOAM_TRY(date, parse_date(window.date));
  const std::uint32_t index = name_index(window.name);
  std::vector<Period> spans;
  if (window.to > window.from) {
    spans = zone_.spans(date, window.from, window.to);
  } else {
    spans = zone_.spans(date, window.from, Duration{day_ms});
    for (const Period& span : zone_.spans(add_days(date, 1), Duration{0}, window.to))
      spans.push_back(span);
  }
  if (spans.empty()) {
    return invalid("the window '" + window.name + "' never occurs: on " + window.date +
                       " the clocks of " + zone_.name() + " skip it",
                   "move it to a time that exists");
  }
  for (const Period& span : spans) specials_.push_back({span, index});
  return {};
}

Result<void> PriceTable::check_prices() {
  const auto& prices = terms_.prices;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const Price& price = prices[i];
    LOAM_CHECK(check_tiers(price, card_.currency));
    if (price.purchase_model == PurchaseModel::spot)
      return invalid("a card has no price for spot: it is made from supply and demand",
                     "set the floor and the ceiling under spot");
    if (price.purchase_model == PurchaseModel::hybrid)
      return invalid("a card has no price for hybrid: it is on demand or spot, as each task starts",
                     "price on_demand, and sell spot");
    if (price.tiers.size() > 1 && terms_.granularity == Granularity::task)
      return invalid("prices per task have no tiers", "give one tier above 0");
    const auto window = std::find(window_names_.begin() + 1, window_names_.end(), price.window);
    const bool named = window != window_names_.end();
    price_windows_.push_back(named ? static_cast<std::uint32_t>(window - window_names_.begin())
                                   : 0);
    if (price.tariff == Tariff::flat ? !price.window.empty() : !named) {
      return invalid("the price of " + words_of(price) + " names no window of the card",
                     "a time_of_day price names one, a flat price none");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (same_selectors(price, prices[j]))
        return invalid("there are two prices for " + words_of(price), "keep one");
    }
  }
  by_group_.resize(prices.size());
  for (std::size_t i = 0; i < prices.size(); ++i) by_group_[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(by_group_.begin(), by_group_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return group_of(a) < group_of(b); });
  // A tariff by time has a price in every window, or time would be without price.
  for (const Price& price : prices) {
    if (price.tariff != Tariff::time_of_day) continue;
    for (std::size_t w = 1; w < window_names_.size(); ++w) {
      Price other = price;
      other.window = window_names_[w];
      const bool there = std::any_of(prices.begin(), prices.end(), [&](const Price& each) {
        return same_selectors(each, other);
      });
      if (!there)
        return invalid("the prices leave a gap: none for " + words_of(other),
                       "price every window alike");
    }
  }
  return {};
}

PriceTable::Stretch PriceTable::stretch_at(Instant instant) const {
  if (week_.empty()) return {0, Instant::never()};
  Stretch stretch;
  Instant bound = zone_.next_change(instant);
  if (!specials_.empty()) {
    const auto next = std::upper_bound(specials_.begin(), specials_.end(), instant,
                                       [](Instant t, const Special& s) { return t < s.span.from; });
    if (next != specials_.begin() && std::prev(next)->span.contains(instant))
      return {std::prev(next)->window, std::prev(next)->span.to};
    if (next != specials_.end()) bound = std::min(bound, next->span.from);
  }
  // 1970-01-01 was a Thursday.
  const std::int64_t local = (instant + zone_.offset_at(instant)).ms + 4 * day_ms;
  const std::int64_t of_week = ((local % week_ms) + week_ms) % week_ms;
  const auto next =
      std::upper_bound(week_.begin(), week_.end(), of_week,
                       [](std::int64_t t, const Boundary& b) { return t < b.ms_of_week; });
  stretch.window = std::prev(next)->window;
  const std::int64_t end = next == week_.end() ? week_ms : next->ms_of_week;
  stretch.until = std::min(bound, instant + Duration{end - of_week});
  return stretch;
}

const Price* PriceTable::price(const Terms& terms, std::uint32_t window) const {
  const Price* best = nullptr;
  int best_rank = -1;
  const std::uint32_t of_window = terms.tariff == Tariff::flat ? 0 : window;
  const std::tuple group(terms.purchase_model, terms.tariff, of_window);
  for (auto at = std::lower_bound(by_group_.begin(), by_group_.end(), group,
                                  [&](std::uint32_t i, const auto&g) { return group_of(i) < g; });
       at != by_group_.end() && group_of(*at) == group; ++at) {
    const Price& price = terms_.prices[*at];
    if (price.work_class && *price.work_class != terms.work_class) continue;
    if (price.isolation && *price.isolation != terms.isolation) continue;
    if (!price.service_class.empty() && price.service_class != terms.service_class) continue;
    const int rank = (price.work_class ? 4 : 0) + (price.isolation ? 2 : 0) +
                     (price.service_class.empty() ? 0 : 1);
    if (rank > best_rank) {
      best = &price;
      best_rank = rank;
    }
  }
  return best;
}

bool PriceTable::sells(const Terms& terms) const {
  if (terms.purchase_model == PurchaseModel::spot)
    return terms_.spot.sold && terms.tariff == Tariff::flat;
  // Each window has the same selectors (check_prices), so any one of them answers.
  if (terms.tariff == Tariff::flat) return price(terms, 0) != nullptr;
  return window_names_.size() > 1 && price(terms, 1) != nullptr;
}

bool PriceTable::names_class(const std::string& service_class) const {
  return std::any_of(terms_.prices.begin(), terms_.prices.end(),
                     [&](const Price& price) { return price.service_class == service_class; });
}

namespace {

Money spot_bound(const PriceTable& table, BasisPoints share) {
  return table.card().on_demand.times_ratio(share.value, whole_bp, Rounding::half_even);
}

template <class Better>
std::optional<Money> extreme(const PriceTable& table, const Terms& terms, std::size_t windows,
                             const Better& better) {
  std::optional<Money> found;
  const std::size_t first = terms.tariff == Tariff::flat ? 0 : 1;
  const std::size_t last = terms.tariff == Tariff::flat ? 1 : windows;
  for (std::size_t w = first; w < last; ++w) {
    const Price* price = table.price(terms, static_cast<std::uint32_t>(w));
    if (price == nullptr) continue;
    for (const Tier& tier : price->tiers) {
      if (!found || better(tier.price, *found)) found = tier.price;
    }
  }
  return found;
}

}  // namespace

std::optional<Money> PriceTable::dearest(const Terms& terms) const {
  if (terms.purchase_model == PurchaseModel::spot)
    return sells(terms) ? std::optional(spot_bound(*this, terms_.spot.ceiling)) : std::nullopt;
  return extreme(*this, terms, window_names_.size(), [](Money a, Money b) { return a > b; });
}

std::optional<Money> PriceTable::cheapest(const Terms& terms) const {
  if (terms.purchase_model == PurchaseModel::spot)
    return sells(terms) ? std::optional(spot_bound(*this, terms_.spot.floor)) : std::nullopt;
  return extreme(*this, terms, window_names_.size(), [](Money a, Money b) { return a < b; });
}

BasisPoints PriceTable::discount(PurchaseModel model, BasisPoints of_tenant) const {
  std::int64_t sum = of_tenant.value;
  for (const Discount& discount : terms_.discounts) {
    if (!discount.purchase_model || *discount.purchase_model == model) sum += discount.off.value;
  }
  return {std::min(sum, whole_bp)};
}

Result<PriceTerms> read_price_terms(std::string_view json) {
  return json::from_document<PriceTerms>(json, json::Missing::uses_default);
}

std::string to_json(const PriceTerms& terms) {
  return json::to_document(terms);
}

}  // namespace loam::billing
