#include "app/loam/invoice_pdf.hpp"

#include <hpdf.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "http/target.hpp"

namespace loam::cli {
namespace {

using billing::Document;
using billing::DocumentKind;
using billing::DocumentLine;

// Points of an A4 page, from its lower left corner.
constexpr float page_width = 595.28F, page_height = 841.89F;
constexpr float margin = 48.0F;
constexpr float row_height = 15.0F;
constexpr float body_size = 8.5F, small_size = 7.0F, title_size = 20.0F;

struct Latin1 {
  std::string text;
  std::int64_t missing = 0;  // letters that are '?' there
};

// Latin-1 of UTF-8: the standard fonts know no more. What is beyond becomes '?'.
Latin1 latin1(const std::string& text) {
  Latin1 out;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool two = byte >= 0xC2 && byte <= 0xC3 && i + 1 < text.size() &&
                     (static_cast<unsigned char>(text[i + 1]) & 0xC0) == 0x80;
    if (byte < 0x20 || byte == 0x7F) {
      out.text.push_back(' ');
      ++i;
    } else if (byte < 0x80) {
      out.text.push_back(text[i++]);
    } else if (two) {
      out.text.push_back(static_cast<char>(((byte & 0x03) << 6) |
                                           (static_cast<unsigned char>(text[i + 1]) & 0x3F)));
      i += 2;
    } else {
      out.text.push_back('?');
      ++out.missing;
      ++i;
      while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) ++i;
    }
  }
  return out;
}

// UTF-8 that a font is given: control characters are blanks, what is no UTF-8 is '?'.
std::string clean_utf8(std::string text) {
  if (!http::is_utf8(text)) return latin1(text).text;
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text;
}

// All that a document prints which somebody else wrote.
bool beyond_latin1(const Document& document) {
  std::string all = document.terms + document.reason;
  for (const DocumentLine& line : document.lines) {
    all += line.project + line.environment + line.model + line.description;
    if (all.size() > 4096 && latin1(std::exchange(all, {})).missing > 0) return true;
  }
  for (const auto& line : billing::seller_lines(document)) all += line;
  for (const auto& line : billing::buyer_lines(document)) all += line;
  for (const TaxLine& tax : document.taxes) all += tax.name;
  return latin1(all).missing > 0;
}

struct Column {
  const char* title;
  float left;   // of the column
  float right;  // numbers end here
  bool number;
};
constexpr std::array<Column, 6> columns{{{"Project / environment", 48, 160, false},
                                         {"What", 164, 320, false},
                                         {"Quantity", 324, 396, true},
                                         {"Unit price", 400, 446, true},
                                         {"Net", 450, 502, true},
                                         {"Payable", 506, 547, true}}};

// libharu reports faults to a handler; it is told to go on, and the first one is kept.
void on_fault(HPDF_STATUS code, HPDF_STATUS, void* kept) {
  auto* first = static_cast<HPDF_STATUS*>(kept);
  if (*first == 0) *first = code;
}

class Writer {
 public:
  Writer(const Document& document, const PdfFonts& fonts)
      : document_(document), fonts_(fonts), pdf_(HPDF_New(on_fault, &fault_), HPDF_Free) {}

  Result<InvoicePdf> write() {
    if (pdf_ == nullptr) return Error{ErrorKind::exhausted, "no memory for the PDF", {}};
    HPDF_SetCompressionMode(pdf_.get(), HPDF_COMP_TEXT);
    set_dates();
    LOAM_CHECK(take_fonts());
    const std::string name = billing::number_text(document_);
    HPDF_SetInfoAttr(pdf_.get(), HPDF_INFO_TITLE, name.c_str());
    new_page();
    head();
    table_head();
    for (const DocumentLine& line : document_.lines) {
      if (y_ < margin + 4 * row_height) turn_page();
      row(line);
    }
    sums();
    number_pages();
    LOAM_TRY(all, bytes());
    return InvoicePdf{std::move(all), missing_};
  }

