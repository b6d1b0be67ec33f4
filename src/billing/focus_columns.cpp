// The columns of FOCUS 1.4, Cost and Usage dataset: name, type, feature level, nullability, values.
#include "billing/focus.hpp"

namespace loam::billing {

namespace {

using Type = FocusColumn::Type;
using Level = FocusColumn::Level;

constexpr FocusColumn columns[] = {
    {"AllocatedMethodDetails", Type::object, Level::recommended, true, ""},
    {"AllocatedMethodId", Type::string, Level::conditional, true, ""},
    {"AllocatedResourceId", Type::string, Level::conditional, true, ""},
    {"AllocatedResourceName", Type::string, Level::conditional, true, ""},
    {"AllocatedTags", Type::json, Level::conditional, true, ""},
    {"AvailabilityZone", Type::string, Level::recommended, true, ""},
    {"BilledCost", Type::decimal, Level::mandatory, false, ""},
    {"BillingAccountId", Type::string, Level::mandatory, false, ""},
    {"BillingAccountName", Type::string, Level::mandatory, true, ""},
    {"BillingAccountType", Type::string, Level::conditional, false, ""},
    {"BillingCurrency", Type::string, Level::mandatory, false, ""},
    {"BillingPeriodEnd", Type::instant, Level::mandatory, false, ""},
    {"BillingPeriodStart", Type::instant, Level::mandatory, false, ""},
    {"CapacityReservationId", Type::string, Level::conditional, true, ""},
    {"CapacityReservationStatus", Type::string, Level::conditional, true, "Used|Unused"},
    {"ChargeCategory", Type::string, Level::mandatory, false,
     "Usage|Purchase|Tax|Credit|Adjustment"},
    {"ChargeClass", Type::string, Level::mandatory, true, "Correction"},
    {"ChargeDescription", Type::string, Level::mandatory, true, ""},
    {"ChargeFrequency", Type::string, Level::recommended, false, "One-Time|Recurring|Usage-Based"},
    {"ChargePeriodEnd", Type::instant, Level::mandatory, false, ""},
    {"ChargePeriodStart", Type::instant, Level::mandatory, false, ""},
    {"CommitmentDiscountCategory", Type::string, Level::conditional, true, "Spend|Usage"},
    {"CommitmentDiscountId", Type::string, Level::conditional, true, ""},
    {"CommitmentDiscountName", Type::string, Level::conditional, true, ""},
    {"CommitmentDiscountQuantity", Type::decimal, Level::conditional, true, ""},
    {"CommitmentDiscountStatus", Type::string, Level::conditional, true, "Used|Unused"},
    {"CommitmentDiscountType", Type::string, Level::conditional, true, ""},
    {"CommitmentDiscountUnit", Type::string, Level::conditional, true, ""},
    {"CommitmentProgramEligibilityDetails", Type::object, Level::conditional, true, ""},
    {"ConsumedQuantity", Type::decimal, Level::conditional, true, ""},
    {"ConsumedUnit", Type::string, Level::conditional, true, ""},
    {"ContractApplied", Type::object, Level::conditional, true, ""},
    {"ContractedCost", Type::decimal, Level::mandatory, false, ""},
    {"ContractedUnitPrice", Type::decimal, Level::conditional, true, ""},
    {"EffectiveCost", Type::decimal, Level::mandatory, false, ""},
    {"HostProviderName", Type::string, Level::mandatory, false, ""},
    {"InvoiceDetailId", Type::string, Level::conditional, true, ""},
    {"InvoiceId", Type::string, Level::conditional, true, ""},
    {"InvoiceIssuerName", Type::string, Level::mandatory, false, ""},
    {"ListCost", Type::decimal, Level::mandatory, false, ""},
    {"ListUnitPrice", Type::decimal, Level::conditional, true, ""},
    {"PricingCategory", Type::string, Level::conditional, true, "Standard|Dynamic|Committed|Other"},
    {"PricingCurrency", Type::string, Level::conditional, false, ""},
    {"PricingCurrencyContractedUnitPrice", Type::decimal, Level::conditional, true, ""},
    {"PricingCurrencyEffectiveCost", Type::decimal, Level::conditional, false, ""},
    {"PricingCurrencyListUnitPrice", Type::decimal, Level::conditional, true, ""},
    {"PricingQuantity", Type::decimal, Level::mandatory, true, ""},
    {"PricingUnit", Type::string, Level::mandatory, true, ""},
    {"RegionId", Type::string, Level::conditional, true, ""},
    {"RegionName", Type::string, Level::conditional, true, ""},
    {"ResourceId", Type::string, Level::conditional, true, ""},
    {"ResourceName", Type::string, Level::conditional, true, ""},
    {"ResourceType", Type::string, Level::conditional, true, ""},
    {"ServiceCategory", Type::string, Level::mandatory, false,
     "AI and Machine Learning|Analytics|Business Applications|Compute|Databases|Developer "
     "Tools|Identity|Integration|Internet of Things|Management and "
     "Governance|Media|Migration|Mobile|Multicloud|Networking|Other|Security|Storage|Web"},
    {"ServiceName", Type::string, Level::mandatory, false, ""},
    {"ServiceProviderName", Type::string, Level::mandatory, false, ""},
    {"ServiceSubcategory", Type::string, Level::recommended, false, ""},
    {"SkuId", Type::string, Level::conditional, true, ""},
    {"SkuMeter", Type::string, Level::conditional, true, ""},
    {"SkuPriceDetails", Type::json, Level::conditional, true, ""},
    {"SkuPriceId", Type::string, Level::conditional, true, ""},
    {"SubAccountId", Type::string, Level::conditional, true, ""},
    {"SubAccountName", Type::string, Level::conditional, true, ""},
    {"SubAccountType", Type::string, Level::conditional, true, ""},
    {"Tags", Type::json, Level::conditional, true, ""},
};

}  // namespace

std::span<const FocusColumn> focus_columns() {
  return columns;
}

}  // namespace loam::billing
