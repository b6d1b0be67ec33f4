#include "store/backup.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "store/data_lock.hpp"
#include "store/journal.hpp"
#include "store/schema.hpp"

namespace loam::store {

namespace {

// Pages copied between two looks at the clock; a read transaction holds the moment.
constexpr int pages_per_step = 1024;

Result<void> copy_pages(Database& from, Database& to) {
  sqlite3_backup* copy = sqlite3_backup_init(to.raw(), "main", from.raw(), "main");
  if (copy == nullptr)
    return sqlite_error(to.raw(), sqlite3_extended_errcode(to.raw()),
                        "copy to '" + to.path() + "'");
  int code = SQLITE_OK;
  while (code == SQLITE_OK) code = sqlite3_backup_step(copy, pages_per_step);
  sqlite3_backup_finish(copy);
  if (code == SQLITE_DONE) return {};
  return sqlite_error(to.raw(), code, "copy '" + from.path() + "' to '" + to.path() + "'");
}

// Copies one moment of `from` to the new file `to`, synced, without a log beside it.
Result<void> copy_database(const std::string& from, const std::string& to) {
  {
    LOAM_TRY(source, Database::open(from, OpenMode::read_only));
    LOAM_CHECK(check_versions(source));
    // The first read fixes the moment: later appends do not restart the copy.
    LOAM_CHECK(source.execute("BEGIN; SELECT count(*) FROM meta"));
    LOAM_TRY(target, Database::open(to, OpenMode::create));
    LOAM_CHECK(target.execute("PRAGMA synchronous=FULL"));
    LOAM_CHECK(copy_pages(source, target));
    // One file that can be carried about, also to read-only places.
    LOAM_TRY(mode, target.text("PRAGMA journal_mode=DELETE"));
    LOAM_ASSERT(mode == "delete");
  }
  return sync_path(to);
}

Result<void> rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  return Error{ErrorKind::unavailable,
               "cannot rename '" + from + "' to '" + to + "': " + std::strerror(errno),
               "check the folder's permissions and free space"};
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

// Copies to a name aside, verifies the copy, and only then gives it its name.
Result<VerifyReport> copy_verified(const std::string& from, const std::string& to) {
  const std::string partial = to + ".partial";
  remove_database(partial);
  auto copied = copy_database(from, partial);
  if (!copied) {
    remove_database(partial);
    return copied.error();
  }
  auto report = verify_journal(partial);
  if (!report || !report->good()) {
    remove_database(partial);
    if (!report) return report.error();
    return Error{ErrorKind::corrupt,
                 "'" + from + "' is damaged: " + report->problems.front() +
                     (report->problems.size() > 1
                          ? " (and " + std::to_string(report->problems.size() - 1) + " more)"
                          : ""),
                 "see `loam verify`, and keep the backups you have"};
  }
  LOAM_CHECK(rename_file(partial, to));
  LOAM_CHECK(sync_path(folder_of(to)));
  report->path = to;
  return report;
}

std::string free_name(const std::string& path) {
  std::string name = path + ".before-restore";
  for (int i = 2; std::filesystem::exists(name); ++i)
    name = path + ".before-restore-" + std::to_string(i);
  return name;
}

}  // namespace

Result<VerifyReport> back_up(const std::string& journal, const std::string& target) {
  std::error_code fault;
  if (std::filesystem::exists(target, fault))
    return Error{ErrorKind::conflict, "'" + target + "' is there already",
                 "give a new name, or remove that file"};
  return copy_verified(journal, target);
}

Result<Restored> restore(const std::string& backup, const std::string& folder,
                         Overwrite overwrite) {
  LOAM_CHECK(check_journal_file(backup));
  LOAM_TRY(lock, DataLock::acquire(folder));
  const std::string path = journal_path(folder);
  std::error_code fault;
  const bool there = std::filesystem::exists(path, fault);
  if (there && overwrite == Overwrite::refuse)
    return Error{ErrorKind::conflict, "'" + path + "' is there already",
                 "restore into an empty folder, or say that the present journal may be set aside"};
  // The copy is made and verified beside the present journal before that one is touched.
  const std::string fresh = path + ".restored";
  remove_database(fresh);
  LOAM_TRY(report, copy_verified(backup, fresh));
  Restored restored{std::move(report), {}};
  if (there) {
    restored.set_aside = free_name(path);
    for (const char* suffix : {"-wal", "-shm", ""}) {
      if (!std::filesystem::exists(path + suffix, fault)) continue;
      LOAM_CHECK(rename_file(path + suffix, restored.set_aside + suffix));
    }
  } else {
    std::filesystem::remove(path + "-wal", fault);
    std::filesystem::remove(path + "-shm", fault);
  }
  LOAM_CHECK(rename_file(fresh, path));
  LOAM_CHECK(sync_path(folder));
  restored.report.path = path;
  return restored;
}

}  // namespace loam::store
