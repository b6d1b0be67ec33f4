#include "billing/rater.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <boost/describe/enum_to_string.hpp>

#include "base/assert.hpp"
#include "billing/exact.hpp"
#include "billing/tiers.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t whole_bp = 10'000;
constexpr Int128 hour_ms = 3'600'000;
constexpr Int128 bytes_per_gib = Int128{1} << 30;

Error no_price(Currency currency, Instant instant) {
  const std::string code(currency.code());
  return {ErrorKind::not_found, "there is no price in " + code + " at " + to_text(instant),
          "publish a card that is in force then"};
}

Error not_sold(const PriceTable& table, const Usage& usage) {
  return {ErrorKind::not_found,
          "the card " + table.card().id.text() + " does not sell " +
              boost::describe::enum_to_string(usage.terms.purchase_model, "?") + " at the tariff " +
              boost::describe::enum_to_string(usage.terms.tariff, "?") + " (record '" + usage.id +
              "')",
          "add a price for it, or use other terms"};
}

// The first millisecond at which begun units of `granularity` reach past `at`.
Instant billed_to(const Usage& usage, Instant at, Granularity granularity) {
  return usage.run_from + billed_length(at - usage.run_from, granularity);
}

}  // namespace

Result<void> Tables::add(PriceTable table) {
  auto& versions = by_currency_[table.card().currency];
  if (!versions.empty() && table.card().effective_from <= versions.back()->card().effective_from) {
    return Error{ErrorKind::conflict,
                 "a card from " + to_text(table.card().effective_from) +
                     " would change prices already published",
                 "take effect after " + to_text(versions.back()->card().effective_from)};
  }
  const auto per_task = [](const PriceTable& each) {
    return each.terms().granularity == Granularity::task;
  };
  if (!versions.empty() && per_task(*versions.back()) != per_task(table)) {
    return Error{ErrorKind::conflict,
                 "a card per task cannot follow one by time, nor the other way round",
                 "sell tasks in a currency of their own"};
  }
  versions.push_back(std::make_shared<const PriceTable>(std::move(table)));
  return {};
}

const PriceTable* Tables::at(Currency currency, Instant instant) const {
  const auto found = by_currency_.find(currency);
  if (found == by_currency_.end()) return nullptr;
  const auto& versions = found->second;
  const auto next = std::upper_bound(
      versions.begin(), versions.end(), instant,
      [](Instant t, const auto& table) { return t < table->card().effective_from; });
  return next == versions.begin() ? nullptr : std::prev(next)->get();
}

Instant Tables::next_change(Currency currency, Instant instant) const {
  const auto found = by_currency_.find(currency);
  if (found == by_currency_.end()) return Instant::never();
  const auto& versions = found->second;
  const auto next = std::upper_bound(
      versions.begin(), versions.end(), instant,
      [](Instant t, const auto& table) { return t < table->card().effective_from; });
  return next == versions.end() ? Instant::never() : (*next)->card().effective_from;
}

const char* name_of(Meter meter) noexcept {
  switch (meter) {
    case Meter::compute:
      return "compute";
    case Meter::storage:
      return "storage";
    case Meter::backup:
      return "backup";
    case Meter::network:
      return "network";
  }
  return "?";
}

const char* unit_of(Meter meter, Granularity granularity) noexcept {
  if (meter == Meter::network) return "GiB";
  if (meter != Meter::compute) return "GiB-Hours";
  return granularity == Granularity::task ? "Tasks" : "CE-Hours";
}

Int128 quantity_scale(Meter meter, Granularity granularity) {
  switch (meter) {
    case Meter::compute:
      return granularity == Granularity::task ? 1 : 1000 * hour_ms;
    case Meter::storage:
    case Meter::backup:
      return one_gibibyte.value * hour_ms;
    case Meter::network:
      return bytes_per_gib;
  }
  return 1;
}

Int128 TierCounters::used(const PriceTable& table, PurchaseModel model, Instant instant) const {
  const auto found = used_.find({model, month_of(table.zone(), instant).from});
  return found == used_.end() ? 0 : found->second;
}

