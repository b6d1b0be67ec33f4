#include "billing/commitments.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::billing {
namespace {

constexpr std::int64_t days_max = 3653;  // ten years
constexpr std::int64_t whole_bp = 10'000;

Instant midnight(const Zone& zone, Date date) {
  return zone.first_instant({date, {}});
}

// What is worth more than the most CE would be past what hours can count.
Result<void> check_spend(Money spend, Money price) {
  if (spend.currency() != price.currency() || spend.is_negative() || spend.is_zero())
    return invalid(loam::to_text(spend) + " an hour cannot be committed",
                   "give more than zero " + std::string(price.currency().code()));
  const Money most = price.times_ratio(committed_ce_max.value, 1000, Rounding::down);
  if (price.is_zero() || spend > most)
    return invalid(loam::to_text(spend) + " an hour is out of range",
                   "commit to at most " + loam::to_text(most) + " an hour");
  return {};
}

Result<void> check_amount(const CommitmentOrder& order, Money price) {
  if (order.spend) {
    if (order.ce.value == 0) return check_spend(*order.spend, price);
    return invalid("both " + loam::to_text(order.ce) + " CE and " + loam::to_text(*order.spend) +
                       " an hour are asked for",
                   "commit to a capacity or to money, and buy two commitments for both");
  }
  if (order.ce.value > 0 && order.ce <= committed_ce_max) return {};
  return invalid("a commitment of " + loam::to_text(order.ce) + " CE is out of range",
                 "commit to 0.001 to " + loam::to_text(committed_ce_max) + " CE");
}

Result<void> check(const CommitmentOrder& order, Date today, Date from, Date until) {
  if (order.months != 1 && order.months != 3 && order.months != 12)
    return invalid("a period of " + std::to_string(order.months) + " months is not sold",
                   "use a month, a quarter (3) or a year (12)");
  if (from < today)
    return invalid(
        "the commitment would begin on " + to_text(from) + ", before today, " + to_text(today),
        "let it begin today or later");
  if (until <= from)
    return invalid("the commitment would end on " + to_text(until) + ", not after its start on " +
                       to_text(from),
                   "let it end on a later day");
  if (days_since_epoch(until) - days_since_epoch(from) > days_max)
    return invalid("a commitment up to " + to_text(until) + " is too long",
                   "the most is ten years");
  return {};
}

}  // namespace

Result<CommitmentTerms> commitment_on(const PriceTable& table, const CommitmentOrder& order,
                                      BasisPoints tenant_discount, Instant now) {
  const Price* price = table.price({PurchaseModel::commitment}, 0);
  if (price == nullptr || price->tiers.size() != 1)
    return Error{ErrorKind::not_found, "the rate card sells no commitment",
                 "publish one with a flat price of the purchase model 'commitment'"};
  const Zone& zone = table.zone();
  const auto day = [&](Instant instant) { return zone.local(instant).date; };
  const Date today = day(now);
  const Date from = order.from ? day(*order.from) : today;
  const Date anchor = order.anchor ? day(*order.anchor) : from;
  const Date until =
      order.until ? day(*order.until) : add_months(from, static_cast<int>(order.months));
  LOAM_CHECK(check_amount(order, price->tiers.front().price));
  LOAM_CHECK(check(order, today, from, until));
  if (anchor > from)
    return invalid("the anchor " + to_text(anchor) + " is after the start on " + to_text(from),
                   "give an earlier day, such as the first of the month");

  CommitmentTerms terms;
  terms.ce = order.ce;
  terms.months = order.months;
  terms.from = std::max(now, midnight(zone, from));
  terms.to = midnight(zone, until);
  terms.card = table.card().id;
  terms.unit_price = price->tiers.front().price;
  const BasisPoints off = table.discount(PurchaseModel::commitment, tenant_discount);
  CommitmentPlan plan;
  plan.anchor = anchor;
  plan.months = static_cast<int>(order.months);
  plan.starts = from;
  plan.ends = until;
  plan.ce = order.ce;
  terms.spend = order.spend.value_or(Money::zero(terms.unit_price.currency()));
  const Int128 hours = static_cast<Int128>(hours_of_month) * order.months;
  plan.fee = order.spend
                 ? terms.spend.times_ratio(hours, 1, Rounding::half_even)
                 : terms.unit_price.times_ratio(order.ce.value * hours, 1000, Rounding::half_even);
  for (const FeeLine& line : fees(plan)) {
    CommitmentFee fee;
    fee.from = std::max(terms.from, midnight(zone, line.from));
    fee.to = std::min(terms.to, midnight(zone, line.to));
    fee.days = line.days;
    fee.days_of_period = line.days_of_period;
    fee.list = line.amount;
    fee.net = line.amount.times_ratio(whole_bp - off.value, whole_bp, Rounding::half_even);
    terms.fees.push_back(fee);
  }
  LOAM_ASSERT(!terms.fees.empty());
  return terms;
}

