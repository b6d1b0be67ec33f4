// Who leaves a device that is too small for all, and who waits meanwhile; on pages that the test
// plays, and a clock of its own.
#include "node/keeper/residence.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "node/keeper/member.hpp"
#include "node/keeper/units.hpp"

namespace loam::node {
namespace {

class ResidenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/loam_residence_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override {
    members_.clear();
    std::filesystem::remove_all(root_);
  }
  // A lease with 60 MiB on the device. Its number is its place.
  Member& join(const char* lease, bool spills = true, int share_milli = 500,
               bool leaves_first = false) {
    SliceLimits limits;
    limits.device_key = 7;
    limits.device_name = "played";
    limits.memory_bytes = 80 * mib;
    limits.share_milli = share_milli;
    limits.spills = spills;
    limits.leaves_first = leaves_first;
    EXPECT_TRUE(create_page(root_, lease, {limits}).ok());
    members_.push_back(std::make_unique<Member>(root_, lease, 0));
    Member& member = *members_.back();
    EXPECT_TRUE(member.change(60 * mib, 80 * mib));
    residence_.add(members_.size() - 1, &member.page, 0, now_);
    return member;
  }
  static loam_slot_device& process(Member& member) {
    return member.page.counters().slot[0].device[0];
  }
  static loam_device_counters& device(Member& member) { return member.page.counters().device[0]; }
  static std::uint32_t asked(Member& member) { return device(member).leave; }
  static void be_short(Member& member) { device(member).memory.short_bytes = 60 * mib; }
  static void wait_for_turn(Member& member) { process(member).lane[0].wanting = 1; }
  static void have_turn(Member& member, bool has) {
    device(member).turn[0].state = has ? LOAM_TURN_GRANTED : LOAM_TURN_NONE;
  }
  Nanoseconds step(Nanoseconds later = ms) {
    now_ += later;
    return residence_.step(now_);
  }

