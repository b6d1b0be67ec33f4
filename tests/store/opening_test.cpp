// Opening: foreign, newer, older, torn and damaged files give a clear error or a repair that says
// what it did; a second daemon is refused.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/random.hpp"
#include "engine/snapshot.hpp"
#include "history.hpp"
#include "store/journal.hpp"
#include "store/schema.hpp"
#include "store/verify.hpp"

namespace loam::store {
namespace {

Error opening_error(const std::string& folder) {
  auto journal = SqliteJournal::open(folder);
  if (journal.ok()) {
    ADD_FAILURE() << "opened";
    return {};
  }
  EXPECT_FALSE(journal.error().message.empty());
  EXPECT_FALSE(journal.error().next_step.empty()) << journal.error().message;
  return journal.error();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool noted(const SqliteJournal& journal, const std::string& part) {
  for (const std::string& note : journal.notes()) {
    if (has(note, part)) return true;
  }
  return false;
}

// A closed journal with a real history.
History closed_journal(const std::string& folder) {
  History history;
  history.everything();
  const auto journal = open_good(folder);
  EXPECT_TRUE(journal->append(history.take()).ok());
  EXPECT_TRUE(journal->save_snapshot(engine::image_of(history.state())).ok());
  return history;
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST(OpeningTest, ANewFolderGetsAJournalAndSaysSo) {
  TestFolder folder;
  const auto journal = open_good(folder / "a/b/data");
  EXPECT_TRUE(noted(*journal, "made a new journal"));
  struct stat facts {};
  ASSERT_EQ(stat((folder / "a/b/data").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
}

TEST(OpeningTest, AHalfMadeFileOfAnInterruptedFirstStartIsReplaced) {
  TestFolder folder;
  write_file(journal_path(folder.path()) + ".new", "half");
  const auto journal = open_good(folder.path());
  EXPECT_TRUE(noted(*journal, "half made"));
  EXPECT_FALSE(std::filesystem::exists(journal_path(folder.path()) + ".new"));
}

TEST(OpeningTest, FilesThatAreNotOursAreNamedAndLeftAlone) {
  TestFolder folder;
  const std::string path = journal_path(folder.path());
  for (const std::string& content :
       {std::string("x"), std::string("# a shell script\n"), std::string(5000, 'x'),
        std::string("SQLite format 3") + '\0', std::string(4096, '\0')}) {
    write_file(path, content);
    const Error error = opening_error(folder.path());
    EXPECT_EQ(error.kind, ErrorKind::invalid_argument) << error.message;
    EXPECT_TRUE(has(error.message, path)) << error.message;
    std::ifstream again(path, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}), content);
  }
}

TEST(OpeningTest, AnotherProgramsDatabaseIsForeign) {
  TestFolder folder;
  const std::string path = journal_path(folder.path());
  {
    auto database = Database::open(path, OpenMode::create);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->execute("CREATE TABLE t(a)").ok());
  }
  Error error = opening_error(folder.path());
  EXPECT_EQ(error.kind, ErrorKind::invalid_argument);
  EXPECT_TRUE(has(error.message, "application id is 0")) << error.message;
  run_sql(path, "PRAGMA application_id=252006674");
  error = opening_error(folder.path());
  EXPECT_TRUE(has(error.message, "252006674")) << error.message;
}

TEST(OpeningTest, AnEmptyFileOrAFolderInItsPlaceIsRefused) {
  TestFolder folder;
  write_file(journal_path(folder.path()), "");
  const Error error = opening_error(folder.path());
  EXPECT_EQ(error.kind, ErrorKind::corrupt);
  EXPECT_TRUE(has(error.message, "0 bytes"));
  TestFolder other;
  std::filesystem::create_directory(journal_path(other.path()));
  EXPECT_EQ(opening_error(other.path()).kind, ErrorKind::invalid_argument);
}

TEST(OpeningTest, ALogWithoutItsFileIsNotTakenForANewJournal) {
  TestFolder folder;
  write_file(journal_path(folder.path()) + "-wal", "rest");
  const Error error = opening_error(folder.path());
  EXPECT_EQ(error.kind, ErrorKind::corrupt);
  EXPECT_TRUE(has(error.message, "missing")) << error.message;
}

TEST(OpeningTest, ANewerFileNamesBothVersions) {
  TestFolder folder;
  closed_journal(folder.path());
  run_sql(journal_path(folder.path()), "PRAGMA user_version=7");
  const Error error = opening_error(folder.path());
  EXPECT_EQ(error.kind, ErrorKind::unsupported);
  EXPECT_TRUE(has(error.message, "version 7")) << error.message;
  EXPECT_TRUE(has(error.message, std::string(loam_version))) << error.message;
  run_sql(journal_path(folder.path()), "PRAGMA user_version=0");
  EXPECT_EQ(opening_error(folder.path()).kind, ErrorKind::corrupt);
}

TEST(OpeningTest, ANewerEventNamesItsRecord) {
  TestFolder folder;
  closed_journal(folder.path());
  // As a newer loam would have written it: the chain is right, the type is not known here.
  const std::string path = journal_path(folder.path());
  {
    auto database = Database::open(path, OpenMode::read_write);
    const auto tail = read_tail(*database);
    const ChainRow row{static_cast<std::int64_t>(tail->sequence) + 1,
                       tail->at.ms,
                       "a",
                       "b",
                       "task_teleported",
                       1,
                       "{}"};
    const ChainHash hash = chain_hash(tail->hash, row);
    auto insert = database->prepare("INSERT INTO journal VALUES(?,?,?,?,?,?,?,?)");
    ASSERT_TRUE(insert
                    ->run(row.sequence, row.at_ms, row.issuer, row.subject, row.type, row.version,
                          row.payload, Blob(hash))
                    .ok());
  }
  const Error error = opening_error(folder.path());
  EXPECT_EQ(error.kind, ErrorKind::unsupported);
  EXPECT_TRUE(has(error.message, "task_teleported")) << error.message;
  EXPECT_TRUE(has(error.next_step, "newer loam")) << error.next_step;
}

TEST(OpeningTest, OlderProjectionsAreWrittenAnewAndSaidSo) {
  TestFolder folder;
  closed_journal(folder.path());
  run_sql(journal_path(folder.path()),
          "UPDATE meta SET value='0' WHERE key='store.projection_version';"
          "DROP VIEW v_bill; DROP TABLE tasks; CREATE TABLE jobs(id INTEGER) STRICT");
  const auto journal = open_good(folder.path());
  EXPECT_TRUE(noted(*journal, "version 0 were written anew"));
  const auto report = verify_journal(journal->path());
  ASSERT_TRUE(report.ok()) << to_text(report.error());
  EXPECT_TRUE(report->good()) << report->problems.front();
}

TEST(OpeningTest, ProjectionsThatLagAreCaughtUp) {
  TestFolder folder;
  const std::string path = journal_path(folder.path());
  closed_journal(folder.path());
  {
    // What projections look like that stopped at record 3.
    auto database = Database::open(path, OpenMode::read_write);
    ASSERT_TRUE(drop_projections(*database).ok());
    ASSERT_TRUE(create_projections(*database).ok());
    auto reader = JournalReader::open(*database, 0);
    auto projector = Projector::prepare(*database);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(*reader->next());
      ASSERT_TRUE(projector->apply(*reader->record()).ok());
    }
    ASSERT_TRUE(projector->mark(3).ok());
  }
  const auto journal = open_good(folder.path());
  EXPECT_TRUE(noted(*journal, "from record 3"));
  const auto report = verify_journal(journal->path());
  ASSERT_TRUE(report.ok()) << to_text(report.error());
  EXPECT_TRUE(report->good()) << report->problems.front();
}

TEST(OpeningTest, ProjectionsAheadOfTheJournalMeanLostRecords) {
  TestFolder folder;
  closed_journal(folder.path());
  run_sql(journal_path(folder.path()),
          "DELETE FROM journal WHERE seq=(SELECT max(seq) FROM journal)");
  const Error error = opening_error(folder.path());
  EXPECT_EQ(error.kind, ErrorKind::corrupt);
  EXPECT_TRUE(has(error.message, "records, but")) << error.message;
}

TEST(OpeningTest, ATruncatedFileIsNamedWithItsSizes) {
  TestFolder folder;
  closed_journal(folder.path());
  const std::string path = journal_path(folder.path());
  const auto size = std::filesystem::file_size(path);
  Random random(7);
  for (int trial = 0; trial < 20; ++trial) {
    const auto cut = 100 + random.below(size - 100);
    TestFolder torn;
    std::filesystem::copy_file(path, journal_path(torn.path()));
    std::filesystem::resize_file(journal_path(torn.path()), cut);
    const Error error = opening_error(torn.path());
    EXPECT_EQ(error.kind, ErrorKind::corrupt) << error.message;
    EXPECT_TRUE(has(error.message, std::to_string(cut) + " bytes of " + std::to_string(size)))
        << error.message;
  }
}

// Overwriting any page of the file must never give a journal that tells another story: it opens
// with everything (untouched or salvaged), or not at all.
TEST(OpeningTest, ADamagedPageIsRepairedWithoutLossOrRefused) {
  TestFolder folder;
  const History history = closed_journal(folder.path());
  const std::string path = journal_path(folder.path());
  const auto pages = std::filesystem::file_size(path) / 4096;
  ASSERT_GT(pages, 20u);
  int salvaged = 0;
  int refused = 0;
  Random random(11);
  for (std::uint64_t page = 1; page < pages; ++page) {
    TestFolder damaged;
    const std::string copy = journal_path(damaged.path());
    std::filesystem::copy_file(path, copy);
    {
      std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(page * 4096));
      for (int i = 0; i < 4096; ++i) file.put(static_cast<char>(random.next()));
    }
    auto journal = SqliteJournal::open(damaged.path());
    if (!journal.ok()) {
      ++refused;
      EXPECT_EQ(journal.error().kind, ErrorKind::corrupt) << to_text(journal.error());
      EXPECT_FALSE(journal.error().next_step.empty());
      EXPECT_TRUE(std::filesystem::exists(copy));
      continue;
    }
    engine::State state;
    const auto replayed = (*journal)->replay(0, [&](const Record& record) -> Result<void> {
      engine::evolve(state, record);
      return {};
    });
    ASSERT_TRUE(replayed.ok()) << to_text(replayed.error());
    EXPECT_EQ(engine::digest(state), engine::digest(history.state()));
    if (noted(**journal, "was damaged")) {
      ++salvaged;
      EXPECT_TRUE(std::filesystem::exists(copy + ".damaged"));
      const auto report = verify_journal(copy);
      ASSERT_TRUE(report.ok()) << to_text(report.error());
      EXPECT_TRUE(report->good()) << report->problems.front();
    }
  }
  EXPECT_GT(salvaged, 0);
  EXPECT_GT(refused, 0);
}

TEST(OpeningTest, AChangedRecordBreaksTheChainOnReplayAndVerification) {
  TestFolder folder;
  closed_journal(folder.path());
  const std::string path = journal_path(folder.path());
  for (const char* change :
       {"UPDATE journal SET payload=replace(payload, 'lab', 'LAB') WHERE seq=1",
        "UPDATE journal SET at_ms=at_ms+1 WHERE seq=5",
        "UPDATE journal SET subject='uid:0' WHERE seq=9",
        "UPDATE journal SET hash=zeroblob(32) WHERE seq=4",
        "UPDATE journal SET hash=x'00' WHERE seq=4", "DELETE FROM journal WHERE seq=6"}) {
    TestFolder changed;
    const std::string copy = journal_path(changed.path());
    std::filesystem::copy_file(path, copy);
    run_sql(copy, change);
    const auto report = verify_journal(copy);
    ASSERT_TRUE(report.ok()) << to_text(report.error());
    ASSERT_FALSE(report->good()) << change;
    EXPECT_TRUE(has(report->problems.front(), "record ")) << report->problems.front();
    const auto journal = open_good(changed.path());
    const auto replayed = journal->replay(0, [](const Record&) { return Result<void>(); });
    ASSERT_FALSE(replayed.ok()) << change;
    EXPECT_EQ(replayed.error().kind, ErrorKind::corrupt);
    EXPECT_TRUE(has(replayed.error().next_step, "restore"));
  }
}

TEST(OpeningTest, VerificationFindsTamperedProjections) {
  TestFolder folder;
  closed_journal(folder.path());
  const std::string path = journal_path(folder.path());
  for (const char* change : {"UPDATE tasks SET net='0' WHERE id=1", "DELETE FROM usage WHERE id=2",
                             "INSERT INTO tenants SELECT 9, 'eve', payment, currency, "
                             "credit_limit, 0, NULL, NULL, NULL, "
                             "NULL, 0, 'UTC', 'monthly' FROM tenants WHERE id=1",
                             "UPDATE tasks SET exit_code=NULL WHERE id=1", "DROP TABLE invoices",
                             "UPDATE snapshot_parts SET text=x'00'"}) {
    TestFolder changed;
    const std::string copy = journal_path(changed.path());
    std::filesystem::copy_file(path, copy);
    run_sql(copy, change);
    const auto report = verify_journal(copy);
    ASSERT_TRUE(report.ok()) << change << ": " << to_text(report.error());
    EXPECT_FALSE(report->good()) << change;
  }
}

// What a tool of somebody else's does with the file.
std::string fault_of_other_program(const std::string& path, const std::string& sql) {
  sqlite3* raw = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
  char* message = nullptr;
  sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, &message);
  std::string text = message == nullptr ? "" : message;
  sqlite3_free(message);
  sqlite3_close(raw);
  return text;
}

