#include "sim/trace/csv.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

namespace loam::sim {
namespace {

void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const auto comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

// Long or binary fields do not flood the terminal.
std::string shown(std::string_view field) {
  std::string text;
  for (const char c : field.substr(0, 40)) text += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return "'" + text + (field.size() > 40 ? "…'" : "'");
}

}  // namespace

Result<std::string> read_trace_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return Error{ErrorKind::not_found,
                 "the trace '" + path + "' cannot be opened: " + std::strerror(errno),
                 "give the path of a file that can be read"};
  }
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) {
    return Error{ErrorKind::unavailable, "the trace '" + path + "' cannot be read", ""};
  }
  return text;
}

bool CsvRows::next_line(std::string_view& line) {
  if (rest_.empty()) return false;
  const auto end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++line_;
  return true;
}

Result<CsvRows> CsvRows::open(std::string file, std::string_view text) {
  CsvRows rows;
  rows.file_ = std::move(file);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  rows.rest_ = text;
  std::string_view header;
  if (!rows.next_line(header) || header.empty()) {
    rows.line_ = 1;
    return rows.fault("there is no header", "the first line names the columns");
  }
  std::vector<std::string_view> names;
  split(header, names);
  for (const std::string_view name : names) {
    if (name.empty()) return rows.fault("a column has no name");
    if (rows.has(name)) return rows.fault("the column " + shown(name) + " is there twice");
    rows.names_.emplace_back(name);
  }
  return rows;
}

bool CsvRows::has(std::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

Result<std::size_t> CsvRows::column(std::string_view name) const {
  const auto at = std::find(names_.begin(), names_.end(), name);
  if (at != names_.end()) return static_cast<std::size_t>(at - names_.begin());
  std::string known;
  for (const std::string& have : names_) known += (known.empty() ? "" : ", ") + have;
  return invalid(file_ + ":1: the column '" + std::string(name) + "' is missing",
                 "the header has " + known.substr(0, 200));
}

Result<bool> CsvRows::next() {
  std::string_view line;
  do {
    if (!next_line(line)) return false;
  } while (line.empty());
  split(line, fields_);
  if (fields_.size() != names_.size()) {
    return fault("there are " + std::to_string(fields_.size()) + " fields, the header has " +
                 std::to_string(names_.size()));
  }
  return true;
}

Result<std::int64_t> CsvRows::count(std::size_t column, std::int64_t max) const {
  std::string_view field = fields_[column];
  const std::string_view whole = field;
  if (const auto dot = field.find('.'); dot != std::string_view::npos && dot > 0) {
    const std::string_view decimals = field.substr(dot + 1);
    if (decimals.find_first_not_of('0') == std::string_view::npos) field = field.substr(0, dot);
  }
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (failed == std::errc::result_out_of_range ||
      (failed == std::errc{} && end == field.data() + field.size() && value > max)) {
    return fault(names_[column] + " is " + shown(whole) + ", above " + std::to_string(max));
  }
  if (failed != std::errc{} || end != field.data() + field.size())
    return fault(names_[column] + " is " + shown(whole) + ", which is no whole number");
  if (value < 0) return fault(names_[column] + " is negative: " + shown(whole));
  return value;
}

Error CsvRows::fault(std::string reason, std::string next_step) const {
  return invalid(file_ + ":" + std::to_string(line_) + ": " + std::move(reason),
                 std::move(next_step));
}

}  // namespace loam::sim
