#include "app/loam/card_file.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <functional>
#include <set>

#include "api/json.hpp"
#include "api/requests.hpp"
#include "base/currency_codes.hpp"
#include "base/quantity.hpp"
#include "billing/calendar.hpp"
#include "billing/price_table.hpp"
#include "domain/enumerators.hpp"

namespace loam::cli {
namespace {

// One table of the file. Every key must be asked for; what nobody asked for is an error.
class Part {
 public:
  Part(const toml::table& table, const std::string& file, std::string path)
      : table_(table), file_(file), path_(std::move(path)) {}

  Error fault(const toml::node& at, const std::string& message, std::string next_step) const {
    return invalid(file_ + ":" + std::to_string(at.source().begin.line) + ": " + message,
                   std::move(next_step));
  }

  // Reads the text of `key` by `parse`, where it is there.
  template <class T, class Parse>
  Result<void> take(const char* key, T& out, Parse parse) {
    asked_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const auto* text = node->as_string();
    const auto* number = node->as_integer();
    if (text == nullptr && number == nullptr) {
      return fault(*node, "'" + path_ + key + "' is not text",
                   "write it in quotes, numbers too: amounts are exact");
    }
    const std::string given = text != nullptr ? text->get() : std::to_string(number->get());
    auto value = parse(std::string_view(given));
    if (!value)
      return fault(*node, "'" + path_ + key + "': " + value.error().message,
                   value.error().next_step);
    out = std::move(*value);
    return {};
  }
  Result<void> take(const char* key, std::string& out) {
    return take(key, out,
                [](std::string_view text) -> Result<std::string> { return std::string(text); });
  }

  // Every table of the list `key`.
  Result<void> each(const char* key, const std::function<Result<void>(Part&)>& read) {
    asked_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const toml::array* list = node->as_array();
    if (list == nullptr)
      return fault(*node, "'" + path_ + key + "' is not a list of tables",
                   "write each as [[" + std::string(key) + "]]");
    for (const toml::node& element : *list) {
      if (!element.is_table())
        return fault(element, "an element of '" + path_ + key + "' is not a table",
                     "write it as [[" + std::string(key) + "]]");
      Part part(*element.as_table(), file_, path_ + key + ".");
      LOAM_CHECK(read(part));
      LOAM_CHECK(part.finish());
    }
    return {};
  }
  Result<void> one(const char* key, const std::function<Result<void>(Part&)>& read) {
    asked_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    if (!node->is_table())
      return fault(*node, "'" + path_ + key + "' is not a table",
                   "write it as [" + std::string(key) + "]");
    Part part(*node->as_table(), file_, path_ + key + ".");
    LOAM_CHECK(read(part));
    return part.finish();
  }
  Result<void> texts(const char* key, const std::function<Result<void>(const std::string&)>& read) {
    asked_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const toml::array* list = node->as_array();
    if (list == nullptr)
      return fault(*node, "'" + path_ + key + "' is not a list", "write [\"…\"]");
    for (const toml::node& element : *list) {
      const auto* text = element.as_string();
      const Result<void> taken =
          text != nullptr ? read(text->get()) : invalid("it is not text", "write it in quotes");
      if (!taken.ok())
        return fault(element, "'" + path_ + key + "': " + taken.error().message,
                     taken.error().next_step);
    }
    return {};
  }

  Result<void> finish() const {
    for (const auto& [key, node] : table_) {
      if (asked_.count(std::string(key.str())) == 0)
        return fault(node, "'" + path_ + std::string(key.str()) + "' is not a key of a rate card",
                     "check its spelling; docs/billing.md lists them");
    }
    return {};
  }

