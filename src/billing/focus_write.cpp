// FOCUS rows from charges, and their text.
#include <boost/describe/enum_to_string.hpp>
#include <boost/multiprecision/cpp_int.hpp>

#include "billing/csv.hpp"
#include "billing/focus.hpp"
#include "billing/record_parts.hpp"

namespace loam::billing {
namespace {

using Value = std::optional<std::string>;
using Type = FocusColumn::Type;

using Wide = boost::multiprecision::int512_t;

// An exact decimal: digits / 10^places.
struct Exact {
  Wide digits;
  std::size_t places = 0;

  Exact times(const Exact& other) const { return {digits * other.digits, places + other.places}; }
  std::string text() const {
    const bool negative = digits < 0;
    std::string whole = (negative ? Wide(-digits) : digits).str();
    if (whole.size() <= places) whole.insert(0, places + 1 - whole.size(), '0');
    std::string part = whole.substr(whole.size() - places);
    part.erase(part.find_last_not_of('0') + 1);
    const std::string sign = negative ? "-" : "";
    whole.resize(whole.size() - places);
    return part.empty() ? sign + whole : sign + whole + "." + part;
  }
};

Exact exact(Money amount) {
  return {Wide(amount.units()), static_cast<std::size_t>(Money::decimals)};
}
Exact exact(const FocusQuantity& quantity) {
  return {Wide(quantity.units), static_cast<std::size_t>(quantity.places)};
}

// The list price less the discount.
std::optional<Exact> contracted_price(const FocusRow& row) {
  if (!row.list_unit_price) return std::nullopt;
  constexpr std::int64_t whole = 10'000;
  constexpr std::size_t whole_places = 4;
  return exact(*row.list_unit_price).times({Wide(whole - row.discount.value), whole_places});
}

// FOCUS counts whole seconds: a period begins with its first one and ends after its last one.
std::string start_text(Instant instant) {
  return to_text(Instant{instant.ms - ((instant.ms % 1000) + 1000) % 1000});
}
std::string end_text(const Period& period) {
  const std::string end = start_text(period.to + Duration{999});
  return end > start_text(period.from) ? end : start_text(period.from + Duration{1000});
}

std::string cost_of(const std::optional<Exact>& price, const std::optional<FocusQuantity>& quantity,
                    Money otherwise) {
  return price && quantity ? price->times(exact(*quantity)).text() : amount_text(otherwise);
}

Value money_text(const std::optional<Money>& amount) {
  return amount ? Value(amount_text(*amount)) : std::nullopt;
}
Value quantity_text(const std::optional<FocusQuantity>& quantity) {
  return quantity ? Value(exact(*quantity).text()) : std::nullopt;
}

Value pairs_json(const FocusPairs& pairs) {
  if (pairs.empty()) return std::nullopt;
  std::string text = "{";
  for (const auto& [key, value] : pairs)
    text += (text.size() > 1 ? "," : "") + json_string(key) + ":" + json_string(value);
  return text + "}";
}

struct Cell {
  const char* column;
  Type type;
  Value value;
};

std::vector<Cell> money_cells(const FocusRow& row) {
  const Money list = row.category == "Usage" ? row.effective : row.billed;
  const auto list_price =
      row.list_unit_price ? std::optional(exact(*row.list_unit_price)) : std::nullopt;
  const auto contracted = contracted_price(row);
  return {
      {"BilledCost", Type::decimal, amount_text(row.billed)},
      {"EffectiveCost", Type::decimal, amount_text(row.effective)},
      {"ListCost", Type::decimal, cost_of(list_price, row.pricing_quantity, list)},
      {"ContractedCost", Type::decimal, cost_of(contracted, row.pricing_quantity, list)},
      {"ListUnitPrice", Type::decimal, money_text(row.list_unit_price)},
      {"ContractedUnitPrice", Type::decimal, contracted ? Value(contracted->text()) : Value()},
      {"PricingQuantity", Type::decimal, quantity_text(row.pricing_quantity)},
      {"PricingUnit", Type::string, row.pricing_unit},
      {"ConsumedQuantity", Type::decimal, quantity_text(row.consumed_quantity)},
      {"ConsumedUnit", Type::string, row.consumed_unit},
  };
}

std::vector<Cell> party_cells(const FocusRow& row) {
  const Value name = row.billing_account_name.empty() ? Value() : Value(row.billing_account_name);
  return {
      {"BillingAccountId", Type::string, row.billing_account_id},
      {"BillingAccountName", Type::string, name},
      {"BillingCurrency", Type::string, std::string(row.billed.currency().code())},
      {"BillingPeriodStart", Type::instant, start_text(row.billing_period.from)},
      {"BillingPeriodEnd", Type::instant, end_text(row.billing_period)},
      {"SubAccountId", Type::string, row.sub_account_id},
      {"SubAccountName", Type::string, row.sub_account_id},
      {"InvoiceId", Type::string, row.invoice_id},
      {"InvoiceDetailId", Type::string, row.invoice_detail_id},
      {"InvoiceIssuerName", Type::string, row.issuer},
      {"ServiceProviderName", Type::string, row.issuer},
      {"HostProviderName", Type::string, row.issuer},
  };
}

std::vector<Cell> charge_cells(const FocusRow& row) {
  const Value description = row.description.empty() ? Value() : Value(row.description);
  return {
      {"ChargeCategory", Type::string, row.category},
      {"ChargeClass", Type::string, row.correction ? Value("Correction") : Value()},
      {"ChargeDescription", Type::string, description},
      {"ChargeFrequency", Type::string, row.frequency},
      {"ChargePeriodStart", Type::instant, start_text(row.charge_period.from)},
      {"ChargePeriodEnd", Type::instant, end_text(row.charge_period)},
      {"PricingCategory", Type::string, row.pricing_category},
      {"ServiceCategory", Type::string, "AI and Machine Learning"},
      {"ServiceSubcategory", Type::string, "Other (AI and Machine Learning)"},
      {"ServiceName", Type::string, "loam"},
      {"ResourceId", Type::string, row.resource_id},
      {"ResourceName", Type::string, row.resource_name},
      {"ResourceType", Type::string, row.resource_type},
      {"RegionId", Type::string, row.region_id},
      {"RegionName", Type::string, row.region_id},
      {"AvailabilityZone", Type::string, Value()},
      {"SkuId", Type::string, row.sku_id},
      {"SkuMeter", Type::string, row.sku_meter},
      {"SkuPriceId", Type::string, row.sku_price_id},
      {"SkuPriceDetails", Type::json, pairs_json(row.sku_price_details)},
  };
}

std::vector<Cell> right_cells(const FocusRow& row) {
  return {
      {"CommitmentDiscountCategory", Type::string, row.commitment_category},
      {"CommitmentDiscountId", Type::string, row.commitment_id},
      {"CommitmentDiscountName", Type::string, row.commitment_id},
      {"CommitmentDiscountQuantity", Type::decimal, quantity_text(row.commitment_quantity)},
      {"CommitmentDiscountStatus", Type::string, row.commitment_status},
      {"CommitmentDiscountType", Type::string, row.commitment_type},
      {"CommitmentDiscountUnit", Type::string, row.commitment_unit},
      {"CapacityReservationId", Type::string, row.reservation_id},
      {"CapacityReservationStatus", Type::string, row.reservation_status},
      {"AllocatedMethodId", Type::string, row.allocated_method_id},
      {"AllocatedMethodDetails", Type::object, row.allocated_method_details},
      {"AllocatedResourceId", Type::string, row.allocated_resource_id},
      {"AllocatedResourceName", Type::string, row.allocated_resource_name},
      {"AllocatedTags", Type::json, pairs_json(row.allocated_tags)},
      {"Tags", Type::json, pairs_json(row.tags)},
  };
}

std::vector<Cell> cells_of(const FocusRow& row) {
  std::vector<Cell> all = party_cells(row);
  for (auto* part : {charge_cells, money_cells, right_cells}) {
    for (Cell& cell : part(row)) all.push_back(std::move(cell));
  }
  // Columns of one's own come last.
  all.push_back({"x_InvoiceTotal", Type::decimal, money_text(row.invoice_total)});
  return all;
}

FocusRow commitment_row(const FocusCommitment& commitment, const FocusRight& right, Period period) {
  FocusRow row;
  row.charge_period = row.billing_period = period;
  row.commitment_id = commitment.id;
  row.commitment_type = commitment.type;
  row.commitment_category = commitment.of_money() ? "Spend" : "Usage";
  row.commitment_quantity = right.quantity;
  row.commitment_unit = commitment.unit;
  row.pricing_category = "Committed";
  row.resource_id = commitment.id;
  row.resource_type = "Commitment";
  row.sku_id = "commitment";
  row.sku_meter = "committed, in CE-Hours";
  row.sku_price_id = "commitment/" + amount_text(commitment.unit_price);
  row.sku_price_details = {{"x_PurchaseModel", "commitment"}};
  row.list_unit_price = commitment.unit_price;
  row.discount = commitment.discount;
  row.pricing_quantity = right.ce_hours;
  row.pricing_unit = "CE-Hours";
  return row;
}

FocusRow document_row(const char* category, Money amount, const std::string& invoice,
                      Period period) {
  FocusRow row;
  row.category = category;
  row.frequency = "One-Time";
  row.invoice_id = invoice;
  row.charge_period = row.billing_period = period;
  row.billed = row.effective = amount;
  return row;
}

}  // namespace

FocusQuantity FocusQuantity::of(Int128 quantity, Int128 scale) {
  constexpr int most_places = 24;
  Wide units = Wide(quantity);
  for (int i = 0; i < most_places; ++i) units *= 10;
  const bool negative = units < 0;
  if (negative) units = -units;
  const Wide rounded = (units + Wide(scale) / 2) / Wide(scale);
  const auto whole = static_cast<Int128>(rounded);
  return {negative ? -whole : whole, most_places};
}

FocusRow focus_tax(const std::string& name, const std::string& percent, Money amount,
                   const std::string& invoice, Period period) {
  FocusRow row = document_row("Tax", amount, invoice, period);
  row.description = name + " " + percent + " %";
  return row;
}

FocusRow focus_rounding(Money amount, const std::string& invoice, Period period) {
  FocusRow row = document_row("Adjustment", amount, invoice, period);
  row.description = "rounded to be payable";
  return row;
}

FocusRow focus_credit_note(const std::string& note, const std::string& reason, Money amount,
                           const std::string& invoice, Period period) {
  FocusRow row = document_row("Credit", amount, invoice, period);
  row.correction = true;
  row.description = note + ": " + reason;
  return row;
}

FocusPairs focus_tags(const Attribution& who, const std::string& group) {
  FocusPairs tags{{"environment", who.environment}};
  if (!who.model.empty()) tags.emplace_back("model", who.model);
  if (!who.model_version.empty()) tags.emplace_back("model_version", who.model_version);
  for (const auto& [key, value] : who.tags) {
    if (key != "environment" && key != "model" && key != "model_version")
      tags.emplace_back(key, value);
  }
  if (!group.empty() && !who.tags.contains("group")) tags.emplace_back("group", group);
  return tags;
}

FocusRow focus_usage(const Charge& charge, const Usage& usage, Granularity granularity,
                     const std::string& group) {
  FocusRow row;
  const Int128 scale = quantity_scale(charge.meter, granularity);
  const char* const model = boost::describe::enum_to_string(usage.terms.purchase_model, "?");
  row.billing_account_id = usage.tenant.text();
  row.sub_account_id = usage.who.project;
  row.charge_period = row.billing_period = {charge.from, charge.to};
  row.description = std::string(model) + " " + name_of(charge.meter);
  row.pricing_category = usage.terms.purchase_model == PurchaseModel::spot ? "Dynamic" : "Standard";
  row.resource_id = usage.task.text();
  row.resource_type = charge.meter == Meter::compute ? "Device slice" : name_of(charge.meter);
  row.sku_id = name_of(charge.meter);
  row.sku_meter = std::string(name_of(charge.meter)) + " in " + unit_of(charge.meter, granularity);
  row.sku_price_id = std::string(name_of(charge.meter)) + "/" + charge.card.text() + "/" + model +
                     "/" + std::to_string(charge.window) + "/" + std::to_string(charge.tier);
  row.sku_price_details = {{"x_PurchaseModel", model},
                           {"x_Tariff", boost::describe::enum_to_string(usage.terms.tariff, "?")}};
  row.billed = row.effective = charge.net;
  row.list_unit_price = charge.unit_price;
  // A tenant's discount is what it negotiated.
  row.discount = discount_of(charge.list, charge.net).value_or(BasisPoints{0});
  row.pricing_quantity = row.consumed_quantity = FocusQuantity::of(charge.quantity, scale);
  row.pricing_unit = row.consumed_unit = unit_of(charge.meter, granularity);
  row.tags = focus_tags(usage.who, group);
  return row;
}

FocusRow focus_purchase(const FocusCommitment& commitment, Money amount, const FocusRight& right,
                        Period period) {
  FocusRow row = commitment_row(commitment, right, period);
  row.category = "Purchase";
  row.frequency = "Recurring";
  row.description = "commitment " + commitment.id;
  row.pricing_category = "Standard";  // committed is what it covers
  row.billed = amount;
  row.effective = Money::zero(amount.currency());
  return row;
}

FocusRow focus_covered(const FocusCommitment& commitment, Money effective, const FocusRight& used,
                       Period period) {
  FocusRow row = commitment_row(commitment, used, period);
  row.description = "covered by " + commitment.id;
  row.commitment_status = "Used";
  row.consumed_quantity = used.ce_hours;
  row.consumed_unit = "CE-Hours";
  row.effective = effective;
  row.billed = Money::zero(effective.currency());
  return row;
}

FocusRow focus_unused(const FocusCommitment& commitment, Money effective, const FocusRight& left,
                      Period period) {
  FocusRow row = commitment_row(commitment, left, period);
  row.description = "unused of " + commitment.id;
  row.commitment_status = "Unused";
  row.effective = effective;
  row.billed = Money::zero(effective.currency());
  return row;
}

std::string focus_csv_head() {
  std::vector<std::string> names;
  for (const Cell& cell : cells_of(FocusRow())) names.emplace_back(cell.column);
  return csv_row(names);
}

std::string to_focus_csv(const FocusRow& row) {
  std::vector<std::string> values;
  for (Cell& cell : cells_of(row)) values.push_back(cell.value.value_or("NULL"));
  return csv_row(values);
}

std::string to_focus_json(const FocusRow& row) {
  std::string text = "{";
  for (const Cell& cell : cells_of(row)) {
    if (text.size() > 1) text += ",";
    text += json_string(cell.column) + ":";
    if (!cell.value) {
      text += "null";
    } else if (cell.type == Type::string || cell.type == Type::instant) {
      text += json_string(*cell.value);
    } else {
      text += *cell.value;
    }
  }
  return text + "}\n";
}

}  // namespace loam::billing
