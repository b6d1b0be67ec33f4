// Invoices and credit notes as text, CSV and JSON. Pure.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/money_text.hpp"
#include "billing/csv.hpp"
#include "billing/documents.hpp"

namespace loam::billing {
namespace {

std::string payable_text(Money amount) {
  return display_text(amount, amount.currency().exponent());
}

Money quantity_of(const DocumentLine& line) {
  return Money(line.quantity, line.net.currency());
}
std::string quantity_text(const DocumentLine& line) {
  return amount_text(quantity_of(line));
}

std::string percent_text(std::int64_t parts_per_million) {
  return decimal_text(parts_per_million, 4) + " %";
}

std::string padded_right(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

std::string padded_left(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

using Row = std::vector<std::string>;

// The first columns to the left, numbers (from `numbers` on) to the right.
std::string table_text(const std::vector<Row>& rows, std::size_t numbers) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += i < numbers ? padded_right(row[i], widths[i]) : padded_left(row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

void add_lines(const std::string& text, std::vector<std::string>& lines) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

std::vector<std::string> lines_of(const Party& party, const std::string& name) {
  std::vector<std::string> lines;
  add_lines(name, lines);
  add_lines(party.address, lines);
  if (!party.tax_id.empty()) add_lines("Tax ID " + party.tax_id, lines);
  return lines;
}

// A name and what belongs to it, line by line.
std::string facts_text(const std::string& name, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text += padded_right(text.empty() ? name : "", 11) + line + "\n";
  return text;
}

}  // namespace

std::vector<std::string> seller_lines(const Document& document) {
  return lines_of(document.seller,
                  document.seller.name.empty() ? document.issuer : document.seller.name);
}

std::vector<std::string> buyer_lines(const Document& document) {
  const std::string account =
      document.tenant_name.empty() ? document.tenant.text() : document.tenant_name;
  const std::string& name = document.buyer.name;
  return lines_of(document.buyer, name.empty() ? account : name + " (" + account + ")");
}

std::string due_text(const Document& document) {
  if (!document.due) return {};
  if (document.due->is_zero()) return payable_text(*document.due) + ", paid from the wallet";
  std::string text = payable_text(*document.due);
  if (document.due_at) text += " by " + to_text(*document.due_at).substr(0, 10);
  return text;
}

namespace {

std::string head_text(const Document& document) {
  const bool note = document.kind == DocumentKind::credit_note;
  std::string text = (note ? "Credit note " : "Invoice ") + number_text(document) + "\n";
  if (note) {
    text += "corrects   inv-" + std::to_string(document.corrects) + "\n";
    text += "because    " + document.reason + "\n";
  }
  text += facts_text("from", seller_lines(document)) + facts_text("to", buyer_lines(document));
  text += "usage      " + to_text(document.period.from) + " to " + to_text(document.period.to) +
          " (not included)\n";
  text += "issued     " + to_text(document.issued_at) + "\n";
  text += "amounts in " + std::string(document.currency.code()) + "\n";
  if (document.due) text += "due        " + due_text(document) + "\n";
  std::vector<std::string> terms;
  add_lines(document.terms, terms);
  return text + facts_text("terms", terms) + "\n";
}

}  // namespace

std::string to_plain_text(const Document& document) {
  std::vector<Row> rows{{"PROJECT", "ENVIRONMENT", "MODEL", "WHAT", "UNIT", "QUANTITY",
                         "UNIT PRICE", "LIST", "NET", "PAYABLE"}};
  for (const DocumentLine& line : document.lines) {
    const std::string kind = line.kind == LineKind::usage || line.kind == LineKind::credit ||
                                     line.kind == LineKind::unused
                                 ? ""
                                 : std::string(name_of(line.kind)) + ": ";
    rows.push_back({line.project, line.environment, line.model, kind + line.description, line.unit,
                    line.unit.empty() ? "" : quantity_text(line),
                    line.unit.empty() ? "" : amount_text(line.unit_price), amount_text(line.list),
                    amount_text(line.net), payable_text(line.payable)});
  }
  rows.push_back({"subtotal", "", "", "", "", "", "", "", "", payable_text(document.subtotal)});
  for (const TaxLine& tax : document.taxes) {
    rows.push_back({tax.name + " " + percent_text(tax.parts_per_million), "", "", "", "", "", "",
                    "", "", payable_text(tax.amount)});
  }
  rows.push_back({"total", "", "", "", "", "", "", "", "", payable_text(document.total)});
  constexpr std::size_t first_number = 5;
  return head_text(document) + table_text(rows, first_number);
}

namespace {

// Appends one row of a document's CSV field by field: a document may have a million lines.
class CsvLine {
 public:
  explicit CsvLine(std::string& text) : text_(text) {}
  ~CsvLine() { text_.push_back('\n'); }
  CsvLine(const CsvLine&) = delete;
  CsvLine& operator=(const CsvLine&) = delete;

  CsvLine& field(std::string_view value) {
    begin();
    append_csv_field(text_, value);
    return *this;
  }
  CsvLine& number(std::size_t value) {
    begin();
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text_.append(digits.data(), end);
    return *this;
  }
  // At least `places` decimals. No amount needs quotes.
  CsvLine& amount(Money value, int places = 0) {
    begin();
    append_display_text(text_, value, places);
    return *this;
  }
  CsvLine& blank(int fields) {
    for (int i = 0; i < fields; ++i) begin();
    return *this;
  }

 private:
  void begin() {
    if (!first_) text_.push_back(',');
    first_ = false;
  }
  std::string& text_;
  bool first_ = true;
};

}  // namespace

std::string to_csv(const Document& document) {
  std::string text =
      csv_row({"document", "line", "kind", "project", "environment", "model", "description", "unit",
               "quantity", "unit_price", "list", "net", "payable", "currency"});
  const std::string number = number_text(document);
  const std::string_view code = document.currency.code();
  const int places = document.currency.exponent();
  std::size_t index = 0;
  for (const DocumentLine& line : document.lines) {
    CsvLine row(text);
    row.field(number).number(++index).field(name_of(line.kind));
    row.field(line.project).field(line.environment).field(line.model);
    row.field(line.description).field(line.unit);
    row.amount(quantity_of(line)).amount(line.unit_price).amount(line.list).amount(line.net);
    row.amount(line.payable, places).field(code);
  }
  for (const TaxLine& tax : document.taxes) {
    CsvLine row(text);
    row.field(number).number(++index).field("tax").blank(3).field(tax.name).blank(5);
    row.amount(tax.amount, places).field(code);
  }
  CsvLine(text)
      .field(number)
      .blank(1)
      .field("total")
      .blank(9)
      .amount(document.total, places)
      .field(code);
  return text;
}

namespace {

std::string member(const char* name, const std::string& json) {
  return "\"" + std::string(name) + "\":" + json;
}

std::string party_json(const Party& party) {
  return "{" + member("name", json_string(party.name)) + "," +
         member("address", json_string(party.address)) + "," +
         member("tax_id", json_string(party.tax_id)) + "}";
}

std::string line_json(const DocumentLine& line) {
  return "{" + member("kind", json_string(name_of(line.kind))) + "," +
         member("project", json_string(line.project)) + "," +
         member("environment", json_string(line.environment)) + "," +
         member("model", json_string(line.model)) + "," +
         member("description", json_string(line.description)) + "," +
         member("unit", json_string(line.unit)) + "," +
         member("quantity", json_string(quantity_text(line))) + "," +
         member("unit_price", json_string(amount_text(line.unit_price))) + "," +
         member("list", json_string(amount_text(line.list))) + "," +
         member("net", json_string(amount_text(line.net))) + "," +
         member("payable", json_string(payable_text(line.payable))) + "}";
}

}  // namespace

std::string to_json(const Document& document) {
  std::string text =
      "{" + member("number", json_string(number_text(document))) + "," +
      member("tenant", json_string(document.tenant.text())) + "," +
      member("tenant_name", json_string(document.tenant_name)) + "," +
      member("issuer", json_string(document.issuer)) + "," +
      member("seller", party_json(document.seller)) + "," +
      member("buyer", party_json(document.buyer)) + "," +
      member("terms", json_string(document.terms)) + "," +
      member("due", document.due ? json_string(payable_text(*document.due)) : "null") + "," +
      member("due_at", document.due_at ? json_string(to_text(*document.due_at)) : "null") + "," +
      member("currency", json_string(document.currency.code())) + "," +
      member("from", json_string(to_text(document.period.from))) + "," +
      member("to", json_string(to_text(document.period.to))) + "," +
      member("issued_at", json_string(to_text(document.issued_at))) + ",";
  if (document.kind == DocumentKind::credit_note) {
    text += member("corrects", json_string("inv-" + std::to_string(document.corrects))) + "," +
            member("reason", json_string(document.reason)) + ",";
  }
  text += "\"lines\":[";
  bool first = true;
  for (const DocumentLine& line : document.lines) {
    if (!first) text += ",";
    first = false;
    text += line_json(line);
  }
  text += "]," + member("subtotal", json_string(payable_text(document.subtotal))) + ",\"taxes\":[";
  first = true;
  for (const TaxLine& tax : document.taxes) {
    if (!first) text += ",";
    first = false;
    text += "{" + member("name", json_string(tax.name)) + "," +
            member("parts_per_million", std::to_string(tax.parts_per_million)) + "," +
            member("base", json_string(payable_text(tax.base))) + "," +
            member("amount", json_string(payable_text(tax.amount))) + "}";
  }
  return text + "]," + member("total", json_string(payable_text(document.total))) + "}";
}

}  // namespace loam::billing
