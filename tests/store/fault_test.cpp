// Full disks, failing disks, cut power: a batch is there whole or not at all, and what was
// acknowledged stays.
#include "fault_vfs.hpp"

#include <gtest/gtest.h>

#include <sys/mount.h>

#include <fstream>

#include "base/random.hpp"
#include "engine/snapshot.hpp"
#include "history.hpp"
#include "store/journal.hpp"
#include "store/verify.hpp"

namespace loam::store {
namespace {

std::uint64_t digest_of(SqliteJournal& journal) {
  engine::State state;
  const auto done = journal.replay(0, [&](const Record& record) -> Result<void> {
    engine::evolve(state, record);
    return {};
  });
  EXPECT_TRUE(done.ok()) << to_text(done.error());
  return engine::digest(state);
}

void expect_verified(const std::string& path) {
  const auto report = verify_journal(path);
  ASSERT_TRUE(report.ok()) << to_text(report.error());
  EXPECT_TRUE(report->good()) << report->problems.front();
}

class FaultTest : public testing::TestWithParam<FaultVfs::Fault> {};

TEST_P(FaultTest, AFailedAppendChangesNothingAndTheNextOneWorks) {
  TestFolder folder;
  FaultVfs faults;
  History history;
  history.found_region();
  const auto journal = open_good(folder.path());
  ASSERT_TRUE(journal->append(history.take()).ok());
  // Strike the first write (or sync) of an append, then the second, until none is left to strike.
  std::int64_t strikes = 0;
  for (std::int64_t count = 1; count < 200; ++count) {
    const std::uint64_t before = digest_of(*journal);
    const std::uint64_t sequence = journal->last_sequence();
    history.whole_task(acme, "t", Duration::seconds(5));
    const std::vector<Record> batch = history.take();
    FaultVfs::fail(GetParam(), count, false);
    const auto failed = journal->append(batch);
    const bool struck = FaultVfs::struck();
    FaultVfs::heal();
    if (failed.ok()) {
      // A checkpoint after the commit may fail without harm; then nothing was left to strike.
      if (struck) continue;
      break;
    }
    ++strikes;
    ASSERT_TRUE(struck);
    EXPECT_EQ(failed.error().kind, ErrorKind::unavailable) << to_text(failed.error());
    EXPECT_FALSE(failed.error().next_step.empty());
    EXPECT_EQ(journal->last_sequence(), sequence);
    EXPECT_EQ(digest_of(*journal), before);
    ASSERT_TRUE(journal->append(batch).ok());
    EXPECT_EQ(digest_of(*journal), engine::digest(history.state()));
  }
  EXPECT_GT(strikes, 0);
  expect_verified(journal->path());
}

TEST_P(FaultTest, AfterACrashTheJournalHoldsWholeBatchesAndAllThatWereAcknowledged) {
  for (std::int64_t count = 1; count < 40; ++count) {
    TestFolder folder;
    FaultVfs faults;
    History history;
    history.found_region();
    bool struck = false;
    std::uint64_t acknowledged = 0;
    std::uint64_t offered = 0;
    std::uint64_t digest_acknowledged = 0;
    {
      const auto journal = open_good(folder.path());
      ASSERT_TRUE(journal->append(history.take()).ok());
      acknowledged = history.state().sequence;
      digest_acknowledged = engine::digest(history.state());
      // From here on the disk is gone for good, while the process winds down.
      history.whole_task(acme, "t", Duration::seconds(5));
      offered = history.state().sequence;
      FaultVfs::fail(GetParam(), count, true);
      if (journal->append(history.take()).ok()) {
        acknowledged = offered;
        digest_acknowledged = engine::digest(history.state());
      }
      struck = FaultVfs::struck();
    }
    FaultVfs::heal();
    const auto journal = open_good(folder.path());
    ASSERT_NE(journal, nullptr);
    // A batch that was refused may be there whole when only the sync failed: never in part.
    ASSERT_TRUE(journal->last_sequence() == acknowledged || journal->last_sequence() == offered)
        << journal->last_sequence();
    const std::uint64_t expected = journal->last_sequence() == acknowledged
                                       ? digest_acknowledged
                                       : engine::digest(history.state());
    EXPECT_EQ(digest_of(*journal), expected);
    expect_verified(journal->path());
    if (!struck) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultTest,
                         testing::Values(FaultVfs::Fault::disk_full, FaultVfs::Fault::write_error,
                                         FaultVfs::Fault::sync_error),
                         [](const auto& info) {
                           switch (info.param) {
                             case FaultVfs::Fault::disk_full:
                               return "disk_full";
                             case FaultVfs::Fault::write_error:
                               return "write_error";
                             default:
                               return "sync_error";
                           }
                         });

TEST(FullDiskTest, SaysSoAndServesWhatItHas) {
  TestFolder folder;
  FaultVfs faults;
  History history;
  history.found_region();
  const auto journal = open_good(folder.path());
  ASSERT_TRUE(journal->append(history.take()).ok());
  FaultVfs::fail(FaultVfs::Fault::disk_full, 1, true);
  history.whole_task(acme, "t", Duration::seconds(5));
  const std::vector<Record> batch = history.take();
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto failed = journal->append(batch);
    ASSERT_FALSE(failed.ok());
    EXPECT_NE(failed.error().message.find("full"), std::string::npos) << failed.error().message;
    EXPECT_NE(failed.error().next_step.find("free space"), std::string::npos);
  }
  EXPECT_EQ(journal->replay(0, [](const Record&) { return Result<void>(); }).ok(), true);
  FaultVfs::heal();
  EXPECT_TRUE(journal->append(batch).ok());
  expect_verified(journal->path());
}

TEST(FullDiskTest, ASnapshotThatDoesNotFitLeavesTheJournalWorking) {
  TestFolder folder;
  FaultVfs faults;
  History history;
  history.everything();
  const auto journal = open_good(folder.path());
  ASSERT_TRUE(journal->append(history.take()).ok());
  FaultVfs::fail(FaultVfs::Fault::disk_full, 2, true);
  const auto failed = journal->save_snapshot(engine::image_of(history.state()));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::unavailable);
  FaultVfs::heal();
  EXPECT_EQ(journal->load_snapshot()->sequence, 0);
  history.whole_task(acme, "t", Duration::seconds(5));
  ASSERT_TRUE(journal->append(history.take()).ok());
  ASSERT_TRUE(journal->save_snapshot(engine::image_of(history.state())).ok());
  EXPECT_EQ(journal->load_snapshot()->sequence,
            static_cast<std::int64_t>(history.state().sequence));
  expect_verified(journal->path());
}

// A small file system of our own, gone with the object.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    std::filesystem::create_directories(path);
    mounted_ = mount("loam-test", path.c_str(), "tmpfs", 0, "size=8m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }
  void fill() {
    std::ofstream file(path_ + "/filler", std::ios::binary | std::ios::app);
    const std::string block(4096, 'f');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void free() { std::filesystem::remove(path_ + "/filler"); }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(FullDiskTest, ARealFullDiskIsSurvivedWithoutLoss) {
  TestFolder folder;
  SmallDisk disk(folder / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "needs the right to mount a file system";
  History history;
  history.found_region();
  auto journal = open_good(folder / "disk/data");
  ASSERT_TRUE(journal->append(history.take()).ok());
  for (int round = 0; round < 3; ++round) {
    disk.fill();
    Result<void> done;
    std::vector<Record> batch;
    // What is left in allocated pages may still take some; then no more.
    for (int i = 0; i < 1000 && done.ok(); ++i) {
      history.whole_task(acme, "t", Duration::seconds(5));
      batch = history.take();
      done = journal->append(batch);
    }
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().kind, ErrorKind::unavailable) << to_text(done.error());
    EXPECT_NE(done.error().next_step.find("free space"), std::string::npos)
        << to_text(done.error());
    EXPECT_FALSE(journal->set_meta("clock.anchor", std::string(100'000, 'x')).ok());
    EXPECT_EQ(journal->last_sequence() + batch.size(), history.state().sequence);
    if (round == 2) {
      // A restart meanwhile either works or says what is missing; nothing is lost by it.
      journal.reset();
      auto again = SqliteJournal::open(folder / "disk/data");
      if (!again.ok()) {
        EXPECT_EQ(again.error().kind, ErrorKind::unavailable) << to_text(again.error());
        disk.free();
        journal = open_good(folder / "disk/data");
      } else {
        journal = std::move(*again);
      }
    }
    disk.free();
    const auto appended = journal->append(batch);
    ASSERT_TRUE(appended.ok()) << to_text(appended.error());
    EXPECT_EQ(digest_of(*journal), engine::digest(history.state()));
  }
  expect_verified(journal->path());
}

void copy_file(const std::string& from, const std::string& to) {
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
}

TEST(TornLogTest, ALogCutAtAnyByteGivesWholeBatches) {
  TestFolder folder;
  History history;
  history.found_region();
  std::vector<std::uint64_t> ends{0};
  const std::string live = folder / "live";
  const std::string torn = folder / "torn";
  const auto journal = open_good(live);
  for (int batch = 0; batch < 4; ++batch) {
    if (batch > 0) history.whole_task(acme, "t", Duration::seconds(5));
    ASSERT_TRUE(journal->append(history.take()).ok());
    ends.push_back(history.state().sequence);
  }
  const auto size = std::filesystem::file_size(journal->path() + "-wal");
  ASSERT_GT(size, 0u);
  Random random(20260302);
  for (int trial = 0; trial < 40; ++trial) {
    std::filesystem::remove_all(torn);
    std::filesystem::create_directories(torn);
    copy_file(journal->path(), journal_path(torn));
    copy_file(journal->path() + "-wal", journal_path(torn) + "-wal");
    const auto cut = trial == 0 ? 0 : random.below(size);
    std::filesystem::resize_file(journal_path(torn) + "-wal", cut);
    if (trial % 2 == 1) {
      // What lies beyond the cut is noise rather than nothing.
      std::ofstream noise(journal_path(torn) + "-wal", std::ios::app | std::ios::binary);
      for (int i = 0; i < 5000; ++i) noise.put(static_cast<char>(random.next()));
    }
    const auto opened = open_good(torn);
    ASSERT_NE(opened, nullptr) << "cut at " << cut;
    EXPECT_NE(std::find(ends.begin(), ends.end(), opened->last_sequence()), ends.end())
        << opened->last_sequence();
    expect_verified(opened->path());
  }
}

}  // namespace
}  // namespace loam::store