TEST(OpeningTest, OtherProgramsReadEveryTableAndWriteNone) {
  TestFolder folder;
  closed_journal(folder.path());
  const std::string path = journal_path(folder.path());
  std::vector<std::string> names{"journal", "meta", "snapshots", "snapshot_parts"};
  for (const ProjectionTable& table : projection_tables()) names.emplace_back(table.name);
  for (const std::string& name : names) {
    EXPECT_EQ(fault_of_other_program(path, "SELECT * FROM " + name), "");
    const std::string insert = "INSERT INTO " + name + " SELECT * FROM " + name + " LIMIT 1";
    for (const std::string& sql : {"DELETE FROM " + name, insert}) {
      auto database = Database::open(path, OpenMode::read_only);
      if (*database->integer("SELECT count(*) FROM " + name) == 0) continue;
      EXPECT_TRUE(has(fault_of_other_program(path, sql), "loamd alone")) << sql;
    }
  }
  EXPECT_TRUE(has(fault_of_other_program(path, "UPDATE tasks SET net='0' WHERE id=1"),
                  "tasks is a projection of the journal"));
  const auto report = verify_journal(path);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->good()) << report->problems.front();
  open_good(folder.path());  // which writes
}

TEST(OpeningTest, WhatWasWrittenBehindATakenGuardIsWrittenAnew) {
  for (const char* change :
       {"DROP TRIGGER loam_guards_tasks_UPDATE; UPDATE tasks SET net='0' WHERE id=1",
        "DROP TRIGGER loam_guards_usage_DELETE; DELETE FROM usage", "DROP TABLE invoices"}) {
    TestFolder folder;
    closed_journal(folder.path());
    const std::string path = journal_path(folder.path());
    ASSERT_EQ(fault_of_other_program(path, change), "") << change;
    {
      const auto journal = open_good(folder.path());
      EXPECT_TRUE(noted(*journal, "somebody took away ")) << change;
      EXPECT_TRUE(noted(*journal, "written anew from the records"));
    }
    const auto report = verify_journal(path);
    ASSERT_TRUE(report.ok()) << change;
    EXPECT_TRUE(report->good()) << change << ": " << report->problems.front();
    EXPECT_TRUE(has(fault_of_other_program(path, "DELETE FROM usage"), "loamd alone"));
  }
}

