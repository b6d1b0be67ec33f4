// What the columns of one FOCUS row demand of each other. Pure. Internal to this folder: checked
// files come through validate_focus().
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace loam::billing {

using FocusValue = std::optional<std::string>;  // nothing: null

// A decimal number as an integer and its number of decimals: digits / 10^places.
struct FocusDecimal {
  using Wide = boost::multiprecision::cpp_int;

  Wide digits;
  int places = 0;

  // Digits, a point, and an exponent as mEn; neither plus sign nor commas nor symbols. Nothing for
  // what is none.
  static std::optional<FocusDecimal> parse(std::string_view text);

  bool is_zero() const { return digits == 0; }
  bool is_negative() const { return digits < 0; }
  Wide scaled(int to_places) const;  // requires to_places >= places
};
bool equal(const FocusDecimal& a, const FocusDecimal& b);
FocusDecimal operator+(const FocusDecimal& a, const FocusDecimal& b);
FocusDecimal operator*(const FocusDecimal& a, const FocusDecimal& b);

// The cells of a row by column. A column that the file lacks is null, and not there.
class FocusCells {
 public:
  explicit FocusCells(const std::map<std::string, FocusValue>& values) : values_(values) {}

  const std::map<std::string, FocusValue>& all() const { return values_; }
  bool there(const char* column) const { return values_.contains(column); }
  FocusValue value(const char* column) const {
    const auto found = values_.find(column);
    return found == values_.end() ? FocusValue() : found->second;
  }
  bool set(const char* column) const {
    const auto found = values_.find(column);
    return found != values_.end() && found->second;
  }
  bool is(const char* column, const char* text) const {
    const auto found = values_.find(column);
    return found != values_.end() && found->second == text;
  }
  std::optional<FocusDecimal> number(const char* column) const {
    const FocusValue text = value(column);
    return text ? FocusDecimal::parse(*text) : std::nullopt;
  }

 private:
  const std::map<std::string, FocusValue>& values_;
};

using FocusFaultTaker = std::function<void(const char* column, std::string what)>;

// Whether it is an instant as FOCUS writes them: "2026-03-01T00:00:00Z".
bool is_focus_instant(std::string_view text);
// What a part of a split charge is of the whole, by its details; nothing where they do not say.
std::optional<FocusDecimal> allocated_ratio(const FocusCells& row);
// Tells every fault of a row whose cells are of their types. Columns that the file lacks are not
// asked for.
void check_focus_row(const FocusCells& row, const FocusFaultTaker& fault);

}  // namespace loam::billing
