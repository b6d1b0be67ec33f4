#include "billing/rating.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t whole_bp = 10'000;
// milli-CE × ms in one CE-hour.
constexpr Int128 milli_ce_ms_per_ce_hour = static_cast<Int128>(1000) * 3'600'000;

}  // namespace

MilliCe billable_ce(MilliCe bought, Mebibytes memory, const RateCard& card) {
  const std::int64_t floor_milli =
      (memory.value * card.ce_per_gibibyte.value + one_gibibyte.value - 1) / one_gibibyte.value;
  return std::max(bought, MilliCe{floor_milli});
}

Amount rate(MilliCe ce, Duration length, Money price_per_ce_hour, BasisPoints discount) {
  LOAM_ASSERT(length.ms >= 0 && ce.value >= 0);
  LOAM_ASSERT(discount.value >= 0 && discount.value <= whole_bp);
  const Int128 quantity = static_cast<Int128>(ce.value) * length.ms;
  return {price_per_ce_hour.times_ratio(quantity, milli_ce_ms_per_ce_hour, Rounding::half_even),
          price_per_ce_hour.times_ratio(quantity * (whole_bp - discount.value),
                                        milli_ce_ms_per_ce_hour * whole_bp, Rounding::half_even)};
}

void RateBook::add(const RateCard& card) {
  cards_.push_back(card);
}

const RateCard* RateBook::at(Currency currency, Instant instant) const {
  const RateCard* in_force = nullptr;
  for (const RateCard& card : cards_) {
    if (card.currency == currency && card.effective_from <= instant) in_force = &card;
  }
  return in_force;
}

Instant RateBook::next_change(Currency currency, Instant instant) const {
  for (const RateCard& card : cards_) {
    if (card.currency == currency && card.effective_from > instant) return card.effective_from;
  }
  return Instant::never();
}

const RateCard* RateBook::dearest_from(Currency currency, Instant instant) const {
  const RateCard* dearest = at(currency, instant);
  for (const RateCard& card : cards_) {
    if (card.currency != currency || card.effective_from <= instant) continue;
    if (dearest == nullptr || card.on_demand > dearest->on_demand) dearest = &card;
  }
  return dearest;
}

namespace {

// What all records of a lease have in common.
UsageRecord record_of(const Lease& lease) {
  UsageRecord record;
  record.lease = lease.id;
  record.task = lease.task;
  record.tenant = lease.tenant;
  record.billable_ce = lease.billable_ce;
  for (const Slice& slice : lease.slices) record.memory += slice.memory;
  return record;
}

}  // namespace

std::vector<UsageRecord> rate_until(const Lease& lease, const Payer& payer, const RateBook& book,
                                    Instant to) {
  LOAM_ASSERT(lease.started());
  std::vector<UsageRecord> records;
  Lease cursor = lease;
  while (cursor.billed_until < to) {
    const RateCard* card = book.at(payer.currency, cursor.billed_until);
    LOAM_ASSERT(card != nullptr);  // a lease is granted under a card, and cards are never removed
    const Instant piece_end = std::min(to, book.next_change(payer.currency, cursor.billed_until));
    const bool same_segment = cursor.segment_card == card->id;
    const Instant segment_start = same_segment ? cursor.segment_start : cursor.billed_until;
    const Amount total =
        rate(lease.billable_ce, piece_end - segment_start, card->on_demand, payer.discount);
    const Money zero = Money::zero(payer.currency);
    UsageRecord record = record_of(lease);
    record.from = cursor.billed_until;
    record.to = piece_end;
    record.card = card->id;
    record.unit_price = card->on_demand;
    record.list = total.list - (same_segment ? cursor.segment_list : zero);
    record.net = total.net - (same_segment ? cursor.segment_net : zero);
    advance(cursor, record);
    records.push_back(record);
  }
  return records;
}

std::vector<UsageRecord> rate_back(const Lease& lease, const Payer& payer, const RateBook& book,
                                   Instant to) {
  LOAM_ASSERT(lease.started() && to >= lease.started_at);
  std::vector<UsageRecord> records;
  for (Instant from = lease.billed_until; from > to;) {
    const RateCard* card = book.at(payer.currency, from - Duration{1});
    LOAM_ASSERT(card != nullptr);
    // Where the lease's time under this card began: its amount is rounded once from there.
    const Instant begin = std::max(card->effective_from, lease.started_at);
    const Instant back_to = std::max(to, begin);
    const Amount was = rate(lease.billable_ce, from - begin, card->on_demand, payer.discount);
    const Amount is = rate(lease.billable_ce, back_to - begin, card->on_demand, payer.discount);
    UsageRecord record = record_of(lease);
    record.from = from;
    record.to = back_to;
    record.card = card->id;
    record.unit_price = card->on_demand;
    record.list = is.list - was.list;
    record.net = is.net - was.net;
    records.push_back(record);
    from = back_to;
  }
  return records;
}

void advance(Lease& lease, const UsageRecord& record) {
  LOAM_ASSERT(record.from == lease.billed_until && record.to != record.from);
  if (record.to < record.from) {
    LOAM_ASSERT(record.to >= lease.started_at);
    lease.billed_until = record.to;
    return;
  }
  if (lease.segment_card != record.card) {
    lease.segment_card = record.card;
    lease.segment_start = record.from;
    lease.segment_list = Money::zero(record.list.currency());
    lease.segment_net = Money::zero(record.net.currency());
  }
  lease.segment_list += record.list;
  lease.segment_net += record.net;
  lease.billed_until = record.to;
}

}  // namespace loam::billing
