// Tables for people: columns aligned by what a terminal shows, not by bytes. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace loam::cli {

// Terminal columns that UTF-8 text takes: 2 for wide East Asian characters and emoji, 0 for marks
// that combine. Requires printable() text.
std::size_t display_width(std::string_view text);

// Text that others chose, safe to show on one line of a terminal: control characters become
// escapes ("\n", "\x1b") and bytes that are not UTF-8 become "\xff".
std::string printable(std::string_view text);
// The same for text of several lines, which stay lines.
std::string printable_lines(std::string_view text);

// At most `width` columns; what is cut ends in "…".
std::string cut_to(std::string_view text, std::size_t width);

enum class Style { plain, bold, dim, good, bad, warn };

// With the terminal's colour codes around it where `colour`.
std::string styled(std::string_view text, Style style, bool colour);

struct Cell {
  Cell(std::string words, Style look = Style::plain)  // NOLINT: implicit
      : text(std::move(words)), style(look) {}
  Cell(const char* words) : text(words) {}  // NOLINT: implicit

  std::string text;  // any bytes: shown as printable() makes them
  Style style = Style::plain;
};

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
  // Where the table is wider than the terminal: cells are cut, and then the columns go that may,
  // those with the highest number first.
  bool may_shrink = false;
  int may_go = 0;  // 0: stays
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Requires as many cells as columns.
  void add(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }

  // Lines with a head in capitals, two blanks between columns, none at the end of a line.
  // `width_max` 0: as wide as it comes.
  std::string text(bool colour, std::size_t width_max = 0) const;

 private:
  // Of the columns that are shown; by their place among all.
  std::map<std::size_t, std::size_t> widths(std::size_t width_max) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// "name   value" lines, names aligned.
std::string facts_text(const std::vector<std::pair<std::string, Cell>>& facts, bool colour);

}  // namespace loam::cli
