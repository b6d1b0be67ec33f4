#include "store/salvage.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "store/journal_reader.hpp"
#include "store/rebuild.hpp"
#include "store/schema.hpp"

namespace loam::store {

namespace {

// How many records the file says it has had, from each place that tells.
Result<std::uint64_t> records_promised(Database& damaged) {
  LOAM_TRY(projected, read_meta(damaged, meta_key::projection_sequence, "0"));
  std::uint64_t promised = 0;
  std::from_chars(projected.data(), projected.data() + projected.size(), promised);
  LOAM_TRY(snapshot, damaged.integer("SELECT coalesce(max(seq), 0) FROM snapshots"));
  return std::max(promised, static_cast<std::uint64_t>(snapshot));
}

Result<std::uint64_t> copy_records(Database& damaged, Database& fresh) {
  LOAM_TRY(insert, fresh.prepare("INSERT INTO journal VALUES(?, ?, ?, ?, ?, ?, ?, ?)"));
  LOAM_TRY(reader, JournalReader::open(damaged, 0));
  while (true) {
    LOAM_TRY(more, reader.next());
    if (!more) return reader.sequence();
    const ChainRow& row = reader.row();
    LOAM_CHECK(insert.run(row.sequence, row.at_ms, row.issuer, row.subject, row.type, row.version,
                          row.payload, Blob(reader.hash())));
  }
}

Result<void> copy_meta(Database& damaged, Database& fresh) {
  LOAM_TRY(rows, damaged.prepare("SELECT key, value FROM meta WHERE key NOT LIKE 'store.%'"));
  while (true) {
    LOAM_TRY(more, rows.step());
    if (!more) return {};
    LOAM_CHECK(write_meta(fresh, rows.text(0), rows.text(1)));
  }
}

Result<std::uint64_t> fill(Database& damaged, Database& fresh) {
  LOAM_CHECK(fresh.execute("BEGIN IMMEDIATE"));
  LOAM_TRY(promised, records_promised(damaged));
  LOAM_TRY(copied, copy_records(damaged, fresh));
  if (copied < promised)
    return Error{
        ErrorKind::corrupt,
        "only " + std::to_string(copied) + " of " + std::to_string(promised) + " records are there",
        {}};
  LOAM_CHECK(copy_meta(damaged, fresh));
  LOAM_CHECK(project(fresh, fresh, 0));
  LOAM_CHECK(fresh.execute("COMMIT"));
  return copied;
}

Error beyond_repair(const std::string& path, const std::string& damage, const std::string& why) {
  return Error{
      ErrorKind::corrupt,
      "'" + path + "' is damaged (" + damage + ") and cannot be repaired without loss: " + why,
      "restore the newest backup with `loam restore`; keep the damaged file for "
      "inspection"};
}

// A name beside `path` that is free.
std::string free_name(const std::string& path) {
  std::string name = path + ".damaged";
  for (int i = 2; std::filesystem::exists(name); ++i) name = path + ".damaged-" + std::to_string(i);
  return name;
}

Result<void> rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  return Error{ErrorKind::unavailable,
               "cannot rename '" + from + "' to '" + to + "': " + std::strerror(errno),
               "check the folder's permissions and free space"};
}

}  // namespace

Result<std::string> salvage(const std::string& path, const std::string& damage) {
  const std::string fresh_path = path + ".salvaged";
  remove_database(fresh_path);
  std::vector<std::string> notes;
  LOAM_CHECK(create_journal_file(fresh_path, notes));
  Result<std::uint64_t> copied = std::uint64_t{0};
  {
    LOAM_TRY(damaged, Database::open(path, OpenMode::read_write));
    LOAM_TRY(fresh, Database::open(fresh_path, OpenMode::read_write));
    copied = fill(damaged, fresh);
  }
  if (!copied) {
    remove_database(fresh_path);
    if (copied.error().kind != ErrorKind::corrupt) return copied.error();
    return beyond_repair(path, damage, copied.error().message);
  }
  LOAM_CHECK(sync_path(fresh_path));
  const std::string kept = free_name(path);
  // Closing it has copied its log into it, where that could be done; a rest goes along.
  std::error_code fault;
  if (std::filesystem::exists(path + "-wal", fault))
    LOAM_CHECK(rename_file(path + "-wal", kept + "-wal"));
  std::filesystem::remove(path + "-shm", fault);
  LOAM_CHECK(rename_file(path, kept));
  LOAM_CHECK(rename_file(fresh_path, path));
  LOAM_CHECK(sync_path(std::filesystem::path(path).parent_path().string()));
  return "'" + path + "' was damaged (" + damage + "): all " + std::to_string(*copied) +
         " records were read and checked, copied into a new file, and the projections written "
         "anew; nothing was lost; the damaged file is kept as '" +
         kept + "'";
}

}  // namespace loam::store
