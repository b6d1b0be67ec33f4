// Snapshots in the journal file: kept in parts, each its own short transaction, so that writing
// one never keeps the loop's append waiting for longer than one part. Not pure: a database.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "engine/snapshot.hpp"
#include "store/sqlite.hpp"

namespace loam::store {

// Snapshots kept: the newest, and one before it in case that one cannot be read.
inline constexpr int snapshots_kept = 2;

// Encodes and stores `image`, then forgets all but the newest `snapshots_kept`. `turn` is held
// for one part at a time. Requires a journal that holds record `image.sequence` (or an image of
// sequence 0, which is not stored). `database` is the caller's own connection.
Result<void> store_snapshot(Database& database, std::mutex& turn, const engine::StateImage& image);

// The newest snapshot that is whole, of a version we read, and continued by the journal; an empty
// image where there is none. `notes` says which were passed over, and why.
Result<engine::StateImage> read_snapshot(Database& database, std::vector<std::string>& notes);

// Stores an encoded snapshot as it is. The piece of store_snapshot below the encoding.
Result<void> store_snapshot_text(Database& database, std::mutex& turn, std::int64_t sequence,
                                 int version, const std::string& text);

struct SnapshotText {
  std::int64_t sequence = 0;
  int version = 0;
  std::string text;
};
// The text of one snapshot. ErrorKind::corrupt, saying what is wrong, where it is not whole.
Result<SnapshotText> read_snapshot_text(Database& database, std::int64_t sequence);
// Newest first.
Result<std::vector<std::int64_t>> snapshot_sequences(Database& database);

}  // namespace loam::store
