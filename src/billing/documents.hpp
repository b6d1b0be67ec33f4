// Documents: invoices and credit notes as others get them, and their renderings. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "billing/calendar.hpp"
#include "domain/ids.hpp"
#include "domain/ledger.hpp"

namespace loam::billing {

enum class LineKind : std::uint8_t {
  usage,
  correction,  // of a period already invoiced, at the price of its own time
  fee,         // of a commitment
  unused,      // reserved and not used
  credit,      // given back: service level, goodwill
  covered,     // given back: use that a commitment covers, or beyond a reservation's size
};
const char* name_of(LineKind kind) noexcept;

// One line: an attribution at one price.
struct DocumentLine {
  LineKind kind = LineKind::usage;
  std::string project;
  std::string environment;
  std::string model;
  std::string description;  // what was sold: "on_demand compute"
  std::string unit;         // "CE-Hours"
  Int128 quantity = 0;      // at 12 decimals, as in Money
  Money unit_price;
  Money list;
  Money net;      // exact
  Money payable;  // in the currency's unit; the lines sum to the subtotal

  friend bool operator==(const DocumentLine&, const DocumentLine&) = default;
};

// Who sells, or who pays, as paper has it; lines of an address are separated by newlines.
struct Party {
  std::string name;
  std::string address;
  std::string tax_id;

  bool empty() const { return name.empty() && address.empty() && tax_id.empty(); }
  friend bool operator==(const Party&, const Party&) = default;
};

enum class DocumentKind : std::uint8_t { invoice, credit_note };

struct Document {
  DocumentKind kind = DocumentKind::invoice;
  std::uint64_t number = 0;
  TenantId tenant;
  std::string tenant_name;
  std::string issuer;  // who sells, where `seller` does not say
  Party seller;        // as it was at issue
  Party buyer;
  std::string terms;         // of payment, in words
  std::optional<Money> due;  // what the wallet does not cover; absent: nobody said
  std::optional<Instant> due_at;
  Currency currency;
  Period period;
  Instant issued_at;
  std::uint64_t corrects = 0;  // credit note: the invoice's number
  std::string reason;          // credit note
  std::vector<DocumentLine> lines;
  Money subtotal;  // Σ payable of the lines
  std::vector<TaxLine> taxes;
  Money total;  // subtotal and taxes

  friend bool operator==(const Document&, const Document&) = default;
};

// Who sells and who pays, line by line: names, addresses, tax numbers.
std::vector<std::string> seller_lines(const Document& document);
std::vector<std::string> buyer_lines(const Document& document);
// "0.00, paid from the wallet", "12.34 by 2026-04-15"; empty where nobody said.
std::string due_text(const Document& document);
// "inv-17", "cn-3".
std::string number_text(const Document& document);

// --- Renderings
// -----------------------------------------------------------------------------------

std::string to_plain_text(const Document& document);
std::string to_csv(const Document& document);
std::string to_json(const Document& document);

}  // namespace loam::billing
