#include "store/schema.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "store/write_guards.hpp"

namespace loam::store {

namespace {

static_assert(loam_version == LOAM_PROJECT_VERSION, "the version here is not the project's");

constexpr const char* core_sql = R"sql(
CREATE TABLE journal(
  seq INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  type TEXT NOT NULL,
  version INTEGER NOT NULL,
  payload TEXT NOT NULL,
  hash BLOB NOT NULL
) STRICT;

CREATE TABLE meta(
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots(
  seq INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  written_by TEXT NOT NULL,
  journal_hash BLOB NOT NULL,
  length INTEGER NOT NULL,
  hash BLOB NOT NULL
) STRICT;

CREATE TABLE snapshot_parts(
  seq INTEGER NOT NULL,
  part INTEGER NOT NULL,
  text BLOB NOT NULL,
  PRIMARY KEY(seq, part)
) STRICT;
)sql";

constexpr const char* restore_step = "restore the newest backup with `loam restore`";

std::uint32_t big_endian(const unsigned char* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 |
         static_cast<std::uint32_t>(bytes[2]) << 8 | static_cast<std::uint32_t>(bytes[3]);
}

Error foreign(const std::string& path, const std::string& why) {
  return invalid("'" + path + "' is not a loam journal: " + why,
                 "give the data folder of a loamd, or an empty one");
}

Error newer(const std::string& path, std::int64_t found) {
  return Error{ErrorKind::unsupported,
               "'" + path + "' has schema version " + std::to_string(found) + "; this is loam " +
                   std::string(loam_version) + ", which reads up to version " +
                   std::to_string(schema_version),
               "run the newer loam that wrote it"};
}

// The size that the first page of the file claims, when it can be trusted (SQLite file format,
// section 1.3: only if the change counter equals the version-valid-for number).
std::int64_t claimed_size(const std::array<unsigned char, 100>& header) {
  if (big_endian(&header[24]) != big_endian(&header[92])) return 0;
  std::int64_t page = header[16] << 8 | header[17];
  if (page == 1) page = 65536;
  return page * static_cast<std::int64_t>(big_endian(&header[28]));
}

Result<void> check_header(const std::string& path, const std::array<unsigned char, 100>& header,
                          std::int64_t size) {
  if (std::memcmp(header.data(), "SQLite format 3", 16) != 0)
    return foreign(path, "it does not begin like an SQLite database");
  const std::uint32_t application = big_endian(&header[68]);
  if (application != static_cast<std::uint32_t>(application_id))
    return foreign(path, "its application id is " + std::to_string(application) + ", not " +
                             std::to_string(application_id));
  const auto version = static_cast<std::int64_t>(big_endian(&header[60]));
  if (version > schema_version) return newer(path, version);
  const std::int64_t claimed = claimed_size(header);
  // With a write-ahead log beside it the file may be short after a crash amid a checkpoint: SQLite
  // completes it from the log, and what it cannot complete the checks after opening find.
  std::error_code fault;
  const auto log_size = std::filesystem::file_size(path + "-wal", fault);
  if (size < claimed && (fault || log_size == 0))
    return Error{ErrorKind::corrupt,
                 "'" + path + "' is truncated: " + std::to_string(size) + " bytes of " +
                     std::to_string(claimed),
                 restore_step};
  return {};
}

}  // namespace

Result<void> create_core(Database& database) {
  LOAM_CHECK(database.execute(core_sql));
  LOAM_CHECK(database.execute("PRAGMA application_id=" + std::to_string(application_id)));
  LOAM_CHECK(database.execute("PRAGMA user_version=" + std::to_string(schema_version)));
  LOAM_CHECK(write_meta(database, meta_key::created_by, loam_version));
  return write_meta(database, meta_key::written_by, loam_version);
}

Result<void> create_journal_file(const std::string& path, std::vector<std::string>& notes) {
  const std::string fresh = path + ".new";
  std::error_code fault;
  if (std::filesystem::exists(fresh, fault)) {
    notes.push_back("removed '" + fresh + "', which an interrupted start left half made");
    remove_database(fresh);
  }
  {
    LOAM_TRY(database, Database::open(fresh, OpenMode::create));
    LOAM_CHECK(database.execute("PRAGMA synchronous=FULL; BEGIN IMMEDIATE"));
    LOAM_CHECK(create_core(database));
    LOAM_CHECK(create_projections(database));
    LOAM_CHECK(put_write_guards(database));
    LOAM_CHECK(write_meta(database, meta_key::projection_sequence, "0"));
    LOAM_CHECK(
        write_meta(database, meta_key::projection_version, std::to_string(projection_version)));
    LOAM_CHECK(database.execute("COMMIT"));
  }
  LOAM_CHECK(sync_path(fresh));
  if (std::rename(fresh.c_str(), path.c_str()) != 0)
    return Error{ErrorKind::unavailable,
                 "cannot rename '" + fresh + "' to '" + path + "': " + std::strerror(errno),
                 "check the folder's permissions and free space"};
  return sync_path(std::filesystem::path(path).parent_path().string());
}

Result<void> check_journal_file(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0)
    return Error{errno == ENOENT ? ErrorKind::not_found : ErrorKind::unavailable,
                 "cannot read '" + path + "': " + std::strerror(errno), "check the path"};
  if (!S_ISREG(facts.st_mode)) return foreign(path, "it is not a regular file");
  if (facts.st_size == 0)
    return Error{ErrorKind::corrupt, "'" + path + "' is empty: 0 bytes",
                 std::string(restore_step) + ", or remove the file to start anew"};
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return Error{errno == EACCES ? ErrorKind::permission_denied : ErrorKind::unavailable,
                 "cannot open '" + path + "': " + std::strerror(errno),
                 "check the file's owner and permissions"};
  std::array<unsigned char, 100> header{};
  const ssize_t size = pread(descriptor, header.data(), header.size(), 0);
  close(descriptor);
  if (size < static_cast<ssize_t>(header.size()))
    return foreign(path, "it has " + std::to_string(facts.st_size) + " bytes");
  return check_header(path, header, facts.st_size);
}

