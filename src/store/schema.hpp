// The tables of the journal file: what they are called, how a new file is made, and what may be
// opened. The layout is documented in docs/formats/journal.md and docs/formats/projections.md.
// Not pure: files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "store/sqlite.hpp"

namespace loam::store {

// "LOAM" in ASCII: SQLite's application_id of every file of ours.
inline constexpr std::int64_t application_id = 0x4c4f414d;
// SQLite's user_version: the tables that cannot be rebuilt (journal, meta, snapshots).
inline constexpr std::int64_t schema_version = 1;
// The tables that can: a file with another version has its projections rebuilt on opening.
inline constexpr std::int64_t projection_version = 10;
// What this program writes into meta as its own version.
inline constexpr std::string_view loam_version = "0.1.0";

// Keys of the meta table that the store itself uses; others are free for the daemon.
namespace meta_key {
inline constexpr std::string_view created_by = "store.created_by";
inline constexpr std::string_view written_by = "store.written_by";
inline constexpr std::string_view projection_sequence = "store.projection_sequence";
inline constexpr std::string_view projection_version = "store.projection_version";
inline constexpr std::string_view closed_cleanly = "store.closed_cleanly";
}  // namespace meta_key

// Every projection table, with an order that makes two equal tables read equal.
struct ProjectionTable {
  const char* name;
  const char* order;
};
std::span<const ProjectionTable> projection_tables();

// Makes the tables of a new file, in the transaction of the caller.
Result<void> create_core(Database& database);
// The projections: tables, indexes, views. Dropping takes every table and view that is not core,
// also those of another loam version.
Result<void> create_projections(Database& database);
Result<void> drop_projections(Database& database);

// Makes an empty journal at `path` in one step: a crash leaves no half-made file there. A
// half-made file of an earlier crash is replaced; `notes` says so.
Result<void> create_journal_file(const std::string& path, std::vector<std::string>& notes);

// Whether the file is a whole journal of a version that this program reads; looks at the first
// page and the file's size only, opens nothing and changes nothing.
Result<void> check_journal_file(const std::string& path);
// The same for the versions as SQLite sees them, its write-ahead log included.
Result<void> check_versions(Database& database);

Result<std::string> read_meta(Database& database, std::string_view key, std::string otherwise);
Result<void> write_meta(Database& database, std::string_view key, std::string_view value);

// fsync(2) of a file or folder.
Result<void> sync_path(const std::string& path);
// Deletes a database file with its write-ahead log.
void remove_database(const std::string& path);

}  // namespace loam::store
