// Documents: invoices and credit notes with their lines, taxes and numbers. Issued ones never
// change. Pure.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "billing/apportion.hpp"
#include "billing/calendar.hpp"
#include "domain/ids.hpp"
#include "domain/ledger.hpp"
#include "domain/price.hpp"

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
  Money payable;  // filled by issue()

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

// Fills payable, subtotal, taxes and total: lines sum to the subtotal by the largest remainder,
// every tax is its share of the subtotal rounded once half to even. Requires amounts in the
// document's currency.
void add_up(Document& document, const std::vector<Tax>& taxes);

// Issued documents, numbered from 1 without gaps, invoices and credit notes each.
class DocumentBook {
 public:
  // Adds up, numbers and keeps it. Refuses a document without lines, or of another currency than
  // its lines; no number is used up then.
  Result<std::shared_ptr<const Document>> issue(Document draft, const std::vector<Tax>& taxes);
  // A credit note over lines of an invoice: amounts as positive shares to give back. Refuses more
  // in all than the invoice came to, an unknown invoice, an amount not above zero.
  Result<std::shared_ptr<const Document>> credit(std::uint64_t invoice, Money net,
                                                 const std::string& reason, Instant now,
                                                 const std::vector<Tax>& taxes);
  // The whole of what is left of an invoice.
  Result<std::shared_ptr<const Document>> void_invoice(std::uint64_t invoice,
                                                       const std::string& reason, Instant now);

  std::shared_ptr<const Document> invoice(std::uint64_t number) const;      // nullptr: none
  std::shared_ptr<const Document> credit_note(std::uint64_t number) const;  // nullptr: none
  std::span<const std::shared_ptr<const Document>> invoices() const { return invoices_; }
  std::span<const std::shared_ptr<const Document>> credit_notes() const { return credit_notes_; }
  // What the credit notes of an invoice have given back, before tax.
  Money credited(std::uint64_t invoice) const;

 private:
  Result<std::shared_ptr<const Document>> note_over(const Document& invoice,
                                                    std::vector<DocumentLine> lines,
                                                    const std::string& reason, Instant now,
                                                    const std::vector<Tax>& taxes);
  std::vector<std::shared_ptr<const Document>> invoices_;      // by number - 1
  std::vector<std::shared_ptr<const Document>> credit_notes_;  // by number - 1
};

// What a tenant is owed because neighbours or failures cost it what it paid for.
struct ServiceLevel {
  BasisPoints promised{9900};  // of the share paid for, or of the time
};
// net × (promised − delivered) / promised where delivered < promised, else nothing; at most the
// net.
Money service_credit(const ServiceLevel& level, BasisPoints delivered, Money net);

// --- Renderings
// -----------------------------------------------------------------------------------

std::string to_plain_text(const Document& document);
std::string to_csv(const Document& document);
std::string to_json(const Document& document);

}  // namespace loam::billing
