// A charge that nobody used, split over those who used something else, as FOCUS tells it.
#include <algorithm>

#include "billing/apportion.hpp"
#include "billing/csv.hpp"
#include "billing/focus.hpp"

namespace loam::billing {
namespace {

// At 12 decimals.
std::string decimal(Int128 units) {
  return amount_text(Money(units, Currency()));
}

std::string details_of(Int128 ratio, const FocusBearer& bearer) {
  constexpr Int128 ce_hour = Int128{1000} * 3'600'000;  // in milli-CE × ms
  return "{\"Elements\":[{\"AllocatedRatio\":" + decimal(ratio) +
         ",\"UsageUnit\":\"CE-Hours\",\"UsageQuantity\":" +
         decimal(bearer.milli_ce_ms * Money::units_per_one / ce_hour) + "}]}";
}

// A quantity's parts; none where there is no quantity.
std::vector<std::optional<FocusQuantity>> parts_of(const std::optional<FocusQuantity>& quantity,
                                                   const std::vector<Int128>& weights) {
  std::vector<std::optional<FocusQuantity>> parts(weights.size());
  if (!quantity) return parts;
  const std::vector<Int128> units = split(quantity->units, weights);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].emplace(units[i], quantity->places);
  return parts;
}

}  // namespace

std::vector<FocusRow> focus_split(const FocusRow& row, const std::vector<FocusBearer>& bearers,
                                  IdleMethod method) {
  if (bearers.empty() || method == IdleMethod::kept) return {row};
  std::vector<Int128> weights;
  for (const FocusBearer& bearer : bearers)
    weights.push_back(method == IdleMethod::even ? Int128{1} : bearer.milli_ce_ms);
  const auto ratios = split(Money::units_per_one, weights);
  const auto billed = split(row.billed, weights), effective = split(row.effective, weights);
  const auto priced = parts_of(row.pricing_quantity, weights);
  const auto committed = parts_of(row.commitment_quantity, weights);
  std::vector<FocusRow> rows;
  for (std::size_t i = 0; i < bearers.size(); ++i) {
    const FocusBearer& bearer = bearers[i];
    FocusRow& part = rows.emplace_back(row);
    part.billed = billed[i];
    part.effective = effective[i];
    part.pricing_quantity = priced[i];
    part.commitment_quantity = committed[i];
    part.allocated_method_id = name_of(method);
    part.allocated_method_details = details_of(ratios[i], bearer);
    part.allocated_resource_id = bearer.resource;
    if (!bearer.name.empty()) part.allocated_resource_name = bearer.name;
    // What the charge's own tags say is not said again.
    std::copy_if(bearer.tags.begin(), bearer.tags.end(), std::back_inserter(part.allocated_tags),
                 [&](const auto& tag) {
                   return std::find(row.tags.begin(), row.tags.end(), tag) == row.tags.end();
                 });
  }
  return rows;
}

}  // namespace loam::billing
