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

Result<void> Tables::check(const PriceTable& table) const {
  const auto& versions = of(table.card().currency);
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
  return {};
}

Result<void> Tables::add(PriceTable table) {
  LOAM_CHECK(check(table));
  all_.push_back(std::make_shared<const PriceTable>(std::move(table)));
  by_currency_[all_.back()->card().currency].push_back(all_.back());
  sells_spot_ = sells_spot_ || all_.back()->terms().spot.sold;
  return {};
}

std::vector<Currency> Tables::currencies() const {
  std::vector<Currency> known;
  for (const auto& [currency, versions] : by_currency_) known.push_back(currency);
  return known;
}

const std::vector<std::shared_ptr<const PriceTable>>& Tables::of(Currency currency) const {
  static const std::vector<std::shared_ptr<const PriceTable>> none;
  const auto found = by_currency_.find(currency);
  return found == by_currency_.end() ? none : found->second;
}

const PriceTable* Tables::selling(Currency currency, const Terms& terms, Instant instant) const {
  const auto& versions = of(currency);
  for (auto at = versions.rbegin(); at != versions.rend(); ++at) {
    if ((*at)->card().effective_from <= instant && (*at)->sells(terms)) return at->get();
  }
  return nullptr;
}

const SpotSeries* Tables::spot(Currency currency) const {
  const auto found = spot_.find(currency);
  return found == spot_.end() || found->second.empty() ? nullptr : &found->second;
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
  add(model, month_of(table.zone(), instant).from, quantity);
}