 private:
  const toml::table& table_;
  const std::string& file_;
  std::string path_;
  std::set<std::string> asked_;
};

template <class T>
Result<std::optional<T>> parse_word_if(std::string_view text) {
  LOAM_TRY(word, parse_enumerator<T>(text));
  return std::optional<T>(word);
}

// "08:00", "24:00".
Result<Duration> parse_clock(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto hours = parse_decimal(text.substr(0, colon), 0, 24, "hour");
  const auto minutes =
      parse_decimal(text.substr(std::min(colon + 1, text.size())), 0, 59, "minute");
  if (!hours || !minutes || (*hours == 24 && *minutes > 0))
    return invalid("'" + std::string(text) + "' is not a time of day", "write it as 08:00");
  return Duration::minutes(*hours * 60 + *minutes);
}

Result<BasisPoints> parse_share(std::string_view text) {
  if (text.ends_with('%')) text.remove_suffix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  LOAM_TRY(value, parse_decimal(text, 2, 10'000, "share in %"));
  return BasisPoints{value};
}

Result<std::int64_t> parse_weekday(std::string_view text) {
  static constexpr std::string_view days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
  for (std::int64_t day = 0; day < 7; ++day) {
    if (text.size() >= 3 && text.substr(0, 3) == days[day]) return day;
  }
  return invalid("'" + std::string(text) + "' is no day of the week", "use sun, mon, … sat");
}

Result<void> read_window(Part& part, PriceTerms& terms) {
  Window window;
  LOAM_CHECK(part.take("name", window.name));
  LOAM_CHECK(part.take("from", window.from, parse_clock));
  LOAM_CHECK(part.take("to", window.to, parse_clock));
  LOAM_CHECK(part.take("date", window.date));
  LOAM_CHECK(part.texts("days", [&](const std::string& text) -> Result<void> {
    LOAM_TRY(day, parse_weekday(text));
    window.weekdays.push_back(day);
    return {};
  }));
  terms.windows.push_back(std::move(window));
  return {};
}

Result<void> read_price(Part& part, PriceTerms& terms, Currency currency) {
  const auto money = [&](std::string_view text) { return Money::parse(text, currency); };
  Price price;
  price.tiers = {{0, Money::zero(currency)}};
  LOAM_CHECK(part.take("model", price.purchase_model, parse_enumerator<PurchaseModel>));
  LOAM_CHECK(part.take("tariff", price.tariff, parse_enumerator<Tariff>));
  LOAM_CHECK(part.take("window", price.window));
  LOAM_CHECK(part.take("class", price.service_class));
  LOAM_CHECK(part.take("work_class", price.work_class, parse_word_if<WorkClass>));
  LOAM_CHECK(part.take("isolation", price.isolation, parse_word_if<Isolation>));
  LOAM_CHECK(part.take("mode", price.tier_mode, parse_enumerator<TierMode>));
  LOAM_CHECK(part.take("price", price.tiers.front().price, money));
  LOAM_CHECK(part.each("tiers", [&](Part& tier) -> Result<void> {
    Tier made;
    LOAM_CHECK(tier.take("above", made.above_milli_ce_hours, [](std::string_view text) {
      return parse_decimal(text, 3, 1'000'000'000'000'000, "number of CE-hours");
    }));
    LOAM_CHECK(tier.take("price", made.price, money));
    price.tiers.push_back(made);
    return {};
  }));
  terms.prices.push_back(std::move(price));
  return {};
}

Result<void> read_rest(Part& card, PriceTerms& terms, Currency currency) {
  LOAM_CHECK(card.each("discount", [&](Part& part) -> Result<void> {
    Discount discount;
    LOAM_CHECK(part.take("name", discount.name));
    LOAM_CHECK(part.take("percent", discount.off, parse_share));
    LOAM_CHECK(part.take("model", discount.purchase_model, parse_word_if<PurchaseModel>));
    terms.discounts.push_back(std::move(discount));
    return {};
  }));
  LOAM_CHECK(card.each("tax", [&](Part& part) -> Result<void> {
    Tax tax;
    LOAM_CHECK(part.take("name", tax.name));
    LOAM_CHECK(part.take("percent", tax.parts_per_million, [](std::string_view text) {
      return parse_decimal(text, 4, 1'000'000, "tax in %");
    }));
    terms.taxes.push_back(std::move(tax));
    return {};
  }));
  LOAM_CHECK(card.one("services", [&](Part& part) -> Result<void> {
    const auto money = [&](std::string_view text) -> Result<std::optional<Money>> {
      LOAM_TRY(amount, Money::parse(text, currency));
      return std::optional<Money>(amount);
    };
    LOAM_CHECK(part.take("storage", terms.services.storage, money));
    LOAM_CHECK(part.take("backup", terms.services.backup, money));
    return part.take("network", terms.services.network, money);
  }));
  LOAM_CHECK(card.each("tokens", [&](Part& part) -> Result<void> {
    const auto money = [&](std::string_view text) -> Result<std::optional<Money>> {
      LOAM_TRY(amount, Money::parse(text, currency));
      return std::optional<Money>(amount);
    };
    TokenPrice price;
    LOAM_CHECK(part.take("model", price.model));
    LOAM_CHECK(part.take("prompt", price.prompt, money));
    LOAM_CHECK(part.take("cached", price.cached, money));
    LOAM_CHECK(part.take("generated", price.generated, money));
    terms.tokens.push_back(std::move(price));
    return {};
  }));
  LOAM_CHECK(card.one("lost_work", [&](Part& part) -> Result<void> {
    const auto rule = parse_enumerator<InterruptionRule>;
    LOAM_CHECK(part.take("displaced", terms.lost_work.displaced, rule));
    return part.take("device_lost", terms.lost_work.device_lost, rule);
  }));
  LOAM_CHECK(card.take("reservation_unused", terms.reservation_unused, parse_share));
  return card.one("spot", [&](Part& part) -> Result<void> {
    terms.spot.sold = true;
    LOAM_CHECK(part.take("floor", terms.spot.floor, parse_share));
    LOAM_CHECK(part.take("ceiling", terms.spot.ceiling, parse_share));
    return part.take("interrupted", terms.spot.interrupted, parse_enumerator<InterruptionRule>);
  });
}

// An instant, or a day, which begins at midnight UTC.
Result<std::optional<std::string>> read_from(std::string_view given) {
  constexpr std::size_t day_bytes = 10;  // "2026-03-02"
  std::string text(given);
  if (text.size() == day_bytes) {
    LOAM_CHECK(billing::parse_date(text));
    text += "T00:00:00Z";
  } else {
    LOAM_CHECK(parse_instant(text));
  }
  return std::optional(std::move(text));
}

Result<api::RateRequest> read_toml(const std::string& name, std::string_view text) {
  const toml::table table = toml::parse(text);
  Part card(table, name, "");
  api::RateRequest request;
  LOAM_CHECK(card.take("currency", request.currency));
  const auto currency = listed_currency(request.currency);
  if (!currency) return invalid(name + ": " + currency.error().message, currency.error().next_step);
  LOAM_CHECK(card.take("on_demand", request.on_demand));
  const auto as_text = [](std::string_view given) -> Result<std::optional<std::string>> {
    return std::optional<std::string>(given);
  };
  LOAM_CHECK(card.take("ce_per_gibibyte", request.ce_per_gibibyte, as_text));
  LOAM_CHECK(card.take("from", request.effective_from, read_from));
  PriceTerms& terms = request.terms;
  LOAM_CHECK(card.take("granularity", terms.granularity, parse_enumerator<Granularity>));
  LOAM_CHECK(card.take("zone", terms.zone));
  LOAM_CHECK(card.each("window", [&](Part& part) { return read_window(part, terms); }));
  LOAM_CHECK(card.each("price", [&](Part& part) { return read_price(part, terms, *currency); }));
  LOAM_CHECK(read_rest(card, terms, *currency));
  LOAM_CHECK(card.finish());
  return request;
}

// The line of the file that a message about the whole card speaks of: where what it quotes is
// written first, else where what it names begins, else the first.
std::size_t line_of(std::string_view text, const std::string& message) {
  const auto line_at = [&](std::size_t at) {
    return 1 + static_cast<std::size_t>(
                   std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  };
  for (std::size_t from = message.find('\''); from != std::string::npos;) {
    const std::size_t to = message.find('\'', from + 1);
    if (to == std::string::npos) break;
    const std::size_t at = text.find('"' + message.substr(from + 1, to - from - 1) + '"');
    if (at != std::string_view::npos) return line_at(at);
    from = message.find('\'', to + 1);
  }
  for (const char* word : {"floor", "ceiling", "reservation_unused", "window", "tier", "tax",
                           "discount", "token", "service", "granularity", "price", "zone"}) {
    if (message.find(word) == std::string::npos) continue;
    const std::size_t at = text.find(word);
    if (at != std::string_view::npos) return line_at(at);
  }
  return 1;
}

Result<api::RateRequest> read_text(const std::string& name, std::string_view text) {
  if (name.ends_with(".json")) {
    auto request = api::from_json<api::RateRequest>(text);
    if (request) return request;
    const Error& error = request.error();
    return invalid(name + ":" + std::to_string(line_of(text, error.message)) + ": " + error.message,
                   error.next_step);
  }
  try {
    return read_toml(name, text);
  } catch (const toml::parse_error& fault) {
    return invalid(name + ":" + std::to_string(fault.source().begin.line) +
                       ": not TOML: " + std::string(fault.description()),
                   "write it as docs/billing.md shows");
  }
}

}  // namespace

Result<api::RateRequest> read_card(const std::string& name, std::string_view text) {
  LOAM_TRY(request, read_text(name, text));
  const auto checked = [&]() -> Result<void> {
    LOAM_TRY(card, api::card_of(request));
    LOAM_TRY(table, billing::PriceTable::compile(std::move(card)));
    static_cast<void>(table);
    return {};
  }();
  if (!checked.ok()) {
    return invalid(name + ":" + std::to_string(line_of(text, checked.error().message)) + ": " +
                       checked.error().message,
                   checked.error().next_step);
  }
  return request;
}

}  // namespace loam::cli
