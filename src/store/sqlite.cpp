#include "store/sqlite.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "base/money.hpp"

namespace loam::store {

namespace {

constexpr int lock_wait_ms = 10'000;

ErrorKind kind_of(int code, int system_error) {
  switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
    case SQLITE_PROTOCOL:
      return ErrorKind::unavailable;
    case SQLITE_CANTOPEN:
      return system_error == ENOENT ? ErrorKind::not_found : ErrorKind::unavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorKind::corrupt;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ErrorKind::permission_denied;
    default:
      return ErrorKind::internal;
  }
}

std::string next_step_of(int code, int system_error) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return "free space on the disk; loam goes on by itself";
    case SQLITE_IOERR:
      if (system_error == ENOSPC || system_error == EDQUOT)
        return "free space on the disk; loam goes on by itself";
      return "check the disk and the kernel's log";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "close other programs that write to the file";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "restore the newest backup with `loam restore`";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
      return "check the owner and the permissions of the file and its folder";
    default:
      return {};
  }
}

void money_add(sqlite3_context* context, int, sqlite3_value** values) {
  Money sum;
  for (int i = 0; i < 2; ++i) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[i]));
    const auto amount = Money::parse(text != nullptr ? text : "", Currency());
    if (!amount) {
      sqlite3_result_error(context, amount.error().message.c_str(), -1);
      return;
    }
    sum += *amount;
  }
  const std::string text = amount_text(sum);
  sqlite3_result_text(context, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

}  // namespace

Error sqlite_error(sqlite3* database, int code, const std::string& doing) {
  const int system_error = database != nullptr ? sqlite3_system_errno(database) : 0;
  std::string message = "cannot " + doing + ": ";
  message += database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code);
  message += " (SQLite " + std::to_string(code);
  if (system_error != 0 && (code & 0xff) != SQLITE_FULL)
    message += ", " + std::string(std::strerror(system_error));
  message += ")";
  return Error{kind_of(code, system_error), std::move(message), next_step_of(code, system_error)};
}

// ---- Statement ------------------------------------------------------------------------------

// Statements of one connection that nobody uses, by their text. Parsing a query takes longer than
// running it, for what is asked of a few rows.
class IdleStatements {
 public:
  IdleStatements() = default;
  IdleStatements(const IdleStatements&) = delete;
  IdleStatements& operator=(const IdleStatements&) = delete;
  ~IdleStatements() {
    for (const auto& [sql, raw] : by_text_) sqlite3_finalize(raw);
  }

  sqlite3_stmt* take(std::string_view sql) {
    const auto found = by_text_.find(sql);
    if (found == by_text_.end()) return nullptr;
    sqlite3_stmt* raw = found->second;
    by_text_.erase(found);
    return raw;
  }
  void keep(sqlite3_stmt* raw) {
    constexpr std::size_t most = 64;
    sqlite3_reset(raw);  // no read transaction stays open, and no text is pointed at
    sqlite3_clear_bindings(raw);
    const bool kept = by_text_.size() < most && by_text_.try_emplace(sqlite3_sql(raw), raw).second;
    if (!kept) sqlite3_finalize(raw);
  }

 private:
  std::map<std::string, sqlite3_stmt*, std::less<>> by_text_;
};

void Statement::GiveBack::operator()(sqlite3_stmt* raw) const noexcept {
  if (const auto idle = home.lock()) {
    idle->keep(raw);
  } else {
    sqlite3_finalize(raw);
  }
}

