#include "billing/focus_rules.hpp"

#include <algorithm>

#include "billing/focus.hpp"

namespace loam::billing {

std::optional<FocusDecimal> FocusDecimal::parse(std::string_view text) {
  FocusDecimal number;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t mark = std::min(text.find_first_of("eE"), text.size());
  std::string_view mantissa = text.substr(0, mark);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  std::string digits(mantissa.substr(0, point));
  if (digits.empty()) return std::nullopt;
  if (point < mantissa.size()) {
    const std::string_view part = mantissa.substr(point + 1);
    if (part.empty()) return std::nullopt;
    digits += part;
    number.places = static_cast<int>(part.size());
  }
  constexpr std::size_t digits_max = 60;
  if (digits.size() > digits_max || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  // Boost takes a leading zero for octal.
  const std::size_t first = digits.find_first_not_of('0');
  number.digits = first == std::string::npos ? Wide(0) : Wide(digits.substr(first));
  if (negative) number.digits = -number.digits;
  if (mark == text.size()) return number;
  std::string_view exponent = text.substr(mark + 1);
  const bool down = exponent.starts_with('-');
  if (down) exponent.remove_prefix(1);
  if (exponent.empty() || exponent.size() > 2 ||
      exponent.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  int shift = 0;
  for (const char c : exponent) shift = shift * 10 + (c - '0');
  number.places += down ? shift : -shift;
  return number;
}

FocusDecimal::Wide FocusDecimal::scaled(int to_places) const {
  Wide value = digits;
  for (int i = places; i < to_places; ++i) value *= 10;
  return value;
}

bool equal(const FocusDecimal& a, const FocusDecimal& b) {
  const int places = std::max(a.places, b.places);
  return a.scaled(places) == b.scaled(places);
}
FocusDecimal operator+(const FocusDecimal& a, const FocusDecimal& b) {
  const int places = std::max(a.places, b.places);
  return {a.scaled(places) + b.scaled(places), places};
}
FocusDecimal operator*(const FocusDecimal& a, const FocusDecimal& b) {
  return {a.digits * b.digits, a.places + b.places};
}

bool is_focus_instant(std::string_view text) {
  constexpr std::size_t length = 20;  // "2026-03-01T00:00:00Z"
  return text.size() == length && parse_instant(text).ok();
}

std::optional<FocusDecimal> allocated_ratio(const FocusCells& row) {
  const FocusValue details = row.value("AllocatedMethodDetails");
  if (!details) return std::nullopt;
  const auto object = read_flat_json(*details);
  if (!object.ok()) return std::nullopt;
  const auto elements = std::find_if(object->begin(), object->end(), [](const auto& member) {
    return member.first == "Elements" && member.second;
  });
  if (elements == object->end()) return std::nullopt;
  const auto list = read_json_list(*elements->second);
  if (!list.ok() || list->empty()) return std::nullopt;
  FocusDecimal sum;
  for (const FocusValue& element : *list) {
    const auto factor = element ? read_flat_json(*element) : read_flat_json("");
    if (!factor.ok()) return std::nullopt;
    const auto ratio = std::find_if(factor->begin(), factor->end(), [](const auto& member) {
      return member.first == "AllocatedRatio" && member.second;
    });
    const auto number = ratio == factor->end() ? std::nullopt : FocusDecimal::parse(*ratio->second);
    if (!number || number->is_negative()) return std::nullopt;
    sum = sum + *number;
  }
  return sum;
}

namespace {

class RowChecker {
 public:
  RowChecker(const FocusCells& row, const FocusFaultTaker& fault) : row_(row), fault_(fault) {}

  void check() const {
    check_periods();
    check_dependents();
    check_quantities();
    check_charge();
    check_priced();
    check_rights();
    check_commitment();
    check_costs();
    check_allocation();
    check_price_details();
  }

 private:
  bool usage() const { return row_.is("ChargeCategory", "Usage"); }
  bool purchase() const { return row_.is("ChargeCategory", "Purchase"); }
  // A correction may carry the difference alone.
  bool correction() const { return row_.is("ChargeClass", "Correction"); }
  bool unused() const {
    return row_.is("CommitmentDiscountStatus", "Unused") ||
           row_.is("CapacityReservationStatus", "Unused");
  }

  void check_periods() const {
    for (const auto& [from, to] : {std::pair{"ChargePeriodStart", "ChargePeriodEnd"},
                                   std::pair{"BillingPeriodStart", "BillingPeriodEnd"}}) {
      const FocusValue begin = row_.value(from), end = row_.value(to);
      if (!begin || !end || !is_focus_instant(*begin) || !is_focus_instant(*end)) continue;
      if (*begin >= *end)  // the text of instants sorts as they do
        fault_(to, "'" + *end + "' is not after " + from + " '" + *begin + "'");
    }
  }

  // What is null where something else is.
  void check_dependents() const {
    static constexpr std::pair<const char*, const char*> needs[] = {
        {"RegionName", "RegionId"},
        {"ResourceName", "ResourceId"},
        {"ResourceType", "ResourceId"},
        {"SubAccountName", "SubAccountId"},
        {"SubAccountType", "SubAccountId"},
        {"SkuMeter", "SkuId"},
        {"SkuPriceDetails", "SkuPriceId"},
        {"InvoiceDetailId", "InvoiceId"},
        {"CommitmentDiscountName", "CommitmentDiscountId"},
        {"CommitmentDiscountCategory", "CommitmentDiscountId"},
        {"CommitmentDiscountType", "CommitmentDiscountId"},
        {"CommitmentDiscountQuantity", "CommitmentDiscountId"},
        {"CommitmentDiscountStatus", "CommitmentDiscountId"},
        {"CapacityReservationStatus", "CapacityReservationId"},
        {"AllocatedResourceId", "AllocatedMethodId"},
        {"AllocatedMethodDetails", "AllocatedMethodId"},
        {"AllocatedTags", "AllocatedMethodId"},
        {"AllocatedResourceName", "AllocatedResourceId"},
    };
    for (const auto& [column, other] : needs) {
      if (row_.set(column) && !row_.set(other))
        fault_(column, std::string("is set without ") + other);
    }
    // And the other way round.
    static constexpr std::pair<const char*, const char*> tell[] = {
        {"RegionId", "RegionName"},
        {"ResourceId", "ResourceType"},
        {"SubAccountId", "SubAccountName"},
        {"CommitmentDiscountId", "CommitmentDiscountCategory"},
        {"CommitmentDiscountId", "CommitmentDiscountType"},
    };
    for (const auto& [column, other] : tell) {
      if (row_.set(column) && row_.there(other) && !row_.set(other))
        fault_(other, std::string("is null where ") + column + " is not");
    }
  }

  void check_pair(const char* quantity, const char* unit) const {
    if (row_.set(quantity) != row_.set(unit))
      fault_(unit, std::string("is null where ") + quantity + " is not, or the other way round");
  }

  void check_quantities() const {
    check_pair("PricingQuantity", "PricingUnit");
    check_pair("ConsumedQuantity", "ConsumedUnit");
    check_pair("CommitmentDiscountQuantity", "CommitmentDiscountUnit");
    if (row_.set("ConsumedQuantity") && (unused() || !usage()))
      fault_("ConsumedQuantity", "is only for usage that took place");
    if (usage() && !unused() && !correction()) need("ConsumedQuantity", "usage that took place");
  }

  void need(const char* column, const char* of) const {
    if (row_.there(column) && !row_.set(column)) fault_(column, std::string("is null on ") + of);
  }

  void check_charge() const {
    if (purchase() && row_.is("ChargeFrequency", "Usage-Based"))
      fault_("ChargeFrequency", "of a purchase is not Usage-Based");
    if (row_.is("ChargeCategory", "Tax")) {
      for (const char* column :
           {"ListUnitPrice", "ContractedUnitPrice", "PricingQuantity", "PricingCategory", "SkuId",
            "SkuPriceId", "PricingCurrencyListUnitPrice", "PricingCurrencyContractedUnitPrice"})
        if (row_.set(column)) fault_(column, "is set on a tax");
    }
    // Of no other charge: what it lists, contracts and comes to is what is billed.
    const auto billed = row_.number("BilledCost");
    if (!row_.is("ChargeCategory", "Credit") || !billed) return;
    for (const char* column : {"ListCost", "ContractedCost", "EffectiveCost"}) {
      const auto cost = row_.number(column);
      if (cost && !equal(*cost, *billed)) fault_(column, "of a credit is not its BilledCost");
    }
  }

  void check_priced() const {
    for (const char* column :
         {"ListUnitPrice", "ContractedUnitPrice", "PricingCurrencyListUnitPrice",
          "PricingCurrencyContractedUnitPrice"}) {
      const auto price = row_.number(column);
      if (price && price->is_negative()) fault_(column, "'" + *row_.value(column) + "' is below 0");
    }
    if ((!usage() && !purchase()) || correction()) return;
    for (const char* column : {"SkuId", "SkuPriceId", "ListUnitPrice", "ContractedUnitPrice",
                               "PricingQuantity", "PricingCategory"})
      need(column, "usage or a purchase");
  }

  void check_right(const char* id, const char* status) const {
    if (row_.set(id) && usage() && !row_.set(status))
      fault_(status, std::string("is null on usage under ") + id);
    if (row_.set(id) && !usage() && row_.set(status))
      fault_(status, "is only for usage: a purchase is neither used nor unused");
  }

  void check_rights() const {
    check_right("CommitmentDiscountId", "CommitmentDiscountStatus");
    check_right("CapacityReservationId", "CapacityReservationStatus");
  }

  void check_commitment() const {
    const bool under = row_.set("CommitmentDiscountId");
    const bool committed = row_.is("PricingCategory", "Committed");
    if (committed && (!under || purchase()))
      fault_("PricingCategory", "'Committed' is only for usage under a commitment");
    if (!under) return;
    if (usage() && row_.set("PricingCategory") && !committed)
      fault_("PricingCategory", "of usage under a commitment is not Committed");
    if ((usage() || purchase()) && !correction())
      need("CommitmentDiscountQuantity", "a commitment's usage or purchase");
    if (!usage() && !purchase() && row_.set("CommitmentDiscountQuantity"))
      fault_("CommitmentDiscountQuantity", "is only for usage and purchases");
    const auto billed = row_.number("BilledCost"), effective = row_.number("EffectiveCost");
    if (purchase() && effective && !effective->is_zero())
      fault_("EffectiveCost", "of a commitment's purchase is not 0");
    if (usage() && billed && !billed->is_zero())
      fault_("BilledCost", "of usage under a commitment is not 0: the purchase bills it");
  }

  void check_product(const char* cost, const char* price) const {
    const auto total = row_.number(cost), each = row_.number(price),
               quantity = row_.number("PricingQuantity");
    if (total && each && quantity && !equal(*total, *each * *quantity))
      fault_(cost, "is not " + std::string(price) + " x PricingQuantity");
  }

  void check_costs() const {
    if (correction()) return;
    check_product("ListCost", "ListUnitPrice");
    check_product("ContractedCost", "ContractedUnitPrice");
  }

  void check_allocation() const {
    if (!row_.set("AllocatedMethodId")) return;
    if (row_.set("AllocatedMethodDetails") && !allocated_ratio(row_))
      fault_("AllocatedMethodDetails", "has no Elements with an AllocatedRatio each");
    const FocusValue mine = row_.value("AllocatedTags"), origin = row_.value("Tags");
    if (!mine || !origin) return;
    const auto tags = read_flat_json(*mine), known = read_flat_json(*origin);
    if (!tags.ok() || !known.ok()) return;
    for (const auto& tag : *tags) {
      if (std::find(known->begin(), known->end(), tag) != known->end())
        fault_("AllocatedTags", "'" + tag.first + "' is in Tags already");
    }
  }

  void check_price_details() const {
    static constexpr std::string_view known[] = {
        "CoreCount",       "DiskMaxIops",  "DiskSpace",   "DiskType",       "GpuCount",
        "InstanceSeries",  "InstanceType", "MemorySize",  "NetworkMaxIops", "NetworkMaxThroughput",
        "OperatingSystem", "Redundancy",   "StorageClass"};
    const FocusValue text = row_.value("SkuPriceDetails");
    if (!text) return;
    const auto details = read_flat_json(*text);
    if (!details.ok()) return;
    for (const auto& [name, value] : *details) {
      if (!name.starts_with("x_") &&
          std::find(std::begin(known), std::end(known), name) == std::end(known))
        fault_("SkuPriceDetails", "'" + name + "' is no property of FOCUS: begin it with x_");
    }
  }

  const FocusCells& row_;
  const FocusFaultTaker& fault_;
};

}  // namespace

void check_focus_row(const FocusCells& row, const FocusFaultTaker& fault) {
  RowChecker(row, fault).check();
}

}  // namespace loam::billing
