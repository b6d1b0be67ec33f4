// CSV, RFC 4180: quoted fields, doubled quotes, CRLF or LF. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::billing {

// All rows; an empty last line is none. The error names the line (from 1), after "FILE: " where one
// is named.
Result<std::vector<std::vector<std::string>>> read_csv(std::string_view text,
                                                       std::string_view file = {});

// The error behind "FILE:LINE: ".
Error fault_at(std::string_view file, std::size_t line, const Error& fault);

// Text of a user's file for a message: at most 40 bytes of it, without what is not printable.
std::string shown(std::string_view text);

// A table's head line against the columns it must have: the place of each of `wanted` in the head.
// ErrorKind::invalid_argument names the first column that is missing, unknown or there twice, after
// "FILE:1: ".
Result<std::vector<std::size_t>> find_columns(std::string_view file,
                                              const std::vector<std::string>& head,
                                              const std::vector<std::string>& wanted);

// The field, quoted where it must be.
std::string csv_field(std::string_view text);
// The same behind what `row` holds already: long tables are written without a string a field.
void append_csv_field(std::string& row, std::string_view field);
// Fields, commas and a line end.
std::string csv_row(const std::vector<std::string>& fields);

// A string as JSON, with its quotes. Bytes that are not UTF-8 pass through.
std::string json_string(std::string_view text);

}  // namespace loam::billing
