// Checks of FOCUS files: every column by itself, and what rows demand of each other.
#include <algorithm>
#include <map>
#include <tuple>

#include "billing/csv.hpp"
#include "billing/focus.hpp"
#include "billing/focus_rules.hpp"

namespace loam::billing {
namespace {

using Value = FocusValue;
using Decimal = FocusDecimal;

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
    const FocusCells cells(values);
    for (const auto& [name, value] : values) check_cell(name, value);
    check_focus_row(cells, [this](const char* column, std::string what) {
      fault_here(column, std::move(what));
    });
    add_invoice(cells);
    add_commitment(cells);
    add_allocation(cells);
    add_parents(cells);
  }

  FocusReport done() {
    for (const auto& [id, sum] : invoices_) check_invoice(id, sum);
    for (const auto& [id, sum] : commitments_) check_commitment(id, sum);
    for (const auto& [key, split] : splits_) {
      // Charges of one kind and time are told apart by nothing: each is a whole.
      const int places = std::max(0, split.ratio.places);
      const FocusDecimal::Wide one = Decimal{1, 0}.scaled(places);
      const FocusDecimal::Wide sum = split.ratio.scaled(places);
      if (split.told && (sum == 0 || sum % one != 0))
        fault(split.row, "AllocatedMethodDetails",
              "and those of the other parts of this charge do not add up to 1");
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
        if (!is_focus_instant(*value)) wrong = "is not an instant as YYYY-MM-DDTHH:mm:ssZ";
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
      case FocusColumn::Type::object:
        if (!read_flat_json(*value).ok()) wrong = "is not a JSON object";
        break;
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

  // A credit note's rows correct an invoice; a charge that was told late is a correction on it.
  void add_invoice(const FocusCells& cells) {
    const Value id = cells.value("InvoiceId");
    if (!id) return;
    InvoiceSum& sum = invoices_[*id];
    const std::string currency = cells.value("BillingCurrency").value_or("");
    if (sum.currency.empty()) sum.currency = currency;
    if (sum.currency != currency)
      fault_here("BillingCurrency", "of '" + *id + "' is " + sum.currency + " in another row");
    const bool note = cells.is("ChargeClass", "Correction") &&
                      (cells.is("ChargeCategory", "Credit") || cells.is("ChargeCategory", "Tax"));
    if (const auto billed = cells.number("BilledCost"))
      (note ? sum.given_back : sum.billed) = (note ? sum.given_back : sum.billed) + *billed;
    const auto total = cells.number("x_InvoiceTotal");
    if (!total) return;
    if (sum.total && !equal(*sum.total, *total))
      fault_here("x_InvoiceTotal", "of '" + *id + "' is another one in another row");
    sum.total = total;
  }

  void add_commitment(const FocusCells& cells) {
    const Value id = cells.value("CommitmentDiscountId");
    if (!id) return;
    CommitmentSum& sum = commitments_[*id];
    const bool purchase = cells.is("ChargeCategory", "Purchase");
    if (!purchase && !cells.is("ChargeCategory", "Usage")) return;
    CommitmentSum::Side& side = purchase ? sum.bought : sum.told;
    const std::string from = cells.value("ChargePeriodStart").value_or("");
    const std::string to = cells.value("ChargePeriodEnd").value_or("");
    side.from = side.rows == 0 ? from : std::min(side.from, from);
    side.to = std::max(side.to, to);
    ++side.rows;
    if (const auto cost = cells.number(purchase ? "BilledCost" : "EffectiveCost"))
      side.cost = side.cost + *cost;
    if (const auto quantity = cells.number("CommitmentDiscountQuantity"))
      side.quantity = side.quantity + *quantity;
    sum.counted = sum.counted && cells.there("CommitmentDiscountQuantity");
  }

  // The parts of a charge have all that is the charge's own.
  void add_allocation(const FocusCells& cells) {
    if (!cells.set("AllocatedMethodId")) return;
    std::string key;
    for (const char* column : {"BillingAccountId", "ResourceId", "ChargeCategory", "ChargeClass",
                               "SkuPriceId", "CommitmentDiscountId", "CapacityReservationId",
                               "ChargePeriodStart", "ChargePeriodEnd", "AllocatedMethodId"})
      key += cells.value(column).value_or("") + '\n';
    Split& split = splits_[key];
    if (split.row == 0) split.row = report_.rows;
    const auto ratio = allocated_ratio(cells);
    split.told = split.told && ratio;
    if (ratio) split.ratio = split.ratio + *ratio;
  }

  // What has one of another wherever it is named.
  void add_parents(const FocusCells& cells) {
    static constexpr std::pair<const char*, const char*> named[] = {
        {"SkuPriceId", "SkuId"},
        {"CommitmentDiscountId", "CommitmentDiscountUnit"},
        {"ServiceName", "ServiceCategory"},
        {"ServiceSubcategory", "ServiceCategory"},
    };
    for (const auto& [child, parent] : named) {
      const Value of = cells.value(child), value = cells.value(parent);
      if (!of || !value) continue;
      const auto known = parents_.try_emplace({child, parent, *of}, *value).first;
      if (known->second != *value)
        fault_here(parent, "of " + std::string(child) + " '" + *of + "' is '" + known->second +
                               "' in another row");
    }
  }

  struct CommitmentSum {
    struct Side {
      std::size_t rows = 0;
      // Of charge periods; the text of instants sorts as they do.
      std::string from;
      std::string to;
      Decimal cost;
      Decimal quantity;
    };
    Side bought;  // billed
    Side told;    // effective: used and unused
    bool counted = true;

    // What was bought may reach past the file, where its use is not told to the end; and the file
    // may hold the use of what was bought before it.
    bool whole() const {
      return bought.rows > 0 && told.rows > 0 && bought.from <= told.from && bought.to <= told.to;
    }
  };
  void check_commitment(const std::string& id, const CommitmentSum& sum) {
    if (!sum.whole()) return;
    if (!equal(sum.bought.cost, sum.told.cost))
      fault(0, "CommitmentDiscountId",
            "'" + id + "': what its purchases billed is not what was used and unused of it");
    if (sum.counted && !equal(sum.bought.quantity, sum.told.quantity))
      fault(0, "CommitmentDiscountQuantity",
            "of '" + id + "': what was bought is not what was used and unused of it");
  }

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
    if (left.is_negative())
      fault(0, "InvoiceId", "'" + id + "': its credit notes give back more than its total");
  }

  struct Split {
    std::size_t row = 0;  // the first
    bool told = true;     // by every part
    Decimal ratio;
  };

  FocusReport report_;
  std::map<std::string, InvoiceSum> invoices_;
  std::map<std::string, CommitmentSum> commitments_;
  std::map<std::string, Split> splits_;
  std::map<std::tuple<std::string_view, std::string_view, std::string>, std::string> parents_;
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
