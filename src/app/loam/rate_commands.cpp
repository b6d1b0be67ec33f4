// rate list, show, set and publish.
#include <boost/describe/enum_to_string.hpp>
#include <fstream>
#include <iterator>

#include "app/loam/card_file.hpp"
#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

template <class Enum>
std::string word(Enum value) {
  return boost::describe::enum_to_string(value, "?");
}

// What a card sells besides its price on demand, in few words.
std::string more_of(const PriceTerms& terms) {
  std::string text;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  if (terms.granularity != Granularity::exact) add("by the " + word(terms.granularity));
  if (!terms.windows.empty()) add("by time of day");
  if (!terms.prices.empty()) add(count_of(static_cast<std::int64_t>(terms.prices.size()), "price"));
  if (terms.spot.sold) add("spot");
  for (const Discount& discount : terms.discounts)
    add(discount.name + " -" + decimal_text(discount.off.value, 2) + " %");
  for (const Tax& tax : terms.taxes)
    add(tax.name + " " + decimal_text(tax.parts_per_million, 4) + " %");
  return text;
}

int print_rates(Session& session, const api::RateList& list) {
  if (session.json()) return session.print_json(list);
  if (list.rates.empty()) {
    session.say("no rates, so nothing can be sold; set one with: loam rate set 0.02");
    return 0;
  }
  Table table({{"ID"},
               {"FROM (UTC)"},
               {"ON DEMAND", Align::right},
               {"A CE-HOUR"},
               {"CE A GIB", Align::right},
               {"MORE", Align::left, true}});
  for (const api::RateView& rate : list.rates) {
    table.add({rate.id, instant_text(rate.effective_from),
               money_exact(rate.on_demand, rate.currency), rate.currency, rate.ce_per_gibibyte,
               more_of(rate.terms)});
  }
  session.out() << session.text_of(table);
  return 0;
}

Result<int> run_rate_list(Session& session, const Arguments&) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->rates());
  return print_rates(session, list);
}

std::string clock_text(Duration of_day) {
  const auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  return two(of_day.ms / 3'600'000) + ":" + two(of_day.ms / 60'000 % 60);
}

std::string days_text(const Window& window) {
  if (!window.date.empty()) return window.date;
  if (window.weekdays.empty()) return "every day";
  static const char* const names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
  std::string text;
  for (const std::int64_t day : window.weekdays) {
    text += text.empty() ? "" : " ";
    text += names[static_cast<std::size_t>(day) % 7];
  }
  return text;
}

std::string tiers_text(const Price& price, const std::string& currency) {
  std::string text;
  for (const Tier& tier : price.tiers) {
    if (!text.empty()) text += ", above " + decimal_text(tier.above_milli_ce_hours, 3) + ": ";
    text += money_exact(amount_text(tier.price), currency);
  }
  if (price.tiers.size() > 1) text += " (" + word(price.tier_mode) + ")";
  return text;
}

std::string for_what(const Price& price) {
  std::string text = word(price.purchase_model) + " " + word(price.tariff);
  if (!price.window.empty()) text += " " + price.window;
  if (!price.service_class.empty()) text += ", class " + price.service_class;
  if (price.work_class) text += ", " + word(*price.work_class);
  if (price.isolation) text += ", " + word(*price.isolation) + " isolation";
  return text;
}

void print_token_prices(Session& session, const PriceTerms& terms, const std::string& currency) {
  if (terms.tokens.empty()) return;
  Table table({{"A MILLION TOKENS OF"}, {"PROMPT"}, {"CACHED"}, {"GENERATED"}});
  const auto text = [&](const std::optional<Money>& price) {
    return price ? money_exact(amount_text(*price), currency) : std::string("-");
  };
  for (const TokenPrice& price : terms.tokens)
    table.add({price.model, text(price.prompt), text(price.cached ? price.cached : price.prompt),
               text(price.generated)});
  session.out() << "\n" << session.text_of(table);
}

Result<int> run_rate_show(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->rates());
  for (const api::RateView& rate : list.rates) {
    if (rate.id != arguments.operand(0)) continue;
    if (session.json()) return session.print_json(rate);
    const PriceTerms& terms = rate.terms;
    print_rates(session, {{rate}});
    Table table({{"PRICE OF"},
                 {"A " + std::string(terms.granularity == Granularity::task ? "TASK" : "CE-HOUR"),
                  Align::left, true}});
    if (terms.prices.empty())
      table.add({"on_demand flat", money_exact(rate.on_demand, rate.currency)});
    for (const Price& price : terms.prices)
      table.add({for_what(price), tiers_text(price, rate.currency)});
    if (terms.spot.sold) {
      table.add({"spot", decimal_text(terms.spot.floor.value, 2) + " % to " +
                             decimal_text(terms.spot.ceiling.value, 2) +
                             " % of on demand; interrupted: " + word(terms.spot.interrupted)});
    }
    session.out() << "\n" << session.text_of(table);
    print_token_prices(session, terms, rate.currency);
    if (terms.windows.empty()) return 0;
    Table windows({{"WINDOW"}, {"FROM"}, {"TO"}, {"ON", Align::left, true}});
    for (const Window& window : terms.windows)
      windows.add({window.name, clock_text(window.from), clock_text(window.to),
                   days_text(window) + ", " + terms.zone});
    session.out() << "\n" << session.text_of(windows);
    return 0;
  }
  return Error{ErrorKind::not_found, "there is no rate card " + arguments.operand(0),
               "see them with: loam rate list"};
}

