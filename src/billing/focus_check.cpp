// Checks of FOCUS files: every column by itself, the columns of a row, sums between rows.
#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <map>

#include "billing/csv.hpp"
#include "billing/focus.hpp"

namespace loam::billing {
namespace {

using Value = std::optional<std::string>;
using Wide = boost::multiprecision::cpp_int;

// A decimal number as an integer and its number of decimals; nothing where it is none. Digits, a
// point, and an exponent as mEn; neither plus sign nor commas nor symbols.
struct Decimal {
  Wide digits;
  int places = 0;  // value = digits / 10^places

  static std::optional<Decimal> parse(std::string_view text) {
    Decimal number;
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

  bool is_zero() const { return digits == 0; }
};

Wide scaled(const Decimal& number, int places) {
  Wide value = number.digits;
  for (int i = number.places; i < places; ++i) value *= 10;
  return value;
}
bool equal(const Decimal& a, const Decimal& b) {
  const int places = std::max(a.places, b.places);
  return scaled(a, places) == scaled(b, places);
}
Decimal operator+(const Decimal& a, const Decimal& b) {
  const int places = std::max(a.places, b.places);
  return {scaled(a, places) + scaled(b, places), places};
}
Decimal operator*(const Decimal& a, const Decimal& b) {
  return {a.digits * b.digits, a.places + b.places};
}

bool is_instant(std::string_view text) {
  constexpr std::size_t length = 20;  // "2026-03-01T00:00:00Z"
  return text.size() == length && parse_instant(text).ok();
}

const FocusColumn* find_column(std::string_view id) {
  const auto columns = focus_columns();
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const FocusColumn& column) { return id == column.id; });
  return found == columns.end() ? nullptr : &*found;
}

bool is_allowed(std::string_view allowed, std::string_view value) {
  while (!allowed.empty()) {
    const std::size_t bar = std::min(allowed.find('|'), allowed.size());
    if (allowed.substr(0, bar) == value) return true;
    allowed.remove_prefix(std::min(bar + 1, allowed.size()));
  }
  return false;
}

class Checker {
 public:
  // The columns of the file, in order.
  void head(const std::vector<std::string>& names) {
    bool custom = false;
    std::map<std::string, int> seen;
    for (const std::string& name : names) {
      if (++seen[name] == 2) fault(0, name, "appears twice");
      if (name.starts_with("x_")) {
        custom = true;
        continue;
      }
      if (name == "ProviderName" || name == "PublisherName") {
        fault(0, name, "was removed in FOCUS 1.4: use ServiceProviderName and HostProviderName");
      } else if (find_column(name) == nullptr) {
        fault(0, name, "is no column of FOCUS 1.4: columns of one's own begin with x_");
      } else if (custom) {
        fault(0, name, "comes after a custom column: custom columns come last");
      }
    }
    for (const FocusColumn& column : focus_columns()) {
      if (column.level == FocusColumn::Level::mandatory && !seen.contains(column.id))
        fault(0, column.id, "is mandatory and missing");
    }
  }

  void row(const std::map<std::string, Value>& values) {
    ++report_.rows;
    values_ = &values;
    for (const auto& [name, value] : values) check_cell(name, value);
    check_periods();
    check_units();
    check_rights();
    check_costs();
    add_sums();
  }

  FocusReport done() {
    for (const auto& [id, sum] : invoices_) check_invoice(id, sum);
    for (const auto& [id, sum] : commitments_) {
      if (sum.whole() && !equal(sum.billed, sum.effective))
        fault(0, "CommitmentDiscountId",
              "'" + id + "': what its purchases billed is not what was used and unused of it");
    }
    return std::move(report_);
  }

  void fault(std::size_t row, std::string column, std::string what) {
    if (report_.faults.size() >= FocusReport::faults_max) {
      report_.more = true;
      return;
    }
    report_.faults.push_back({row, std::move(column), std::move(what)});
  }
  std::size_t rows() const { return report_.rows; }

 private:
  Value value(const char* column) const {
    const auto found = values_->find(column);
    return found == values_->end() ? Value() : found->second;
  }
  bool is(const char* column, const char* text) const { return value(column) == text; }
  std::optional<Decimal> number(const char* column) const {
    const Value text = value(column);
    return text ? Decimal::parse(*text) : std::nullopt;
  }
  void fault_here(const char* column, std::string what) {
    fault(report_.rows, column, std::move(what));
  }

