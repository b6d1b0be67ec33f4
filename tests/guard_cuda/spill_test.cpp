// Leases whose memory does not fit a card together: whoever has no turn goes to the host and comes
// back with its turn, and the programs see nothing of it.
#include <algorithm>
#include <sstream>

#include "guard_cuda/cuda_house.hpp"
#include "node/keeper/reports.hpp"

namespace loam::node {
namespace {

class GuardCudaSpill : public CudaHouse {
 protected:
  void SetUp() override {
    CudaHouse::SetUp();
    card().total_bytes = 100 * mib;
  }
  void lease_that_spills(const std::string& name, std::uint64_t bytes, int share_milli = 500) {
    SliceLimits slice = cuda_slice(bytes, 0, share_milli);
    slice.mode = SliceMode::burstable;
    slice.spills = true;
    make_page(name, {slice});
  }
  std::uint64_t spilled(const std::string& lease) { return usage(lease).spilled_bytes; }
  // `lease` with 60 of the card's 100 MiB, filled.
  std::unique_ptr<Guest> holder(const std::string& lease, int byte) {
    auto guest = open_guest(lease);
    EXPECT_EQ(guest->ask("alloc " + mebibytes(60)), "ok 1") << guest->errors();
    EXPECT_EQ(guest->ask("write 1 " + std::to_string(byte)), "ok") << guest->errors();
    return guest;
  }
  // Two leases of 80 of the card's 100 MiB.
  void two_leases_and_a_keeper() {
    lease_that_spills("a", 80 * mib);
    lease_that_spills("b", 80 * mib);
    start_keeper();
  }
  // The second holder sends the first one's memory to the host.
  struct Pair {
    std::unique_ptr<Guest> a, b;
  };
  Pair a_in_the_host() {
    two_leases_and_a_keeper();
    Pair both;
    both.a = holder("a", 0xaa);
    both.b = holder("b", 0xbb);
    EXPECT_EQ(spilled("a"), 60 * mib);
    return both;
  }
};

TEST_F(GuardCudaSpill, WhoHasNoTurnMakesRoomAndFindsItsDataAgain) {
  two_leases_and_a_keeper();
  auto a = holder("a", 0xaa);
  EXPECT_EQ(spilled("a"), 0u);
  auto b = holder("b", 0xbb);
  EXPECT_EQ(spilled("a"), 60 * mib);
  EXPECT_EQ(used("a"), 60 * mib) << "what is in the host's memory is still the lease's";
  EXPECT_EQ(card().used_bytes, 60 * mib);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(a->ask("peek 1"), "ok 170 170") << a->errors();
    EXPECT_EQ(spilled("a"), 0u);
    EXPECT_EQ(spilled("b"), 60 * mib);
    EXPECT_EQ(b->ask("peek 1"), "ok 187 187") << b->errors();
    EXPECT_EQ(spilled("b"), 0u);
  }
  EXPECT_EQ(a->ask("free 1"), "ok");
  EXPECT_EQ(b->ask("free 1"), "ok");
  EXPECT_EQ(card().used_bytes, 0u);
  EXPECT_EQ(used("a") + used("b") + spilled("a") + spilled("b"), 0u);
}

TEST_F(GuardCudaSpill, AKernelBringsTheMemoryBackToo) {
  const auto [a, b] = a_in_the_host();
  EXPECT_EQ(a->ask("launch 100000 0 1"), "ok");
  EXPECT_EQ(a->ask("sync 0"), "ok");
  EXPECT_EQ(spilled("a"), 0u);
  EXPECT_EQ(spilled("b"), 60 * mib);
}

TEST_F(GuardCudaSpill, AQuestionAboutAnAddressIsAnsweredAsIfNothingHadMoved) {
  two_leases_and_a_keeper();
  auto a = holder("a", 0xaa);
  ASSERT_EQ(a->ask("pointer 1"), "ok 2");
  auto b = holder("b", 0xbb);
  ASSERT_EQ(spilled("a"), 60 * mib);
  EXPECT_EQ(a->ask("pointer 1"), "ok 2");
  // What others hold is no bound to who can make them leave.
  EXPECT_EQ(b->ask("info"), "ok " + mebibytes(20) + " " + mebibytes(80));
}

TEST_F(GuardCudaSpill, AQuestionIsAboutTheDeviceWhoseMemoryIsAtTheAddress) {
  card(1).total_bytes = 100 * mib;
  for (const char* lease : {"a", "b"}) {
    std::vector<SliceLimits> slices{cuda_slice(80 * mib, 0, 500), cuda_slice(80 * mib, 1, 500)};
    for (SliceLimits& slice : slices) slice.spills = true;
    make_page(lease, slices);
  }
  start_keeper();
  auto a = start_cuda_guest("a");
  auto b = start_cuda_guest("b");
  for (Guest* guest : {a.get(), b.get()}) {
    for (const char* device : {"0", "1"}) {
      ASSERT_EQ(guest->ask(std::string("open ") + device), "ok") << guest->errors();
      ASSERT_EQ(guest->ask("alloc " + mebibytes(60)).substr(0, 3), "ok ") << guest->errors();
    }
  }
  ASSERT_EQ(usage("a", 0).spilled_bytes, 60 * mib);
  ASSERT_EQ(usage("a", 1).spilled_bytes, 60 * mib);
  EXPECT_EQ(a->ask("pointer 2"), "ok 2") << a->errors();
  EXPECT_EQ(usage("a", 0).spilled_bytes, 60 * mib) << "nobody asked for what is on this device";
  EXPECT_EQ(a->ask("pointer 1"), "ok 2") << a->errors();
}

TEST_F(GuardCudaSpill, MemoryInTheHostCountsForTheQuota) {
  const auto [a, b] = a_in_the_host();
  EXPECT_EQ(a->ask("alloc " + mebibytes(30)), "error 2");
  EXPECT_EQ(a->ask("alloc " + mebibytes(20)), "ok 2");
  EXPECT_EQ(used("a"), 80 * mib);
}

TEST_F(GuardCudaSpill, WhatIsFreedInTheHostIsGone) {
  const auto [a, b] = a_in_the_host();
  EXPECT_EQ(a->ask("free 1"), "ok");
  EXPECT_EQ(used("a"), 0u);
  EXPECT_EQ(spilled("a"), 0u);
  EXPECT_EQ(a->ask("launch 100000 0 1"), "ok");
  EXPECT_EQ(a->ask("sync 0"), "ok");
  EXPECT_EQ(b->ask("peek 1"), "ok 187 187");
}

TEST_F(GuardCudaSpill, WhoIsKilledInTheHostLeavesNothing) {
  const auto [a, b] = a_in_the_host();
  a->kill();
  EXPECT_EQ(used("a"), 0u);
  EXPECT_EQ(spilled("a"), 0u);
  auto again = holder("a", 0xac);
  EXPECT_EQ(b->ask("peek 1"), "ok 187 187");
  EXPECT_EQ(again->ask("peek 1"), "ok 172 172");
}

// Both compute without end: memory goes to and fro by stays, not by turns, and both get on.
TEST_F(GuardCudaSpill, TwoThatNeverPauseBothGetOnAndKeepTheirData) {
  lease_that_spills("a", 80 * mib);
  lease_that_spills("b", 80 * mib);
  Guest keeper({LOAM_KEEPER_PROGRAM, "--root", root_, "--stay", "1"}, {});
  auto a = holder("a", 0xaa);
  auto b = holder("b", 0xbb);
  a->tell("saturate 1000000 5000");
  b->tell("saturate 1000000 5000");
  EXPECT_EQ(a->hear().substr(0, 2), "ok");
  EXPECT_EQ(b->hear().substr(0, 2), "ok");
  EXPECT_GT(usage("a").busy_ns, 500'000'000);
  EXPECT_GT(usage("b").busy_ns, 500'000'000);
  EXPECT_EQ(a->ask("peek 1"), "ok 170 170");
  EXPECT_EQ(b->ask("peek 1"), "ok 187 187");
}

// While memory goes and comes one of the two is killed, at a moment that differs each time: the
// other finds its data, and the dead leave nothing.
TEST_F(GuardCudaSpill, WhoIsKilledAtAnyMomentHarmsNobody) {
  two_leases_and_a_keeper();
  auto b = holder("b", 0xbb);
  for (int round = 0; round < 12; ++round) {
    auto a = open_guest("a");
    ASSERT_EQ(a->ask("alloc " + mebibytes(60)), "ok 1") << a->errors();
    a->tell("saturate 300000 5000");
    b->tell("peek 1");
    std::this_thread::sleep_for(std::chrono::microseconds(2500 * round));
    a->kill();
    ASSERT_TRUE(b->hears_within(20'000)) << "round " << round << ": " << b->errors();
    EXPECT_EQ(b->hear(), "ok 187 187") << "round " << round << ": " << b->errors();
    EXPECT_EQ(used("a"), 0u);
    EXPECT_EQ(spilled("a"), 0u);
  }
}

// The card has no room at all: a driver's own refusal, and what was saved is as it was.
TEST_F(GuardCudaSpill, WhereNobodyCanLeaveTheDriverRefuses) {
  make_page("rock", {cuda_slice(80 * mib, 0, 300)});
  make_page("other", {cuda_slice(80 * mib, 0, 300)});
  start_keeper();
  auto rock = holder("rock", 0x11);
  auto other = open_guest("other");
  EXPECT_EQ(other->ask("alloc " + mebibytes(60)), "error 2");
  EXPECT_EQ(used("other"), 0u);
}

// The keeper's policy for who leaves its device unused: told, its memory gone, back with its work,
// and gone again after it.
TEST_F(GuardCudaSpill, WhoIdlesForLongIsParkedByPolicy) {
  SliceLimits slice = cuda_slice(80 * mib, 0, 500);
  slice.spills = true;
  slice.when_idle = WhenIdle::park;
  make_page("a", {slice});
  slice.when_idle = WhenIdle::end;
  make_page("b", {slice});
  Guest keeper({LOAM_KEEPER_PROGRAM, "--root", root_, "--idle-after", "1"}, {});
  auto a = holder("a", 0xaa);
  const auto is_spilled_within_s = [&](int seconds) {
    for (int i = 0; i < seconds * 100 && spilled("a") == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return spilled("a") == 60 * mib;
  };
  EXPECT_TRUE(is_spilled_within_s(20));
  EXPECT_EQ(card().used_bytes, 0u);
  EXPECT_EQ(a->ask("peek 1"), "ok 170 170");
  EXPECT_EQ(spilled("a"), 0u);
  EXPECT_TRUE(is_spilled_within_s(20));
  std::vector<KeeperReport> of_a, of_b;
  const auto reports = ReportReader(root_).read();
  ASSERT_TRUE(reports.ok());
  for (const KeeperReport& report : reports.value())
    if (report.kind == ReportKind::idle) (report.lease == "a" ? of_a : of_b).push_back(report);
  ASSERT_FALSE(of_a.empty());
  EXPECT_EQ(of_a.front().bytes, 60 * mib);
  EXPECT_FALSE(of_a.front().end);
  ASSERT_EQ(of_b.size(), 1u);
  EXPECT_TRUE(of_b.front().end);
}

// Memory that stays on the device: the process waits for nothing but its turn.
TEST_F(GuardCudaSpill, AParkedProcessWakesAtOnce) {
  lease_that_spills("a", 80 * mib);
  start_keeper();
  auto a = holder("a", 0xaa);
  std::vector<long> took_us;
  for (int i = 0; i < 7; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(80));  // beyond the keeper's patience
    std::istringstream said(a->ask("timed_launch 1000000"));
    std::string ok;
    long us = 0;
    said >> ok >> us;
    ASSERT_EQ(ok, "ok");
    took_us.push_back(us);
  }
  std::sort(took_us.begin(), took_us.end());
  EXPECT_LT(took_us[3], 1000 + 10'000);
}

}  // namespace
}  // namespace loam::node
