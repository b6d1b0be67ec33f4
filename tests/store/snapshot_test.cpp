// Snapshots: stored in parts, the newest two kept, one that cannot be read passed over and said.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine/snapshot.hpp"
#include "history.hpp"
#include "store/journal.hpp"
#include "store/snapshots.hpp"

namespace loam::store {
namespace {

std::int64_t count(const std::string& path, const std::string& sql) {
  auto database = Database::open(path, OpenMode::read_only);
  return *database->integer(sql);
}

// A journal with three snapshots saved one after the other.
struct Saved {
  TestFolder folder;
  History history;
  std::unique_ptr<SqliteJournal> journal = open_good(folder.path());
  std::vector<std::int64_t> sequences;

  Saved() {
    history.found_region();
    for (int i = 0; i < 3; ++i) {
      history.whole_task(acme, "t", Duration::seconds(5));
      EXPECT_TRUE(journal->append(history.take()).ok());
      const auto done = journal->save_snapshot(engine::image_of(history.state()));
      EXPECT_TRUE(done.ok()) << to_text(done.error());
      sequences.push_back(static_cast<std::int64_t>(history.state().sequence));
    }
  }
};

TEST(SnapshotTest, TheNewestLoadsAndContinuesToTheSameState) {
  Saved saved;
  saved.history.whole_task(beta, "later", Duration::seconds(5));
  ASSERT_TRUE(saved.journal->append(saved.history.take()).ok());
  auto image = saved.journal->load_snapshot();
  ASSERT_TRUE(image.ok()) << to_text(image.error());
  EXPECT_EQ(image->sequence, saved.sequences.back());
  engine::State state = engine::state_of(std::move(*image));
  ASSERT_TRUE(saved.journal
                  ->replay(state.sequence,
                           [&](const Record& record) -> Result<void> {
                             engine::evolve(state, record);
                             return {};
                           })
                  .ok());
  EXPECT_EQ(engine::digest(state), engine::digest(saved.history.state()));
}

TEST(SnapshotTest, OnlyTheNewestTwoAreKept) {
  Saved saved;
  const std::string& path = saved.journal->path();
  EXPECT_EQ(count(path, "SELECT count(*) FROM snapshots"), 2);
  EXPECT_EQ(count(path, "SELECT count(DISTINCT seq) FROM snapshot_parts"), 2);
  EXPECT_EQ(count(path, "SELECT min(seq) FROM snapshots"), saved.sequences[1]);
  // The same again is no second one.
  EXPECT_TRUE(saved.journal->save_snapshot(engine::image_of(saved.history.state())).ok());
  EXPECT_EQ(count(path, "SELECT count(*) FROM snapshots"), 2);
}

TEST(SnapshotTest, OneThatCannotBeReadIsPassedOverAndSaid) {
  for (const char* damage :
       {"UPDATE snapshot_parts SET text=CAST(substr(text, 2) AS BLOB) WHERE seq=?",
        "UPDATE snapshot_parts SET text=CAST(replace(text, 'acme', 'ecma') AS BLOB) WHERE seq=?",
        "DELETE FROM snapshot_parts WHERE seq=?", "UPDATE snapshots SET version=99 WHERE seq=?",
        "UPDATE snapshots SET journal_hash=zeroblob(32) WHERE seq=?",
        "UPDATE snapshots SET hash=x'00' WHERE seq=?"}) {
    Saved saved;
    std::string sql = damage;
    sql.replace(sql.find('?'), 1, std::to_string(saved.sequences.back()));
    run_sql(saved.journal->path(), sql);
    const auto image = saved.journal->load_snapshot();
    ASSERT_TRUE(image.ok()) << to_text(image.error());
    EXPECT_EQ(image->sequence, saved.sequences[1]) << damage;
    ASSERT_FALSE(saved.journal->notes().empty());
    EXPECT_NE(saved.journal->notes().back().find("passed over"), std::string::npos);
  }
}

TEST(SnapshotTest, WithoutAReadableOneTheImageIsEmpty) {
  Saved saved;
  run_sql(saved.journal->path(), "DELETE FROM snapshot_parts");
  EXPECT_EQ(saved.journal->load_snapshot()->sequence, 0);
}

TEST(SnapshotTest, RestsOfAnInterruptedSaveAreCleared) {
  Saved saved;
  run_sql(saved.journal->path(), "INSERT INTO snapshot_parts VALUES(1, 0, x'00'), (1, 1, x'00')");
  saved.history.whole_task(acme, "t", Duration::seconds(5));
  ASSERT_TRUE(saved.journal->append(saved.history.take()).ok());
  ASSERT_TRUE(saved.journal->save_snapshot(engine::image_of(saved.history.state())).ok());
  EXPECT_EQ(count(saved.journal->path(), "SELECT count(*) FROM snapshot_parts WHERE seq=1"), 0);
}

TEST(SnapshotTest, ALargeOneIsWrittenInPartsWhileAppendsGoOn) {
  TestFolder folder;
  History history;
  history.found_region();
  const auto journal = open_good(folder.path());
  ASSERT_TRUE(journal->append(history.take()).ok());
  const auto sequence = static_cast<std::int64_t>(history.state().sequence);
  const std::string text(16 << 20, 'x');
  std::mutex turn;
  std::atomic<bool> done{false};
  std::thread saver([&] {
    auto database = Database::open(journal->path(), OpenMode::read_write);
    EXPECT_TRUE(database->execute("PRAGMA synchronous=NORMAL").ok());
    const auto stored = store_snapshot_text(*database, turn, sequence, 1, text);
    EXPECT_TRUE(stored.ok()) << to_text(stored.error());
    done = true;
  });
  int during = 0;
  while (!done) {
    history.whole_task(acme, "t", Duration::seconds(5));
    const std::vector<Record> batch = history.take();
    const bool before = done;
    const std::lock_guard hold(turn);
    const auto appended = journal->append(batch);
    ASSERT_TRUE(appended.ok()) << to_text(appended.error());
    if (!before) ++during;
  }
  saver.join();
  EXPECT_GT(during, 1);
  auto database = Database::open(journal->path(), OpenMode::read_only);
  const auto read = read_snapshot_text(*database, sequence);
  ASSERT_TRUE(read.ok()) << to_text(read.error());
  EXPECT_EQ(read->text, text);
}

}  // namespace
}  // namespace loam::store
