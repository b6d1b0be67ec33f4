// Columns to nouns. A value that no loam wrote makes the whole reading fail instead of turning
// into something else. Pure but for the statement it reads.
#pragma once

#include <boost/describe/enum_from_string.hpp>
#include <string>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "domain/ids.hpp"
#include "store/sqlite.hpp"

namespace loam::store {

// Reads the columns of one row from left to right; the first fault is kept.
class Columns {
 public:
  explicit Columns(const Statement& row) : row_(row) {}

  std::int64_t integer() { return row_.integer(at_++); }
  std::string text() { return std::string(row_.text(at_++)); }
  Instant instant() { return row_.instant(at_++); }
  Duration duration() { return {integer()}; }
  bool is_null() const { return row_.is_null(at_); }
  void skip() { ++at_; }

  template <class IdType>
  IdType id() {
    return IdType{static_cast<std::uint64_t>(integer())};  // NULL is 0 is none
  }
  template <class Unit>
  Quantity<Unit> quantity() {
    return {integer()};
  }
  std::optional<std::int64_t> optional_integer() {
    if (is_null()) {
      skip();
      return std::nullopt;
    }
    return integer();
  }
  template <class T>
  std::optional<T> optional() {
    const auto value = optional_integer();
    if (!value) return std::nullopt;
    return T{*value};
  }
  template <class Enum>
  Enum enumerator() {
    Enum value{};
    const std::string name = text();
    if (!boost::describe::enum_from_string(name.c_str(), value)) fail("'" + name + "'");
    return value;
  }
  Currency currency() {
    auto parsed = Currency::parse(row_.text(at_++));
    if (parsed) return *parsed;
    fail(parsed.error().message);
    return {};
  }
  Money money(Currency currency) {
    auto parsed = Money::parse(row_.text(at_++), currency);
    if (parsed) return *parsed;
    fail(parsed.error().message);
    return Money::zero(currency);
  }

  // `what` names the row in the error.
  Result<void> done(const std::string& what) const {
    if (fault_.empty()) return {};
    return Error{ErrorKind::corrupt, "the projections hold " + fault_ + " for " + what,
                 "run `loam verify`"};
  }

 private:
  void fail(const std::string& fault) {
    if (fault_.empty()) fault_ = fault;
  }

  const Statement& row_;
  int at_ = 0;
  std::string fault_;
};

}  // namespace loam::store
