// Reads journal rows in order, checking the hash chain, the numbering and the clock on the way.
// Not pure: reads a database.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "domain/event.hpp"
#include "store/chain.hpp"
#include "store/sqlite.hpp"

namespace loam::store {

class JournalReader {
 public:
  // Starts behind record `after` (0: at the first). ErrorKind::corrupt when there is no such
  // record. `database` must outlive this; one that should not see later appends is in a
  // transaction.
  static Result<JournalReader> open(Database& database, std::uint64_t after);

  // True: row() is the next row, and it continues the chain. ErrorKind::corrupt, naming the record
  // and what is wrong with it, otherwise.
  Result<bool> next();

  const ChainRow& row() const { return row_; }  // valid until the next next()
  const ChainHash& hash() const { return hash_; }
  std::uint64_t sequence() const { return sequence_; }  // of the last good row
  Instant at() const { return at_; }
  // Decodes the row. The error names the record and what to do.
  Result<Record> record() const;

 private:
  JournalReader(Statement rows, std::string path) : rows_(std::move(rows)), path_(path) {}
  Error broken(std::int64_t sequence, const std::string& what) const;

  Statement rows_;
  std::string path_;
  ChainRow row_;
  ChainHash hash_ = chain_start;
  std::uint64_t sequence_ = 0;
  Instant at_;
};

// The last record: what the next one continues.
struct JournalTail {
  std::uint64_t sequence = 0;
  Instant at;
  ChainHash hash = chain_start;
};
Result<JournalTail> read_tail(Database& database);

// Every record of a journal file, in order; also of one in use, of which it sees one moment.
Result<void> read_journal(const std::string& path, const std::function<void(const Record&)>& each);

// Whether record `sequence` is there with this hash.
Result<bool> holds(Database& database, std::uint64_t sequence, const ChainHash& hash);

}  // namespace loam::store
