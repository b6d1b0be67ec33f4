// FOCUS 1.4: the FinOps Open Cost and Usage Specification's Cost and Usage dataset, written and
// checked. Pure. Source: the specification of that version; columns of later drafts are unknown
// here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "billing/attribution.hpp"
#include "billing/calendar.hpp"
#include "billing/rater.hpp"

namespace loam::billing {

struct FocusColumn {
  // json: a flat object of keys and values; object: one that may have others within.
  enum class Type : std::uint8_t { string, decimal, instant, json, object };
  enum class Level : std::uint8_t { mandatory, conditional, recommended };
  const char* id;
  Type type;
  Level level;
  bool nullable;
  const char* allowed;  // "Used|Unused"; empty: anything of the type
};
// Every column of 1.4, by name.
std::span<const FocusColumn> focus_columns();

// A quantity as a decimal: units / 10^places.
struct FocusQuantity {
  Int128 units = 0;
  int places = Money::decimals;

  FocusQuantity(Int128 given, int given_places = Money::decimals)
      : units(given), places(given_places) {}
  // quantity / scale at as many places as an Int128 holds for any bill: price times quantity then
  // rounds to what was billed. Requires scale > 0 and less than 10^14 whole units.
  static FocusQuantity of(Int128 quantity, Int128 scale);
  friend bool operator==(const FocusQuantity&, const FocusQuantity&) = default;
};

// Keys and values of a flat JSON object, in order.
using FocusPairs = std::vector<std::pair<std::string, std::string>>;

// One charge as FOCUS tells it. Absent optionals, and pairs that there are none of, are null.
struct FocusRow {
  // Who sells, who pays.
  std::string issuer;  // the operator: issuer, service provider and host alike
  std::string billing_account_id;
  std::string billing_account_name;
  std::optional<std::string> sub_account_id;  // project
  std::optional<std::string> invoice_id;
  std::optional<std::string> invoice_detail_id;
  // When.
  Period billing_period;
  Period charge_period;
  // What.
  std::string category = "Usage";  // Usage, Purchase, Tax, Credit, Adjustment
  bool correction = false;
  std::string frequency = "Usage-Based";
  std::string description;
  std::optional<std::string> pricing_category;  // Standard, Dynamic, Committed, Other
  std::optional<std::string> resource_id;
  std::optional<std::string> resource_name;
  std::optional<std::string> resource_type;
  std::optional<std::string> region_id;
  std::optional<std::string> sku_id;
  std::optional<std::string> sku_meter;
  std::optional<std::string> sku_price_id;
  FocusPairs sku_price_details;  // what belongs to the price, by its own keys
  std::optional<std::string> commitment_id;
  std::optional<std::string> commitment_category;  // Spend, Usage
  std::optional<std::string> commitment_status;    // Used, Unused
  std::optional<std::string> commitment_type;      // Reserved, Subscription
  std::optional<std::string> commitment_unit;
  std::optional<FocusQuantity> commitment_quantity;
  std::optional<std::string> reservation_id;
  std::optional<std::string> reservation_status;  // Used, Unused
  std::optional<std::string> allocated_method_id;
  std::optional<std::string> allocated_method_details;  // JSON
  std::optional<std::string> allocated_resource_id;
  std::optional<std::string> allocated_resource_name;
  FocusPairs allocated_tags;
  FocusPairs tags;
  // How much.
  Money billed;
  Money effective;
  std::optional<Money> list_unit_price;
  BasisPoints discount;  // off it: the contracted unit price is what is left, exactly
  std::optional<FocusQuantity> pricing_quantity;
  std::optional<std::string> pricing_unit;
  std::optional<FocusQuantity> consumed_quantity;
  std::optional<std::string> consumed_unit;
  // A column of our own: what the rows of this invoice add up to, where all of them are in the
  // file.
  std::optional<Money> invoice_total;
};

// The tags of a charge: where it runs, the model, its own and its group; none of the first three is
// said twice.
FocusPairs focus_tags(const Attribution& who, const std::string& group);
// A row for a rated charge on demand or on spot: billed as used. ListCost and ContractedCost are
// the exact products of what is printed.
FocusRow focus_usage(const Charge& charge, const Usage& usage, Granularity granularity,
                     const std::string& group = {});

// What was committed to, and at which price.
struct FocusCommitment {
  std::string id;
  std::string type;           // Reserved, Subscription
  std::string unit;           // "CE-Hours"; else the currency, and money is committed
  Money unit_price;           // list, of a committed CE-hour
  BasisPoints discount = {};  // off it

