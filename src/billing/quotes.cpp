#include "billing/quotes.hpp"

#include <algorithm>
#include <boost/describe/enum_to_string.hpp>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

std::string unit_words(Granularity granularity) {
  switch (granularity) {
    case Granularity::exact:
      return "by the time it runs, to the millisecond";
    case Granularity::second:
      return "by the second begun";
    case Granularity::minute:
      return "by the minute begun";
    case Granularity::hour:
      return "by the hour begun";
    case Granularity::task:
      return "once a run, however long";
  }
  return {};
}

std::string rule_of(const PriceTable& table, const QuoteRequest& request) {
  std::string rule = "billed " + unit_words(table.terms().granularity);
  if (request.terms.purchase_model == PurchaseModel::spot)
    return rule + "; the price follows supply and demand; " +
           words_of(table.terms().spot.interrupted);
  if (request.terms.tariff == Tariff::time_of_day)
    return rule + "; the price follows the windows of " + table.zone().name();
  return rule + " at one price";
}

Usage usage_of(const QuoteRequest& request, Duration length) {
  Usage usage;
  usage.id = "quote";
  usage.from = usage.run_from = request.start;
  usage.to = request.start + length;
  usage.terms = request.terms;
  usage.billable_ce = request.ce;
  return usage;
}

Money at_price(const QuoteRequest& request, const PriceTable& table, Money price, Duration length,
               BasisPoints discount) {
  if (table.terms().granularity == Granularity::task)
    return price.times_ratio(10'000 - discount.value, 10'000, Rounding::half_even);
  return rate(request.ce, billed_length(length, table.terms().granularity), price, discount).net;
}

PriceQuote spot_quote(const PriceTable& table, const QuoteRequest& request, Money spot,
                      BasisPoints discount) {
  const SpotTerms& terms = table.terms().spot;
  const Money on_demand = table.card().on_demand;
  const auto share = [&](BasisPoints part) {
    return on_demand.times_ratio(part.value, 10'000, Rounding::half_even);
  };
  PriceQuote quoted;
  quoted.ce = request.ce;
  quoted.unit_price = spot;
  quoted.expected = at_price(request, table, spot, request.expected, discount);
  quoted.best = at_price(request, table, share(terms.floor), request.expected, discount);
  quoted.worst = at_price(request, table, share(terms.ceiling), request.longest, discount);
  return quoted;
}

// The dearest of all cards from `from` on.
Money dearest_from(const Tables& tables, Currency currency, const Terms& terms, Instant from,
                   Money dearest) {
  for (Instant at = tables.next_change(currency, from); at != Instant::never();
       at = tables.next_change(currency, at)) {
    const auto later = tables.at(currency, at)->dearest(terms);
    if (later) dearest = std::max(dearest, *later);
  }
  return dearest;
}

}  // namespace

Result<PriceQuote> quote(const Tables& tables, Payer payer, const QuoteRequest& request,
                         std::optional<Money> spot) {
  LOAM_ASSERT(request.expected.ms > 0 && request.longest >= request.expected);
  const PriceTable* table = tables.at(payer.currency, request.start);
  if (table == nullptr) {
    return Error{ErrorKind::not_found,
                 "there is no price in " + std::string(payer.currency.code()) + " yet",
                 "ask the operator to publish one"};
  }
  const BasisPoints discount = table->discount(request.terms.purchase_model, payer.discount);
  if (request.terms.purchase_model == PurchaseModel::spot) {
    if (!spot) return Error{ErrorKind::not_found, "there is no spot price yet", "use on_demand"};
    PriceQuote quoted = spot_quote(*table, request, *spot, discount);
    quoted.rule = rule_of(*table, request);
    return quoted;
  }
  std::vector<Charge> charges;
  LOAM_CHECK(Rater(tables, payer).rate(usage_of(request, request.expected), charges));
  const Money expected = total_of(charges, payer.currency).net;
  const Money dearest = dearest_from(tables, payer.currency, request.terms, request.start,
                                     *table->dearest(request.terms));
  PriceQuote quoted;
  quoted.ce = request.ce;
  quoted.unit_price = charges.front().unit_price;
  quoted.expected = expected;
  quoted.best = std::min(expected, at_price(request, *table, *table->cheapest(request.terms),
                                            request.expected, discount));
  quoted.worst = std::max(expected, at_price(request, *table, dearest, request.longest, discount));
  quoted.rule = rule_of(*table, request);
  return quoted;
}

}  // namespace loam::billing