void TierCounters::add(const PriceTable& table, PurchaseModel model, Instant instant,
                       Int128 quantity) {
  used_[{model, month_of(table.zone(), instant).from}] += quantity;
}

// One stretch of a record under one price, still without money.
struct Rater::Piece {
  Charge charge;
  const PriceTable* table = nullptr;
  const Price* price = nullptr;  // nullptr: `charge.unit_price` is the price
  Int128 before = 0;             // where tiers stood
  BasisPoints discount;
};

// Most records have one or two pieces: no memory is fetched for them.
struct Rater::Pieces : boost::container::small_vector<Piece, 4> {};

Result<void> Rater::compute_pieces(const Usage& usage, Pieces& pieces,
                                   TierCounters* counters) const {
  const PriceTable* first = tables_.at(payer_.currency, usage.from);
  if (first == nullptr) return no_price(payer_.currency, usage.from);
  // A run keeps the unit it began with, so that its records go on where the last one ended.
  const PriceTable* at_start = tables_.at(payer_.currency, usage.run_from);
  const Granularity unit = (at_start != nullptr ? at_start : first)->terms().granularity;
  if (unit == Granularity::task) {
    if (usage.from != usage.run_from) return {};  // was charged when the run began
    const Price* price = first->price(usage.terms, first->stretch_at(usage.from).window);
    if (price == nullptr) return not_sold(*first, usage);
    Piece piece{
        {}, first, nullptr, 0, first->discount(usage.terms.purchase_model, payer_.discount)};
    piece.charge = {Meter::compute,
                    usage.from,
                    usage.to,
                    first->card().id,
                    0,
                    0,
                    1,
                    price->tiers.front().price,
                    {},
                    {}};
    pieces.push_back(piece);
    return {};
  }
  Instant at = billed_to(usage, usage.from, unit);
  const Instant end = billed_to(usage, usage.to, unit);
  while (at < end) {
    const PriceTable* table = tables_.at(payer_.currency, at);
    LOAM_ASSERT(table != nullptr);
    PriceTable::Stretch stretch{0, Instant::never()};
    if (usage.terms.tariff == Tariff::time_of_day) stretch = table->stretch_at(at);
    const Price* price = table->price(usage.terms, stretch.window);
    if (price == nullptr) return not_sold(*table, usage);
    Instant until = std::min({end, stretch.until, tables_.next_change(payer_.currency, at)});
    const bool tiered = price->tiers.size() > 1;
    if (tiered) until = std::min(until, month_of(table->zone(), at).to);
    Piece piece{{}, table, price, 0, table->discount(usage.terms.purchase_model, payer_.discount)};
    const Int128 quantity = static_cast<Int128>(usage.billable_ce.value) * (until - at).ms;
    piece.charge = {Meter::compute,
                    at,
                    until,
                    table->card().id,
                    stretch.window,
                    0,
                    quantity,
                    price->tiers.front().price,
                    {},
                    {}};
    if (tiered && counters != nullptr) {
      piece.before = counters->used(*table, usage.terms.purchase_model, at);
      counters->add(*table, usage.terms.purchase_model, at, quantity);
    }
    pieces.push_back(piece);
    at = until;
  }
  return {};
}

Result<void> Rater::service_pieces(const Usage& usage, Pieces& pieces) const {
  if (usage.storage.value == 0 && usage.backup.value == 0 && usage.network_bytes == 0) return {};
  Instant at = usage.from;
  while (at < usage.to) {
    const PriceTable* table = tables_.at(payer_.currency, at);
    if (table == nullptr) return no_price(payer_.currency, at);
    const Instant until = std::min(usage.to, tables_.next_change(payer_.currency, at));
    const ServiceRates& rates = table->terms().services;
    const auto add = [&](Meter meter, Int128 quantity, const std::optional<Money>& price) {
      if (quantity == 0 || !price) return;
      Piece piece{{}, table, nullptr, 0, payer_.discount};
      piece.charge = {meter, at, until, table->card().id, 0, 0, quantity, *price, {}, {}};
      pieces.push_back(piece);
    };
    const Int128 length = (until - at).ms;
    add(Meter::storage, usage.storage.value * length, rates.storage);
    add(Meter::backup, usage.backup.value * length, rates.backup);
    // Bytes carry no time of their own: they are priced when the record begins.
    if (at == usage.from) add(Meter::network, usage.network_bytes, rates.network);
    at = until;
  }
  return {};
}