void TierCounters::add(PurchaseModel model, Instant month, Int128 quantity) {
  constexpr Duration remembered = Duration::hours(24 * 92);
  used_[{model, month}] += quantity;
  for (auto at = used_.lower_bound({model, Instant{}});
       at->first.first == model && at->first.second + remembered < month;)
    at = used_.erase(at);
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

const PriceTable* Rater::table_at(const Usage& usage, Instant at, Withdrawn withdrawn) const {
  const PriceTable* table = tables_.at(payer_.currency, at);
  if (table == nullptr || withdrawn == Withdrawn::refused || table->sells(usage.terms))
    return table;
  const PriceTable* sold = tables_.selling(payer_.currency, usage.terms, at);
  return sold != nullptr ? sold : table;
}

// From `at` on as far as one price holds, at most to `end`.
Result<Rater::Piece> Rater::piece_at(const Usage& usage, Instant at, Instant end,
                                     Withdrawn withdrawn) const {
  const PriceTable* table = table_at(usage, at, withdrawn);
  if (table == nullptr) return no_price(payer_.currency, at);
  PriceTable::Stretch stretch{0, Instant::never()};
  Money unit_price;
  const Price* price = nullptr;
  Instant tier_month;
  if (usage.terms.purchase_model == PurchaseModel::spot) {
    const SpotSeries* series = tables_.spot(payer_.currency);
    if (series == nullptr) return not_sold(*table, usage);
    unit_price = within(series->at(at), table->terms().spot, table->card().on_demand);
    stretch.until = series->next_change(at);
  } else {
    if (usage.terms.tariff == Tariff::time_of_day) stretch = table->stretch_at(at);
    price = table->price(usage.terms, stretch.window);
    if (price == nullptr) return not_sold(*table, usage);
    unit_price = price->tiers.front().price;
  }
  Instant until = std::min({end, stretch.until, tables_.next_change(payer_.currency, at)});
  if (price != nullptr && price->tiers.size() > 1) {
    const Period month = month_of(table->zone(), at);
    until = std::min(until, month.to);
    tier_month = month.from;
  }
  Piece piece{{}, table, price, 0, table->discount(usage.terms.purchase_model, payer_.discount)};
  piece.charge.from = at;
  piece.charge.to = until;
  piece.charge.card = table->card().id;
  piece.charge.window = stretch.window;
  piece.charge.quantity = static_cast<Int128>(usage.billable_ce.value) * (until - at).ms;
  piece.charge.unit_price = unit_price;
  piece.charge.table = table;
  piece.charge.tier_month = tier_month;
  return piece;
}

Result<void> Rater::compute_pieces(const Usage& usage, Pieces& pieces, Withdrawn withdrawn) const {
  const PriceTable* first = table_at(usage, usage.from, withdrawn);
  if (first == nullptr) return no_price(payer_.currency, usage.from);
  // A run keeps the unit it began with, so that its records go on where the last one ended.
  const PriceTable* at_start = table_at(usage, usage.run_from, withdrawn);
  const Granularity unit = (at_start != nullptr ? at_start : first)->terms().granularity;
  if (unit == Granularity::task) {
    if (usage.from != usage.run_from) return {};  // was charged when the run began
    LOAM_TRY(piece, piece_at(usage, usage.from, usage.to, withdrawn));
    piece.charge.to = usage.to;
    piece.charge.quantity = 1;
    pieces.push_back(std::move(piece));
    return {};
  }
  Instant at = billed_to(usage, usage.from, unit);
  const Instant end = billed_to(usage, usage.to, unit);
  while (at < end) {
    LOAM_TRY(piece, piece_at(usage, at, end, withdrawn));
    at = piece.charge.to;
    pieces.push_back(std::move(piece));
  }
  return {};
}

// At least one piece: of nothing, where no further unit was begun.
Result<void> Rater::run_pieces(const Usage& usage, Pieces& pieces) const {
  LOAM_CHECK(compute_pieces(usage, pieces, Withdrawn::keeps_its_price));
  if (!pieces.empty()) return {};
  LOAM_TRY(piece, piece_at(usage, usage.from, usage.to, Withdrawn::keeps_its_price));
  piece.charge.to = usage.to;
  piece.charge.quantity = 0;
  pieces.push_back(std::move(piece));
  return {};
}

// Moves the counters past the pieces, forwards or, where quantities are below zero, back.
void Rater::count(const Usage& usage, Pieces& pieces, TierCounters& counters) const {
  for (Piece& piece : pieces) {
    if (piece.price == nullptr || piece.price->tiers.size() == 1) continue;
    const PurchaseModel model = usage.terms.purchase_model;
    const auto used = counters.used().find({model, piece.charge.tier_month});
    piece.before = used == counters.used().end() ? 0 : used->second;
    counters.add(model, piece.charge.tier_month, piece.charge.quantity);
  }
}

Result<void> Rater::service_pieces(const Usage& usage, Pieces& pieces) const {
  if (usage.storage_mib_ms == 0 && usage.backup_mib_ms == 0 && usage.network_bytes == 0) return {};
  // What is held of a total up to an instant, so that the parts add up to it.
  const auto part = [&](std::int64_t total, Instant from, Instant to) {
    const auto up_to = [&](Instant instant) {
      return static_cast<Int128>(total) * (instant - usage.from).ms / usage.length().ms;
    };
    return up_to(to) - up_to(from);
  };
  Instant at = usage.from;
  while (at < usage.to) {
    const PriceTable* table = tables_.at(payer_.currency, at);
    if (table == nullptr) return no_price(payer_.currency, at);
    const Instant until = std::min(usage.to, tables_.next_change(payer_.currency, at));
    const ServiceRates& rates = table->terms().services;
    const auto add = [&](Meter meter, Int128 quantity, const std::optional<Money>& price) {
      if (quantity == 0 || !price) return;
      Piece piece{{}, table, nullptr, 0, payer_.discount};
      piece.charge = {meter, at, until, table->card().id, 0, 0, quantity, *price, {}, {}, table,
                      {},    0,  0};
      pieces.push_back(piece);
    };
    add(Meter::storage, part(usage.storage_mib_ms, at, until), rates.storage);
    add(Meter::backup, part(usage.backup_mib_ms, at, until), rates.backup);
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

// One sum a meter: pieces of a record grow it, and each takes what the rounded sum grew by.
void Rater::price(const Pieces& pieces, std::vector<Charge>& charges, Carry* carry) const {
  ExactSum list, net;
  Int128 list_before = 0, net_before = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    Charge charge = piece.charge;
    const Int128 scale = quantity_scale(charge.meter, piece.table->terms().granularity);
    if (i == 0 && carry != nullptr) {
      list_before = carry->list.units();
      net_before = carry->net.units();
      list.add(list_before, scale, 1);
      list.add(carry->list_residue, 1, 1);
      net.add(net_before, scale, whole_bp);
      net.add(carry->net_residue, 1, 1);
    }
    if (i > 0 && pieces[i - 1].charge.meter != charge.meter) {
      list = net = ExactSum();
      list_before = net_before = 0;
    }
    const std::int64_t payable = whole_bp - piece.discount.value;
    if (piece.price == nullptr || piece.price->tiers.size() == 1) {
      list.add(charge.unit_price.units(), charge.quantity, 1);
      net.add(charge.unit_price.units(), charge.quantity, payable);
    } else {
      const Int128 before = std::max<Int128>(0, piece.before);
      const Int128 after = std::max<Int128>(0, piece.before + charge.quantity);
      const Price& price = *piece.price;
      add_tiered(list, price.tiers, price.tier_mode, after, scale, 1);
      add_tiered(list, price.tiers, price.tier_mode, before, scale, -1);
      add_tiered(net, price.tiers, price.tier_mode, after, scale, payable);
      add_tiered(net, price.tiers, price.tier_mode, before, scale, -payable);
      charge.tier = tier_at(price, std::max(before, after), scale);
      charge.unit_price = price.tiers[charge.tier].price;
    }
    const Int128 list_now = list.rounded(scale);
    const Int128 net_now = net.rounded(scale * whole_bp);
    charge.list = Money(list_now - list_before, payer_.currency);
    charge.net = Money(net_now - net_before, payer_.currency);
    if (carry != nullptr) {
      charge.list_residue = list.residue(list_now, scale);
      charge.net_residue = net.residue(net_now, scale * whole_bp);
      *carry = {Money(list_now, payer_.currency), Money(net_now, payer_.currency),
                charge.list_residue, charge.net_residue};
    }
    list_before = list_now;
    net_before = net_now;
    charges.push_back(charge);
  }
}

Result<void> Rater::rate(const Usage& usage, std::vector<Charge>& charges,
                         TierCounters* counters) const {
  Pieces pieces;
  LOAM_CHECK(compute_pieces(usage, pieces, Withdrawn::refused));
  LOAM_CHECK(service_pieces(usage, pieces));
  if (counters != nullptr) count(usage, pieces, *counters);
  price(pieces, charges, nullptr);
  return {};
}

Result<void> Rater::rate_services(const Usage& usage, std::vector<Charge>& charges) const {
  Pieces pieces;
  LOAM_CHECK(service_pieces(usage, pieces));
  // A meter's pieces follow one another, as price() adds them up.
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.charge.meter < b.charge.meter; });
  price(pieces, charges, nullptr);
  return {};
}

Result<void> Rater::rate_on(const Usage& usage, std::vector<Charge>& charges,
                            TierCounters* counters, Carry& carry) const {
  Pieces pieces;
  LOAM_CHECK(run_pieces(usage, pieces));
  if (counters != nullptr) count(usage, pieces, *counters);
  price(pieces, charges, &carry);
  return {};
}

Result<void> Rater::take_back(const Usage& usage, std::vector<Charge>& charges,
                              TierCounters* counters, Carry& carry) const {
  Pieces pieces;
  LOAM_CHECK(run_pieces(usage, pieces));
  std::reverse(pieces.begin(), pieces.end());
  for (Piece& piece : pieces) {
    std::swap(piece.charge.from, piece.charge.to);
    piece.charge.quantity = -piece.charge.quantity;
  }
  if (counters != nullptr) count(usage, pieces, *counters);
  price(pieces, charges, &carry);
  return {};
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
