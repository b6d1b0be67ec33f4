// Rate cards of scenarios: what a `rate` statement says beyond its price. Pure.
#include <algorithm>
#include <functional>

#include "sim/scenario.hpp"
#include "sim/scenario_words.hpp"

namespace loam::sim {
namespace {

// Calls `each` for every part between commas: "NAME:VALUE".
Result<void> for_parts(
    Words& words, std::string_view key,
    const std::function<Result<void>(std::string name, std::string_view value)>& each) {
  const Word* word = words.attribute(key);
  if (word == nullptr) return {};
  std::string_view rest = word->text;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) {
      return words.fault(*word, "'" + std::string(part) + "' has no name and value",
                         "write it as NAME:VALUE");
    }
    const Result<void> read = each(std::string(part.substr(0, colon)), part.substr(colon + 1));
    if (!read.ok()) return words.fault(*word, read.error().message, read.error().next_step);
  }
  return {};
}

// "08:00": since midnight.
Result<Duration> parse_clock(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  LOAM_TRY(hours, parse_decimal(text.substr(0, colon), 0, 24, "hour"));
  if (colon == text.size()) return invalid("a time of day is missing its minutes", "write 08:00");
  LOAM_TRY(minutes, parse_decimal(text.substr(colon + 1), 0, 59, "minute"));
  return Duration::minutes(hours * 60 + minutes);
}

// A price of its own for a purchase model, under the attribute of that name.
Result<void> read_price(Words& words, std::string_view key, PurchaseModel model, PriceTerms& terms,
                        Currency currency) {
  const Word* word = words.attribute(key);
  if (word == nullptr) return {};
  LOAM_TRY(amount, words.placed(*word, Money::parse(word->text, currency)));
  Price price;
  price.purchase_model = model;
  price.tiers = {{0, amount}};
  terms.prices.push_back(std::move(price));
  return {};
}

Result<void> read_rights(Words& words, PriceTerms& terms, Currency currency) {
  LOAM_CHECK(read_price(words, "commitment", PurchaseModel::commitment, terms, currency));
  LOAM_CHECK(read_price(words, "reservation", PurchaseModel::reservation, terms, currency));
  return words.take("unused", terms.reservation_unused, parse_percent);
}

Result<void> read_services(Words& words, ServiceRates& rates, Currency currency) {
  const auto money = [&](std::string_view text) { return Money::parse(text, currency); };
  LOAM_CHECK(words.take("storage", rates.storage, money));
  LOAM_CHECK(words.take("network", rates.network, money));
  LOAM_CHECK(words.take("backup", rates.backup, money));
  return words.take("backup", rates.backup, money);
}

}  // namespace

Result<void> read_terms(Words& words, PriceTerms& terms, Money on_demand) {
  const Currency currency = on_demand.currency();
  LOAM_CHECK(words.take("granularity", terms.granularity, parse_name_of<Granularity>));
  if (const Word* zone = words.attribute("zone")) terms.zone = zone->text;
  LOAM_CHECK(
      for_parts(words, "windows", [&](std::string name, std::string_view value) -> Result<void> {
        const std::size_t dash = std::min(value.find('-'), value.size());
        LOAM_TRY(from, parse_clock(value.substr(0, dash)));
        LOAM_TRY(to, parse_clock(value.substr(std::min(dash + 1, value.size()))));
        terms.windows.push_back({std::move(name), {}, "", from, to});
        return {};
      }));
  const auto price_for = [&](std::string_view value) -> Result<Price> {
    LOAM_TRY(amount, Money::parse(value, currency));
    Price price;
    price.tiers = {{0, amount}};
    return price;
  };
  LOAM_CHECK(
      for_parts(words, "prices", [&](std::string name, std::string_view value) -> Result<void> {
        LOAM_TRY(price, price_for(value));
        price.tariff = Tariff::time_of_day;
        price.window = std::move(name);
        terms.prices.push_back(std::move(price));
        return {};
      }));
  LOAM_CHECK(
      for_parts(words, "classes", [&](std::string name, std::string_view value) -> Result<void> {
        LOAM_TRY(price, price_for(value));
        price.service_class = std::move(name);
        terms.prices.push_back(std::move(price));
        return {};
      }));
  LOAM_CHECK(read_rights(words, terms, currency));
  Price tiered;
  tiered.tiers = {{0, on_demand}};
  LOAM_CHECK(
      for_parts(words, "tiers", [&](std::string name, std::string_view value) -> Result<void> {
        LOAM_TRY(above, parse_decimal(name, 3, 1'000'000'000'000, "number of CE-hours"));
        LOAM_TRY(amount, Money::parse(value, currency));
        tiered.tiers.push_back({above, amount});
        return {};
      }));
  LOAM_CHECK(words.take("tier_mode", tiered.tier_mode, parse_name_of<TierMode>));
  if (tiered.tiers.size() > 1) terms.prices.push_back(std::move(tiered));
  LOAM_CHECK(read_services(words, terms.services, currency));
  LOAM_CHECK(for_parts(words, "tax", [&](std::string name, std::string_view value) -> Result<void> {
    LOAM_TRY(share, parse_percent(value));
    terms.taxes.push_back({std::move(name), share.value * 100});
    return {};
  }));
  LOAM_CHECK(for_parts(words, "off", [&](std::string name, std::string_view value) -> Result<void> {
    LOAM_TRY(share, parse_percent(value));
    terms.discounts.push_back({std::move(name), share, std::nullopt});
    return {};
  }));
  LOAM_CHECK(
      for_parts(words, "spot", [&](std::string floor, std::string_view ceiling) -> Result<void> {
        LOAM_TRY(low, parse_percent(floor));
        LOAM_TRY(high, parse_percent(ceiling));
        terms.spot.sold = true;
        terms.spot.floor = low;
        terms.spot.ceiling = high;
        return {};
      }));
  const auto rule = parse_name_of<InterruptionRule>;
  LOAM_CHECK(words.take("displaced", terms.lost_work.displaced, rule));
  LOAM_CHECK(words.take("lost", terms.lost_work.device_lost, rule));
  return words.take("interrupted", terms.spot.interrupted, rule);
}

}  // namespace loam::sim
