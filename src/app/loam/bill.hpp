// Bills, invoices and ledgers as people read them: every amount exact, columns that add up. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "api/money_types.hpp"

namespace loam::cli {

// Itemised, with the line that proves billed seconds equal run seconds.
std::string bill_text(const api::BillView& bill, bool colour, std::size_t width);
// Of several tenants: a line each, and a total for each currency.
std::string bills_text(const api::BillList& list, bool colour, std::size_t width);
std::string invoice_text(const api::InvoiceView& invoice, bool colour, std::size_t width);
std::string credit_note_text(const api::CreditNoteView& note, bool colour, std::size_t width);
std::string ledger_text(const api::LedgerView& ledger, bool colour, std::size_t width);

}  // namespace loam::cli
