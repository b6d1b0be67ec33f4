// The slice page from the node's side, and the memory book that processes share through it.
#include "node/keeper/slice_page.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "node/keeper/member.hpp"

namespace loam::node {
namespace {

SliceLimits slice(std::uint64_t memory_bytes = 1000) {
  SliceLimits limits;
  limits.device_key = 7;
  limits.device_name = "test";
  limits.memory_bytes = memory_bytes;
  return limits;
}

class SlicePage : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/loam_page_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string root_;
};

TEST_F(SlicePage, WhatIsCreatedCanBeReadAndRemoved) {
  ASSERT_TRUE(create_page(root_, "l17", {slice(), slice(5)}).ok());
  const auto usages = read_counters(root_, "l17");
  ASSERT_TRUE(usages.ok());
  ASSERT_EQ(usages.value().size(), 2u);
  EXPECT_EQ(usages.value()[0].device_key, 7u);
  EXPECT_EQ(usages.value()[1].memory_used_bytes, 0u);
  EXPECT_EQ(list_pages(root_).value(), std::vector<std::string>{"l17"});
  EXPECT_TRUE(remove_page(root_, "l17").ok());
  EXPECT_TRUE(remove_page(root_, "l17").ok());
  EXPECT_EQ(read_counters(root_, "l17").error().kind, ErrorKind::not_found);
  EXPECT_TRUE(list_pages(root_).value().empty());
}

TEST_F(SlicePage, GuestsCannotWriteTheLimits) {
  ASSERT_TRUE(create_page(root_, "l1", {slice()}).ok());
  struct stat facts {};
  ASSERT_EQ(::stat((page_prefix(root_, "l1") + ".limits").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0444u);
  ASSERT_TRUE(update_limits(root_, "l1", {slice(2000)}).ok());
  ASSERT_EQ(::stat((page_prefix(root_, "l1") + ".limits").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0444u);
  EXPECT_EQ(MappedPage::open(root_, "l1").value().limits().device[0].memory_bytes, 2000u);
}

TEST_F(SlicePage, AbsurdInputIsRefusedByValue) {
  const auto refused = [&](std::string_view lease, std::vector<SliceLimits> slices) {
    const auto made = create_page(root_, lease, slices);
    EXPECT_FALSE(made.ok());
    if (!made.ok()) {
      EXPECT_EQ(made.error().kind, ErrorKind::invalid_argument);
    }
  };
  refused("", {slice()});
  refused("..", {slice()});
  refused("a/b", {slice()});
  refused("l 1", {slice()});
  refused(std::string(48, 'x'), {slice()});
  refused("l1", {});
  refused("l1", std::vector<SliceLimits>(17, slice()));
  for (const int share : {-1, 1001}) {
    SliceLimits bad = slice();
    bad.share_milli = share;
    refused("l1", {bad});
  }
  for (const std::int64_t quantum : {0, 99'999, 1'000'000'001, -5}) {
    SliceLimits bad = slice();
    bad.quantum_ns = quantum;
    refused("l1", {bad});
  }
  SliceLimits bad = slice();
  bad.weight = -1;
  refused("l1", {bad});
  EXPECT_TRUE(list_pages(root_).value().empty());
}

TEST_F(SlicePage, APageIsMadeOnce) {
  ASSERT_TRUE(create_page(root_, "l1", {slice()}).ok());
  EXPECT_EQ(create_page(root_, "l1", {slice()}).error().kind, ErrorKind::conflict);
}

TEST_F(SlicePage, AnUpdateKeepsTheDevices) {
  ASSERT_TRUE(create_page(root_, "l1", {slice()}).ok());
  SliceLimits other = slice();
  other.device_key = 8;
  EXPECT_FALSE(update_limits(root_, "l1", {other}).ok());
  EXPECT_FALSE(update_limits(root_, "l1", {slice(), slice()}).ok());
  EXPECT_EQ(update_limits(root_, "l2", {slice()}).error().kind, ErrorKind::not_found);
}

TEST_F(SlicePage, ADamagedPageIsReportedNotRead) {
  ASSERT_TRUE(create_page(root_, "l1", {slice()}).ok());
  const std::string counters = page_prefix(root_, "l1") + ".counters";
  std::filesystem::resize_file(counters, 4);
  EXPECT_EQ(read_counters(root_, "l1").error().kind, ErrorKind::corrupt);
  std::filesystem::resize_file(counters, sizeof(loam_slice_counters));
  EXPECT_EQ(read_counters(root_, "l1").error().kind, ErrorKind::corrupt);
}

// ---- the memory book
// -----------------------------------------------------------------------------

TEST_F(SlicePage, OfTwoProcessesThatAskAtOnceExactlyOneGetsIt) {
  constexpr int rounds = 100'000;
  // All of them only when asked: on a busy machine two processes in step are slow.
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(std::getenv("LOAM_LONG_TESTS") ? 600 : 2);
  ASSERT_TRUE(create_page(root_, "l1", {slice(1000)}).ok());
  // Round by round in step, through a shared word; each notes whether it got the memory.
  struct Meeting {
    std::atomic<int> arrived, left, last;
    std::atomic<std::uint8_t> got[2][rounds];
  };
  auto* meeting = static_cast<Meeting*>(
      ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto run = [&](std::uint32_t side) {
    Member member(root_, "l1", side);
    for (int round = 0; round < rounds && (meeting->last == 0 || round < meeting->last); ++round) {
      // One side decides, before the meeting, that this round is the last.
      if (side == 0 && round > 0 && std::chrono::steady_clock::now() > end)
        meeting->last = round + 1;
      ++meeting->arrived;
      while (meeting->arrived < 2 * (round + 1)) ::sched_yield();
      meeting->got[side][round] = member.change(600, 1000) ? 1 : 2;
      ++meeting->left;
      while (meeting->left < 2 * (round + 1)) ::sched_yield();
      if (meeting->got[side][round] == 1) member.change(0, 1000);
    }
  };
  const pid_t child = ::fork();
  if (child == 0) {
    run(1);
    ::_exit(0);
  }
  run(0);
  ::waitpid(child, nullptr, 0);
  int wrong = 0;
  const int played = meeting->last > 0 ? meeting->last.load() : rounds;
  EXPECT_GE(played, std::getenv("LOAM_LONG_TESTS") ? rounds : 11);
  for (int round = 0; round < played; ++round)
    if (meeting->got[0][round] + meeting->got[1][round] != 3) ++wrong;
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(read_counters(root_, "l1").value()[0].memory_used_bytes, 0u);
  ::munmap(meeting, sizeof(Meeting));
}

TEST_F(SlicePage, KilledAtAnyInstructionNothingIsLostOrFreedTwice) {
  ASSERT_TRUE(create_page(root_, "l1", {slice(1000)}).ok());
  Member survivor(root_, "l1", 0);
  ASSERT_TRUE(survivor.change(100, 1000));
  const int rounds = std::getenv("LOAM_LONG_TESTS") ? 1000 : 100;
  for (int round = 0; round < rounds; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      // Its own opening: a fork alone would share the survivor's.
      Member victim(root_, "l1", 1);
      loam_slot_reclaim(&victim.page.counters(), 1);
      (void)!::write(ready[1], "x", 1);
      for (std::uint64_t i = 0;; ++i) victim.change((i * 37) % 800, 1000);
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    // The survivor works on the same word all the while.
    for (int i = 0; i < round % 200; ++i) {
      survivor.change(150, 1000);
      survivor.change(100, 1000);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    survivor.page.reclaim_dead();
    ASSERT_EQ(survivor.held(), 100u) << "round " << round;
    ASSERT_EQ(survivor.page.counters().device[0].memory.used, 100u) << "round " << round;
  }
}

// Random changes by several slots: the total is always the sum of what the slots hold.
TEST_F(SlicePage, TheTotalIsTheSumOfItsParts) {
  ASSERT_TRUE(create_page(root_, "l1", {slice(1000)}).ok());
  MappedPage page = MappedPage::open(root_, "l1").value();
  Random random(11);
  for (int step = 0; step < 20'000; ++step) {
    const auto slot = static_cast<std::uint32_t>(random.below(8));
    const bool was_refused =
        loam_book_change(&page.counters(), 0, slot, random.below(400), 1000) == 0;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < 8; ++i) sum += loam_book_held(&page.counters(), 0, i);
    ASSERT_EQ(sum, page.counters().device[0].memory.used);
    ASSERT_LE(sum, 1000u);
    ASSERT_TRUE(!was_refused || sum > 600);
  }
  EXPECT_LE(page.counters().device[0].memory.peak, 1000u);
}

TEST(DeviceKey, PlacesAndUuidsAreSpelledOneWay) {
  EXPECT_EQ(opencl_device_key(" P ", "D  ", 0), opencl_device_key("P", "D", 0));
  EXPECT_NE(opencl_device_key("P", "D", 0), opencl_device_key("P", "D", 1));
  EXPECT_EQ(uuid_device_key("GPU-ABCDEF00-0000-0000-0000-00000000000A"),
            uuid_device_key("GPU-abcdef00-0000-0000-0000-00000000000a"));
}

}  // namespace
}  // namespace loam::node