  void check_cell(const std::string& name, const Value& value) {
    const FocusColumn* column = find_column(name);
    if (column == nullptr) return;  // told by head()
    if (!value) {
      if (!column->nullable) fault_here(column->id, "is null and must not be");
      return;
    }
    if (value->empty()) {
      fault_here(column->id, "is an empty string: write NULL for nothing");
      return;
    }
    const char* wrong = nullptr;
    switch (column->type) {
      case FocusColumn::Type::decimal:
        if (!Decimal::parse(*value)) wrong = "is not a decimal number";
        break;
      case FocusColumn::Type::instant:
        if (!is_instant(*value)) wrong = "is not an instant as YYYY-MM-DDTHH:mm:ssZ";
        break;
      case FocusColumn::Type::json: {
        const auto members = read_flat_json(*value);
        const bool flat =
            members.ok() && std::all_of(members->begin(), members->end(), [](const auto& member) {
              return !member.second || !member.second->starts_with('[');
            });
        if (!flat) wrong = "is not a flat JSON object";
        break;
      }
      case FocusColumn::Type::string:
        if (column->allowed[0] != '\0' && !is_allowed(column->allowed, *value))
          wrong = "is none of the allowed values";
        break;
    }
    if (wrong == nullptr && (name == "BillingCurrency" || name == "PricingCurrency") &&
        !Currency::parse(*value).ok())
      wrong = "is not an ISO 4217 code";
    if (wrong != nullptr) fault_here(column->id, "'" + *value + "' " + wrong);
  }

  void check_periods() {
    for (const auto& [from, to] : {std::pair{"ChargePeriodStart", "ChargePeriodEnd"},
                                   std::pair{"BillingPeriodStart", "BillingPeriodEnd"}}) {
      const Value begin = value(from), end = value(to);
      if (!begin || !end || !is_instant(*begin) || !is_instant(*end)) continue;
      if (*begin >= *end)  // the text of instants sorts as they do
        fault_here(to, "'" + *end + "' is not after " + from + " '" + *begin + "'");
    }
  }

  void check_pair(const char* quantity, const char* unit) {
    if (value(quantity).has_value() != value(unit).has_value())
      fault_here(unit,
                 std::string("is null where ") + quantity + " is not, or the other way round");
  }

  void check_units() {
    check_pair("PricingQuantity", "PricingUnit");
    check_pair("ConsumedQuantity", "ConsumedUnit");
    check_pair("CommitmentDiscountQuantity", "CommitmentDiscountUnit");
    const bool unused =
        is("CommitmentDiscountStatus", "Unused") || is("CapacityReservationStatus", "Unused");
    if (value("ConsumedQuantity") && (unused || !is("ChargeCategory", "Usage")))
      fault_here("ConsumedQuantity", "is only for usage that took place");
  }

  void check_right(const char* id, const char* status) {
    const bool usage = is("ChargeCategory", "Usage");
    if (!value(id) && value(status)) fault_here(status, std::string("is set without ") + id);
    if (value(id) && usage && !value(status))
      fault_here(status, std::string("is null on usage under ") + id);
    if (value(id) && !usage && value(status))
      fault_here(status, "is only for usage: a purchase is neither used nor unused");
  }

  void check_rights() {
    check_right("CommitmentDiscountId", "CommitmentDiscountStatus");
    check_right("CapacityReservationId", "CapacityReservationStatus");
    for (const char* column : {"CommitmentDiscountCategory", "CommitmentDiscountType"}) {
      if (values_->contains(column) &&
          value("CommitmentDiscountId").has_value() != value(column).has_value())
        fault_here(column, "and CommitmentDiscountId are null together or not at all");
    }
    if (!value("CommitmentDiscountId")) return;
    const auto billed = number("BilledCost"), effective = number("EffectiveCost");
    if (is("ChargeCategory", "Purchase") && effective && !effective->is_zero())
      fault_here("EffectiveCost", "of a commitment's purchase is not 0");
    if (is("ChargeCategory", "Usage") && billed && !billed->is_zero())
      fault_here("BilledCost", "of usage under a commitment is not 0: the purchase bills it");
  }

  void check_product(const char* cost, const char* price) {
    const auto total = number(cost), each = number(price), quantity = number("PricingQuantity");
    if (total && each && quantity && !equal(*total, *each * *quantity))
      fault_here(cost, "is not " + std::string(price) + " x PricingQuantity");
  }

  void check_costs() {
    if (is("ChargeClass", "Correction")) return;  // a correction may carry the difference alone
    check_product("ListCost", "ListUnitPrice");
    check_product("ContractedCost", "ContractedUnitPrice");
    if (is("ChargeCategory", "Tax")) {
      for (const char* column :
           {"ListUnitPrice", "ContractedUnitPrice", "PricingQuantity", "SkuId"})
        if (value(column)) fault_here(column, "is set on a tax");
    }
  }