namespace {

// Places of the uses, in the order in which they are covered.
std::vector<std::size_t> in_order(const std::vector<CoverUse>& uses) {
  std::vector<std::size_t> order(uses.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(uses[a].since, uses[a].lease, uses[a].period.from) <
           std::tie(uses[b].since, uses[b].lease, uses[b].period.from);
  });
  return order;
}

}  // namespace

Covered cover(const std::vector<CoverUse>& uses, const std::vector<CapacityRight>& rights,
              const Period& period) {
  std::vector<Instant> cuts{period.from, period.to};
  const auto add_cut = [&](Instant at) {
    if (period.contains(at)) cuts.push_back(at);
  };
  for (const CoverUse& use : uses) {
    add_cut(use.period.from);
    add_cut(use.period.to);
  }
  for (const CapacityRight& right : rights) {
    add_cut(right.period.from);
    add_cut(right.period.to);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());

  const std::vector<std::size_t> order = in_order(uses);
  Covered covered;
  covered.milli_ce_ms.assign(uses.size(), 0);
  for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
    const Int128 length = (cuts[c + 1] - cuts[c]).ms;
    MilliCe left;
    for (const CapacityRight& right : rights) {
      if (right.period.contains(cuts[c])) left += right.ce;
    }
    for (const std::size_t i : order) {
      if (left.value == 0) break;
      if (!uses[i].period.contains(cuts[c])) continue;
      const MilliCe taken = std::min(left, uses[i].ce);
      covered.milli_ce_ms[i] += length * taken.value;
      left -= taken;
    }
    covered.unused += length * left.value;
  }
  return covered;
}

void cover_spend(const std::vector<CoverUse>& uses, const std::vector<SpendRight>& rights,
                 const Period& period, Covered& covered) {
  const std::vector<std::size_t> order = in_order(uses);
  for (const SpendRight& right : rights) {
    const Instant from = std::max(right.period.from, period.from);
    const Instant to = std::min(right.period.to, period.to);
    if (from >= to) continue;
    // Money an hour over money a CE-hour is CE: of those, so many milli-CE · ms.
    Int128 left = right.spend.units() * (to - from).ms * 1000 / right.unit_price.units();
    for (const std::size_t i : order) {
      const Instant begin = std::max(uses[i].period.from, from);
      const Instant end = std::min(uses[i].period.to, to);
      if (left == 0 || begin >= end) continue;
      const Int128 whole = Int128{uses[i].ce.value} * (uses[i].period.to - uses[i].period.from).ms;
      const Int128 inside = Int128{uses[i].ce.value} * (end - begin).ms;
      const Int128 taken = std::min({left, inside, whole - covered.milli_ce_ms[i]});
      covered.milli_ce_ms[i] += taken;
      left -= taken;
    }
    covered.unused += left;
  }
}

Money covered_part(Money net, Int128 covered, MilliCe ce, Duration length) {
  LOAM_ASSERT(length.ms > 0 && ce.value > 0);
  return net.times_ratio(covered, static_cast<Int128>(ce.value) * length.ms, Rounding::half_even);
}

}  // namespace loam::billing
