// SQLite as values: connections and statements that close themselves, failures as Error.
// Source: the SQLite C API, version 3.40 or newer. Not pure: files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace loam::store {

using Blob = std::span<const std::uint8_t>;

class IdleStatements;

// A prepared statement. Text and blobs are bound without a copy: they must outlive the step.
// Column accessors are for the row of the last step() that gave true.
class Statement {
 public:
  Statement() = default;
  // At its end it goes back to `home`, if that is still there.
  explicit Statement(sqlite3_stmt* raw, const std::shared_ptr<IdleStatements>& home = nullptr)
      : raw_(raw, GiveBack{home}) {}

  void bind(int position, std::int64_t value);
  void bind(int position, std::string_view value);
  void bind(int position, Blob value);
  void bind(int position, std::nullptr_t);
  void bind(int position, Instant value);  // Instant::never() is NULL
  template <class T>
  void bind(int position, const std::optional<T>& value) {
    if (value) {
      bind(position, *value);
    } else {
      bind(position, nullptr);
    }
  }
  template <class... T>
  void bind_all(const T&... values) {
    int position = 0;
    (bind(++position, values), ...);
  }

  // True: a row is there. False: done.
  Result<bool> step();
  void reset();

  // For statements without rows: binds every parameter, runs to the end, resets.
  template <class... T>
  Result<void> run(const T&... values) {
    bind_all(values...);
    auto more = step();
    reset();
    if (!more) return more.error();
    return {};
  }

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::string_view text(int column) const;  // valid until the next step or reset
  Blob blob(int column) const;              // likewise
  Instant instant(int column) const;        // NULL is Instant::never()
  int columns() const;

 private:
  struct GiveBack {
    std::weak_ptr<IdleStatements> home;
    void operator()(sqlite3_stmt* raw) const noexcept;
  };
  std::unique_ptr<sqlite3_stmt, GiveBack> raw_;
};

enum class OpenMode { read_write, read_only, create };

// One connection; used by one thread at a time.
class Database {
 public:
  // Waits up to 10 s for another process's lock. Never creates a file unless asked to.
  static Result<Database> open(const std::string& path, OpenMode mode);
  // A private temporary database that vanishes with the connection.
  static Result<Database> temporary();

  Result<void> execute(const std::string& sql);
  // A text that was prepared here before and is not in use is not parsed again.
  Result<Statement> prepare(std::string_view sql);
  // The first column of the first row. Requires a statement that gives a row.
  Result<std::int64_t> integer(std::string_view sql);
  Result<std::string> text(std::string_view sql);

  std::int64_t changes() const;
  bool in_transaction() const;
  // Ends a transaction that failed; whatever happened, none is open afterwards.
  void roll_back() noexcept;

  sqlite3* raw() const { return raw_.get(); }
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* raw) const noexcept;
  };
  static Result<Database> open_raw(const std::string& path, int flags);

  std::unique_ptr<sqlite3, Close> raw_;
  std::shared_ptr<IdleStatements> idle_;  // ends before the connection does
  std::string path_;
};

// What SQLite's result code means for whoever asked: a full disk is `unavailable`, damage is
// `corrupt`, and so on. `doing` says what was tried: "append to the journal".
Error sqlite_error(sqlite3* database, int code, const std::string& doing);

// The SQL function money_add(amount, amount) on canonical decimal texts: exact, where SQL's own
// numbers are not. For statements of this folder only; views do not use it.
Result<void> add_money_functions(Database& database);

}  // namespace loam::store
