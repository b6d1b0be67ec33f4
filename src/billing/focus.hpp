// FOCUS 1.4: the FinOps Open Cost and Usage Specification's Cost and Usage dataset, written and
// checked. Pure. Source: the specification of that version; columns of later drafts are unknown
// here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "billing/calendar.hpp"
#include "billing/rater.hpp"

namespace loam::billing {

struct FocusColumn {
  enum class Type : std::uint8_t { string, decimal, instant, json };
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

// One charge as FOCUS tells it. Absent optionals are null.
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
  std::optional<std::string> commitment_id;
  std::optional<std::string> commitment_category;  // Spend, Usage
  std::optional<std::string> commitment_status;    // Used, Unused
  std::optional<std::string> commitment_type;      // Reserved, Subscription
  std::optional<std::string> commitment_unit;
  std::optional<FocusQuantity> commitment_quantity;
  std::optional<std::string> reservation_id;
  std::optional<std::string> reservation_status;  // Used, Unused
  std::optional<std::string> allocated_method_id;
  std::optional<std::string> allocated_resource_id;
  std::vector<std::pair<std::string, std::string>> tags;
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
std::vector<std::pair<std::string, std::string>> focus_tags(const Attribution& who,
                                                            const std::string& group);
// A row for a rated charge on demand or on spot: billed as used. ListCost and ContractedCost are
// the exact products of what is printed.
FocusRow focus_usage(const Charge& charge, const Usage& usage, Granularity granularity,
                     const std::string& group = {});
// The three kinds of row of a commitment: its purchase (billed, not effective), what usage it
// covers and what stays unused (effective, not billed). Effective costs of the last two add up to
// what the purchase billed.
FocusRow focus_purchase(const std::string& commitment, const std::string& type, Money amount,
                        Period period);
FocusRow focus_covered(const std::string& commitment, const std::string& type, Money effective,
                       Int128 quantity, const std::string& unit, Period period);
FocusRow focus_unused(const std::string& commitment, const std::string& type, Money effective,
                      Int128 quantity, const std::string& unit, Period period);

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
// nullability, allowed values, what columns of a row demand of each other, and sums between rows: a
// commitment's purchases against what was used and unused of it; an invoice's rows against its
// total (x_InvoiceTotal, where the file has it), and its credit notes against that total. An error
// where the text is neither.
Result<FocusReport> validate_focus(std::string_view text);

// A flat JSON object's members: text for strings, the literal for numbers and true/false, nothing
// for null; a nested object or list as its own text. Duplicate names are errors.
using FlatJson = std::vector<std::pair<std::string, std::optional<std::string>>>;
Result<FlatJson> read_flat_json(std::string_view text);

}  // namespace loam::billing
