// The journal in one SQLite file, with its projections in the same transactions. A data folder
// holds `journal.db` (with SQLite's `-wal` and `-shm` beside it while open) and `lock`.
// Not pure: files.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/ports.hpp"
#include "store/data_lock.hpp"
#include "store/journal_reader.hpp"
#include "store/projector.hpp"
#include "store/sqlite.hpp"

namespace loam::store {

// Where the journal of a data folder lies.
std::string journal_path(const std::string& folder);

// Threads: append() and the other members may be called from any thread; they wait for one
// another. replay(), load_snapshot() and save_snapshot() read on connections of their own and
// leave append() free, except that save_snapshot() takes its turn for a part at a time.
class SqliteJournal final : public engine::Journal {
 public:
  // Makes the folder and the file where they are missing, locks the folder, checks the file and
  // brings the projections up to the journal. Errors:
  //   conflict          another process has the folder
  //   invalid_argument  the file is not a loam journal
  //   unsupported       a newer loam wrote it
  //   corrupt           torn or damaged beyond what can be repaired without loss
  //   permission_denied, unavailable   the system refused
  // Repairs without loss are done, and notes() says what was done.
  static Result<std::unique_ptr<SqliteJournal>> open(const std::string& folder);

  ~SqliteJournal() override;
  SqliteJournal(const SqliteJournal&) = delete;
  SqliteJournal& operator=(const SqliteJournal&) = delete;

  // One transaction with one sync. Requires sequences that continue last_sequence() and instants
  // that do not fall. On an error nothing was written: ErrorKind::unavailable for a full disk or
  // a failing one, after which append() may simply be called again.
  Result<void> append(std::span<const Record> records) override;
  Result<void> replay(std::uint64_t after,
                      const std::function<Result<void>(const Record&)>& each) override;
  Result<engine::StateImage> load_snapshot() override;

  // Stores a snapshot and forgets all but the newest two. For a thread beside the loop's: encodes
  // the image and waits between parts. Not durable at once, and need not be.
  Result<void> save_snapshot(const engine::StateImage& image);

  // Writes every projection anew from the journal, in one transaction. Cost: a replay.
  Result<void> rebuild_projections();

  // The daemon's own small values (the clock's anchor); keys that begin with "store." are the
  // store's. Durable on return.
  Result<std::optional<std::string>> meta(std::string_view key);
  Result<void> set_meta(std::string_view key, std::string_view value);

  // Of the last durable record: what the clock must not fall behind. {0} before the first.
  Instant last_instant() const;
  std::uint64_t last_sequence() const;

  // What opening found and did about it, and snapshots passed over: for the log.
  std::vector<std::string> notes() const;
  const std::string& path() const { return path_; }

 private:
  SqliteJournal(DataLock lock, std::string path);

  Result<void> open_database();
  Result<void> settle_projections();
  Result<void> settle_guards();
  Result<void> prepare();
  Result<void> write_batch(std::span<const Record> records);
  Result<void> insert_record(const Record& record, JournalTail& tail);
  void note(std::string text);

  DataLock lock_;
  std::string path_;
  mutable std::mutex turn_;  // whose turn it is to write; guards all below
  Database database_;
  Statement begin_;
  Statement commit_;
  Statement insert_;
  std::optional<Projector> projector_;
  JournalTail tail_;
  std::vector<std::string> notes_;
  std::mutex snapshot_;  // one snapshot at a time
};

}  // namespace loam::store