// Binding fails only for a wrong position, out of memory or a text above 1 GB: the first is a
// programmer error, the others surface here rather than as a wrong row.
void Statement::bind(int position, std::int64_t value) {
  LOAM_ASSERT(sqlite3_bind_int64(raw_.get(), position, value) == SQLITE_OK);
}
void Statement::bind(int position, std::string_view value) {
  const char* data = value.data() != nullptr ? value.data() : "";
  LOAM_ASSERT(sqlite3_bind_text64(raw_.get(), position, data, value.size(), SQLITE_STATIC,
                                  SQLITE_UTF8) == SQLITE_OK);
}
void Statement::bind(int position, Blob value) {
  LOAM_ASSERT(sqlite3_bind_blob64(raw_.get(), position, value.data(), value.size(),
                                  SQLITE_STATIC) == SQLITE_OK);
}
void Statement::bind(int position, std::nullptr_t) {
  LOAM_ASSERT(sqlite3_bind_null(raw_.get(), position) == SQLITE_OK);
}
void Statement::bind(int position, Instant value) {
  if (value == Instant::never()) {
    bind(position, nullptr);
  } else {
    bind(position, value.ms);
  }
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(raw_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  sqlite3* database = sqlite3_db_handle(raw_.get());
  const char* path = sqlite3_db_filename(database, "main");
  const bool reads = sqlite3_stmt_readonly(raw_.get()) != 0;
  return sqlite_error(database, sqlite3_extended_errcode(database),
                      std::string(reads ? "read from" : "write to") + " '" +
                          (path != nullptr && *path != '\0' ? path : "a temporary database") + "'");
}

void Statement::reset() {
  sqlite3_reset(raw_.get());
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(raw_.get(), column) == SQLITE_NULL;
}
std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(raw_.get(), column);
}
std::string_view Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(raw_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(raw_.get(), column))};
}
Blob Statement::blob(int column) const {
  const auto* data = static_cast<const std::uint8_t*>(sqlite3_column_blob(raw_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(raw_.get(), column))};
}
Instant Statement::instant(int column) const {
  return is_null(column) ? Instant::never() : Instant{integer(column)};
}
int Statement::columns() const {
  return sqlite3_column_count(raw_.get());
}

// ---- Database -------------------------------------------------------------------------------

void Database::Close::operator()(sqlite3* raw) const noexcept {
  sqlite3_close_v2(raw);
}

Result<Database> Database::open_raw(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database;
  database.raw_.reset(raw);
  database.path_ = path;
  if (code != SQLITE_OK) return sqlite_error(raw, code, "open '" + path + "'");
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, lock_wait_ms);
  // A file is data, not a program: its schema may not call functions with side effects, and
  // pages are checked before they are believed.
  LOAM_CHECK(database.execute(
      "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY;"
      "PRAGMA mmap_size=0; PRAGMA cache_size=-1024"));
  // The triggers in a journal are for other programs (write_guards.hpp).
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  return database;
}

Result<Database> Database::open(const std::string& path, OpenMode mode) {
  switch (mode) {
    case OpenMode::read_only:
      return open_raw(path, SQLITE_OPEN_READONLY);
    case OpenMode::create: {
      auto made = open_raw(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
      // It holds everybody's bills and the hashes of tokens; a file beside it takes its mode.
      if (made) static_cast<void>(::chmod(path.c_str(), 0600));
      return made;
    }
    case OpenMode::read_write:
      break;
  }
  return open_raw(path, SQLITE_OPEN_READWRITE);
}

Result<Database> Database::temporary() {
  return open_raw("", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

Result<void> Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(raw_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return {};
  return sqlite_error(raw_.get(), sqlite3_extended_errcode(raw_.get()), "write to '" + path_ + "'");
}

Result<Statement> Database::prepare(std::string_view sql) {
  if (idle_ == nullptr) idle_ = std::make_shared<IdleStatements>();
  if (sqlite3_stmt* known = idle_->take(sql)) return Statement(known, idle_);
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(raw_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK)
    return sqlite_error(raw_.get(), sqlite3_extended_errcode(raw_.get()),
                        "read from '" + path_ + "'");
  return Statement(raw, idle_);
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  LOAM_TRY(statement, prepare(sql));
  LOAM_TRY(row, statement.step());
  LOAM_ASSERT(row);
  return statement.integer(0);
}

Result<std::string> Database::text(std::string_view sql) {
  LOAM_TRY(statement, prepare(sql));
  LOAM_TRY(row, statement.step());
  LOAM_ASSERT(row);
  return std::string(statement.text(0));
}

std::int64_t Database::changes() const {
  return sqlite3_changes64(raw_.get());
}

bool Database::in_transaction() const {
  return sqlite3_get_autocommit(raw_.get()) == 0;
}

void Database::roll_back() noexcept {
  // Some failures (a full disk, an I/O error) have rolled back already; ROLLBACK itself does not
  // fail while no statement is active.
  if (in_transaction()) sqlite3_exec(raw_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<void> add_money_functions(Database& database) {
  const int code = sqlite3_create_function_v2(
      database.raw(), "money_add", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
      nullptr, money_add, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return sqlite_error(database.raw(), code, "add a function");
  return {};
}

}  // namespace loam::store
