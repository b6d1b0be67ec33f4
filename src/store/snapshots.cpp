#include "store/snapshots.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "store/journal_reader.hpp"
#include "store/schema.hpp"

namespace loam::store {

namespace {

// One part's transaction copies this much into the write-ahead log, without a sync: well below a
// millisecond.
constexpr std::size_t part_size_bytes = 128 * 1024;
// After this many parts the log is copied into the file from here, beside the loop: otherwise the
// loop's next append would find it all to do.
constexpr std::int64_t parts_per_checkpoint = 4;
// Left free between two parts for a waiting append: a mutex alone may be taken again at once.
constexpr auto part_pause = std::chrono::microseconds(300);

Blob bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Runs one short write transaction while holding the turn.
template <class Action>
Result<void> in_turn(Database& database, std::mutex& turn, const Action& action) {
  Result<void> done;
  {
    const std::lock_guard hold(turn);
    done = database.execute("BEGIN IMMEDIATE");
    if (done) done = action();
    if (done) done = database.execute("COMMIT");
    if (!done) database.roll_back();
  }
  std::this_thread::sleep_for(part_pause);
  return done;
}

// Removes the parts of `sequence`, a few at a time.
Result<void> remove_parts(Database& database, std::mutex& turn, std::int64_t sequence) {
  LOAM_TRY(remove, database.prepare("DELETE FROM snapshot_parts WHERE rowid IN (SELECT rowid FROM "
                                    "snapshot_parts WHERE seq = ? LIMIT 8)"));
  do {
    LOAM_CHECK(in_turn(database, turn, [&] { return remove.run(sequence); }));
  } while (database.changes() > 0);
  return {};
}

// Removes what no header names (a save that was interrupted) and headers beyond the newest few.
Result<void> prune(Database& database, std::mutex& turn, int keep) {
  LOAM_TRY(sequences, snapshot_sequences(database));
  LOAM_TRY(remove, database.prepare("DELETE FROM snapshots WHERE seq = ?"));
  for (std::size_t i = static_cast<std::size_t>(keep); i < sequences.size(); ++i)
    LOAM_CHECK(in_turn(database, turn, [&] { return remove.run(sequences[i]); }));
  while (true) {
    std::int64_t orphan = -1;
    {
      LOAM_TRY(found, database.prepare("SELECT seq FROM snapshot_parts WHERE seq NOT IN "
                                       "(SELECT seq FROM snapshots) LIMIT 1"));
      LOAM_TRY(there, found.step());
      if (!there) return {};
      orphan = found.integer(0);
    }
    LOAM_CHECK(remove_parts(database, turn, orphan));
  }
}

}  // namespace

Result<std::vector<std::int64_t>> snapshot_sequences(Database& database) {
  LOAM_TRY(rows, database.prepare("SELECT seq FROM snapshots ORDER BY seq DESC"));
  std::vector<std::int64_t> sequences;
  while (true) {
    LOAM_TRY(more, rows.step());
    if (!more) return sequences;
    sequences.push_back(rows.integer(0));
  }
}

Result<void> store_snapshot(Database& database, std::mutex& turn, const engine::StateImage& image) {
  if (image.sequence == 0) return {};
  return store_snapshot_text(database, turn, image.sequence, engine::snapshot_version,
                             engine::encode(image));
}

Result<void> store_snapshot_text(Database& database, std::mutex& turn, std::int64_t sequence,
                                 int version, const std::string& text) {
  LOAM_TRY(sequences, snapshot_sequences(database));
  if (std::find(sequences.begin(), sequences.end(), sequence) != sequences.end()) return {};
  LOAM_CHECK(prune(database, turn, snapshots_kept));
  ChainHash journal_hash;
  {
    LOAM_TRY(row, database.prepare("SELECT hash FROM journal WHERE seq = ?"));
    row.bind(1, sequence);
    LOAM_TRY(there, row.step());
    if (!there || row.blob(0).size() != journal_hash.size())
      return Error{ErrorKind::internal,
                   "no snapshot of record " + std::to_string(sequence) + ": '" + database.path() +
                       "' does not hold it",
                   {}};
    std::copy_n(row.blob(0).begin(), journal_hash.size(), journal_hash.begin());
  }
  LOAM_TRY(insert, database.prepare("INSERT INTO snapshot_parts(seq, part, text) VALUES(?, ?, ?)"));
  std::int64_t part = 0;
  for (std::size_t at = 0; at < text.size(); at += part_size_bytes, ++part) {
    const std::string_view piece = std::string_view(text).substr(at, part_size_bytes);
    LOAM_CHECK(
        in_turn(database, turn, [&] { return insert.run(sequence, part, bytes_of(piece)); }));
    if (part % parts_per_checkpoint == parts_per_checkpoint - 1)
      LOAM_CHECK(database.execute("PRAGMA wal_checkpoint(PASSIVE)"));
  }
  LOAM_TRY(header, database.prepare("INSERT INTO snapshots VALUES(?, ?, ?, ?, ?, ?)"));
  const ChainHash hash = text_hash(text);
  LOAM_CHECK(in_turn(database, turn, [&] {
    return header.run(sequence, static_cast<std::int64_t>(version), loam_version,
                      Blob(journal_hash), static_cast<std::int64_t>(text.size()), Blob(hash));
  }));
  return prune(database, turn, snapshots_kept);
}

Result<SnapshotText> read_snapshot_text(Database& database, std::int64_t sequence) {
  const auto broken = [&](const std::string& what) {
    return Error{
        ErrorKind::corrupt, "the snapshot at record " + std::to_string(sequence) + " " + what, {}};
  };
  LOAM_TRY(header, database.prepare("SELECT version, journal_hash, length, hash FROM snapshots "
                                    "WHERE seq = ?"));
  header.bind(1, sequence);
  LOAM_TRY(there, header.step());
  if (!there) return broken("is not there");
  SnapshotText out{sequence, static_cast<int>(header.integer(0)), {}};
  LOAM_TRY(parts, database.prepare("SELECT text FROM snapshot_parts WHERE seq = ? ORDER BY part"));
  parts.bind(1, sequence);
  while (true) {
    LOAM_TRY(more, parts.step());
    if (!more) break;
    const Blob piece = parts.blob(0);
    out.text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  if (static_cast<std::int64_t>(out.text.size()) != header.integer(2))
    return broken("has " + std::to_string(out.text.size()) + " bytes of " +
                  std::to_string(header.integer(2)));
  const ChainHash hash = text_hash(out.text);
  const Blob stored = header.blob(3);
  if (!std::equal(stored.begin(), stored.end(), hash.begin(), hash.end()))
    return broken("does not match its hash");
  ChainHash journal_hash{};
  const Blob continued = header.blob(1);
  if (continued.size() == journal_hash.size())
    std::copy(continued.begin(), continued.end(), journal_hash.begin());
  LOAM_TRY(fits, holds(database, static_cast<std::uint64_t>(sequence), journal_hash));
  if (!fits) return broken("is not of this journal");
  return out;
}

Result<engine::StateImage> read_snapshot(Database& database, std::vector<std::string>& notes) {
  LOAM_TRY(sequences, snapshot_sequences(database));
  for (const std::int64_t sequence : sequences) {
    auto text = read_snapshot_text(database, sequence);
    if (!text) {
      // The file itself failing is not a snapshot's fault; damage in it is.
      if (text.error().kind == ErrorKind::unavailable) return text.error();
      notes.push_back("passed over a snapshot: " + text.error().message);
      continue;
    }
    auto image = engine::decode_image(text->text, text->version);
    if (image && image->sequence == sequence) return image;
    notes.push_back(
        "passed over the snapshot at record " + std::to_string(sequence) + ": " +
        (image ? "it says record " + std::to_string(image->sequence) : image.error().message));
  }
  return engine::StateImage{};
}

}  // namespace loam::store
