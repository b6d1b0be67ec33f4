// A flat JSON object or a list (RFC 8259), with numbers kept as they are written: FOCUS decimals
// are exact.
#include <algorithm>
#include <set>

#include "billing/focus.hpp"

namespace loam::billing {
namespace {

class FlatReader {
 public:
  explicit FlatReader(std::string_view text) : text_(text) {}

  Result<FlatJson> object() {
    FlatJson members;
    std::set<std::string> names;
    skip_blanks();
    if (!take('{')) return fault("is not a JSON object");
    skip_blanks();
    if (take('}')) return end(std::move(members));
    while (true) {
      skip_blanks();
      LOAM_TRY(name, string());
      if (!names.insert(name).second) return fault("has two members '" + name + "'");
      skip_blanks();
      if (!take(':')) return fault("lacks a colon after '" + name + "'");
      skip_blanks();
      LOAM_TRY(value, this->value());
      members.emplace_back(std::move(name), std::move(value));
      skip_blanks();
      if (take(',')) continue;
      if (take('}')) return end(std::move(members));
      return fault("lacks a comma or a closing brace");
    }
  }

  Result<std::vector<std::optional<std::string>>> list() {
    std::vector<std::optional<std::string>> values;
    skip_blanks();
    if (!take('[')) return fault("is not a JSON list");
    skip_blanks();
    if (take(']')) return end(std::move(values));
    while (true) {
      skip_blanks();
      LOAM_TRY(value, this->value());
      values.push_back(std::move(value));
      skip_blanks();
      if (take(',')) continue;
      if (take(']')) return end(std::move(values));
      return fault("lacks a comma or a closing bracket");
    }
  }

 private:
  Error fault(const std::string& what) const {
    return invalid("the row " + what + " (at byte " + std::to_string(at_) + ")",
                   "write one JSON object a line");
  }

  template <class Read>
  Result<Read> end(Read read) {
    skip_blanks();
    if (at_ != text_.size()) return fault("goes on after its end");
    return read;
  }

  bool done() const { return at_ >= text_.size(); }
  bool take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_blanks() {
    while (!done() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n'))
      ++at_;
  }

  Result<std::optional<std::string>> value() {
    if (done()) return fault("ends before a value");
    if (text_[at_] == '"') {
      LOAM_TRY(text, string());
      return std::optional<std::string>(std::move(text));
    }
    if (text_[at_] == '{' || text_[at_] == '[') {
      LOAM_TRY(text, nested());
      return std::optional<std::string>(std::move(text));
    }
    const std::size_t end = std::min(text_.find_first_of(",}] \t\r\n", at_), text_.size());
    std::string literal(text_.substr(at_, end - at_));
    at_ = end;
    if (literal == "null") return std::optional<std::string>();
    const bool plain =
        literal == "true" || literal == "false" ||
        (!literal.empty() && literal.find_first_not_of("0123456789+-.eE") == std::string::npos);
    if (!plain) return fault("has the value '" + literal + "'");
    return std::optional<std::string>(std::move(literal));
  }

  // A nested value as its own text: brackets match, strings are skipped.
  Result<std::string> nested() {
    const std::size_t from = at_;
    std::string open;
    while (!done()) {
      const char c = text_[at_];
      if (c == '"') {
        LOAM_TRY(skipped, string());
        static_cast<void>(skipped);
        continue;
      }
      ++at_;
      if (c == '{' || c == '[') open.push_back(c);
      if (c != '}' && c != ']') continue;
      if (open.empty() || (open.back() == '{') != (c == '}'))
        return fault("has unmatched brackets");
      open.pop_back();
      if (open.empty()) return std::string(text_.substr(from, at_ - from));
    }
    return fault("has unmatched brackets");
  }

  Result<std::string> string() {
    if (!take('"')) return fault("lacks a quoted name");
    std::string text;
    while (!done()) {
      const char c = text_[at_++];
      if (c == '"') return text;
      if (static_cast<unsigned char>(c) < 0x20) return fault("has a control character in a string");
      if (c != '\\') {
        text.push_back(c);
        continue;
      }
      if (done()) break;
      LOAM_CHECK(escape(text));
    }
    return fault("has a string that nothing closes");
  }

  Result<void> escape(std::string& text) {
    static constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    const char c = text_[at_++];
    if (const std::size_t found = from.find(c); found != std::string_view::npos) {
      text.push_back(to[found]);
      return {};
    }
    if (c != 'u' || text_.size() - at_ < 4) return fault("has a bad escape");
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const char digit = text_[at_++];
      static constexpr std::string_view hex = "0123456789abcdef";
      const std::size_t worth =
          hex.find(digit >= 'A' && digit <= 'F' ? static_cast<char>(digit - 'A' + 'a') : digit);
      if (worth == std::string_view::npos) return fault("has a bad escape");
      code = code * 16 + static_cast<unsigned>(worth);
    }
    append_utf8(text, code);  // halves of a pair one by one: only kept, never shown
    return {};
  }

  static void append_utf8(std::string& text, unsigned code) {
    if (code < 0x80) {
      text.push_back(static_cast<char>(code));
    } else if (code < 0x800) {
      text.push_back(static_cast<char>(0xC0 | (code >> 6)));
      text.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    } else {
      text.push_back(static_cast<char>(0xE0 | (code >> 12)));
      text.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
      text.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<FlatJson> read_flat_json(std::string_view text) {
  return FlatReader(text).object();
}

Result<std::vector<std::optional<std::string>>> read_json_list(std::string_view text) {
  return FlatReader(text).list();
}

}  // namespace loam::billing
