#include "billing/csv.hpp"

#include <algorithm>

namespace loam::billing {
namespace {

constexpr std::size_t fields_max = 1000;  // of a row: far above any table

Error fault_at(std::size_t line, const std::string& what) {
  return invalid("line " + std::to_string(line) + " " + what, "quote fields as RFC 4180 says");
}

class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}

  bool done() const { return at_ >= text_.size(); }

  Result<std::vector<std::string>> row() {
    std::vector<std::string> fields;
    const std::size_t first_line = line_;
    while (true) {
      if (fields.size() == fields_max) return fault_at(first_line, "has more than 1000 fields");
      LOAM_TRY(field, next_field());
      fields.push_back(std::move(field));
      if (done()) return fields;
      const char after = text_[at_++];
      if (after == ',') continue;
      if (after == '\r' && !done() && text_[at_] == '\n') ++at_;
      ++line_;
      return fields;
    }
  }

 private:
  Result<std::string> next_field() {
    if (!done() && text_[at_] == '"') return quoted();
    const std::size_t end = std::min(text_.find_first_of(",\r\n\"", at_), text_.size());
    std::string field(text_.substr(at_, end - at_));
    at_ = end;
    if (!done() && text_[at_] == '"') return fault_at(line_, "has a quote inside a plain field");
    return field;
  }

  Result<std::string> quoted() {
    const std::size_t first_line = line_;
    std::string field;
    ++at_;
    while (!done()) {
      const char c = text_[at_++];
      if (c != '"') {
        if (c == '\n') ++line_;
        field.push_back(c);
      } else if (!done() && text_[at_] == '"') {
        field.push_back('"');
        ++at_;
      } else {
        const bool ended = done() || text_[at_] == ',' || text_[at_] == '\r' || text_[at_] == '\n';
        if (!ended) return fault_at(line_, "goes on after a closing quote");
        return field;
      }
    }
    return fault_at(first_line, "opens a quote that nothing closes");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

Result<std::vector<std::vector<std::string>>> read_csv(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // spreadsheets write this mark
  std::vector<std::vector<std::string>> rows;
  CsvReader reader(text);
  while (!reader.done()) {
    LOAM_TRY(row, reader.row());
    rows.push_back(std::move(row));
  }
  return rows;
}

void append_csv_field(std::string& row, std::string_view field) {
  // One look at each byte: find_first_of would look for each byte in the set, with a call.
  const bool plain = std::none_of(field.begin(), field.end(), [](char c) {
    return c == ',' || c == '"' || c == '\r' || c == '\n';
  });
  if (plain) {
    row += field;
    return;
  }
  row.push_back('"');
  for (const char c : field) {
    if (c == '"') row.push_back('"');
    row.push_back(c);
  }
  row.push_back('"');
}

std::string csv_field(std::string_view text) {
  std::string field;
  append_csv_field(field, text);
  return field;
}

std::string csv_row(const std::vector<std::string>& fields) {
  std::string row;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) row.push_back(',');
    append_csv_field(row, field);
  }
  row.push_back('\n');
  return row;
}

std::string json_string(std::string_view text) {
  static const char* const hex = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted.push_back('\\');
      quoted.push_back(c);
    } else if (byte < 0x20) {
      quoted += "\\u00";
      quoted.push_back(hex[byte >> 4]);
      quoted.push_back(hex[byte & 15]);
    } else {
      quoted.push_back(c);
    }
  }
  return quoted + "\"";
}

}  // namespace loam::billing
