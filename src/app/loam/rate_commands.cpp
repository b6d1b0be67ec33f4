// rate list, show, set and publish.
#include <algorithm>
#include <boost/describe/enum_to_string.hpp>
#include <fstream>
#include <iterator>

#include "app/loam/card_file.hpp"
#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "base/currency_codes.hpp"
#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "billing/spot.hpp"

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

// The least that a card asks for a CE-hour of one model at the plain terms; nothing where it has no
// such price.
std::optional<Money> least_of(const PriceTerms& terms, PurchaseModel model) {
  std::optional<Money> least;
  for (const Price& price : terms.prices) {
    if (price.purchase_model != model || !price.service_class.empty() || price.work_class ||
        price.isolation)
      continue;
    for (const Tier& tier : price.tiers) least = least ? std::min(*least, tier.price) : tier.price;
  }
  return least;
}

// What a card says and the daemon does not do, and what is odd about its prices.
std::vector<std::string> notes_on(const PriceTerms& terms, Money on_demand) {
  std::vector<std::string> notes;
  const auto reservation = least_of(terms, PurchaseModel::reservation);
  const auto commitment = least_of(terms, PurchaseModel::commitment);
  if (!reservation && terms.reservation_unused != PriceTerms{}.reservation_unused)
    notes.push_back("reservation_unused: says nothing without a price of the model reservation");
  if (reservation && *reservation < on_demand)
    notes.push_back("reservation: cheaper than on demand, though capacity is locked for it");
  if (commitment && *commitment > on_demand)
    notes.push_back("commitment: dearer than on demand, so nobody gains by it");
  return notes;
}

void say_notes(Session& session, const PriceTerms& terms, const std::string& on_demand,
               const std::string& currency) {
  const auto code = Currency::parse(currency);
  const auto price = Money::parse(on_demand, code ? *code : Currency());
  for (const std::string& note : notes_on(terms, price ? *price : Money()))
    session.say("note: " + note);
}

// What else a card says, in facts.
std::string facts_of(const PriceTerms& terms, const std::string& currency, bool colour) {
  const auto rate = [&](const std::optional<Money>& price, const char* unit) {
    return price ? money_exact(amount_text(*price), currency) + " " + currency + " " + unit
                 : std::string();
  };
  std::string discounts, taxes;
  for (const Discount& discount : terms.discounts)
    discounts += (discounts.empty() ? "" : ", ") + discount.name + " " +
                 decimal_text(discount.off.value, 2) + " %" +
                 (discount.purchase_model ? " on " + word(*discount.purchase_model) : "");
  for (const Tax& tax : terms.taxes)
    taxes += (taxes.empty() ? "" : ", ") + tax.name + " " + decimal_text(tax.parts_per_million, 4) +
             " %";
  const bool reserved = terms.reservation_unused != PriceTerms{}.reservation_unused;
  return facts_text({{"bills", terms.granularity == Granularity::exact ? "to the millisecond"
                               : terms.granularity == Granularity::task
                                   ? "by the task, however long"
                                   : "every " + word(terms.granularity) + " begun"},
                     {"discounts", discounts},
                     {"taxes", taxes},
                     {"storage", rate(terms.services.storage, "a GiB-hour held")},
                     {"backup", rate(terms.services.backup, "a GiB-hour held")},
                     {"network", rate(terms.services.network, "a GiB moved")},
                     {"unused", reserved ? decimal_text(terms.reservation_unused.value, 2) +
                                               " % of the price, of reserved time"
                                         : std::string()}},
                    colour);
}

Result<int> run_rate_spot(Session& session, const Arguments& arguments) {
  LOAM_TRY(from, instant_or_day(arguments, "from"));
  LOAM_TRY(to, instant_or_day(arguments, "to"));
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->spot_prices(arguments.text("currency", "USD"), from, to));
  if (session.json()) return session.print_json(list);
  if (list.prices.empty()) {
    session.say("spot is not sold in " + list.currency +
                "; a rate card with a [spot] table sells it");
    return 0;
  }
  Table table({{"FROM (UTC)"},
               {"TO (UTC)"},
               {"A CE-HOUR", Align::right},
               {""},
               {"OF ON DEMAND", Align::right},
               {"SUPPLY CE", Align::right},
               {"DEMAND CE", Align::right}});
  LOAM_TRY(currency, Currency::parse(list.currency));
  const auto on_demand = Money::parse(list.on_demand, currency);
  std::vector<std::string> prices;
  for (const api::SpotPriceView& price : list.prices) prices.push_back(price.price);
  const auto column = money_column(prices, list.currency);
  for (std::size_t i = 0; i < list.prices.size(); ++i) {
    const api::SpotPriceView& price = list.prices[i];
    std::string share;
    if (const auto amount = Money::parse(price.price, currency);
        amount && on_demand && !on_demand->is_zero()) {
      constexpr std::int64_t whole = 10'000;
      const Money part = Money(whole, currency)
                             .times_ratio(amount->units(), on_demand->units(), Rounding::half_even);
      share = decimal_text(static_cast<std::int64_t>(part.units()), 2) + " %";
    }
    table.add({instant_text(price.from), price.to.empty() ? "now" : instant_text(price.to),
               column[i], list.currency, share, price.supply_ce, price.demand_ce});
  }
  session.out() << session.text_of(table);
  return 0;
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
    if (!(terms.lost_work == LostWork{})) {
      session.out() << "a run that is displaced: " << billing::words_of(terms.lost_work.displaced)
                    << "; whose device is lost: " << billing::words_of(terms.lost_work.device_lost)
                    << "\n";
    }
    print_token_prices(session, terms, rate.currency);
    session.out() << "\n" << facts_of(terms, rate.currency, session.console().colour);
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
  LOAM_TRY(currency, listed_currency(request.currency));
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
  say_notes(session, request.terms, request.on_demand, request.currency);
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
  constexpr std::size_t day_bytes = 10;     // "2026-03-02"
  constexpr std::size_t minute_bytes = 17;  // "2026-03-02T08:00Z"
  std::string text = given.size() == day_bytes ? given + "T00:00:00Z" : given;
  if (text.size() == minute_bytes && text.back() == 'Z') text.insert(minute_bytes - 1, ":00");
  if (const auto instant = parse_instant(text); !instant)
    return invalid("--" + std::string(option) + ": " + instant.error().message,
                   "write it as 2026-03-02, 2026-03-02T08:00Z or 2026-03-02T08:00:00Z");
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
      {"rate spot",
       "What a CE-hour of spot costs now, and has cost",
       "The price moves at most once a minute, with supply and demand.",
       "loam rate spot\nloam rate spot --from 2026-03-01 --currency EUR",
       {},
       {{"Which",
         {{"--currency", "CODE", "default: USD"},
          {"--from", "INSTANT", "also the prices since then, the last hundred"},
          {"--to", "INSTANT", "those that began before then; default: now"}}}},
       run_rate_spot},
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
