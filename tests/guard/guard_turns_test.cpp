// Device time under guard and keeper, on the fake device, whose kernels take exactly as long as
// they say and which notices when two processes' kernels overlap. How much each lease gets depends
// here on when the machine lets programs run; so these tests say only what holds on any machine (no
// overlap, no lease above its cap, everybody served), and the shares themselves are tested on a
// clock of their own (node/keeper/device_arena_test.cpp).
#include <chrono>
#include <cstring>
#include <fstream>

#include "guard/house.hpp"

namespace loam::node {
namespace {

class GuardTurns : public House {
 protected:
  // Kernels that a guest of each lease completed when all saturate the device for `ms`.
  std::vector<std::uint64_t> race(const std::vector<std::string>& leases, int ms,
                                  std::uint64_t kernel_ns) {
    std::vector<std::unique_ptr<Guest>> guests;
    for (const std::string& lease : leases) {
      guests.push_back(start_guest(lease));
      EXPECT_EQ(guests.back()->ask("open"), "ok");
      EXPECT_EQ(guests.back()->ask("kernel 1000 1"), "ok");
    }
    for (auto& guest : guests)
      guest->tell("saturate " + std::to_string(ms) + " " + std::to_string(kernel_ns));
    std::vector<std::uint64_t> kernels;
    for (auto& guest : guests) {
      const std::string answer = guest->hear();
      EXPECT_TRUE(answer.starts_with("ok ")) << answer;
      kernels.push_back(answer.starts_with("ok ") ? std::stoull(answer.substr(3)) : 0);
    }
    return kernels;
  }
  // Seconds since the race began, for caps: the clock of the caps is the wall's.
  double race_seconds(const std::vector<std::string>& leases, int ms, std::uint64_t kernel_ns) {
    const auto began = std::chrono::steady_clock::now();
    race(leases, ms, kernel_ns);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  double busy_seconds(const std::string& lease) {
    return static_cast<double>(usage(lease).busy_ns) / 1e9;
  }
};

TEST_F(GuardTurns, KernelsOfTwoLeasesNeverOverlap) {
  make_page("a", {fake_slice(mib, 500, SliceMode::burstable)});
  make_page("b", {fake_slice(mib, 500, SliceMode::burstable)});
  start_keeper();
  race({"a", "b"}, 1000, 500'000);
  EXPECT_EQ(books().overlaps, 0u);
  EXPECT_GT(usage("a").launches, 0u);
  EXPECT_GT(usage("b").launches, 0u);
  EXPECT_EQ(usage("a").launches + usage("b").launches, books().kernels);
}

// A kernel's end is noticed late on a loaded machine, and the time until then is the lease's: one
// quantum and such a delay over the promise are room enough.
constexpr double noticed_late_s = 0.15;

TEST_F(GuardTurns, NoStrictLeaseGainsOverItsShare) {
  make_page("a", {fake_slice(mib, 600)});
  make_page("b", {fake_slice(mib, 300)});
  start_keeper();
  const double wall = race_seconds({"a", "b"}, 2000, 1'000'000);
  EXPECT_LT(busy_seconds("a"), 0.6 * wall + noticed_late_s);
  EXPECT_LT(busy_seconds("b"), 0.3 * wall + noticed_late_s);
  EXPECT_GT(usage("a").launches, 0u);
  EXPECT_GT(usage("b").launches, 0u);
  EXPECT_EQ(books().overlaps, 0u);
}

TEST_F(GuardTurns, ACapIsACapAlsoAlone) {
  make_page("a", {fake_slice(mib, 300)});
  start_keeper();
  const double wall = race_seconds({"a"}, 2000, 2'000'000);
  EXPECT_LT(busy_seconds("a"), 0.3 * wall + noticed_late_s);
  EXPECT_GT(usage("a").launches, 0u);
}

TEST_F(GuardTurns, ABurstableLeaseIsCappedToo) {
  SliceLimits capped = fake_slice(mib, 100, SliceMode::burstable);
  capped.cap_milli = 300;
  make_page("a", {capped});
  start_keeper();
  const double wall = race_seconds({"a"}, 1500, 2'000'000);
  EXPECT_LT(busy_seconds("a"), 0.3 * wall + noticed_late_s);
  EXPECT_GT(usage("a").launches, 0u);
}

TEST_F(GuardTurns, TheBooksSayWhatTheDeviceDid) {
  make_page("a", {fake_slice(mib, 1000)});
  start_keeper();
  auto guest = start_guest("a");
  ASSERT_EQ(guest->ask("open"), "ok");
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(guest->ask("kernel 20000000 25"), "ok");
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const double device = static_cast<double>(books().busy_ns) / 1e9;
  EXPECT_GE(busy_seconds("a"), device * 0.99);
  EXPECT_LE(busy_seconds("a"), wall);
  EXPECT_EQ(usage("a").launches, 25u);
}

TEST_F(GuardTurns, ALeaseWithoutAShareRunsWhereNobodyElseWants) {
  make_page("a", {fake_slice(mib, 0, SliceMode::burstable)});
  make_page("b", {fake_slice(mib, 0, SliceMode::burstable)});
  start_keeper();
  race({"a", "b"}, 500, 1'000'000);
  EXPECT_GT(usage("a").launches, 0u);
  EXPECT_GT(usage("b").launches, 0u);
  EXPECT_EQ(books().overlaps, 0u);
}

TEST_F(GuardTurns, AloneATurnDoesNotEnd) {
  make_page("a", {fake_slice(mib, 100, SliceMode::burstable)});
  start_keeper();
  race({"a"}, 1000, 1'000'000);
  EXPECT_LT(usage("a").turns, 20u);  // nobody else asks
}

TEST_F(GuardTurns, CopiesHaveLanesOfTheirOwn) {
  SliceLimits slice = fake_slice(mib, 500, SliceMode::burstable);
  slice.copy_lanes = true;
  make_page("a", {slice});
  make_page("b", {slice});
  start_keeper();
  auto computes = start_guest("a"), copies = start_guest("b");
  ASSERT_EQ(computes->ask("open"), "ok");
  ASSERT_EQ(copies->ask("open"), "ok");
  ASSERT_EQ(copies->ask("alloc 4096"), "ok 1");
  ASSERT_EQ(computes->ask("async 60000000000 1"), "ok");  // a kernel of a minute
  copies->tell("read 1 4096");
  ASSERT_TRUE(copies->hears_within(30000)) << "the copy waits for a kernel";
  EXPECT_EQ(copies->hear(), "ok");
  EXPECT_EQ(usage("b").from_device.copies, 1u);
  EXPECT_EQ(usage("b").from_device.bytes, 4096u);
  EXPECT_EQ(usage("b").launches, 0u);
  computes->kill();
}

TEST_F(GuardTurns, AKilledHolderDoesNotHangTheOthers) {
  make_page("a", {fake_slice(mib, 500, SliceMode::burstable)});
  make_page("b", {fake_slice(mib, 500, SliceMode::burstable)});
  start_keeper();
  auto survivor = start_guest("b");
  ASSERT_EQ(survivor->ask("open"), "ok");
  for (int round = 0; round < 10; ++round) {
    auto holder = start_guest("a");
    ASSERT_EQ(holder->ask("open"), "ok");
    ASSERT_EQ(holder->ask("async 60000000000 1"), "ok");  // a kernel of a minute
    holder->kill();
    survivor->tell("kernel 1000 1");
    ASSERT_TRUE(survivor->hears_within(30000)) << "round " << round;
    ASSERT_EQ(survivor->hear(), "ok");
  }
}

TEST_F(GuardTurns, ALiveHolderIsWaitedFor) {
  make_page("a", {fake_slice(mib, 500, SliceMode::burstable)});
  make_page("b", {fake_slice(mib, 500, SliceMode::burstable)});
  start_keeper();
  auto holder = start_guest("a"), other = start_guest("b");
  ASSERT_EQ(holder->ask("open"), "ok");
  ASSERT_EQ(other->ask("open"), "ok");
  ASSERT_EQ(holder->ask("async 1500000000 1"), "ok");
  other->tell("kernel 1000 1");
  EXPECT_FALSE(other->hears_within(150));
  EXPECT_TRUE(other->hears_within(30000));
  EXPECT_EQ(other->hear(), "ok");
  EXPECT_EQ(books().overlaps, 0u);
}

TEST_F(GuardTurns, GuestsWaitForAKeeperAndFindTheNextOne) {
  make_page("a", {fake_slice(mib, 1000)});
  auto guest = start_guest("a");
  ASSERT_EQ(guest->ask("open"), "ok");
  guest->tell("kernel 1000 1");
  EXPECT_FALSE(guest->hears_within(200));
  start_keeper();
  EXPECT_TRUE(guest->hears_within(30000));
  EXPECT_EQ(guest->hear(), "ok");
  for (int round = 0; round < 3; ++round) {
    guest->tell("saturate 300 500000");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop_keeper(SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    start_keeper();
    EXPECT_TRUE(guest->hears_within(30000));
    EXPECT_TRUE(guest->hear().starts_with("ok "));
  }
}

TEST_F(GuardTurns, ANewKeeperAdoptsTheTurnsOfTheOld) {
  make_page("a", {fake_slice(mib, 500, SliceMode::burstable)});
  make_page("b", {fake_slice(mib, 500, SliceMode::burstable)});
  start_keeper();
  auto holder = start_guest("a"), other = start_guest("b");
  ASSERT_EQ(holder->ask("open"), "ok");
  ASSERT_EQ(other->ask("open"), "ok");
  ASSERT_EQ(holder->ask("async 500000000 1"), "ok");
  stop_keeper(SIGKILL);
  start_keeper();
  other->tell("kernel 1000 1");
  EXPECT_TRUE(other->hears_within(30000));
  EXPECT_EQ(other->hear(), "ok");
  EXPECT_EQ(holder->ask("finish"), "ok");
  EXPECT_EQ(books().overlaps, 0u);
}

TEST_F(GuardTurns, ProcessesOfOneLeaseShareItsTurnAndAreNotCountedTwice) {
  make_page("a", {fake_slice(mib, 1000)});
  start_keeper();
  const double wall = race_seconds({"a", "a"}, 1000, 1'000'000);
  EXPECT_LE(busy_seconds("a"), wall);
  EXPECT_GT(busy_seconds("a"), 0.0);
}

TEST_F(GuardTurns, APageThatComesLaterIsServed) {
  start_keeper();
  make_page("late", {fake_slice(mib, 1000)});
  auto guest = start_guest("late");
  ASSERT_EQ(guest->ask("open"), "ok");
  guest->tell("kernel 1000 1");
  ASSERT_TRUE(guest->hears_within(30000));
  EXPECT_EQ(guest->hear(), "ok");
  // The same name again is another page.
  guest.reset();
  ASSERT_TRUE(remove_page(root_, "late").ok());
  make_page("late", {fake_slice(mib, 1000)});
  guest = start_guest("late");
  ASSERT_EQ(guest->ask("open"), "ok");
  guest->tell("kernel 1000 1");
  ASSERT_TRUE(guest->hears_within(30000));
  EXPECT_EQ(guest->hear(), "ok");
}

TEST_F(GuardTurns, AKeeperWithNothingToDoSleeps) {
  make_page("a", {fake_slice(mib, 1000)});
  make_page("b", {fake_slice(mib, 300)});
  start_keeper();
  auto guest = start_guest("a");
  ASSERT_EQ(guest->ask("open"), "ok");
  ASSERT_EQ(guest->ask("kernel 1000 1"), "ok");
  const auto wakeups = [&] {
    std::uint64_t sum = 0;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(keeper_) + "/task")) {
      std::ifstream status(task.path() / "status");
      for (std::string word; status >> word;)
        if (word == "voluntary_ctxt_switches:" && status >> word) sum += std::stoull(word);
    }
    return sum;
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::uint64_t before = wakeups();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_LE(wakeups(), before + 5) << "nobody asks for anything";
  // Alone on the device, its kernels concern nobody else either.
  ASSERT_EQ(guest->ask("kernel 1000 200"), "ok");
  EXPECT_LE(wakeups(), before + 20) << "one wake-up a kernel would be 200";
}

TEST_F(GuardTurns, ATaskThatCutsItsPageShortHarmsOnlyItself) {
  make_page("bad", {fake_slice(mib, 500, SliceMode::burstable)});
  make_page("good", {fake_slice(mib, 500, SliceMode::burstable)});
  start_keeper();
  auto bad = start_guest("bad"), good = start_guest("good");
  ASSERT_EQ(bad->ask("open"), "ok");
  ASSERT_EQ(good->ask("open"), "ok");
  ASSERT_EQ(bad->ask("kernel 1000 1"), "ok");
  std::filesystem::resize_file(page_prefix(root_, "bad") + ".counters", 4096);
  for (int round = 0; round < 3; ++round) {
    good->tell("kernel 1000 1");
    ASSERT_TRUE(good->hears_within(30000));
    ASSERT_EQ(good->hear(), "ok");
  }
  EXPECT_EQ(keeper_running(root_).value(), keeper_);
  EXPECT_EQ(read_counters(root_, "bad").error().kind, ErrorKind::corrupt);
  // Made anew, the lease is served again.
  bad->kill();
  ASSERT_TRUE(remove_page(root_, "bad").ok());
  make_page("bad", {fake_slice(mib, 500, SliceMode::burstable)});
  bad = start_guest("bad");
  ASSERT_EQ(bad->ask("open"), "ok");
  bad->tell("kernel 1000 1");
  ASSERT_TRUE(bad->hears_within(30000));
  EXPECT_EQ(bad->hear(), "ok");
}

TEST_F(GuardTurns, GarbageInTheCountersDoesNotEndTheKeeper) {
  make_page("bad", {fake_slice(mib, 500, SliceMode::burstable)});
  make_page("good", {fake_slice(mib, 500, SliceMode::burstable)});
  start_keeper();
  auto good = start_guest("good");
  ASSERT_EQ(good->ask("open"), "ok");
  {
    MappedPage page = MappedPage::open(root_, "bad").value();
    loam_slice_counters& counters = page.counters();
    std::memset(&counters.device, 0xff, sizeof counters.device);
    std::memset(&counters.slot, 0xff, sizeof counters.slot);
    counters.slots_used = 0xffffffff;
    ++counters.doorbell;
  }
  good->tell("kernel 1000 20");
  ASSERT_TRUE(good->hears_within(10000));
  EXPECT_EQ(good->hear(), "ok");
  EXPECT_EQ(keeper_running(root_).value(), keeper_);
  static_cast<void>(read_counters(root_, "bad"));
}

TEST_F(GuardTurns, OneKeeperServesAFolder) {
  start_keeper();
  const auto again = ensure_keeper(root_, LOAM_KEEPER_PROGRAM);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value(), keeper_);
  const int status =
      std::system((std::string(LOAM_KEEPER_PROGRAM) + " --root " + root_ + " 2>/dev/null").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(ensure_keeper(root_ + "2", "/no/such/program").error().kind, ErrorKind::not_found);
}

TEST_F(GuardTurns, AQueueFilledAheadDoesNotOverrunTheTurn) {
  make_page("a", {fake_slice(mib, 500, SliceMode::burstable)});
  make_page("b", {fake_slice(mib, 500, SliceMode::burstable)});
  start_keeper();
  auto greedy = start_guest("a"), other = start_guest("b");
  ASSERT_EQ(greedy->ask("open"), "ok");
  ASSERT_EQ(other->ask("open"), "ok");
  ASSERT_EQ(greedy->ask("kernel 2000000 2"), "ok");
  greedy->tell("async 2000000 1000");  // two seconds of work, enqueued without waiting
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // Its turn comes long before the other's two seconds are over: by the device's books, not by the
  // clock.
  ASSERT_EQ(other->ask("kernel 1000 1"), "ok");
  EXPECT_LT(books().kernels, 700u);
}

TEST_F(GuardTurns, WorkThatWaitsForTheProgramHoldsNoTurn) {
  make_page("a", {fake_slice(mib, 500, SliceMode::burstable)});
  make_page("b", {fake_slice(mib, 500, SliceMode::burstable)});
  start_keeper();
  auto patient = start_guest("a"), other = start_guest("b");
  ASSERT_EQ(patient->ask("open"), "ok");
  ASSERT_EQ(other->ask("open"), "ok");
  ASSERT_EQ(patient->ask("user_event"), "ok 1");
  ASSERT_EQ(patient->ask("after 1 1000000"), "ok 2");  // behind the program's own event
  ASSERT_EQ(patient->ask("async 1000000 3"), "ok");    // behind that, in the same queue
  ASSERT_EQ(patient->ask("after 2 1000000"), "ok 3");  // and behind its event
  other->tell("kernel 1000 1");
  ASSERT_TRUE(other->hears_within(30000)) << "a command that cannot run holds the device";
  EXPECT_EQ(other->hear(), "ok");
  EXPECT_EQ(usage("a").busy_ns, 0);
  ASSERT_EQ(patient->ask("set 1"), "ok");
  ASSERT_EQ(patient->ask("wait 3"), "ok");
  EXPECT_EQ(patient->ask("finish"), "ok");
  EXPECT_GE(usage("a").busy_ns, 5'000'000);
  EXPECT_EQ(usage("a").launches, 5u);
  EXPECT_EQ(books().overlaps, 0u);
}

}  // namespace
}  // namespace loam::node