Result<int> run_rate_set(Session& session, const Arguments& arguments) {
  api::RateRequest request;
  request.on_demand = arguments.operand(0);
  request.currency = arguments.text("currency", request.currency);
  LOAM_TRY(currency, Currency::parse(request.currency));
  LOAM_TRY(price, Money::parse(request.on_demand, currency));
  if (price.is_negative())
    return invalid("a price of " + request.on_demand + " is below zero", "use 0 or more");
  if (arguments.has("ce-per-gib")) {
    const std::string ratio = arguments.text("ce-per-gib");
    if (const auto read = parse_decimal(ratio, 3, milli_ce_max.value, "number of CE"); !read)
      return read.error();
    request.ce_per_gibibyte = ratio;
  }
  LOAM_TRY(from, instant_or_day(arguments, "from"));
  if (!from.empty()) request.effective_from = from;
  LOAM_TRY(client, session.client());
  LOAM_TRY(rate, client->publish_rate(request));
  if (session.json()) return session.print_json(rate);
  return print_rates(session, {{rate}});
}

Result<int> run_rate_publish(Session& session, const Arguments& arguments) {
  const std::string path = arguments.operand(0);
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad())
    return Error{ErrorKind::not_found, "the rate card '" + path + "' cannot be read",
                 "check its name and who may read it"};
  LOAM_TRY(request, read_card(path, text));
  LOAM_TRY(from, instant_or_day(arguments, "from"));
  if (!from.empty()) request.effective_from = from;
  if (arguments.has("check")) {
    session.say(printable(path) + " is a rate card in " + request.currency);
    return 0;
  }
  LOAM_TRY(client, session.client());
  LOAM_TRY(rate, client->publish_rate(request));
  if (session.json()) return session.print_json(rate);
  return print_rates(session, {{rate}});
}

}  // namespace

// An instant, or a day, which begins at midnight UTC.
Result<std::string> instant_or_day(const Arguments& arguments, const char* option) {
  if (!arguments.has(option)) return std::string();
  const std::string given = arguments.text(option);
  constexpr std::size_t day_bytes = 10;  // "2026-03-02"
  const std::string text = given.size() == day_bytes ? given + "T00:00:00Z" : given;
  if (const auto instant = parse_instant(text); !instant)
    return invalid("--" + std::string(option) + ": " + instant.error().message,
                   "write it as 2026-03-02 or 2026-03-02T00:00:00Z");
  return text;
}

std::vector<Command> rate_commands() {
  return {
      {"rate list",
       "The prices, with the instants from which they hold",
       "",
       "loam rate list",
       {},
       {},
       run_rate_list},
      {"rate show",
       "One rate card with all its prices and windows",
       "",
       "loam rate show r2",
       {{"ID", "a rate card, as the list shows it"}},
       {},
       run_rate_show},
      {"rate set",
       "Publish a price: what a CE-hour costs from now, or from then, on",
       "",
       "loam rate set 0.02\nloam rate set 0.025 --from 2026-04-01 --currency EUR",
       {{"PRICE", "of a CE-hour on demand, such as 0.02"}},
       {{"Terms",
         {{"--currency", "CODE", "default: USD"},
          {"--ce-per-gib", "CE", "the CE that a GiB of device memory counts for; default: 1.25"},
          {"--from", "INSTANT", "default: now"}}}},
       run_rate_set,
       true},
      {"rate publish",
       "Publish a whole rate card from a file: windows, tiers, discounts, taxes, spot",
       "TOML, or JSON as the API takes it; docs/billing.md shows both. A card that cannot be used\n"
       "is refused with the line and the reason, and nothing is published.",
       "loam rate publish card.toml\nloam rate publish card.toml --from 2026-04-01\n"
       "loam rate publish card.toml --check",
       {{"FILE", "the card", Operand::Kind::one, "@path"}},
       {{"Terms",
         {{"--from", "INSTANT", "when it takes effect, over the file; default: now"},
          {"--check", "", "only check the file; needs no daemon", Kind::flag}}}},
       run_rate_publish,
       true},
  };
}

}  // namespace loam::cli
