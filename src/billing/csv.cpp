#include "billing/csv.hpp"

#include <algorithm>

namespace loam::billing {
namespace {

constexpr std::size_t fields_max = 1000;  // of a row: far above any table

Error broken(std::size_t line, const std::string& what) {
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
      if (fields.size() == fields_max) return broken(first_line, "has more than 1000 fields");
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
    if (!done() && text_[at_] == '"') return broken(line_, "has a quote inside a plain field");
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
        if (!ended) return broken(line_, "goes on after a closing quote");
        return field;
      }
    }
    return broken(first_line, "opens a quote that nothing closes");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

Result<std::vector<std::vector<std::string>>> read_csv(std::string_view text,
                                                       std::string_view file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // spreadsheets write this mark
  std::vector<std::vector<std::string>> rows;
  CsvReader reader(text);
  while (!reader.done()) {
    auto row = reader.row();
    if (!row.ok()) {
      Error fault = row.error();
      if (!file.empty()) fault.message = std::string(file) + ": " + fault.message;
      return fault;
    }
    rows.push_back(std::move(*row));
  }
  return rows;
}

Error fault_at(std::string_view file, std::size_t line, const Error& fault) {
  return Error{fault.kind, std::string(file) + ":" + std::to_string(line) + ": " + fault.message,
               fault.next_step};
}

std::string shown(std::string_view text) {
  constexpr std::size_t bytes_max = 40;
  std::string printable = "'";
  for (const char c : text.substr(0, bytes_max))
    printable += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return printable + (text.size() > bytes_max ? "…'" : "'");
}

Result<std::vector<std::size_t>> find_columns(std::string_view file,
                                              const std::vector<std::string>& head,
                                              const std::vector<std::string>& wanted) {
  std::string line;
  for (const std::string& name : wanted) line += (line.empty() ? "" : ",") + name;
  const auto fault = [&](const std::string& what) {
    return fault_at(file, 1, invalid(what, "the first line is: " + line));
  };
  for (const std::string& name : wanted) {
    const auto times = std::count(head.begin(), head.end(), name);
    if (times == 0) return fault("the column '" + name + "' is missing");
    if (times > 1) return fault("the column '" + name + "' is there twice");
  }
  std::vector<std::size_t> places;
  for (const std::string& name : head) {
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end())
      return fault("the column " + shown(name) + " is not known");
  }
  for (const std::string& name : wanted)
    places.push_back(
        static_cast<std::size_t>(std::find(head.begin(), head.end(), name) - head.begin()));
  return places;
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
