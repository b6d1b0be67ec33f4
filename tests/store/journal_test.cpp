// The journal: what is appended is there, in order, chained, projected, and replays to the state.
#include "store/journal.hpp"

#include <gtest/gtest.h>

#include "engine/snapshot.hpp"
#include "history.hpp"
#include "store/verify.hpp"

namespace loam::store {
namespace {

std::unique_ptr<SqliteJournal> open_good(const std::string& folder) {
  auto journal = SqliteJournal::open(folder);
  EXPECT_TRUE(journal.ok()) << to_text(journal.error());
  return journal.ok() ? std::move(*journal) : nullptr;
}

engine::State replayed(SqliteJournal& journal) {
  engine::State state;
  auto done = journal.replay(0, [&](const Record& record) -> Result<void> {
    engine::evolve(state, record);
    return {};
  });
  EXPECT_TRUE(done.ok()) << to_text(done.error());
  return state;
}

TEST(JournalTest, AnEmptyJournalHasNothing) {
  TestFolder folder;
  const auto journal = open_good(folder / "data");
  EXPECT_EQ(journal->last_sequence(), 0u);
  EXPECT_EQ(journal->last_instant(), Instant{});
  EXPECT_EQ(journal->load_snapshot()->sequence, 0);
  EXPECT_EQ(replayed(*journal).sequence, 0u);
  EXPECT_TRUE(journal->append({}).ok());
}

TEST(JournalTest, WhatWasAppendedReplaysToTheSameStateAfterReopening) {
  TestFolder folder;
  History history;
  history.everything();
  const std::vector<Record> records = history.take();
  {
    const auto journal = open_good(folder.path());
    // In batches of every size.
    std::size_t at = 0;
    for (std::size_t size = 1; at < records.size(); ++size) {
      const std::size_t count = std::min(size, records.size() - at);
      ASSERT_TRUE(journal->append(std::span(records).subspan(at, count)).ok());
      at += count;
    }
    EXPECT_EQ(journal->last_instant(), history.state().now);
  }
  const auto journal = open_good(folder.path());
  EXPECT_TRUE(journal->notes().empty()) << journal->notes().front();
  EXPECT_EQ(journal->last_sequence(), history.state().sequence);
  EXPECT_EQ(journal->last_instant(), history.state().now);
  EXPECT_EQ(engine::digest(replayed(*journal)), engine::digest(history.state()));
  const auto report = verify_journal(journal->path());
  ASSERT_TRUE(report.ok()) << to_text(report.error());
  EXPECT_TRUE(report->good()) << report->problems.front();
  EXPECT_EQ(report->records, history.state().sequence);
}

TEST(JournalTest, ReplayStartsBehindTheRecordNamedAndStopsAtTheCallersError) {
  TestFolder folder;
  History history;
  history.found_region();
  const auto journal = open_good(folder.path());
  const std::vector<Record> records = history.take();
  ASSERT_TRUE(journal->append(records).ok());
  std::vector<std::uint64_t> seen;
  const auto done = journal->replay(3, [&](const Record& record) -> Result<void> {
    seen.push_back(record.sequence);
    if (record.sequence == 5) return Error{ErrorKind::conflict, "enough", {}};
    return {};
  });
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{4, 5}));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "enough");
  const auto ahead =
      journal->replay(records.size() + 1, [](const Record&) { return Result<void>(); });
  ASSERT_FALSE(ahead.ok());
  EXPECT_EQ(ahead.error().kind, ErrorKind::corrupt);
}

TEST(JournalTest, RecordsKeepTheirActorAndTime) {
  TestFolder folder;
  History history;
  history.found_region();
  const std::vector<Record> records = history.take();
  const auto journal = open_good(folder.path());
  ASSERT_TRUE(journal->append(records).ok());
  std::size_t at = 0;
  ASSERT_TRUE(journal
                  ->replay(0,
                           [&](const Record& record) -> Result<void> {
                             EXPECT_EQ(record.sequence, records[at].sequence);
                             EXPECT_EQ(record.at, records[at].at);
                             EXPECT_EQ(record.actor, records[at].actor);
                             EXPECT_EQ(record.event.index(), records[at].event.index());
                             ++at;
                             return {};
                           })
                  .ok());
  EXPECT_EQ(at, records.size());
}

TEST(JournalTest, MetaValuesSurviveReopening) {
  TestFolder folder;
  {
    const auto journal = open_good(folder.path());
    EXPECT_EQ(*journal->meta("clock.anchor"), std::nullopt);
    ASSERT_TRUE(journal->set_meta("clock.anchor", "123").ok());
    ASSERT_TRUE(journal->set_meta("clock.anchor", "456").ok());
  }
  EXPECT_EQ(*open_good(folder.path())->meta("clock.anchor"), "456");
}

TEST(JournalTest, ProjectionsWrittenAnewAreTheSame) {
  TestFolder folder;
  History history;
  history.everything();
  const auto journal = open_good(folder.path());
  ASSERT_TRUE(journal->append(history.take()).ok());
  ASSERT_TRUE(journal->rebuild_projections().ok());
  history.whole_task(beta, "after", Duration::seconds(5));
  ASSERT_TRUE(journal->append(history.take()).ok());
  const auto report = verify_journal(journal->path());
  ASSERT_TRUE(report.ok()) << to_text(report.error());
  EXPECT_TRUE(report->good()) << report->problems.front();
}

TEST(JournalDeathTest, AGapOrAFallingClockIsAProgrammerError) {
  TestFolder folder;
  History history;
  history.found_region();
  const std::vector<Record> records = history.take();
  const auto journal = open_good(folder.path());
  EXPECT_DEATH(static_cast<void>(journal->append(std::span(records).subspan(1))), "sequence");
  std::vector<Record> falling(records.begin(), records.begin() + 2);
  falling[1].at = falling[0].at - Duration{1};
  EXPECT_DEATH(static_cast<void>(journal->append(falling)), "at");
}

}  // namespace
}  // namespace loam::store
