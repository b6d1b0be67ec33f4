// Comma-separated traces read by their header: columns in any order, faults with file, line and
// reason. No quoting: no field of a trace holds a comma. Shell (reads files).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::sim {

// The bytes of a file.
Result<std::string> read_trace_file(const std::string& path);

// Walks the rows of one text, which must outlive it.
class CsvRows {
 public:
  // Reads the header. `file` is for messages. A column without a name, or twice the same, is an
  // error.
  static Result<CsvRows> open(std::string file, std::string_view text);

  // The place of a column, to be asked once; `column` fails where it is missing.
  Result<std::size_t> column(std::string_view name) const;
  bool has(std::string_view name) const;

  // Goes to the next row; false at the end. A row with more or fewer fields than the header is an
  // error; blank lines are passed over.
  Result<bool> next();

  // Of the row at hand.
  std::string_view text(std::size_t column) const { return fields_[column]; }
  // An integer of at least 0; a decimal part of zeros ("12.0") is let pass.
  Result<std::int64_t> count(std::size_t column, std::int64_t max) const;

  // An error that says where in the file it is.
  Error fault(std::string reason, std::string next_step = {}) const;
  std::int64_t line() const { return line_; }

 private:
  bool next_line(std::string_view& line);

  std::string file_;
  std::string_view rest_;
  std::int64_t line_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string_view> fields_;
};

}  // namespace loam::sim
