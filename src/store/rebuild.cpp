#include "store/rebuild.hpp"

#include "store/journal_reader.hpp"
#include "store/projector.hpp"
#include "store/schema.hpp"
#include "store/write_guards.hpp"

namespace loam::store {

Result<std::uint64_t> project(Database& source, Database& target, std::uint64_t after) {
  LOAM_TRY(projector, Projector::prepare(target));
  LOAM_TRY(reader, JournalReader::open(source, after));
  while (true) {
    LOAM_TRY(more, reader.next());
    if (!more) break;
    LOAM_TRY(record, reader.record());
    if (auto applied = projector.apply(record); !applied) {
      Error error = applied.error();
      error.message = "record " + std::to_string(record.sequence) + ": " + error.message;
      return error;
    }
  }
  LOAM_CHECK(projector.mark(reader.sequence()));
  return reader.sequence();
}

namespace {

Result<void> rebuild_in_transaction(Database& database) {
  LOAM_CHECK(drop_projections(database));
  LOAM_CHECK(create_projections(database));
  LOAM_CHECK(put_write_guards(database));
  LOAM_CHECK(write_meta(database, meta_key::projection_sequence, "0"));
  LOAM_CHECK(
      write_meta(database, meta_key::projection_version, std::to_string(projection_version)));
  LOAM_CHECK(project(database, database, 0));
  return {};
}

}  // namespace

Result<void> rebuild_projections(Database& database) {
  LOAM_CHECK(database.execute("BEGIN IMMEDIATE"));
  auto done = rebuild_in_transaction(database);
  if (done) done = database.execute("COMMIT");
  if (!done) database.roll_back();
  return done;
}

}  // namespace loam::store
