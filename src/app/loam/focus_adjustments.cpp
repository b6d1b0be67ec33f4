// Commitments and credits as FOCUS rows: from bills and commitments of the API. Pure.
#include <algorithm>

#include "app/loam/spending.hpp"
#include "billing/record_parts.hpp"

namespace loam::cli {
namespace {

constexpr Int128 hour_ms = 3'600'000;

struct Fee {
  std::string commitment;
  std::string type;
  std::string tenant;
  std::string project;
  billing::Period period;
  MilliCe ce;
  Money net;

  // What of it belongs to the time before `at`, rounded: the parts of any cutting add up to it.
  Money until(Instant at) const {
    const Int128 whole = (period.to - period.from).ms;
    const Int128 past = (std::clamp(at, period.from, period.to) - period.from).ms;
    return net.times_ratio(past, whole, Rounding::half_even);
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
    LOAM_TRY(ce, parse_ce(commitment.ce));
    for (const api::CommitmentFeeView& view : commitment.fees) {
      if (!view.charged) continue;
      LOAM_TRY(from, parse_instant(view.from));
      LOAM_TRY(to, parse_instant(view.to));
      LOAM_TRY(net, Money::parse(view.net, currency));
      fees.push_back({commitment.id,
                      commitment.period == "year" ? "Reserved" : "Subscription",
                      tenant,
                      commitment.project,
                      {from, to},
                      ce,
                      net});
    }
  }
  return fees;
}

billing::FocusRow credit_row(const api::AdjustmentView& adjustment, Money net,
                             const billing::Period& period) {
  billing::FocusRow row;
  row.category = "Credit";
  row.description = adjustment.kind == "covered"        ? "use that a commitment covers"
                    : adjustment.kind == "token_income" ? "others' tokens of " + adjustment.model
                                                        : "less than promised, " + adjustment.lease;
  row.charge_period = period;
  row.billed = row.effective = net;
  row.tags.emplace_back("environment", adjustment.environment);
  if (!adjustment.model.empty()) row.tags.emplace_back("model", adjustment.model);
  if (!adjustment.model_version.empty())
    row.tags.emplace_back("model_version", adjustment.model_version);
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
  row.tags.emplace_back("environment", adjustment.environment);
  row.tags.emplace_back("model", adjustment.model);
  return row;
}

// What lies of a fee in the bucket, used as far as `covered` (CE-hours at 12 decimals) reaches.
void add_share(const Fee& fee, const billing::Period& bucket, const billing::Period& month,
               const std::string& issuer, Int128& covered, std::vector<billing::FocusRow>& rows) {
  const billing::Period part{std::max(fee.period.from, bucket.from),
                             std::min(fee.period.to, bucket.to)};
  if (part.from >= part.to) return;
  const Int128 right = static_cast<Int128>(fee.ce.value) * (part.to - part.from).ms *
                       (Money::units_per_one / 1000) / hour_ms;
  const Int128 used = std::min(right, covered);
  covered -= used;
  const Money share = fee.until(part.to) - fee.until(part.from);
  const Money used_cost = right == 0 ? Money::zero(share.currency())
                                     : share.times_ratio(used, right, Rounding::half_even);
  const auto add = [&](billing::FocusRow row) {
    rows.push_back(finished(std::move(row), issuer, fee.tenant, fee.project, month));
  };
  if (used > 0)
    add(billing::focus_covered(fee.commitment, fee.type, used_cost, used, "CE-Hours", part));
  if (right > used)
    add(billing::focus_unused(fee.commitment, fee.type, share - used_cost, right - used, "CE-Hours",
                              part));
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
        const auto fee = std::find_if(fees.begin(), fees.end(), [&](const Fee& of) {
          return of.commitment == adjustment.commitment;
        });
        row = billing::focus_purchase(
            adjustment.commitment, fee == fees.end() ? "Subscription" : fee->type, net, {from, to});
      } else if (adjustment.kind.ends_with("_tokens")) {
        LOAM_TRY(tokens, token_row(adjustment, net, {from, std::max(to, from + Duration{1})}));
        row = std::move(tokens);
      } else {
        row = credit_row(adjustment, net, {from, std::max(to, from + Duration{1})});
      }
      if (adjustment.kind == "covered") {
        LOAM_TRY(hours, Money::parse(adjustment.ce_hours, currency));
        covered -= hours.units();
      }
      if (!adjustment.invoice.empty()) row.invoice_id = adjustment.invoice;
      rows.push_back(finished(std::move(row), issuer, each.bill.tenant, adjustment.project, month));
    }
    covered = std::max<Int128>(0, covered);
    for (const Fee& fee : fees) add_share(fee, each.period, month, issuer, covered, rows);
  }
  return rows;
}

}  // namespace loam::cli
