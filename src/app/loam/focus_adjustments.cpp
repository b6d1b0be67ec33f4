// Commitments, unused reservations and credits as FOCUS rows: from bills and commitments of the
// API. Pure.
#include <algorithm>
#include <limits>

#include "app/loam/human.hpp"
#include "app/loam/spending.hpp"
#include "base/quantity.hpp"
#include "billing/record_parts.hpp"

namespace loam::cli {
namespace {

constexpr Int128 hour_ms = 3'600'000;

struct Fee {
  billing::FocusCommitment commitment;
  std::string tenant;
  std::string project;
  billing::FocusPairs tags;
  billing::Period period;
  MilliCe ce;
  Money net;
  Money spend;  // an hour; zero: a capacity

  bool of_money() const { return !spend.is_zero(); }

  Int128 past_ms(Instant at) const {
    return (std::clamp(at, period.from, period.to) - period.from).ms;
  }
  // What of it belongs to the time before `at`, rounded: the parts of any cutting add up to it.
  Money until(Instant at) const {
    return net.times_ratio(past_ms(at), (period.to - period.from).ms, Rounding::half_even);
  }
  // What it gives a right to before `at`, likewise: CE-hours, or money; at 12 decimals.
  Int128 right_until(Instant at) const {
    if (of_money()) return spend.units() * past_ms(at) / hour_ms;
    return static_cast<Int128>(ce.value) * past_ms(at) * (Money::units_per_one / 1000) / hour_ms;
  }
  // Of that right so much, as it is priced.
  billing::FocusRight right(Int128 quantity) const {
    if (!of_money()) return {quantity, quantity};
    return {quantity, billing::FocusQuantity::of(quantity, commitment.unit_price.units())};
  }
};

billing::FocusRow finished(billing::FocusRow row, const std::string& issuer,
                           const std::string& tenant, const std::string& project,
                           const billing::Period& month) {
  row.issuer = issuer;
  row.billing_account_id = row.billing_account_name = tenant;
  row.billing_period = month;
  row.sub_account_id = project;
  return row;
}

Result<std::vector<Fee>> fees_of(const std::vector<api::CommitmentView>& commitments,
                                 const std::string& tenant) {
  std::vector<Fee> fees;
  for (const api::CommitmentView& commitment : commitments) {
    if (commitment.tenant != tenant) continue;
    LOAM_TRY(currency, Currency::parse(commitment.currency));
    LOAM_TRY(spend, Money::parse(commitment.spend, currency));
    LOAM_TRY(price, Money::parse(commitment.unit_price, currency));
    MilliCe ce;
    if (spend.is_zero()) {
      LOAM_TRY(capacity, parse_ce(commitment.ce));
      ce = capacity;
    } else if (price.is_zero()) {
      return Error{ErrorKind::corrupt, "the daemon tells no price of " + commitment.id,
                   "use a loam of the daemon's version"};
    }
    for (const api::CommitmentFeeView& view : commitment.fees) {
      if (!view.charged) continue;
      LOAM_TRY(from, parse_instant(view.from));
      LOAM_TRY(to, parse_instant(view.to));
      LOAM_TRY(net, Money::parse(view.net, currency));
      LOAM_TRY(list, Money::parse(view.list, currency));
      fees.push_back({{commitment.id, commitment.period == "year" ? "Reserved" : "Subscription",
                       spend.is_zero() ? "CE-Hours" : commitment.currency, price,
                       billing::discount_of(list, net).value_or(BasisPoints{0})},
                      tenant,
                      commitment.project,
                      billing::focus_tags(who_of(commitment), {}),
                      {from, to},
                      ce,
                      net,
                      spend});
    }
  }
  // What capacity covers, money does not.
  std::stable_partition(fees.begin(), fees.end(), [](const Fee& fee) { return !fee.of_money(); });
  return fees;
}

billing::FocusRow credit_row(const api::AdjustmentView& adjustment, Money net,
                             const billing::Period& period) {
  billing::FocusRow row;
  row.category = "Credit";
  const bool reserved = !adjustment.reservation.empty();
  row.description = reserved ? "more than " + adjustment.reservation + " reserved"
                    : adjustment.kind == "covered"      ? "use that a commitment covers"
                    : adjustment.kind == "token_income" ? "others' tokens of " + adjustment.model
                                                        : "less than promised, " + adjustment.lease;
  row.charge_period = period;
  row.billed = row.effective = net;
  if (reserved) row.reservation_id = adjustment.reservation;
  if (!adjustment.task.empty()) {
    row.resource_id = adjustment.task;
    if (!adjustment.name.empty()) row.resource_name = adjustment.name;
    row.resource_type = "Device slice";
  }
  return row;
}

// What was reserved and not used: CE-hours at what is left of the price for them.
Result<billing::FocusRow> unused_row(const api::AdjustmentView& adjustment, Money net,
                                     const billing::Period& period) {
  LOAM_TRY(price, Money::parse(adjustment.unit_price, net.currency()));
  LOAM_TRY(hours, Money::parse(adjustment.ce_hours, net.currency()));
  billing::FocusRow row;
  row.description = "unused of " + adjustment.reservation;
  row.correction = net.is_negative();  // use of it was told late
  row.charge_period = period;
  row.pricing_category = "Standard";
  row.resource_id = adjustment.reservation;
  row.resource_type = "Reservation";
  row.sku_id = "reservation_unused";
  row.sku_meter = "reserved, not used, in CE-Hours";
  put_price(adjustment, "reservation_unused", row);
  row.reservation_id = adjustment.reservation;
  row.reservation_status = "Unused";
  row.billed = row.effective = net;
  row.list_unit_price = price;
  const Money list = price.times_ratio(hours.units(), Money::units_per_one, Rounding::half_even);
  row.discount = billing::discount_of(list, net).value_or(BasisPoints{0});
  row.pricing_quantity = billing::FocusQuantity(hours.units());
  row.pricing_unit = "CE-Hours";
  return row;
}

// Tokens by kind; a million of them is the unit that is priced.
Result<billing::FocusRow> token_row(const api::AdjustmentView& adjustment, Money net,
                                    const billing::Period& period) {
  LOAM_TRY(price, Money::parse(adjustment.unit_price, net.currency()));
  LOAM_TRY(list, Money::parse(adjustment.list, net.currency()));
  std::string what = adjustment.kind;
  std::replace(what.begin(), what.end(), '_', ' ');
  billing::FocusRow row;
  row.description = what + " of " + adjustment.model;
  row.pricing_category = "Standard";
  row.resource_id = adjustment.model;
  row.resource_type = "Model";
  row.sku_id = adjustment.kind;
  row.sku_meter = what;
  row.sku_price_id = adjustment.kind + "/" + adjustment.model + "/" + adjustment.unit_price;
  row.sku_price_details = {{"x_Model", adjustment.model}};
  row.charge_period = period;
  row.billed = row.effective = net;
  row.list_unit_price = price;
  row.discount = billing::discount_of(list, net).value_or(BasisPoints{0});
  constexpr int million_places = 6;
  const Int128 tokens = static_cast<Int128>(adjustment.tokens) * Money::units_per_one;
  row.pricing_quantity = billing::FocusQuantity(adjustment.tokens, million_places);
  row.pricing_unit = "1000000 Tokens";
  row.consumed_quantity = tokens;
  row.consumed_unit = "Tokens";
  return row;
}

// A right over a time, and what of it was used; at 12 decimals.
struct Use {
  Int128 right = 0;     // CE-hours, or money
  Int128 used = 0;      // of it
  Int128 ce_hours = 0;  // that this was
};

Use use_of(const Fee& fee, const billing::Period& part, Int128 covered) {
  Use use;
  use.right = fee.right_until(part.to) - fee.right_until(part.from);
  if (!fee.of_money()) {
    use.used = use.ce_hours = std::min(use.right, covered);
    return use;
  }
  const Money price = fee.commitment.unit_price;
  use.used = std::min(
      use.right, price.times_ratio(covered, Money::units_per_one, Rounding::half_even).units());
  use.ce_hours = std::min(covered, use.used * Money::units_per_one / price.units());
  return use;
}

// Storage and backups by the GiB-hour, network by the GiB.
Result<billing::FocusRow> service_row(const api::AdjustmentView& adjustment, Money net,
                                      const billing::Period& period) {
  LOAM_TRY(price, Money::parse(adjustment.unit_price, net.currency()));
  LOAM_TRY(list, Money::parse(adjustment.list, net.currency()));
  constexpr int gib_places = 6;
  LOAM_TRY(gib, parse_decimal(adjustment.gib, gib_places, std::numeric_limits<std::int64_t>::max(),
                              "quantity"));
  const char* unit = is_held(adjustment.kind) ? "GiB-Hours" : "GiB";
  billing::FocusRow row;
  row.description = adjustment.kind + " of " + adjustment.task;
  row.pricing_category = "Standard";
  row.resource_id = adjustment.task;
  row.resource_type = adjustment.kind;
  row.sku_id = adjustment.kind;
  row.sku_meter = adjustment.kind + " in " + unit;
  row.sku_price_id = adjustment.kind + "/" + adjustment.unit_price;
  if (!adjustment.name.empty()) row.resource_name = adjustment.name;
  row.charge_period = period;
  row.billed = row.effective = net;
  row.list_unit_price = price;
  row.discount = billing::discount_of(list, net).value_or(BasisPoints{0});
  row.pricing_quantity = billing::FocusQuantity(gib, gib_places);
  row.pricing_unit = unit;
  row.consumed_quantity = static_cast<Int128>(gib) * (Money::units_per_one / 1'000'000);
  row.consumed_unit = unit;
  return row;
}

// What lies of a fee in the bucket, used as far as `covered` (CE-hours at 12 decimals) reaches.
void add_share(const Fee& fee, const billing::Period& bucket, const billing::Period& month,
               const std::string& issuer, Int128& covered, std::vector<billing::FocusRow>& rows) {
  const billing::Period part{std::max(fee.period.from, bucket.from),
                             std::min(fee.period.to, bucket.to)};
  if (part.from >= part.to) return;
  const Use use = use_of(fee, part, covered);
  covered -= use.ce_hours;
  const Money share = fee.until(part.to) - fee.until(part.from);
  const Money used_cost = use.right == 0
                              ? Money::zero(share.currency())
                              : share.times_ratio(use.used, use.right, Rounding::half_even);
  const auto add = [&](billing::FocusRow row) {
    row.tags = fee.tags;
    rows.push_back(finished(std::move(row), issuer, fee.tenant, fee.project, month));
  };
  if (use.used > 0) {
    add(billing::focus_covered(fee.commitment, used_cost,
                               {use.used, billing::FocusQuantity(use.ce_hours)}, part));
  }
  if (use.right > use.used) {
    add(billing::focus_unused(fee.commitment, share - used_cost, fee.right(use.right - use.used),
                              part));
  }
}

// The fee that was charged so, as its purchase.
Result<billing::FocusRow> purchase_row(const api::AdjustmentView& adjustment, Money net,
                                       const billing::Period& period,
                                       const std::vector<Fee>& fees) {
  const auto fee = std::find_if(fees.begin(), fees.end(), [&](const Fee& each) {
    return each.commitment.id == adjustment.commitment && each.period.from == period.from;
  });
  if (fee == fees.end()) {
    return Error{ErrorKind::corrupt,
                 "the daemon tells no fee of " + adjustment.commitment + " from " + adjustment.from,
                 "use a loam of the daemon's version"};
  }
  LOAM_TRY(list, Money::parse(adjustment.list, net.currency()));
  const Money price = fee->commitment.unit_price;
  billing::FocusRight right = fee->right(fee->right_until(fee->period.to));
  // A fee is reckoned for the hours of a mean month.
  if (!price.is_zero()) right.ce_hours = billing::FocusQuantity::of(list.units(), price.units());
  return billing::focus_purchase(fee->commitment, net, right, period);
}

}  // namespace

Result<std::vector<billing::FocusRow>> focus_adjustments(
    const std::vector<BucketBill>& bills, const std::vector<api::CommitmentView>& commitments,
    const std::string& issuer) {
  std::vector<billing::FocusRow> rows;
  for (const BucketBill& each : bills) {
    LOAM_TRY(currency, Currency::parse(each.bill.currency));
    LOAM_TRY(fees, fees_of(commitments, each.bill.tenant));
    LOAM_TRY(zone, zone_of(each.bill));
    const billing::Period month = billing::month_of(zone, each.period.from);
    Int128 covered = 0;
    for (const api::AdjustmentView& adjustment : each.bill.adjustments) {
      if (adjustment.of_document()) continue;
      LOAM_TRY(net, Money::parse(adjustment.net, currency));
      LOAM_TRY(from, parse_instant(adjustment.from));
      LOAM_TRY(to, parse_instant(adjustment.to));
      billing::FocusRow row;
      if (adjustment.kind == "fee") {
        LOAM_TRY(purchase, purchase_row(adjustment, net, {from, to}, fees));
        row = std::move(purchase);
      } else if (adjustment.kind.ends_with("_tokens")) {
        LOAM_TRY(tokens, token_row(adjustment, net, {from, std::max(to, from + Duration{1})}));
        row = std::move(tokens);
      } else if (adjustment.kind == "unused") {
        LOAM_TRY(unused, unused_row(adjustment, net, {from, std::max(to, from + Duration{1})}));
        row = std::move(unused);
      } else if (!adjustment.gib.empty()) {
        LOAM_TRY(service, service_row(adjustment, net, {from, std::max(to, from + Duration{1})}));
        row = std::move(service);
      } else {
        row = credit_row(adjustment, net, {from, std::max(to, from + Duration{1})});
      }
      if (adjustment.kind == "covered" && adjustment.reservation.empty()) {
        LOAM_TRY(hours, Money::parse(adjustment.ce_hours, currency));
        covered -= hours.units();
      }
      row.tags = billing::focus_tags(who_of(adjustment), adjustment.group);
      if (!adjustment.region.empty()) row.region_id = adjustment.region;
      // What is given back is of the invoice that it is on.
      if (row.category == "Usage" && adjustment.correction) row.correction = true;
      if (!adjustment.invoice.empty()) row.invoice_id = adjustment.invoice;
      rows.push_back(finished(std::move(row), issuer, each.bill.tenant, adjustment.project, month));
    }
    covered = std::max<Int128>(0, covered);
    for (const Fee& fee : fees) add_share(fee, each.period, month, issuer, covered, rows);
  }
  return rows;
}

}  // namespace loam::cli