 private:
  // The standard fonts where they suffice, so that no machine's fonts change such a document.
  Result<void> take_fonts() {
    utf8_ = !fonts_.regular.empty() && beyond_latin1(document_);
    if (!utf8_) {
      regular_ = HPDF_GetFont(pdf_.get(), "Helvetica", "WinAnsiEncoding");
      bold_ = HPDF_GetFont(pdf_.get(), "Helvetica-Bold", "WinAnsiEncoding");
      return {};
    }
    HPDF_UseUTFEncodings(pdf_.get());
    // A font and its tables are 600 kB as they are; only these documents have any.
    HPDF_SetCompressionMode(pdf_.get(), HPDF_COMP_TEXT | HPDF_COMP_METADATA);
    LOAM_TRY(regular, font_of(fonts_.regular));
    regular_ = bold_ = regular;
    if (!fonts_.bold.empty() && fonts_.bold != fonts_.regular) {
      LOAM_TRY(bold, font_of(fonts_.bold));
      bold_ = bold;
    }
    return {};
  }
  Result<HPDF_Font> font_of(const std::string& path) {
    const char* name = HPDF_LoadTTFontFromFile(pdf_.get(), path.c_str(), HPDF_TRUE);
    HPDF_Font font = name == nullptr ? nullptr : HPDF_GetFont(pdf_.get(), name, "UTF-8");
    if (font != nullptr && fault_ == 0) return font;
    return Error{ErrorKind::not_found,
                 "'" + path + "' is not a TrueType font that can be used (libharu: " +
                     std::to_string(fault_) + ")",
                 "name another one with --font FILE"};
  }

  // From the document, so that the same document gives the same bytes.
  void set_dates() {
    const auto local = billing::Zone().local(document_.issued_at);
    HPDF_Date date{};
    date.year = local.date.year;
    date.month = local.date.month;
    date.day = local.date.day;
    date.hour = static_cast<int>(local.of_day.ms / 3'600'000);
    date.minutes = static_cast<int>(local.of_day.ms / 60'000 % 60);
    date.seconds = static_cast<int>(local.of_day.ms / 1000 % 60);
    date.ind = 'Z';
    HPDF_SetInfoDateAttr(pdf_.get(), HPDF_INFO_CREATION_DATE, date);
  }

  void new_page() {
    page_ = HPDF_AddPage(pdf_.get());
    pages_.push_back(page_);
    HPDF_Page_SetSize(page_, HPDF_PAGE_SIZE_A4, HPDF_PAGE_PORTRAIT);
    y_ = page_height - margin;
  }
  void turn_page() {
    new_page();
    table_head();
  }

  void say(HPDF_Font font, float size, float x, float y, const std::string& text) {
    HPDF_Page_BeginText(page_);
    HPDF_Page_SetFontAndSize(page_, font, size);
    HPDF_Page_TextOut(page_, x, y, printed(text).c_str());
    HPDF_Page_EndText(page_);
  }
  float width(HPDF_Font font, float size, const std::string& text) {
    HPDF_Page_SetFontAndSize(page_, font, size);
    return HPDF_Page_TextWidth(page_, (utf8_ ? clean_utf8(text) : latin1(text).text).c_str());
  }
  // As the font in use takes it; what it cannot show is counted.
  std::string printed(const std::string& text) {
    if (utf8_) return clean_utf8(text);
    Latin1 out = latin1(text);
    missing_ += out.missing;
    return out.text;
  }
  // What does not fit is made smaller if it is a number, and cut if it is words.
  void cell(const Column& column, HPDF_Font font, std::string text) {
    float size = body_size;
    const float room = column.right - column.left;
    if (column.number) {
      const float wide = width(font, size, text);
      if (wide > room) size = size * room / wide;
      say(font, size, column.right - width(font, size, text), y_, text);
      return;
    }
    if (width(font, size, text) > room) {
      while (!text.empty() && width(font, size, text + "...") > room) {
        // A whole letter, however many bytes it has.
        while (text.size() > 1 && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
          text.pop_back();
        text.pop_back();
      }
      text += "...";
    }
    say(font, size, column.left, y_, text);
  }
  void rule(float y, float thickness) {
    HPDF_Page_SetLineWidth(page_, thickness);
    HPDF_Page_MoveTo(page_, margin, y);
    HPDF_Page_LineTo(page_, page_width - margin, y);
    HPDF_Page_Stroke(page_);
  }

  void fact(const char* name, const std::string& value) {
    say(bold_, body_size, margin, y_, name);
    say(regular_, body_size, margin + 72, y_, value);
    y_ -= row_height;
  }

  void facts(const char* name, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) fact(&line == &lines.front() ? name : "", line);
  }

  void head() {
    const bool note = document_.kind == DocumentKind::credit_note;
    y_ -= title_size;
    say(bold_, title_size, margin, y_,
        std::string(note ? "Credit note " : "Invoice ") + billing::number_text(document_));
    y_ -= 2 * row_height;
    facts("From", billing::seller_lines(document_));
    facts("To", billing::buyer_lines(document_));
    fact("Usage", to_text(document_.period.from) + " to " + to_text(document_.period.to) +
                      " (not included)");
    fact("Issued", to_text(document_.issued_at));
    if (note) {
      fact("Corrects", "inv-" + std::to_string(document_.corrects));
      fact("Because", document_.reason);
    }
    fact("Amounts in", std::string(document_.currency.code()));
    y_ -= row_height;
  }

  void table_head() {
    y_ -= row_height;
    for (const Column& column : columns) cell(column, bold_, column.title);
    rule(y_ - 4, 0.8F);
    y_ -= row_height;
  }

  void row(const DocumentLine& line) {
    const std::string kind = line.kind == billing::LineKind::usage ||
                                     line.kind == billing::LineKind::credit ||
                                     line.kind == billing::LineKind::unused
                                 ? ""
                                 : std::string(billing::name_of(line.kind)) + ": ";
    const std::string whose =
        line.environment.empty() ? line.project : line.project + " / " + line.environment;
    const std::string model = line.model.empty() ? "" : ", " + line.model;
    cell(columns[0], regular_, whose);
    cell(columns[1], regular_, kind + line.description + model);
    if (!line.unit.empty()) {
      const Money quantity(line.quantity, line.net.currency());
      cell(columns[2], regular_, amount_text(quantity) + " " + line.unit);
      cell(columns[3], regular_, amount_text(line.unit_price));
    }
    cell(columns[4], regular_, amount_text(line.net));
    cell(columns[5], regular_, payable(line.payable));
    y_ -= row_height;
  }

  std::string payable(Money amount) const {
    return display_text(amount, document_.currency.exponent());
  }

  void sum(const std::string& name, Money amount, HPDF_Font font) {
    say(font, body_size, columns[2].left, y_, name);
    cell({"", columns[4].left, columns[5].right, true}, font, payable(amount));
    y_ -= row_height;
  }

  void sums() {
    const auto rows = static_cast<float>(document_.taxes.size() + 6);
    if (y_ < margin + rows * row_height) new_page();
    rule(y_ + row_height - 5, 0.8F);
    sum("Subtotal", document_.subtotal, regular_);
    for (const TaxLine& tax : document_.taxes)
      sum(tax.name + " " + decimal_text(tax.parts_per_million, 4) + " %", tax.amount, regular_);
    sum("Total " + std::string(document_.currency.code()), document_.total, bold_);
    if (document_.due) {
      y_ -= row_height;
      fact("Due", billing::due_text(document_));
    }
    if (!document_.terms.empty()) {
      std::string terms = document_.terms;
      std::replace(terms.begin(), terms.end(), '\n', ' ');
      fact("Terms", terms);
    }
  }

  void number_pages() {
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      page_ = pages_[i];
      const std::string text = billing::number_text(document_) + ", page " + std::to_string(i + 1) +
                               " of " + std::to_string(pages_.size());
      say(regular_, small_size, page_width - margin - width(regular_, small_size, text), margin / 2,
          text);
    }
  }

