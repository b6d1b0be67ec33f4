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

// What a run costs that is cut short, where that is not what it ran.
std::string lost_words(InterruptionRule displaced, InterruptionRule device_lost) {
  std::string words;
  if (displaced != InterruptionRule::ran)
    words += "; where others displace it, " + words_of(displaced);
  if (device_lost != InterruptionRule::ran)
    words += "; where its device is lost, " + words_of(device_lost);
  return words;
}

std::string rule_of(const PriceTable& table, const QuoteRequest& request) {
  const PriceTerms& terms = table.terms();
  std::string rule = "billed " + unit_words(terms.granularity);
  if (request.terms.purchase_model == PurchaseModel::spot) {
    return rule + "; the price follows supply and demand; where others displace it, " +
           words_of(terms.spot.interrupted) +
           lost_words(InterruptionRule::ran, terms.lost_work.device_lost);
  }
  if (request.terms.tariff == Tariff::time_of_day) {
    rule += "; the price follows the windows of " + table.zone().name();
  } else {
    rule += " at one price";
  }
  return rule + lost_words(terms.lost_work.displaced, terms.lost_work.device_lost);
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

Money times(Money amount, std::int64_t members) {
  return amount.times_ratio(members, 1, Rounding::half_even);
}

Money at_price(const QuoteRequest& request, const PriceTable& table, Money price, Duration length,
               BasisPoints discount) {
  if (table.terms().granularity == Granularity::task)
    return price.times_ratio(10'000 - discount.value, 10'000, Rounding::half_even);
  return rate(request.ce, billed_length(length, table.terms().granularity), price, discount).net;
}

}  // namespace

Result<PriceQuote> quote(const Tables& tables, Payer payer, const QuoteRequest& request,
                         const TierCounters& counters) {
  LOAM_ASSERT(request.expected.ms > 0 && request.longest >= request.expected);
  const std::string code(payer.currency.code());
  const PriceTable* table = tables.at(payer.currency, request.start);
  if (table == nullptr) {
    return Error{ErrorKind::not_found, "there is no price in " + code + " yet",
                 "ask the operator to publish one: loam rate set PRICE --currency " + code};
  }
  LOAM_CHECK(sold(*table, request.terms));
  if (request.terms.purchase_model == PurchaseModel::spot &&
      tables.spot(payer.currency) == nullptr) {
    return Error{ErrorKind::not_found, "there is no spot price in " + code + " yet",
                 "use on_demand"};
  }
  std::vector<Charge> charges;
  TierCounters moved = counters;
  const Rater rater(tables, payer);
  const Usage usage = usage_of(request, request.expected);
  LOAM_CHECK(rater.rate(usage, charges, &moved));
  Money expected = total_of(charges, payer.currency).net;
  if (charges.front().tier_month == Instant{}) {
    expected = times(expected, request.members);
  } else {  // each member stands on the tiers that the one before it reached
    std::vector<Charge> more;
    for (std::int64_t i = 1; i < request.members; ++i) LOAM_CHECK(rater.rate(usage, more, &moved));
    expected += total_of(more, payer.currency).net;
  }
  const BasisPoints discount = table->discount(request.terms.purchase_model, payer.discount);
  PriceQuote quoted;
  quoted.ce = request.ce;
  quoted.unit_price = charges.front().unit_price;
  quoted.expected = expected;
  quoted.best = std::min(expected, times(at_price(request, *table, *table->cheapest(request.terms),
                                                  request.expected, discount),
                                         request.members));
  quoted.worst = std::max(expected, times(dearest_cost(tables, payer, request.terms, request.ce,
                                                       request.start, request.longest),
                                          request.members));
  quoted.rule = rule_of(*table, request);
  return quoted;
}

Result<void> sold(const PriceTable& table, const Terms& terms) {
  const auto word = [](auto value) {
    return std::string(boost::describe::enum_to_string(value, "?"));
  };
  if (!table.sells(terms)) {
    return Error{ErrorKind::not_found,
                 "the rate card " + table.card().id.text() + " does not sell " +
                     word(terms.purchase_model) + " at the tariff " + word(terms.tariff),
                 "see what it sells with: loam rate show " + table.card().id.text()};
  }
  if (terms.service_class != "standard" && !table.names_class(terms.service_class)) {
    return Error{ErrorKind::not_found,
                 "the rate card " + table.card().id.text() + " has no service class '" +
                     terms.service_class + "'",
                 "see what it sells with: loam rate show " + table.card().id.text()};
  }
  return {};
}

}  // namespace loam::billing