namespace {

std::uint32_t tier_at(const Price& price, Int128 total, Int128 scale) {
  std::uint32_t tier = 0;
  while (tier + 1 < price.tiers.size() &&
         total > static_cast<Int128>(price.tiers[tier + 1].above_milli_ce_hours) * (scale / 1000))
    ++tier;
  return tier;
}

}  // namespace

Result<void> Rater::rate(const Usage& usage, std::vector<Charge>& charges,
                         TierCounters* counters) const {
  Pieces pieces;
  Result<void> found = compute_pieces(usage, pieces, counters);
  if (found.ok()) found = service_pieces(usage, pieces);
  if (!found.ok()) {
    for (const Piece& piece : pieces) {  // as if the record had never come
      if (counters != nullptr && piece.price != nullptr && piece.price->tiers.size() > 1)
        counters->add(*piece.table, usage.terms.purchase_model, piece.charge.from,
                      -piece.charge.quantity);
    }
    return found;
  }
  // One sum a meter: pieces of a record grow it, and each takes what the rounded sum grew by.
  ExactSum list, net;
  Int128 list_before = 0, net_before = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Piece& piece = pieces[i];
    if (i > 0 && pieces[i - 1].charge.meter != piece.charge.meter) {
      list = net = ExactSum();
      list_before = net_before = 0;
    }
    const Granularity unit = piece.table->terms().granularity;
    const Int128 scale = quantity_scale(piece.charge.meter, unit);
    const std::int64_t payable = whole_bp - piece.discount.value;
    if (piece.price == nullptr || piece.price->tiers.size() == 1) {
      list.add(piece.charge.unit_price.units(), piece.charge.quantity, 1);
      net.add(piece.charge.unit_price.units(), piece.charge.quantity, payable);
    } else {
      const Int128 after = piece.before + piece.charge.quantity;
      const Price& price = *piece.price;
      add_tiered(list, price.tiers, price.tier_mode, after, scale, 1);
      add_tiered(list, price.tiers, price.tier_mode, piece.before, scale, -1);
      add_tiered(net, price.tiers, price.tier_mode, after, scale, payable);
      add_tiered(net, price.tiers, price.tier_mode, piece.before, scale, -payable);
      piece.charge.tier = tier_at(price, after, scale);
      piece.charge.unit_price = price.tiers[piece.charge.tier].price;
    }
    const Int128 list_now = list.rounded(scale);
    const Int128 net_now = net.rounded(scale * whole_bp);
    piece.charge.list = Money(list_now - list_before, payer_.currency);
    piece.charge.net = Money(net_now - net_before, payer_.currency);
    list_before = list_now;
    net_before = net_now;
    charges.push_back(piece.charge);
  }
  return {};
}

Result<std::vector<Charge>> Rater::rate_all(std::vector<Usage> usages) const {
  std::sort(usages.begin(), usages.end(), [](const Usage& a, const Usage& b) {
    return std::tie(a.from, a.id) < std::tie(b.from, b.id);
  });
  std::vector<Charge> charges;
  TierCounters counters;
  for (const Usage& usage : usages) LOAM_CHECK(rate(usage, charges, &counters));
  return charges;
}

Amount total_of(const std::vector<Charge>& charges, Currency currency) {
  Amount total{Money::zero(currency), Money::zero(currency)};
  for (const Charge& charge : charges) {
    total.list += charge.list;
    total.net += charge.net;
  }
  return total;
}

}  // namespace loam::billing
