#include "store/journal_reader.hpp"

#include <algorithm>

#include "domain/event_codec.hpp"
#include "store/schema.hpp"

namespace loam::store {

namespace {

constexpr const char* restore_step =
    "restore the newest backup with `loam restore`; keep the damaged file for inspection";

bool take_hash(Blob blob, ChainHash& out) {
  if (blob.size() != out.size()) return false;
  std::copy(blob.begin(), blob.end(), out.begin());
  return true;
}

}  // namespace

Error JournalReader::broken(std::int64_t sequence, const std::string& what) const {
  return Error{ErrorKind::corrupt,
               "record " + std::to_string(sequence) + " of '" + path_ + "' " + what, restore_step};
}

Result<JournalReader> JournalReader::open(Database& database, std::uint64_t after) {
  LOAM_TRY(rows,
           database.prepare("SELECT seq, at_ms, issuer, subject, type, version, payload, hash "
                            "FROM journal WHERE seq >= ? ORDER BY seq"));
  JournalReader reader(std::move(rows), database.path());
  if (after == 0) {
    reader.rows_.bind(1, std::int64_t{0});
    return reader;
  }
  LOAM_TRY(before, database.prepare("SELECT at_ms, hash FROM journal WHERE seq = ?"));
  const auto sequence = static_cast<std::int64_t>(after);
  before.bind(1, sequence);
  LOAM_TRY(there, before.step());
  if (!there) return reader.broken(sequence, "is missing");
  if (!take_hash(before.blob(1), reader.hash_))
    return reader.broken(sequence, "has a hash of the wrong length");
  reader.at_ = before.instant(0);
  reader.sequence_ = after;
  reader.rows_.bind(1, sequence + 1);
  return reader;
}

Result<bool> JournalReader::next() {
  LOAM_TRY(more, rows_.step());
  if (!more) return false;
  row_ = ChainRow{rows_.integer(0), rows_.integer(1), rows_.text(2), rows_.text(3),
                  rows_.text(4),    rows_.integer(5), rows_.text(6)};
  const auto expected = static_cast<std::int64_t>(sequence_) + 1;
  if (row_.sequence != expected)
    return broken(expected, "is missing: the next one is " + std::to_string(row_.sequence));
  if (row_.at_ms < at_.ms)
    return broken(expected, "is dated " + loam::to_text(Instant{row_.at_ms}) +
                                ", before the record ahead of it");
  ChainHash stored;
  if (!take_hash(rows_.blob(7), stored)) return broken(expected, "has a hash of the wrong length");
  const ChainHash computed = chain_hash(hash_, row_);
  if (computed != stored)
    return broken(expected,
                  "breaks the hash chain: it, or the one before it, is not what loam wrote");
  hash_ = stored;
  sequence_ = static_cast<std::uint64_t>(row_.sequence);
  at_ = Instant{row_.at_ms};
  return true;
}

Result<Record> JournalReader::record() const {
  auto event = decode(EncodedEvent{std::string(row_.type), static_cast<int>(row_.version),
                                   std::string(row_.payload)});
  if (!event) {
    Error error = event.error();
    error.message = "record " + std::to_string(row_.sequence) + " of '" + path_ +
                    "' cannot be read: " + error.message;
    if (error.next_step.empty()) error.next_step = restore_step;
    return error;
  }
  return Record{sequence_, at_, Actor{std::string(row_.issuer), std::string(row_.subject)},
                std::move(*event)};
}

Result<JournalTail> read_tail(Database& database) {
  LOAM_TRY(last,
           database.prepare("SELECT seq, at_ms, hash FROM journal ORDER BY seq DESC LIMIT 1"));
  LOAM_TRY(there, last.step());
  JournalTail tail;
  if (!there) return tail;
  tail.sequence = static_cast<std::uint64_t>(last.integer(0));
  tail.at = last.instant(1);
  if (!take_hash(last.blob(2), tail.hash))
    return Error{ErrorKind::corrupt,
                 "record " + std::to_string(tail.sequence) + " of '" + database.path() +
                     "' has a hash of the wrong length",
                 restore_step};
  return tail;
}

Result<bool> holds(Database& database, std::uint64_t sequence, const ChainHash& hash) {
  LOAM_TRY(row, database.prepare("SELECT hash FROM journal WHERE seq = ?"));
  row.bind(1, static_cast<std::int64_t>(sequence));
  LOAM_TRY(there, row.step());
  ChainHash stored;
  return there && take_hash(row.blob(0), stored) && stored == hash;
}

Result<void> read_journal(const std::string& path, const std::function<void(const Record&)>& each) {
  LOAM_CHECK(check_journal_file(path));
  LOAM_TRY(file, Database::open(path, OpenMode::read_only));
  LOAM_CHECK(check_versions(file));
  LOAM_CHECK(file.execute("BEGIN"));
  LOAM_TRY(reader, JournalReader::open(file, 0));
  for (;;) {
    LOAM_TRY(more, reader.next());
    if (!more) return {};
    LOAM_TRY(record, reader.record());
    each(record);
  }
}

}  // namespace loam::store
