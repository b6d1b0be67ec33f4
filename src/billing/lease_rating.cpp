#include "billing/lease_rating.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t whole_ppm = 1'000'000;

Usage usage_of(const Lease& lease, const Terms& terms, Instant from, Instant to) {
  Usage usage;
  usage.lease = lease.id;
  usage.from = from;
  usage.to = to;
  usage.run_from = lease.started_at;
  usage.terms = terms;
  usage.billable_ce = lease.billable_ce;
  return usage;
}

Carry carry_of(const Lease& lease) {
  return {lease.rated_list, lease.rated_net, lease.list_residue, lease.net_residue};
}

// What all records of a lease have in common.
UsageRecord record_of(const Lease& lease, const Terms& terms) {
  UsageRecord record;
  record.lease = lease.id;
  record.task = lease.task;
  record.tenant = lease.tenant;
  record.billable_ce = lease.billable_ce;
  record.purchase_model = terms.purchase_model;
  record.tariff = terms.tariff;
  for (const Slice& slice : lease.slices) record.memory += slice.memory;
  return record;
}

UsageRecord record_of(const Lease& lease, const Terms& terms, const Charge& charge) {
  UsageRecord record = record_of(lease, terms);
  const bool per_task = charge.table->terms().granularity == Granularity::task;
  record.card = charge.card;
  record.window = charge.table->window_name(charge.window);
  if (per_task) {
    record.tasks = static_cast<std::int64_t>(charge.quantity);
  } else if (charge.quantity != 0) {
    record.billed = charge.to - charge.from;
  }
  record.tier_month = charge.tier_month;
  record.unit_price = charge.unit_price;
  record.list = charge.list;
  record.net = charge.net;
  record.list_residue = charge.list_residue;
  record.net_residue = charge.net_residue;
  return record;
}

}  // namespace

Terms terms_of(const TaskSpec& spec, PurchaseModel model, Isolation given) {
  // What no sandbox bound was sold and is priced as software.
  const Isolation isolation = given == Isolation::hardware ? given : Isolation::software;
  return {model, spec.tariff, spec.request.work_class, isolation, spec.service_class};
}

Terms terms_of(const TaskSpec& spec, const Lease& lease) {
  return terms_of(spec, lease.purchase_model, lease.isolation);
}

std::vector<UsageRecord> rate_until(const Lease& lease, const Terms& terms, const Payer& payer,
                                    const Tables& tables, const TierCounters& counters,
                                    Instant to) {
  LOAM_ASSERT(lease.started());
  std::vector<UsageRecord> records;
  if (to <= lease.billed_until) return records;
  std::vector<Charge> charges;
  TierCounters moved = counters;
  Carry carry = carry_of(lease);
  const Result<void> rated =
      Rater(tables, payer)
          .rate_on(usage_of(lease, terms, lease.billed_until, to), charges, &moved, carry);
  LOAM_ASSERT(rated.ok());  // it was granted under a card that sold its terms
  Instant at = lease.billed_until;
  for (const Charge& charge : charges) {
    UsageRecord& record = records.emplace_back(record_of(lease, terms, charge));
    // Begun units reach past the end: they have a price and no time.
    const bool last = &charge == &charges.back();
    record.from = at;
    record.to = at = last ? to : std::clamp(charge.to, at, to);
  }
  return records;
}

std::vector<UsageRecord> rate_back(const Lease& lease, const Terms& terms, const Payer& payer,
                                   const Tables& tables, const TierCounters& counters, Instant to) {
  LOAM_ASSERT(lease.started() && to >= lease.started_at);
  std::vector<UsageRecord> records;
  if (to >= lease.billed_until) return records;
  std::vector<Charge> charges;
  TierCounters moved = counters;
  Carry carry = carry_of(lease);
  const Result<void> taken =
      Rater(tables, payer)
          .take_back(usage_of(lease, terms, to, lease.billed_until), charges, &moved, carry);
  LOAM_ASSERT(taken.ok());
  Instant at = lease.billed_until;
  for (const Charge& charge : charges) {
    UsageRecord& record = records.emplace_back(record_of(lease, terms, charge));
    const bool last = &charge == &charges.back();
    record.from = at;
    record.to = at = last ? to : std::clamp(charge.to, to, at);
  }
  return records;
}

std::vector<UsageRecord> give_back_interrupted(const Lease& lease, const Terms& terms,
                                               const Payer& payer, const Tables& tables) {
  const PriceTable* table = tables.selling(payer.currency, terms, lease.started_at);
  LOAM_ASSERT(lease.started() && table != nullptr);
  const Duration ran = lease.billed_until - lease.started_at;
  const Duration billed = billed_when_interrupted(table->terms().spot.interrupted, ran);
  if (billed.ms > 0 || lease.rated_list.is_zero()) return {};
  UsageRecord record = record_of(lease, terms);
  record.from = record.to = lease.billed_until;
  record.billed = Duration{-ran.ms};
  record.card = table->card().id;
  record.unit_price = within(tables.spot(payer.currency)->at(lease.billed_until - Duration{1}),
                             table->terms().spot, table->card().on_demand);
  record.list = -lease.rated_list;
  record.net = -lease.rated_net;
  return {record};
}