TEST(LockTest, ASecondDaemonIsRefusedWithTheFirstOnesProcessId) {
  TestFolder folder;
  const auto first = open_good(folder.path());
  const Error error = opening_error(folder.path());
  EXPECT_EQ(error.kind, ErrorKind::conflict);
  EXPECT_TRUE(has(error.message, "process " + std::to_string(getpid()))) << error.message;
}

TEST(LockTest, AKilledDaemonsLockIsFree) {
  TestFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto journal = SqliteJournal::open(folder.path());
    const char verdict = journal.ok() ? 'y' : 'n';
    [[maybe_unused]] const auto written = write(ready[1], &verdict, 1);
    pause();
    _exit(0);
  }
  char verdict = 0;
  ASSERT_EQ(read(ready[0], &verdict, 1), 1);
  EXPECT_EQ(verdict, 'y');
  EXPECT_TRUE(has(opening_error(folder.path()).message, "process " + std::to_string(child)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  const auto journal = open_good(folder.path());
  EXPECT_TRUE(noted(*journal, "did not close"));
}

TEST(PermissionTest, AFileThatCannotBeWrittenIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become a user without rights to the file";
  TestFolder folder;
  closed_journal(folder.path());
  const std::string path = journal_path(folder.path());
  std::filesystem::remove(folder / "lock");
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(seteuid(65534), 0);
  auto journal = SqliteJournal::open(folder.path());
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().kind, ErrorKind::permission_denied) << to_text(journal.error());
  EXPECT_TRUE(has(journal.error().message, path)) << journal.error().message;
  ASSERT_EQ(chmod(path.c_str(), 0000), 0);
  ASSERT_EQ(chmod((folder / "lock").c_str(), 0666), 0);
  ASSERT_EQ(seteuid(65534), 0);
  journal = SqliteJournal::open(folder.path());
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().kind, ErrorKind::permission_denied) << to_text(journal.error());
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  std::filesystem::remove(folder / "lock");
  ASSERT_EQ(seteuid(65534), 0);
  journal = SqliteJournal::open(folder.path());
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().kind, ErrorKind::permission_denied) << to_text(journal.error());
}

}  // namespace
}  // namespace loam::store
