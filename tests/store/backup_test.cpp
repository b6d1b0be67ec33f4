// Backup and restore: one moment of a journal in use, verified, and never over another journal
// unless told so.
#include "store/backup.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "engine/snapshot.hpp"
#include "history.hpp"
#include "store/journal.hpp"
#include "store/queries.hpp"

namespace loam::store {
namespace {

TEST(BackupTest, ABackupOfAJournalInUseRestoresToTheSameBills) {
  TestFolder folder;
  History history;
  history.everything();
  const auto journal = open_good(folder / "data");
  ASSERT_TRUE(journal->append(history.take()).ok());
  ASSERT_TRUE(journal->save_snapshot(engine::image_of(history.state())).ok());
  ASSERT_TRUE(journal->set_meta("clock.anchor", "77").ok());
  const auto report = back_up(journal->path(), folder / "backup.loam");
  ASSERT_TRUE(report.ok()) << to_text(report.error());
  EXPECT_EQ(report->records, history.state().sequence);
  EXPECT_TRUE(report->good());
  // One file, with nothing beside it.
  for (const char* suffix : {"-wal", "-shm", "-journal", ".partial"})
    EXPECT_FALSE(std::filesystem::exists(folder / ("backup.loam" + std::string(suffix)))) << suffix;

  const auto restored = restore(folder / "backup.loam", folder / "again", Overwrite::refuse);
  ASSERT_TRUE(restored.ok()) << to_text(restored.error());
  EXPECT_TRUE(restored->set_aside.empty());
  const auto again = open_good(folder / "again");
  EXPECT_EQ(again->last_sequence(), history.state().sequence);
  EXPECT_EQ(*again->meta("clock.anchor"), "77");
  EXPECT_EQ(again->load_snapshot()->sequence, static_cast<std::int64_t>(history.state().sequence));
  Queries before(journal->path());
  Queries after(again->path());
  for (const TenantId tenant : {acme, beta}) {
    const auto one = before.bill(tenant, Instant{}, Instant::never());
    const auto two = after.bill(tenant, Instant{}, Instant::never());
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_EQ(one->net, two->net);
    EXPECT_EQ(one->lines.size(), two->lines.size());
  }
  // And life goes on there.
  history.whole_task(beta, "after", Duration::seconds(3));
  EXPECT_TRUE(again->append(history.take()).ok());
}

TEST(BackupTest, AppendsDuringABackupAreInItWholeOrNotAtAll) {
  TestFolder folder;
  History history;
  history.found_region();
  const auto journal = open_good(folder / "data");
  ASSERT_TRUE(journal->append(history.take()).ok());
  std::vector<std::uint64_t> ends{history.state().sequence};
  std::atomic<bool> done{false};
  std::vector<std::uint64_t> backed_up;
  std::thread backups([&] {
    for (int i = 0; i < 4; ++i) {
      const auto report = back_up(journal->path(), folder / ("b" + std::to_string(i)));
      ASSERT_TRUE(report.ok()) << to_text(report.error());
      backed_up.push_back(report->records);
    }
    done = true;
  });
  while (!done) {
    history.whole_task(acme, "t", Duration::seconds(1));
    const auto appended = journal->append(history.take());
    ASSERT_TRUE(appended.ok()) << to_text(appended.error());
    ends.push_back(history.state().sequence);
  }
  backups.join();
  for (const std::uint64_t records : backed_up)
    EXPECT_NE(std::find(ends.begin(), ends.end(), records), ends.end()) << records;
}

TEST(BackupTest, AnExistingTargetIsNotOverwritten) {
  TestFolder folder;
  const auto journal = open_good(folder / "data");
  std::ofstream(folder / "backup.loam") << "mine";
  const auto report = back_up(journal->path(), folder / "backup.loam");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::conflict);
  std::ifstream file(folder / "backup.loam");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine");
}

TEST(BackupTest, ATargetThatCannotBeWrittenIsNamed) {
  TestFolder folder;
  const auto journal = open_good(folder / "data");
  const auto report = back_up(journal->path(), folder / "no/such/folder/backup.loam");
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("no/such/folder"), std::string::npos)
      << report.error().message;
}

