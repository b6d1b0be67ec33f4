#include "app/loam/table.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/assert.hpp"

namespace loam::cli {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Unicode: blocks whose characters take two columns (East Asian Width W and F), and emoji.
constexpr Range wide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
                          {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},
                          {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE4F},
                          {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                          {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
// Marks that combine with the character before, joiners and variation selectors.
constexpr Range no_width[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},
                              {0x0610, 0x061A}, {0x064B, 0x065F}, {0x200B, 0x200F},
                              {0x20D0, 0x20F0}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};

template <std::size_t n>
bool within(const Range (&ranges)[n], std::uint32_t character) {
  return std::any_of(std::begin(ranges), std::end(ranges), [&](const Range& range) {
    return character >= range.first && character <= range.last;
  });
}

struct Character {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: no UTF-8 here
};

// The character at the front of `text` (RFC 3629: no overlong forms, no surrogates).
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (bytes == 0 || lead > 0xF4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  if (value < least[bytes] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, bytes};
}

std::size_t width_of(std::uint32_t character) {
  if (within(no_width, character)) return 0;
  return within(wide, character) ? 2 : 1;
}

std::string escape(unsigned char byte) {
  switch (byte) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      break;
  }
  constexpr const char* digits = "0123456789abcdef";
  return {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
}

bool controls(std::uint32_t character) {
  // C0, DEL, C1, and the marks that turn the direction of text around.
  return character < 0x20 || (character >= 0x7F && character < 0xA0) ||
         (character >= 0x202A && character <= 0x202E) ||
         (character >= 0x2066 && character <= 0x2069);
}

void trim_end(std::string& line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    width += character.bytes == 0 ? 1 : width_of(character.value);
    text.remove_prefix(std::max<std::size_t>(character.bytes, 1));
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    if (character.bytes == 0 || controls(character.value)) {
      for (const char byte : text.substr(0, bytes))
        shown += escape(static_cast<unsigned char>(byte));
    } else {
      shown += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return shown;
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (;;) {
    const std::size_t end = text.find('\n');
    shown += printable(text.substr(0, end));
    if (end == std::string_view::npos) return shown;
    shown += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string cut_to(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::string kept;
  std::size_t used = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    const std::size_t wide_by = character.bytes == 0 ? 1 : width_of(character.value);
    if (used + wide_by > width - 1) break;
    kept += text.substr(0, bytes);
    used += wide_by;
    text.remove_prefix(bytes);
  }
  return kept + "…";
}

std::string styled(std::string_view text, Style style, bool colour) {
  if (!colour || style == Style::plain || text.empty()) return std::string(text);
  const char* code = "0";
  switch (style) {
    case Style::plain:
      break;
    case Style::bold:
      code = "1";
      break;
    case Style::dim:
      code = "2";
      break;
    case Style::good:
      code = "32";
      break;
    case Style::bad:
      code = "31";
      break;
    case Style::warn:
      code = "33";
      break;
  }
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

void Table::add(std::vector<Cell> cells) {
  LOAM_ASSERT(cells.size() == columns_.size());
  for (Cell& cell : cells) cell.text = printable(cell.text);
  rows_.push_back(std::move(cells));
}

std::map<std::size_t, std::size_t> Table::widths(std::size_t width_max) const {
  constexpr std::size_t shrunk_min = 8;  // columns that a cut cell keeps
  constexpr std::size_t gap = 2;
  std::map<std::size_t, std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths[i] = display_width(columns_[i].title);
    for (const auto& row : rows_) widths[i] = std::max(widths[i], display_width(row[i].text));
  }
  if (width_max == 0) return widths;
  const auto least = [&](std::size_t i) {
    return columns_[i].may_shrink ? std::min(widths.at(i), shrunk_min) : widths.at(i);
  };
  for (;;) {
    std::size_t all = 0;
    std::size_t goes = columns_.size();
    for (const auto& [i, width] : widths) {
      all += least(i) + (all == 0 ? 0 : gap);
      if (columns_[i].may_go == 0) continue;
      if (goes == columns_.size() || columns_[i].may_go > columns_[goes].may_go) goes = i;
    }
    if (all <= width_max || goes == columns_.size()) break;
    widths.erase(goes);
  }
  std::size_t all = 0;
  for (const auto& [i, width] : widths) all += width + (all == 0 ? 0 : gap);
  for (auto column = widths.rbegin(); column != widths.rend() && all > width_max; ++column) {
    const std::size_t less = std::min(all - width_max, column->second - least(column->first));
    column->second -= less;
    all -= less;
  }
  return widths;
}

std::string Table::text(bool colour, std::size_t width_max) const {
  const std::map<std::size_t, std::size_t> shown_columns = widths(width_max);
  std::string text;
  const auto line = [&](auto cell_of) {
    std::string made;
    std::string blanks;  // owed; never written at the end of a line
    for (const auto& [i, width] : shown_columns) {
      const Cell cell = cell_of(i);
      const std::string shown = cut_to(cell.text, width);
      const std::string fill(width - std::min(width, display_width(shown)), ' ');
      if (columns_[i].align == Align::right) blanks += fill;
      if (!shown.empty()) {
        made += blanks + styled(shown, cell.style, colour);
        blanks.clear();
      }
      if (columns_[i].align == Align::left) blanks += fill;
      blanks += "  ";
    }
    trim_end(made);
    text += made + "\n";
  };
  line([&](std::size_t i) { return Cell(columns_[i].title, Style::bold); });
  for (const auto& row : rows_) line([&](std::size_t i) { return row[i]; });
  return text;
}

std::string facts_text(const std::vector<std::pair<std::string, Cell>>& facts, bool colour) {
  std::size_t width = 0;
  for (const auto& [name, cell] : facts) width = std::max(width, display_width(name));
  std::string text;
  for (const auto& [name, cell] : facts) {
    const std::string value = printable(cell.text);
    if (value.empty()) continue;
    text += styled(name, Style::dim, colour) + std::string(width - display_width(name) + 2, ' ') +
            styled(value, cell.style, colour) + "\n";
  }
  return text;
}

}  // namespace loam::cli
