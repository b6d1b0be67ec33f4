#include "sim/scenario_text.hpp"

#include <algorithm>

namespace loam::sim {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

bool is_key(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

}  // namespace

std::string Word::written() const {
  const bool plain = !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return is_blank(c) || c == '"' || c == '#' || c == '=';
  });
  const std::string shown = plain ? text : "\"" + text + "\"";
  return key.empty() ? shown : key + "=" + shown;
}

const Word* Line::find(std::string_view key) const {
  for (const Word& word : words) {
    if (word.key == key) return &word;
  }
  return nullptr;
}

std::string Line::written() const {
  std::string text;
  for (const Word& word : words) text += (text.empty() ? "" : " ") + word.written();
  return text;
}

Error fault_at(std::string_view file, const Line& line, std::size_t column, std::string message,
               std::string next_step) {
  return invalid(std::string(file) + ":" + std::to_string(line.number) + ":" +
                     std::to_string(column) + ": " + std::move(message),
                 std::move(next_step));
}

Result<Line> read_line(std::string_view file, std::size_t number, std::string_view text) {
  Line line;
  line.number = number;
  line.indented = !text.empty() && is_blank(text.front());
  std::size_t at = 0;
  while (true) {
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at >= text.size() || text[at] == '#') return line;
    Word word;
    word.column = at + 1;
    bool quoted = false;
    std::size_t quote_column = 0;
    while (at < text.size() && (quoted || (!is_blank(text[at]) && text[at] != '#'))) {
      const char c = text[at++];
      if (c == '"') {
        quoted = !quoted;
        quote_column = at;
      } else if (c == '=' && !quoted && word.key.empty() && is_key(word.text)) {
        word.key = std::exchange(word.text, {});
      } else if (c == '\0') {
        return fault_at(file, line, at, "a NUL byte", "a scenario is plain text: remove it");
      } else {
        word.text.push_back(c);
      }
    }
    if (quoted) {
      return fault_at(file, line, quote_column, "a quoted text is not closed",
                      "end it with \" on the same line");
    }
    line.words.push_back(std::move(word));
  }
}

Result<std::vector<Line>> read_lines(std::string_view file, std::string_view text) {
  std::vector<Line> lines;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    LOAM_TRY(line, read_line(file, ++number, text.substr(0, end)));
    if (!line.words.empty()) lines.push_back(std::move(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool agrees(const std::vector<Word>& expected, const std::vector<Word>& actual) {
  std::size_t next = 0;
  for (const Word& word : expected) {
    if (!word.key.empty()) {
      const auto same = std::find_if(actual.begin(), actual.end(),
                                     [&](const Word& other) { return other.key == word.key; });
      if (same == actual.end() || same->text != word.text) return false;
      continue;
    }
    while (next < actual.size() && !actual[next].key.empty()) ++next;
    if (next == actual.size() || actual[next].text != word.text) return false;
    ++next;
  }
  while (next < actual.size() && !actual[next].key.empty()) ++next;
  return next == actual.size();
}

}  // namespace loam::sim