  // A credit note's rows correct an invoice; a charge that was told late is a correction on it.
  void add_invoice_sums() {
    const Value id = value("InvoiceId");
    if (!id) {
      if (value("InvoiceDetailId")) fault_here("InvoiceDetailId", "is set without InvoiceId");
      return;
    }
    InvoiceSum& sum = invoices_[*id];
    const std::string currency = value("BillingCurrency").value_or("");
    if (sum.currency.empty()) sum.currency = currency;
    if (sum.currency != currency)
      fault_here("BillingCurrency", "of '" + *id + "' is " + sum.currency + " in another row");
    const bool note = is("ChargeClass", "Correction") &&
                      (is("ChargeCategory", "Credit") || is("ChargeCategory", "Tax"));
    if (const auto billed = number("BilledCost"))
      (note ? sum.given_back : sum.billed) = (note ? sum.given_back : sum.billed) + *billed;
    const auto total = number("x_InvoiceTotal");
    if (!total) return;
    if (sum.total && !equal(*sum.total, *total))
      fault_here("x_InvoiceTotal", "of '" + *id + "' is another one in another row");
    sum.total = total;
  }

  void add_sums() {
    add_invoice_sums();
    const Value id = value("CommitmentDiscountId");
    if (!id) return;
    Sum& sum = commitments_[*id];
    const std::string end = value("ChargePeriodEnd").value_or("");
    if (const auto billed = number("BilledCost"); billed && is("ChargeCategory", "Purchase")) {
      sum.purchases = true;
      sum.billed = sum.billed + *billed;
      sum.bought_until = std::max(sum.bought_until, end);
    }
    if (const auto effective = number("EffectiveCost");
        effective && is("ChargeCategory", "Usage")) {
      sum.effective = sum.effective + *effective;
      sum.told_until = std::max(sum.told_until, end);
    }
  }

  struct Sum {
    bool purchases = false;  // a file may hold the usage of what was bought before
    Decimal billed;
    Decimal effective;
    // Ends of charge periods; the text of instants sorts as they do.
    std::string bought_until;
    std::string told_until;

    // What was bought may reach past the file: then its use is not told to the end.
    bool whole() const { return purchases && bought_until <= told_until; }
  };

  struct InvoiceSum {
    std::string currency;
    Decimal billed;
    Decimal given_back;  // by credit notes: below zero
    std::optional<Decimal> total;
  };
  void check_invoice(const std::string& id, const InvoiceSum& sum) {
    if (!sum.total) return;  // not all of it is in the file
    if (!equal(sum.billed, *sum.total))
      fault(0, "InvoiceId", "'" + id + "': its rows do not add up to its total");
    const Decimal left = *sum.total + sum.given_back;
    if (left.digits < 0)
      fault(0, "InvoiceId", "'" + id + "': its credit notes give back more than its total");
  }

  FocusReport report_;
  std::map<std::string, InvoiceSum> invoices_;
  const std::map<std::string, Value>* values_ = nullptr;
  std::map<std::string, Sum> commitments_;
};

Result<FocusReport> check_csv(std::string_view text) {
  LOAM_TRY(rows, read_csv(text));
  if (rows.empty()) return invalid("the file is empty", "give a head line and rows");
  const std::vector<std::string>& head = rows.front();
  const bool known = std::any_of(head.begin(), head.end(), [](const std::string& name) {
    return find_column(name) != nullptr;
  });
  // Another kind of file, or other separators: said once, not once a mandatory column.
  if (!known)
    return invalid("line 1 names no column of FOCUS 1.4; it begins with " + shown(head.front()),
                   "begin with a head line, its names separated by commas");
  Checker checker;
  checker.head(head);
  std::map<std::string, Value> values;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != head.size()) {
      checker.fault(i, "",
                    "has " + std::to_string(rows[i].size()) + " fields and the head has " +
                        std::to_string(head.size()));
      continue;
    }
    values.clear();
    for (std::size_t c = 0; c < head.size(); ++c)
      values[head[c]] = rows[i][c] == "NULL" ? Value() : Value(rows[i][c]);
    checker.row(values);
  }
  return checker.done();
}

Result<FocusReport> check_json_lines(std::string_view text) {
  Checker checker;
  std::vector<std::string> head;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto members = read_flat_json(one);
    if (!members.ok())
      return invalid("line " + std::to_string(line) + ": " + members.error().message,
                     members.error().next_step);
    std::vector<std::string> names;
    std::map<std::string, Value> values;
    for (const auto& [name, value] : *members) {
      names.push_back(name);
      values[name] = value;
    }
    if (checker.rows() == 0) {
      head = names;
      checker.head(head);
    } else if (names.size() != head.size() ||
               !std::is_permutation(names.begin(), names.end(), head.begin())) {
      checker.fault(checker.rows() + 1, "", "has other columns than the first row");
    }
    checker.row(values);
  }
  return checker.done();
}

}  // namespace

Result<FocusReport> validate_focus(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return invalid("the file is empty", "give some rows");
  return text[first] == '{' ? check_json_lines(text) : check_csv(text);
}

}  // namespace loam::billing