Result<void> check_versions(Database& database) {
  LOAM_TRY(application, database.integer("PRAGMA application_id"));
  if (application != application_id)
    return foreign(database.path(), "its application id is " + std::to_string(application));
  LOAM_TRY(version, database.integer("PRAGMA user_version"));
  if (version > schema_version) return newer(database.path(), version);
  // There is no older layout yet; the first one to be lifted from will be 1.
  if (version < schema_version)
    return Error{ErrorKind::corrupt,
                 "'" + database.path() + "' has schema version " + std::to_string(version) +
                     ", which no loam ever wrote",
                 restore_step};
  return {};
}

Result<std::string> read_meta(Database& database, std::string_view key, std::string otherwise) {
  LOAM_TRY(query, database.prepare("SELECT value FROM meta WHERE key = ?"));
  query.bind_all(key);
  LOAM_TRY(row, query.step());
  return row ? std::string(query.text(0)) : std::move(otherwise);
}

Result<void> write_meta(Database& database, std::string_view key, std::string_view value) {
  LOAM_TRY(statement, database.prepare("INSERT INTO meta(key, value) VALUES(?, ?) "
                                       "ON CONFLICT(key) DO UPDATE SET value = excluded.value"));
  return statement.run(key, value);
}

Result<void> sync_path(const std::string& path) {
  const int descriptor = open(path.empty() ? "." : path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return Error{ErrorKind::unavailable, "cannot open '" + path + "': " + std::strerror(errno), {}};
  const int code = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  if (code == 0) return {};
  return Error{ErrorKind::unavailable, "cannot sync '" + path + "': " + std::strerror(code),
               "check the disk and the kernel's log"};
}

void remove_database(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    std::error_code fault;
    std::filesystem::remove(path + suffix, fault);
  }
}

}  // namespace loam::store