  Result<std::string> bytes() {
    HPDF_SaveToStream(pdf_.get());
    std::string all;
    std::array<HPDF_BYTE, 4096> block{};
    while (fault_ == 0) {
      auto size = static_cast<HPDF_UINT32>(block.size());
      const HPDF_STATUS status = HPDF_ReadFromStream(pdf_.get(), block.data(), &size);
      all.append(reinterpret_cast<const char*>(block.data()), size);
      if (status == HPDF_STREAM_EOF || size == 0) break;
      if (status != HPDF_OK) fault_ = status;
    }
    if (fault_ == 0 || fault_ == HPDF_STREAM_EOF) return all;
    return Error{ErrorKind::internal,
                 "the PDF of " + billing::number_text(document_) + " failed with code " +
                     std::to_string(fault_),
                 "use another format"};
  }

  const Document& document_;
  const PdfFonts& fonts_;
  HPDF_STATUS fault_ = 0;
  std::unique_ptr<std::remove_pointer_t<HPDF_Doc>, decltype(&HPDF_Free)> pdf_;
  HPDF_Font regular_ = nullptr;
  HPDF_Font bold_ = nullptr;
  HPDF_Page page_ = nullptr;
  std::vector<HPDF_Page> pages_;
  float y_ = 0;
  bool utf8_ = false;
  std::int64_t missing_ = 0;
};

}  // namespace

PdfFonts pdf_fonts(const std::string& named) {
  if (!named.empty()) return {named, {}};
  const std::string folder = "/usr/share/fonts/truetype/dejavu/";
  const PdfFonts found{folder + "DejaVuSans.ttf", folder + "DejaVuSans-Bold.ttf"};
  if (!std::ifstream(found.regular).good()) return {};
  return std::ifstream(found.bold).good() ? found : PdfFonts{found.regular, {}};
}

Result<InvoicePdf> invoice_pdf(const Document& document, const PdfFonts& fonts) {
  return Writer(document, fonts).write();
}

}  // namespace loam::cli
