// What the keeper does besides turns, with real processes under the guard: it tells of work that
// hangs and of leases that idle, and lends memory and calls it back.
#include <algorithm>
#include <fstream>
#include <optional>

#include "guard/house.hpp"
#include "node/keeper/reports.hpp"

namespace loam::node {
namespace {

class GuardKeeper : public House {
 protected:
  // A keeper with options of the test's own.
  void start_keeper_with(const std::string& options) {
    const std::string program = root_ + "/keeper.sh";
    std::ofstream(program) << "#!/bin/sh\nexec " << LOAM_KEEPER_PROGRAM << " \"$@\" " << options
                           << "\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const auto started = ensure_keeper(root_, program);
    ASSERT_TRUE(started.ok()) << to_text(started.error());
    keeper_ = started.value();
  }
  // Waits for a report of that kind; as long as any machine may need.
  std::optional<KeeperReport> hear_of(ReportReader& reader, ReportKind kind) {
    for (int i = 0; i < 3000; ++i) {
      auto reports = reader.read();
      EXPECT_TRUE(reports.ok());
      for (const KeeperReport& report : reports.value()) {
        heard_.push_back(report.kind);
        if (report.kind == kind) return report;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return std::nullopt;
  }
  long heard(ReportKind kind) { return std::count(heard_.begin(), heard_.end(), kind); }

  std::vector<ReportKind> heard_;
};

TEST_F(GuardKeeper, WorkThatHangsIsToldOnceAndByName) {
  SliceLimits hangs = fake_slice(mib, 500, SliceMode::burstable);
  hangs.hung_ns = 50'000'000;
  hangs.end_hung = true;
  make_page("hangs", {hangs});
  make_page("waits", {fake_slice(mib, 500, SliceMode::burstable)});
  start_keeper();
  auto bad = start_guest("hangs"), good = start_guest("waits");
  ASSERT_EQ(bad->ask("open"), "ok");
  ASSERT_EQ(good->ask("open"), "ok");
  ASSERT_EQ(bad->ask("async 60000000000 1"), "ok");  // a kernel of a minute
  good->tell("kernel 1000 1");
  ReportReader reader(root_);
  const auto told = hear_of(reader, ReportKind::hung);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->lease, "hangs");
  EXPECT_TRUE(told->end);
  EXPECT_GE(told->until_ns - told->from_ns, 50'000'000);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(usage("hangs").hung, 1u);
  EXPECT_TRUE(reader.read().value().empty()) << "told again";
  bad->kill();  // as the daemon does
  ASSERT_TRUE(good->hears_within(30000));
  EXPECT_EQ(good->hear(), "ok");
}

TEST_F(GuardKeeper, LongKernelsAreNotHungWhileNobodyWaits) {
  SliceLimits alone = fake_slice(mib, 500, SliceMode::burstable);
  alone.hung_ns = 1'000'000;
  make_page("alone", {alone});
  start_keeper();
  auto guest = start_guest("alone");
  ASSERT_EQ(guest->ask("open"), "ok");
  ASSERT_EQ(guest->ask("kernel 300000000 1"), "ok");
  EXPECT_EQ(usage("alone").hung, 0u);
}

TEST_F(GuardKeeper, ALeaseThatLeavesItsDeviceUnusedIsToldIdle) {
  make_page("a", {fake_slice(mib)});
  start_keeper_with("--idle-after 1");
  ReportReader reader(root_);
  const auto told = hear_of(reader, ReportKind::idle);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->lease, "a");
  auto guest = start_guest("a");
  ASSERT_EQ(guest->ask("open"), "ok");
  guest->tell("saturate 5000 1000000");
  EXPECT_TRUE(hear_of(reader, ReportKind::active).has_value());
  guest->kill();
}

TEST_F(GuardKeeper, IdleMemoryIsLentAndCalledBack) {
  SliceLimits owner = fake_slice(600 * mib), low = fake_slice(100 * mib);
  owner.lends = true;
  low.borrows = true;
  make_page("owner", {owner});
  make_page("low", {low});
  start_keeper_with("--lend-after 0 --notice 1");
  auto owns = start_guest("owner"), borrows = start_guest("low");
  ASSERT_EQ(owns->ask("open"), "ok");
  ASSERT_EQ(borrows->ask("open"), "ok");
  ASSERT_EQ(owns->ask(alloc(100)), "ok 1");
  // Refused while the keeper has not yet seen what the owner uses; soon it has.
  std::string got;
  for (int i = 0; i < 100 && got != "ok 1"; ++i) got = borrows->ask(alloc(400));
  ASSERT_EQ(got, "ok 1");
  EXPECT_GE(usage("owner").lent_bytes, 300 * mib);
  EXPECT_EQ(usage("owner").lent_bytes, usage("low").borrowed_bytes);
  // The owner asks for its own and waits; the borrower gives it back.
  owns->tell(alloc(450));
  ReportReader reader(root_);
  const auto notice = hear_of(reader, ReportKind::reclaim);
  ASSERT_TRUE(notice.has_value());
  EXPECT_EQ(notice->lease, "low");
  EXPECT_GT(notice->bytes, 0u);
  EXPECT_FALSE(owns->hears_within(50));
  EXPECT_EQ(borrows->ask("free 1"), "ok");
  ASSERT_TRUE(owns->hears_within(30000));
  EXPECT_EQ(owns->hear(), "ok 2");
  EXPECT_LE(books().allocated_bytes, 700 * mib);
}

TEST_F(GuardKeeper, WhoKeepsLentMemoryIsOverdueAndItsEndFreesTheOwner) {
  SliceLimits owner = fake_slice(600 * mib), low = fake_slice(100 * mib);
  owner.lends = true;
  low.borrows = true;
  make_page("owner", {owner});
  make_page("low", {low});
  start_keeper_with("--lend-after 0 --notice 1");
  auto owns = start_guest("owner"), borrows = start_guest("low");
  ASSERT_EQ(owns->ask("open"), "ok");
  ASSERT_EQ(borrows->ask("open"), "ok");
  std::string got;
  for (int i = 0; i < 100 && got != "ok 1"; ++i) got = borrows->ask(alloc(500));
  ASSERT_EQ(got, "ok 1");
  owns->tell(alloc(600));
  // A new keeper adopts the loans as they are.
  stop_keeper(SIGKILL);
  start_keeper_with("--lend-after 0 --notice 1");
  ReportReader reader(root_);
  const auto overdue = hear_of(reader, ReportKind::overdue);
  ASSERT_TRUE(overdue.has_value());
  EXPECT_EQ(overdue->lease, "low");
  EXPECT_TRUE(overdue->end);
  borrows->kill();
  books().allocated_bytes = 0;  // the fake device's memory of the dead is free, too
  ASSERT_TRUE(owns->hears_within(30000));
  EXPECT_EQ(owns->hear(), "ok 1");
  EXPECT_EQ(usage("owner").lent_bytes, 0u);
}

TEST_F(GuardKeeper, ABorrowerWithoutALenderIsRefusedSoon) {
  SliceLimits low = fake_slice(100 * mib);
  low.borrows = true;
  make_page("low", {low});
  start_keeper();
  auto borrows = start_guest("low");
  ASSERT_EQ(borrows->ask("open"), "ok");
  EXPECT_EQ(borrows->ask(alloc(200)), "error -4");
  EXPECT_EQ(borrows->ask(alloc(100)), "ok 1");
}

TEST_F(GuardKeeper, AbsurdOptionsAreRefusedByValue) {
  for (const char* options : {"--idle-after 0", "--idle-after x", "--notice -1", "--notice",
                              "--lend-after 86401", "--speed 3"}) {
    const std::string command =
        std::string(LOAM_KEEPER_PROGRAM) + " --root " + root_ + " " + options + " 2>/dev/null";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2) << options;
  }
}

}  // namespace
}  // namespace loam::node