void count(TierCounters& tiers, const UsageRecord& record) {
  if (record.tier_month == Instant{}) return;
  tiers.add(record.purchase_model, record.tier_month,
            static_cast<Int128>(record.billable_ce.value) * record.billed.ms);
}

void advance(Lease& lease, const UsageRecord& record) {
  LOAM_ASSERT(record.from == lease.billed_until && record.to >= lease.started_at);
  lease.billed_until = record.to;
  lease.rated_list += record.list;
  lease.rated_net += record.net;
  lease.list_residue = record.list_residue;
  lease.net_residue = record.net_residue;
}

namespace {

// `ce` for what lies between two lengths of a run, at a card's dearest price.
Money dearest_between(const PriceTable& table, const Payer& payer, const Terms& terms, MilliCe ce,
                      Granularity unit, Duration from, Duration to) {
  const std::optional<Money> price = table.dearest(terms);
  if (!price) return Money::zero(payer.currency);  // sold no more: the earlier card's price holds
  const BasisPoints discount = table.discount(terms.purchase_model, payer.discount);
  if (unit == Granularity::task) {
    if (from.ms > 0) return Money::zero(payer.currency);  // was charged when the run began
    return price->times_ratio(10'000 - discount.value, 10'000, Rounding::up);
  }
  const Duration length = billed_length(to, unit) - billed_length(from, unit);
  return rate(ce, length, *price, discount).net;
}

}  // namespace

Money dearest_cost(const Tables& tables, const Payer& payer, const Terms& terms, MilliCe ce,
                   Instant from, Duration longest) {
  const PriceTable* sold = tables.selling(payer.currency, terms, from);
  LOAM_ASSERT(sold != nullptr);
  Money most = Money::zero(payer.currency);
  // It may start under any of the cards, and keeps that one's units.
  Granularity unit = sold->terms().granularity;
  for (const auto& table : tables.of(payer.currency)) {
    if (table->card().effective_from > from) unit = std::max(unit, table->terms().granularity);
  }
  for (const auto& table : tables.of(payer.currency)) {
    if (table.get() != sold && table->card().effective_from <= from) continue;
    most = std::max(most, dearest_between(*table, payer, terms, ce, unit, Duration{0}, longest));
  }
  return most;
}

Money dearest_rest(const Tables& tables, const Payer& payer, const Terms& terms, const Lease& lease,
                   Instant stop) {
  const Instant from = lease.billed_until;
  const PriceTable* sold = tables.selling(payer.currency, terms, from);
  const PriceTable* at_start = tables.selling(payer.currency, terms, lease.started_at);
  LOAM_ASSERT(sold != nullptr);
  const Granularity unit = (at_start != nullptr ? at_start : sold)->terms().granularity;
  Money most = Money::zero(payer.currency);
  for (const auto& table : tables.of(payer.currency)) {
    const Instant holds_from = table->card().effective_from;
    // Begun units reach past the stop by less than an hour.
    if (table.get() != sold && (holds_from <= from || holds_from > stop + Duration::hours(1)))
      continue;
    most = std::max(
        most, dearest_between(*table, payer, terms, lease.billable_ce, unit,
                              from - lease.started_at, std::max(stop, from) - lease.started_at));
  }
  return most;
}

namespace {

std::int64_t tax_rate(const std::vector<Tax>& taxes) {
  std::int64_t sum = 0;
  for (const Tax& tax : taxes) sum += tax.parts_per_million;
  return sum;
}

}  // namespace

std::int64_t tax_rate(const PriceTerms& terms) {
  return tax_rate(terms.taxes);
}

Money tax_on(const std::vector<Tax>& taxes, Money net) {
  return net.times_ratio(tax_rate(taxes), whole_ppm, Rounding::half_even);
}
Money tax_on(const PriceTerms& terms, Money net) {
  return tax_on(terms.taxes, net);
}

std::int64_t highest_tax(const Tables& tables, Currency currency, const Terms& terms,
                         Instant from) {
  const PriceTable* sold = tables.selling(currency, terms, from);
  std::int64_t highest = 0;
  for (const auto& table : tables.of(currency)) {
    if (table.get() == sold || table->card().effective_from > from)
      highest = std::max(highest, tax_rate(table->terms()));
  }
  return highest;
}

}  // namespace loam::billing