TEST(BackupTest, ADamagedJournalIsNotBackedUp) {
  TestFolder folder;
  History history;
  history.everything();
  const auto journal = open_good(folder / "data");
  ASSERT_TRUE(journal->append(history.take()).ok());
  {
    auto database = Database::open(journal->path(), OpenMode::read_write);
    ASSERT_TRUE(database->execute("UPDATE journal SET at_ms=at_ms+1 WHERE seq=3").ok());
  }
  const auto report = back_up(journal->path(), folder / "backup.loam");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::corrupt);
  EXPECT_NE(report.error().message.find("record 3"), std::string::npos) << report.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder / "backup.loam"));
  EXPECT_FALSE(std::filesystem::exists(folder / "backup.loam.partial"));
}

struct Backed {
  TestFolder folder;
  History history;
  Backed() {
    history.everything();
    const auto journal = open_good(folder / "data");
    EXPECT_TRUE(journal->append(history.take()).ok());
    EXPECT_TRUE(back_up(journal->path(), folder / "backup.loam").ok());
  }
};

TEST(RestoreTest, APresentJournalIsRefusedOrSetAside) {
  Backed backed;
  TestFolder target;
  History other;
  other.found_region();
  {
    const auto journal = open_good(target.path());
    ASSERT_TRUE(journal->append(other.take()).ok());
  }
  const auto refused = restore(backed.folder / "backup.loam", target.path(), Overwrite::refuse);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::conflict);
  EXPECT_EQ(open_good(target.path())->last_sequence(), other.state().sequence);
  const auto restored = restore(backed.folder / "backup.loam", target.path(), Overwrite::set_aside);
  ASSERT_TRUE(restored.ok()) << to_text(restored.error());
  EXPECT_EQ(open_good(target.path())->last_sequence(), backed.history.state().sequence);
  const auto aside = verify_journal(restored->set_aside);
  ASSERT_TRUE(aside.ok()) << to_text(aside.error());
  EXPECT_EQ(aside->records, other.state().sequence);
}

TEST(RestoreTest, AFolderInUseIsRefused) {
  Backed backed;
  const auto journal = open_good(backed.folder / "data");
  const auto refused =
      restore(backed.folder / "backup.loam", backed.folder / "data", Overwrite::set_aside);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::conflict);
}

TEST(RestoreTest, WhatIsNotAWholeBackupIsRefusedAndChangesNothing) {
  Backed backed;
  TestFolder target;
  const auto refused = [&](const std::string& file) {
    const auto restored = restore(file, target / "data", Overwrite::refuse);
    EXPECT_FALSE(restored.ok()) << file;
    EXPECT_FALSE(std::filesystem::exists(journal_path(target / "data"))) << file;
    return restored.ok() ? Error{} : restored.error();
  };
  EXPECT_EQ(refused(target / "missing").kind, ErrorKind::not_found);
  std::ofstream(target / "text") << std::string(4096, 'x');
  EXPECT_EQ(refused(target / "text").kind, ErrorKind::invalid_argument);
  std::filesystem::copy_file(backed.folder / "backup.loam", target / "short");
  std::filesystem::resize_file(target / "short",
                               std::filesystem::file_size(target / "short") - 4096);
  EXPECT_EQ(refused(target / "short").kind, ErrorKind::corrupt);
  std::filesystem::copy_file(backed.folder / "backup.loam", target / "changed");
  {
    auto database = Database::open(target / "changed", OpenMode::read_write);
    ASSERT_TRUE(database->execute("UPDATE journal SET subject='x' WHERE seq=2").ok());
  }
  EXPECT_EQ(refused(target / "changed").kind, ErrorKind::corrupt);
}

}  // namespace
}  // namespace loam::store