  std::string root_;
  Nanoseconds now_ = 1'000'000 * ms;
  Residence residence_{ResidenceTerms{1000 * ms}};
  std::vector<std::unique_ptr<Member>> members_;
};

TEST_F(ResidenceTest, NobodyIsAskedWhileAllHaveRoom) {
  Member& a = join("a");
  Member& b = join("b");
  step();
  EXPECT_EQ(asked(a) + asked(b), 0u);
  EXPECT_TRUE(residence_.held_back().empty());
}

TEST_F(ResidenceTest, WhoAsksForNothingLeavesBeforeWhoWaits) {
  Member& waits = join("a");
  Member& idles = join("b");
  Member& needs = join("c");
  wait_for_turn(waits);
  step(200 * ms);  // what was new is old now
  be_short(needs);
  step();
  EXPECT_EQ(asked(idles), 1u);
  EXPECT_EQ(asked(waits), 0u);
  EXPECT_EQ(asked(needs), 0u);
  EXPECT_EQ(device(needs).memory.short_bytes, 0u) << "asked once, until it asks again";
}

TEST_F(ResidenceTest, WhoHasATurnOrMayNotSpillStays) {
  Member& holds = join("a");
  Member& rock = join("b", false);
  Member& needs = join("c");
  have_turn(holds, true);
  be_short(needs);
  step();
  EXPECT_EQ(asked(holds) + asked(rock), 0u);
  have_turn(holds, false);
  be_short(needs);
  step();
  EXPECT_EQ(asked(holds), 1u);
  EXPECT_EQ(asked(rock), 0u);
}

TEST_F(ResidenceTest, OneAfterTheOtherAndNobodyTwiceAtOnce) {
  Member& a = join("a");
  Member& b = join("b");
  Member& needs = join("c");
  for (int i = 0; i < 2; ++i) {
    be_short(needs);
    step();
  }
  EXPECT_EQ(asked(a), 1u);
  EXPECT_EQ(asked(b), 1u);
  be_short(needs);
  step();
  EXPECT_EQ(asked(a) + asked(b), 2u);
  be_short(needs);
  step(100 * ms);
  EXPECT_EQ(asked(a) + asked(b), 3u);
}

TEST_F(ResidenceTest, RoomThatCameIsToldToThoseWhoWait) {
  Member& leaves = join("a");
  Member& needs = join("b");
  be_short(needs);
  step();
  const std::uint32_t before = device(needs).memory.answers;
  process(leaves).spilled_bytes = 60 * mib;
  step();
  EXPECT_EQ(device(needs).memory.answers, before + 1);
}

TEST_F(ResidenceTest, WhoCameBackStaysForItsPartAndTheOtherWaits) {
  Member& a = join("a", true, 750);
  Member& b = join("b", true, 250);
  wait_for_turn(a);
  wait_for_turn(b);
  process(a).spilled_bytes = process(b).spilled_bytes = 60 * mib;
  step();
  process(a).spilled_bytes = 0;  // a came back
  step();
  EXPECT_EQ(residence_.held_back(), std::set<std::uint64_t>{1});
  // Of two seconds a has three quarters.
  step(1490 * ms);
  EXPECT_EQ(residence_.held_back(), std::set<std::uint64_t>{1});
  step(20 * ms);
  EXPECT_TRUE(residence_.held_back().empty());
}

TEST_F(ResidenceTest, AParkedLeaseGoesAtOnceAndAgainAfterALittleWork) {
  Member& a = join("a");
  step();
  residence_.park(0, true);
  EXPECT_EQ(asked(a), 1u);
  process(a).spilled_bytes = 60 * mib;
  EXPECT_EQ(step(3600 * 1000 * ms), schedule::never_ns)
      << "nothing more is asked of who does nothing";
  EXPECT_EQ(asked(a), 1u);
  // It comes back for some work.
  process(a).spilled_bytes = 0;
  process(a).lane[0].in_flight = 1;
  step();
  process(a).lane[0].in_flight = 0;
  const Nanoseconds next = step();
  EXPECT_EQ(asked(a), 1u) << "a short pause parks nobody";
  EXPECT_LE(next, now_ + 30'000 * ms);
  step(30'000 * ms);
  EXPECT_EQ(asked(a), 2u);
  residence_.park(0, false);
  process(a).lane[0].in_flight = 1;
  step();
  process(a).lane[0].in_flight = 0;
  step(60'000 * ms);
  EXPECT_EQ(asked(a), 2u) << "it is not parked any more";
}

TEST_F(ResidenceTest, WhoWasLentTooMuchLeavesBeforeWhoIdles) {
  Member& idles = join("a");
  Member& lent = join("b", true, 500, true);
  Member& needs = join("c");
  wait_for_turn(lent);
  step(2000 * ms);
  be_short(needs);
  step();
  EXPECT_EQ(asked(lent), 1u);
  EXPECT_EQ(asked(idles), 0u);
  process(lent).spilled_bytes = 60 * mib;
  be_short(needs);
  step();
  EXPECT_EQ(asked(idles), 1u) << "where that is not enough, others leave too";
}

TEST_F(ResidenceTest, WhatMayNotSpillIsNotParked) {
  Member& a = join("a", false);
  step();
  residence_.park(0, true);
  step(60'000 * ms);
  EXPECT_EQ(asked(a), 0u);
}

TEST_F(ResidenceTest, WhoIdlesIsNotStayedFor) {
  Member& a = join("a");
  Member& b = join("b");
  wait_for_turn(b);
  process(a).spilled_bytes = process(b).spilled_bytes = 60 * mib;
  step();
  process(a).spilled_bytes = 0;
  const Nanoseconds next = step();
  EXPECT_EQ(residence_.held_back(), std::set<std::uint64_t>{1});
  EXPECT_LE(next, now_ + 100 * ms) << "looked at again when a may have become idle";
  step(100 * ms);
  EXPECT_TRUE(residence_.held_back().empty());
}

}  // namespace
}  // namespace loam::node
