#include "billing/documents.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/invoicing.hpp"

namespace loam::billing {

const char* name_of(LineKind kind) noexcept {
  switch (kind) {
    case LineKind::usage:
      return "usage";
    case LineKind::correction:
      return "correction";
    case LineKind::fee:
      return "fee";
    case LineKind::unused:
      return "unused";
    case LineKind::credit:
      return "credit";
    case LineKind::covered:
      return "covered";
  }
  return "?";
}

std::string number_text(const Document& document) {
  return (document.kind == DocumentKind::invoice ? "inv-" : "cn-") +
         std::to_string(document.number);
}

void add_up(Document& document, const std::vector<Tax>& taxes) {
  std::vector<Money> exact;
  exact.reserve(document.lines.size());
  for (const DocumentLine& line : document.lines) exact.push_back(line.net);
  const Settled settled = settle(exact, document.currency);
  for (std::size_t i = 0; i < document.lines.size(); ++i)
    document.lines[i].payable = settled.payable[i];
  document.subtotal = document.total = settled.total;
  document.taxes.clear();
  for (const Tax& tax : taxes) {
    document.taxes.push_back(tax_line(tax.name, tax.parts_per_million, document.subtotal));
    document.total += document.taxes.back().amount;
  }
}

Result<std::shared_ptr<const Document>> DocumentBook::issue(Document draft,
                                                            const std::vector<Tax>& taxes) {
  if (draft.lines.empty()) return invalid("there is nothing to invoice", "wait for usage");
  for (const DocumentLine& line : draft.lines) {
    if (line.net.currency() != draft.currency)
      return invalid(
          "a line of " + to_text(line.net) + " is not in " + std::string(draft.currency.code()),
          "invoice each currency apart");
  }
  draft.kind = DocumentKind::invoice;
  draft.number = invoices_.size() + 1;
  add_up(draft, taxes);
  invoices_.push_back(std::make_shared<const Document>(std::move(draft)));
  return invoices_.back();
}

std::shared_ptr<const Document> DocumentBook::invoice(std::uint64_t number) const {
  if (number == 0 || number > invoices_.size()) return nullptr;
  return invoices_[number - 1];
}

std::shared_ptr<const Document> DocumentBook::credit_note(std::uint64_t number) const {
  if (number == 0 || number > credit_notes_.size()) return nullptr;
  return credit_notes_[number - 1];
}

Money DocumentBook::credited(std::uint64_t number) const {
  const auto of = invoice(number);
  LOAM_ASSERT(of != nullptr);
  Money sum = Money::zero(of->currency);
  for (const auto& note : credit_notes_) {
    if (note->corrects == number) sum -= note->subtotal;
  }
  return sum;
}

Result<std::shared_ptr<const Document>> DocumentBook::note_over(const Document& invoice,
                                                                std::vector<DocumentLine> lines,
                                                                const std::string& reason,
                                                                Instant now,
                                                                const std::vector<Tax>& taxes) {
  Document note = invoice;
  note.kind = DocumentKind::credit_note;
  note.number = credit_notes_.size() + 1;
  note.corrects = invoice.number;
  note.reason = reason;
  note.issued_at = now;
  note.lines = std::move(lines);
  add_up(note, taxes);
  credit_notes_.push_back(std::make_shared<const Document>(std::move(note)));
  return credit_notes_.back();
}

Result<std::shared_ptr<const Document>> DocumentBook::credit(std::uint64_t number, Money net,
                                                             const std::string& reason, Instant now,
                                                             const std::vector<Tax>& taxes) {
  const auto of = invoice(number);
  if (of == nullptr) {
    return Error{ErrorKind::not_found, "there is no invoice inv-" + std::to_string(number),
                 "list the invoices"};
  }
  if (net.currency() != of->currency || net.is_negative() || net.is_zero())
    return invalid("a credit of " + loam::to_text(net) + " is not an amount above zero in " +
                       std::string(of->currency.code()),
                   "give a positive amount");
  const Money left = of->subtotal - credited(number);
  if (net.rounded(Rounding::half_even) > left) {
    return invalid("a credit of " + loam::to_text(net) + " is more than the " +
                       loam::to_text(left) + " that are left of " + number_text(*of),
                   "give back at most that");
  }
  DocumentLine line;
  line.kind = LineKind::credit;
  line.description = reason;
  line.unit_price = Money::zero(of->currency);
  line.list = line.net = -net;
  return note_over(*of, {line}, reason, now, taxes);
}

Result<std::shared_ptr<const Document>> DocumentBook::void_invoice(std::uint64_t number,
                                                                   const std::string& reason,
                                                                   Instant now) {
  const auto of = invoice(number);
  if (of == nullptr) {
    return Error{ErrorKind::not_found, "there is no invoice inv-" + std::to_string(number),
                 "list the invoices"};
  }
  const Money left = of->subtotal - credited(number);
  if (left.is_zero()) {
    return Error{ErrorKind::conflict, number_text(*of) + " was given back already",
                 "an invoice is voided once"};
  }
  std::vector<Tax> taxes;
  for (const TaxLine& tax : of->taxes) taxes.push_back({tax.name, tax.parts_per_million});
  return credit(number, left, reason, now, taxes);
}

Money service_credit(const ServiceLevel& level, BasisPoints delivered, Money net) {
  LOAM_ASSERT(level.promised.value > 0 && delivered.value >= 0);
  if (delivered >= level.promised || net.is_negative()) return Money::zero(net.currency());
  return net.times_ratio(level.promised.value - delivered.value, level.promised.value,
                         Rounding::half_even);
}

}  // namespace loam::billing
