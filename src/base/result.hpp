// Result<T>: a value or the reason why there is none. Operating failures travel as
// values; no exception crosses a folder. Pure.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/assert.hpp"

namespace loam {

// What kind of failure: callers branch on it, HTTP status and exit code follow from it.
enum class ErrorKind {
  invalid_argument,   // the caller's words are off
  unauthenticated,    // nobody known is asking
  permission_denied,  // somebody known, who may not
  not_found,          // no such thing, or not yours
  conflict,           // the present state forbids it
  exhausted,          // a quota, wallet or capacity is used up
  unavailable,        // try again later: peer down, disk full
  unsupported,        // known, but not built or not on this machine
  corrupt,            // stored data is not what was written
  internal,           // a fault of loam itself
};

// The stable name used in JSON and logs: "invalid_argument", ...
const char* name_of(ErrorKind kind) noexcept;

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string message;    // what was wrong, with the value
  std::string next_step;  // what to do about it; may be empty

  friend bool operator==(const Error&, const Error&) = default;
};

// "message; next step", for a log line or a terminal.
std::string to_text(const Error& error);

inline Error invalid(std::string message, std::string next_step = {}) {
  return Error{ErrorKind::invalid_argument, std::move(message), std::move(next_step)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const noexcept { return content_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  // Require ok().
  T& value() & {
    LOAM_ASSERT(ok());
    return *std::get_if<0>(&content_);
  }
  const T& value() const& {
    LOAM_ASSERT(ok());
    return *std::get_if<0>(&content_);
  }
  T&& value() && {
    LOAM_ASSERT(ok());
    return std::move(*std::get_if<0>(&content_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Requires !ok().
  const Error& error() const {
    LOAM_ASSERT(!ok());
    return *std::get_if<1>(&content_);
  }

 private:
  std::variant<T, Error> content_;
};

// Success without a value.
struct Unit {
  friend bool operator==(Unit, Unit) = default;
};

template <>
class [[nodiscard]] Result<void> : public Result<Unit> {
 public:
  Result() : Result<Unit>(Unit{}) {}
  Result(Error error) : Result<Unit>(std::move(error)) {}  // NOLINT: implicit
};

}  // namespace loam

// Evaluates a Result expression; on failure returns its error from the enclosing function,
// else declares `name` with the value.
#define LOAM_TRY_CONCAT_(a, b) a##b
#define LOAM_TRY_CONCAT(a, b) LOAM_TRY_CONCAT_(a, b)
#define LOAM_TRY(name, expression)                                \
  auto LOAM_TRY_CONCAT(result_of_line_, __LINE__) = (expression); \
  if (!LOAM_TRY_CONCAT(result_of_line_, __LINE__).ok())           \
    return LOAM_TRY_CONCAT(result_of_line_, __LINE__).error();    \
  auto name = std::move(LOAM_TRY_CONCAT(result_of_line_, __LINE__)).value()

// The same where the value is not wanted.
#define LOAM_CHECK(expression)                                                 \
  do {                                                                         \
    if (auto checked_ = (expression); !checked_.ok()) return checked_.error(); \
  } while (false)
