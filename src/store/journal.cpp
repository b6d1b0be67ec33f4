#include "store/journal.hpp"

#include <sqlite3.h>

#include <charconv>
#include <filesystem>

#include "domain/event_codec.hpp"
#include "store/rebuild.hpp"
#include "store/salvage.hpp"
#include "store/schema.hpp"
#include "store/snapshots.hpp"
#include "store/write_guards.hpp"

namespace loam::store {

namespace {

// The first complaint of SQLite about the structure of its file; empty where there is none.
Result<std::string> structure_fault(Database& database) {
  auto verdict = database.text("PRAGMA quick_check(1)");
  if (!verdict) {
    if (verdict.error().kind != ErrorKind::corrupt) return verdict.error();
    return verdict.error().message;
  }
  return *verdict == "ok" ? std::string() : *verdict;
}

Result<Database> open_for_writing(const std::string& path) {
  LOAM_TRY(database, Database::open(path, OpenMode::read_write));
  LOAM_CHECK(check_versions(database));
  if (sqlite3_db_readonly(database.raw(), "main") != 0)
    return Error{ErrorKind::permission_denied, "'" + path + "' can only be read",
                 "check the owner and the permissions of the file and its folder"};
  LOAM_TRY(mode, database.text("PRAGMA journal_mode=WAL"));
  if (mode != "wal")
    return Error{ErrorKind::unsupported,
                 "'" + path + "' cannot use a write-ahead log (SQLite says '" + mode + "')",
                 "put the data folder on a local file system"};
  // FULL: the log is synced at every commit, so that what was answered stays.
  LOAM_CHECK(database.execute(
      "PRAGMA synchronous=FULL; PRAGMA cache_size=-8192; PRAGMA journal_size_limit=67108864"));
  return database;
}

std::uint64_t to_number(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::string journal_path(const std::string& folder) {
  return folder + "/journal.db";
}

SqliteJournal::SqliteJournal(DataLock lock, std::string path)
    : lock_(std::move(lock)), path_(std::move(path)) {}

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::open(const std::string& folder) {
  LOAM_TRY(lock, DataLock::acquire(folder));
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal(std::move(lock), journal_path(folder)));
  LOAM_CHECK(journal->open_database());
  LOAM_CHECK(journal->settle_projections());
  LOAM_CHECK(journal->prepare());
  return journal;
}

SqliteJournal::~SqliteJournal() {
  if (projector_) {
    // Best effort: without it the next opening checks more, and says so.
    static_cast<void>(write_meta(database_, meta_key::closed_cleanly, "1"));
  }
}

Result<void> SqliteJournal::open_database() {
  std::error_code fault;
  if (!std::filesystem::exists(path_, fault)) {
    if (std::filesystem::exists(path_ + "-wal", fault))
      return Error{ErrorKind::corrupt,
                   "'" + path_ + "' is missing, but its write-ahead log is there",
                   "put the file back, or restore the newest backup with `loam restore`"};
    LOAM_CHECK(create_journal_file(path_, notes_));
    note("made a new journal '" + path_ + "'");
  }
  LOAM_CHECK(check_journal_file(path_));
  std::string damage;
  {
    LOAM_TRY(database, open_for_writing(path_));
    LOAM_TRY(clean, read_meta(database, meta_key::closed_cleanly, "1"));
    if (clean != "1")
      note("the last loamd did not close '" + path_ +
           "': checked its pages and where the projections stand");
    LOAM_TRY(found, structure_fault(database));
    damage = std::move(found);
    if (damage.empty()) database_ = std::move(database);
  }
  if (!damage.empty()) {
    LOAM_TRY(done, salvage(path_, damage));
    note(std::move(done));
    LOAM_TRY(database, open_for_writing(path_));
    database_ = std::move(database);
  }
  LOAM_TRY(tail, read_tail(database_));
  tail_ = tail;
  return {};
}

Result<void> SqliteJournal::settle_projections() {
  LOAM_TRY(version, read_meta(database_, meta_key::projection_version, ""));
  LOAM_TRY(projected, read_meta(database_, meta_key::projection_sequence, "0"));
  const std::uint64_t sequence = to_number(projected);
  if (version != std::to_string(projection_version)) {
    LOAM_CHECK(store::rebuild_projections(database_));
    note("projections of version " + version + " were written anew as version " +
         std::to_string(projection_version));
    return {};
  }
  if (sequence > tail_.sequence) {
    return Error{ErrorKind::corrupt,
                 "'" + path_ + "' holds " + std::to_string(tail_.sequence) +
                     " records, but its projections tell of " + projected,
                 "restore the newest backup with `loam restore`"};
  } else if (sequence < tail_.sequence) {
    LOAM_CHECK(database_.execute("BEGIN IMMEDIATE"));
    auto done = project(database_, database_, sequence);
    Result<void> kept = done ? database_.execute("COMMIT") : Result<void>(done.error());
    if (!kept) {
      database_.roll_back();
      return kept;
    }
    note("projections were brought from record " + projected + " to " +
         std::to_string(tail_.sequence));
  }
  return settle_guards();
}

// Who takes a guard away, or drops a table with it, has something in mind: what the projections say
// then counts for nothing.
Result<void> SqliteJournal::settle_guards() {
  LOAM_TRY(guards, missing_write_guards(database_));
  if (guards.missing == 0) return {};
  LOAM_CHECK(store::rebuild_projections(database_));
  if (guards.missing < guards.of)
    note("somebody took away " + std::to_string(guards.missing) + " of the " +
         std::to_string(guards.of) +
         " guards against writes by other programs: the projections "
         "were written anew from the records");
  return {};
}

Result<void> SqliteJournal::prepare() {
  LOAM_TRY(begin, database_.prepare("BEGIN IMMEDIATE"));
  LOAM_TRY(commit, database_.prepare("COMMIT"));
  LOAM_TRY(insert, database_.prepare("INSERT INTO journal VALUES(?, ?, ?, ?, ?, ?, ?, ?)"));
  LOAM_TRY(projector, Projector::prepare(database_));
  begin_ = std::move(begin);
  commit_ = std::move(commit);
  insert_ = std::move(insert);
  projector_.emplace(std::move(projector));
  auto marked = write_meta(database_, meta_key::closed_cleanly, "0");
  if (marked) marked = write_meta(database_, meta_key::written_by, loam_version);
  if (!marked) {
    // A full disk must not keep the daemon from serving what it has.
    if (marked.error().kind != ErrorKind::unavailable) return marked;
    database_.roll_back();
    note(marked.error().message);
  }
  return {};
}

Result<void> SqliteJournal::append(std::span<const Record> records) {
  if (records.empty()) return {};
  const std::lock_guard hold(turn_);
  auto written = write_batch(records);
  if (!written) database_.roll_back();
  return written;
}

Result<void> SqliteJournal::write_batch(std::span<const Record> records) {
  LOAM_CHECK(begin_.run());
  JournalTail tail = tail_;
  for (const Record& record : records) {
    LOAM_CHECK(insert_record(record, tail));
    LOAM_CHECK(projector_->apply(record));
  }
  LOAM_CHECK(projector_->mark(tail.sequence));
  LOAM_CHECK(commit_.run());
  tail_ = tail;
  return {};
}

Result<void> SqliteJournal::insert_record(const Record& record, JournalTail& tail) {
  LOAM_ASSERT(record.sequence == tail.sequence + 1);
  LOAM_ASSERT(record.at >= tail.at);
  const EncodedEvent encoded = encode(record.event);
  const ChainRow row{static_cast<std::int64_t>(record.sequence),
                     record.at.ms,
                     record.actor.issuer,
                     record.actor.subject,
                     encoded.type,
                     encoded.version,
                     encoded.payload};
  tail.hash = chain_hash(tail.hash, row);
  tail.sequence = record.sequence;
  tail.at = record.at;
  return insert_.run(row.sequence, row.at_ms, row.issuer, row.subject, row.type, row.version,
                     row.payload, Blob(tail.hash));
}

Result<void> SqliteJournal::replay(std::uint64_t after,
                                   const std::function<Result<void>(const Record&)>& each) {
  LOAM_TRY(database, Database::open(path_, OpenMode::read_only));
  LOAM_CHECK(database.execute("BEGIN"));
  LOAM_TRY(reader, JournalReader::open(database, after));
  while (true) {
    LOAM_TRY(more, reader.next());
    if (!more) return {};
    LOAM_TRY(record, reader.record());
    LOAM_CHECK(each(record));
  }
}

Result<engine::StateImage> SqliteJournal::load_snapshot() {
  LOAM_TRY(database, Database::open(path_, OpenMode::read_only));
  LOAM_CHECK(database.execute("BEGIN"));
  std::vector<std::string> passed_over;
  auto image = read_snapshot(database, passed_over);
  for (std::string& text : passed_over) {
    const std::lock_guard hold(turn_);
    note(std::move(text));
  }
  return image;
}

Result<void> SqliteJournal::save_snapshot(const engine::StateImage& image) {
  const std::lock_guard one(snapshot_);
  LOAM_TRY(database, Database::open(path_, OpenMode::read_write));
  // A snapshot that a power cut takes costs a longer replay, nothing else: no syncs. Checkpoints
  // are made between the parts, never while this thread has the turn.
  LOAM_CHECK(database.execute("PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0"));
  LOAM_CHECK(store_snapshot(database, turn_, image));
  return database.execute("PRAGMA wal_checkpoint(PASSIVE)");
}

Result<void> SqliteJournal::rebuild_projections() {
  const std::lock_guard hold(turn_);
  projector_.reset();  // its statements would keep the tables from being dropped
  auto done = store::rebuild_projections(database_);
  LOAM_TRY(projector, Projector::prepare(database_));
  projector_.emplace(std::move(projector));
  return done;
}

Result<std::optional<std::string>> SqliteJournal::meta(std::string_view key) {
  const std::lock_guard hold(turn_);
  LOAM_TRY(query, database_.prepare("SELECT value FROM meta WHERE key = ?"));
  query.bind_all(key);
  LOAM_TRY(there, query.step());
  if (!there) return std::optional<std::string>();
  return std::optional<std::string>(query.text(0));
}

Result<void> SqliteJournal::set_meta(std::string_view key, std::string_view value) {
  LOAM_ASSERT(!key.starts_with("store."));
  const std::lock_guard hold(turn_);
  return write_meta(database_, key, value);
}

Instant SqliteJournal::last_instant() const {
  const std::lock_guard hold(turn_);
  return tail_.at;
}
std::uint64_t SqliteJournal::last_sequence() const {
  const std::lock_guard hold(turn_);
  return tail_.sequence;
}

std::vector<std::string> SqliteJournal::notes() const {
  const std::lock_guard hold(turn_);
  return notes_;
}

void SqliteJournal::note(std::string text) {
  notes_.push_back(std::move(text));
}

}  // namespace loam::store