  bool of_money() const { return unit == unit_price.currency().code(); }
};
// Of the right that a commitment gives: in its own unit at 12 decimals, and the CE-hours, which are
// what is priced.
struct FocusRight {
  Int128 quantity = 0;
  FocusQuantity ce_hours = {0};
};
// The three kinds of row of a commitment: its purchase (billed, not effective), what usage it
// covers and what stays unused (effective, not billed). Effective costs and quantities of the last
// two add up to what the purchase billed and gave a right to.
FocusRow focus_purchase(const FocusCommitment& commitment, Money amount, const FocusRight& right,
                        Period period);
FocusRow focus_covered(const FocusCommitment& commitment, Money effective, const FocusRight& used,
                       Period period);
FocusRow focus_unused(const FocusCommitment& commitment, Money effective, const FocusRight& left,
                      Period period);

// One who bears a part of a charge that is split.
struct FocusBearer {
  std::string resource;  // "t17"
  std::string name;      // may be empty
  FocusPairs tags;
  Int128 milli_ce_ms = 0;  // that it used: above zero
};
// The charge in a row for each bearer: by what they used (weighted) or alike (even). Costs,
// quantities and ratios add up to those of `row` to the last unit. Without bearers, or where idle
// cost is kept, the row as it is.
std::vector<FocusRow> focus_split(const FocusRow& row, const std::vector<FocusBearer>& bearers,
                                  IdleMethod method);

// A tax of an invoice, or of a credit note where it is below zero, over the invoice's period.
FocusRow focus_tax(const std::string& name, const std::string& percent, Money amount,
                   const std::string& invoice, Period period);
// What an invoice's lines were rounded by to be payable.
FocusRow focus_rounding(Money amount, const std::string& invoice, Period period);
// What a credit note gives back of an invoice, before tax: `amount` below zero.
FocusRow focus_credit_note(const std::string& note, const std::string& reason, Money amount,
                           const std::string& invoice, Period period);

// The columns that rows are written with, in order: CSV head line, and rows. Null is NULL.
std::string focus_csv_head();
std::string to_focus_csv(const FocusRow& row);
// One JSON object on one line.
std::string to_focus_json(const FocusRow& row);

struct FocusFault {
  std::size_t row = 0;  // 0: the file as a whole; else the row, from 1
  std::string column;   // may be empty
  std::string what;     // with the value
};
struct FocusReport {
  std::size_t rows = 0;
  std::vector<FocusFault> faults;  // at most faults_max, in order
  bool more = false;               // there were more
  static constexpr std::size_t faults_max = 100;
};
// Checks a CSV file (its first line the head) or JSON lines (begins with '{'): columns, types,
// nullability, allowed values, what columns of a row demand of each other, and between rows: a
// commitment's purchases against what was used and unused of it; an invoice's rows against its
// total (x_InvoiceTotal, where the file has it), and its credit notes against that total; the
// ratios of a charge that is split; that a price has one SKU, a commitment one unit, a service one
// category. Of columns that the file lacks nothing is asked. An error where the text is neither.
Result<FocusReport> validate_focus(std::string_view text);

// A flat JSON object's members: text for strings, the literal for numbers and true/false, nothing
// for null; a nested object or list as its own text. Duplicate names are errors.
using FlatJson = std::vector<std::pair<std::string, std::optional<std::string>>>;
Result<FlatJson> read_flat_json(std::string_view text);
// The values of a JSON list, each as it would be of a member.
Result<std::vector<std::optional<std::string>>> read_json_list(std::string_view text);

}  // namespace loam::billing
