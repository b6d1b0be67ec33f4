// Invoices and credit notes as PDF (library: libharu). Pure: bytes out, no files.
#pragma once

#include <string>

#include "base/result.hpp"
#include "billing/documents.hpp"

namespace loam::cli {

// A4 pages with a table of the lines, subtotal, taxes and total; repeated heads, numbered pages.
// The same document gives the same bytes. Text beyond Latin-1 is shown as '?'. Money is printed
// from its exact text.
Result<std::string> invoice_pdf(const billing::Document& document);

}  // namespace loam::cli
