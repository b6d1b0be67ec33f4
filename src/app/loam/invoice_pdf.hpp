// Invoices and credit notes as PDF (library: libharu). Bytes out; reads fonts.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "billing/documents.hpp"

namespace loam::cli {

// TrueType files for what the standard fonts of PDF (Latin-1) do not know; empty: none.
struct PdfFonts {
  std::string regular;
  std::string bold;  // empty: as regular
};
// `named` for both; where it is empty DejaVu Sans, as Debian's fonts-dejavu-core installs it, if it
// is there. Looks at files.
PdfFonts pdf_fonts(const std::string& named);

struct InvoicePdf {
  std::string bytes;
  std::int64_t letters_missing = 0;  // shown as '?', for want of a font that has them
};

// A4 pages with a table of the lines, subtotal, taxes and total; repeated heads, numbered pages.
// The same document and fonts give the same bytes, and a document within Latin-1 the same with any
// fonts: it needs none. Money is printed from its exact text. not_found for a font that cannot be
// read.
Result<InvoicePdf> invoice_pdf(const billing::Document& document, const PdfFonts& fonts = {});

}  // namespace loam::cli
