// The words of a scenario: lines, words with their columns, attributes. See docs/scenarios.md.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::sim {

// "limit=600s" has the key "limit"; a plain word has an empty key. Quotes are gone.
struct Word {
  std::string key;
  std::string text;
  std::size_t column = 1;  // counted from 1, in bytes

  // As it is written in a file: quoted where it has to be.
  std::string written() const;
};

struct Line {
  std::size_t number = 0;  // counted from 1
  bool indented = false;
  std::vector<Word> words;

  const Word* find(std::string_view key) const;
  std::string written() const;  // single spaces between words
};

// Where in a scenario something is wrong: "file:line:column: message".
Error fault_at(std::string_view file, const Line& line, std::size_t column, std::string message,
               std::string next_step);

// Cuts one line into words; nothing but blanks and a comment gives no words.
Result<Line> read_line(std::string_view file, std::size_t number, std::string_view text);

// All lines with words. Error: the first bad one.
Result<std::vector<Line>> read_lines(std::string_view file, std::string_view text);

// Whether `actual` is what `expected` asks for: the same plain words, and every attribute that is
// expected with the same value.
bool agrees(const std::vector<Word>& expected, const std::vector<Word>& actual);

}  // namespace loam::sim
