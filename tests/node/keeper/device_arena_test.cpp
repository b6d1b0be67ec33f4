// The keeper's arbitration of one device on a clock of the test's own: programs that keep the
// device busy are played on real slice pages, so every figure here is exact and none depends on the
// machine.
#include "node/keeper/device_arena.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/keeper/member.hpp"
#include "node/keeper/units.hpp"

namespace loam::node {
namespace {

// A program of one lease: it launches kernels whenever it may, one after the other, and pauses
// `think_ns` between them.
class Player {
 public:
  Player(const std::string& root, const char* lease, Nanoseconds kernel_ns, Nanoseconds think_ns)
      : member_(root, lease, 0), kernel_ns_(kernel_ns), think_ns_(think_ns) {}

  // Does what is due at `now`; never later than the device is free or the pause is over.
  void act(Nanoseconds now) {
    loam_slot_lane& own = member_.page.counters().slot[0].device[0].lane[lane_];
    loam_usage& usage = member_.page.counters().device[0].usage[lane_];
    if (ends_ns_ != never_ns && now >= ends_ns_) {
      if ((member_.page.limits().device[0].flags & LOAM_LIMIT_CONCURRENT) == 0)
        usage.busy_ns += static_cast<std::uint64_t>(ends_ns_ - began_ns_);
      ++usage.commands;
      own.in_flight = 0;
      own.idle_since_ns = static_cast<std::uint64_t>(ends_ns_);
      asks_ns_ = ends_ns_ + think_ns_;
      ends_ns_ = never_ns;
    }
    if (ends_ns_ != never_ns || now < asks_ns_ || !playing_) return;
    const loam_turn& turn = member_.page.counters().device[0].turn[lane_];
    const bool may = (turn.state & LOAM_TURN_MASK) == LOAM_TURN_GRANTED &&
                     static_cast<std::uint64_t>(now) < turn.deadline_ns;
    own.wanting = may ? 0 : 1;
    if (!may) return;
    longest_wait_ns_ = std::max(longest_wait_ns_, now - asks_ns_);
    own.in_flight = 1;
    own.busy_since_ns = static_cast<std::uint64_t>(now);
    began_ns_ = now;
    ends_ns_ = now + kernel_ns_;
  }
  Nanoseconds next_ns(Nanoseconds now) const {
    if (ends_ns_ != never_ns) return ends_ns_;
    return playing_ && asks_ns_ > now ? asks_ns_ : never_ns;
  }
  void play(bool playing, Nanoseconds now) {
    playing_ = playing;
    asks_ns_ = now;
    if (!playing) member_.page.counters().slot[0].device[0].lane[lane_].wanting = 0;
  }
  void use_lane(std::uint32_t lane) { lane_ = lane; }
  double busy_s() const {
    return static_cast<double>(member_.page.counters().device[0].usage[lane_].busy_ns) / 1e9;
  }
  bool runs() const { return ends_ns_ != never_ns; }
  Nanoseconds longest_wait_ns() const { return longest_wait_ns_; }
  const MappedPage& page() const { return member_.page; }

 private:
  Member member_;
  Nanoseconds kernel_ns_, think_ns_;
  std::uint32_t lane_ = LOAM_LANE_COMPUTE;
  bool playing_ = true;
  Nanoseconds asks_ns_ = 0, began_ns_ = 0, ends_ns_ = never_ns;
  Nanoseconds longest_wait_ns_ = 0;
};

class Arena : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/loam_arena_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override {
    // A keeper that looks again at once, again and again, takes a processor from the programs.
    EXPECT_LE(hasty_, 3 + steps_ / 50) << "of " << steps_ << " looks";
    players_.clear();
    std::filesystem::remove_all(root_);
  }

  static SliceLimits share(int milli, SliceMode mode) {
    SliceLimits limits;
    limits.device_key = 7;
    limits.device_name = "played";
    limits.share_milli = milli;
    limits.mode = mode;
    return limits;
  }
  Player& join(const char* lease, const SliceLimits& limits, Nanoseconds kernel_ns,
               Nanoseconds think_ns = 0) {
    EXPECT_TRUE(create_page(root_, lease, {limits}).ok());
    players_.push_back(std::make_unique<Player>(root_, lease, kernel_ns, think_ns));
    players_.back()->play(true, now_);
    arena_.add(players_.size(), &players_.back()->page(), 0, now_);
    return *players_.back();
  }
  // Plays for so long; at every moment where something happens, programs first, then the keeper.
  void play(
      Nanoseconds span_ns, const std::function<void()>& look = [] {}) {
    const Nanoseconds end = now_ + span_ns;
    while (now_ < end) {
      Nanoseconds next = end;
      for (int again = 0; again < 3; ++again) {  // a grant is used at the moment it is given
        for (auto& player : players_) player->act(now_);
        const Nanoseconds due = arena_.step(now_);
        if (due > now_) next = std::min(next, due);
        ++steps_;
        hasty_ += due > now_ && due < now_ + ms / 100;
      }
      look();
      const auto running = std::count_if(players_.begin(), players_.end(),
                                         [](const auto& player) { return player->runs(); });
      most_at_once_ = std::max(most_at_once_, running);
      for (auto& player : players_) {
        const Nanoseconds at = player->next_ns(now_);
        if (at > now_) next = std::min(next, at);
      }
      now_ = std::max(next, now_ + 1000);
    }
  }

  std::string root_;
  Nanoseconds now_ = second;
  DeviceArena arena_{LOAM_LANE_COMPUTE};
  std::vector<std::unique_ptr<Player>> players_;
  std::ptrdiff_t most_at_once_ = 0;
  std::int64_t steps_ = 0, hasty_ = 0;
};

TEST_F(Arena, WeightsDivideWhatNobodyWasPromised) {
  SliceLimits light = share(0, SliceMode::burstable), heavy = light;
  light.weight = 30;
  heavy.weight = 70;
  Player& a = join("a", light, ms);
  Player& b = join("b", heavy, ms);
  play(10 * second);
  EXPECT_NEAR(a.busy_s() / 10, 0.30, 0.01);
  EXPECT_NEAR(b.busy_s() / 10, 0.70, 0.01);
  EXPECT_EQ(most_at_once_, 1);
}

TEST_F(Arena, StrictSharesAreKeptAndNothingMore) {
  Player& a = join("a", share(600, SliceMode::strict), ms);
  Player& b = join("b", share(300, SliceMode::strict), ms);
  play(10 * second);
  EXPECT_NEAR(a.busy_s() / 10, 0.60, 0.005);
  EXPECT_NEAR(b.busy_s() / 10, 0.30, 0.005);
  EXPECT_EQ(most_at_once_, 1);
}

TEST_F(Arena, ACapIsACapAlsoAloneAndInEveryWindow) {
  for (const int milli : {100, 300, 600, 900}) {
    const std::string lease = "cap" + std::to_string(milli);
    Player& a = join(lease.c_str(), share(milli, SliceMode::strict), 2 * ms);
    const Nanoseconds began = now_;
    double before = 0;
    for (int window = 0; window < 50; ++window) {
      play(100 * ms);
      const double used = (a.busy_s() - before) / 0.1;
      before = a.busy_s();
      // Five points and one kernel; the first window begins with a turn that nothing preceded.
      const double room = 0.05 + 0.02 + (window == 0 ? 0.10 : 0);
      EXPECT_NEAR(used, milli / 1000.0, room) << milli << " in window " << window;
    }
    EXPECT_NEAR(a.busy_s() / (static_cast<double>(now_ - began) / 1e9), milli / 1000.0, 0.01);
    a.play(false, now_);
    play(ms * 10);
    arena_.remove(players_.size());
  }
}

TEST_F(Arena, ABurstableLeaseTakesAllThatIdlesAndGivesItBack) {
  Player& a = join("a", share(100, SliceMode::burstable), ms);
  Player& b = join("b", share(900, SliceMode::burstable), ms);
  b.play(false, now_);
  play(second);
  EXPECT_GT(a.busy_s(), 0.99);
  b.play(true, now_);
  play(5 * second);
  EXPECT_NEAR(b.busy_s() / 5, 0.9, 0.02);
}

TEST_F(Arena, ACappedBurstableLeaseStaysBelowItsCap) {
  SliceLimits capped = share(100, SliceMode::burstable);
  capped.cap_milli = 400;
  Player& a = join("a", capped, ms);
  play(5 * second);
  EXPECT_NEAR(a.busy_s() / 5, 0.4, 0.01);
}

TEST_F(Arena, LongKernelsAreRepaid) {
  Player& slow = join("a", share(300, SliceMode::burstable), 60 * ms);
  Player& quick = join("b", share(600, SliceMode::burstable), ms);
  play(20 * second);
  EXPECT_GE(slow.busy_s() / 20, 0.29);
  EXPECT_GE(quick.busy_s() / 20, 0.59);
}

TEST_F(Arena, AServiceWaitsForWhatRunsAndNoLonger) {
  SliceLimits serves = share(300, SliceMode::burstable);
  serves.service = true;
  Player& service = join("s", serves, ms, 37 * ms);
  Player& guest = join("g", share(0, SliceMode::burstable), 3 * ms);
  play(10 * second);
  EXPECT_LE(service.longest_wait_ns(), 3 * ms);
  EXPECT_GT(guest.busy_s(), 9.0);
  EXPECT_EQ(most_at_once_, 1);
}

// A program that waits for its kernel asks for the next one a moment later; that its turn ends in
// such a moment must not give the device to whoever happens to wait.
TEST_F(Arena, WhoIsBetweenTwoKernelsKeepsItsShare) {
  Player& a = join("a", share(700, SliceMode::burstable), ms, ms / 10);
  Player& b = join("b", share(300, SliceMode::burstable), ms, ms / 10);
  play(10 * second);
  EXPECT_NEAR(a.busy_s() / (a.busy_s() + b.busy_s()), 0.70, 0.015);
  EXPECT_EQ(most_at_once_, 1);
}

// A process that was killed while it waited still asks on its page. In slot 1, which nobody holds:
void leave_a_dead_waiter(const MappedPage& page) {
  loam_slice_counters& counters = page.counters();
  counters.slots_used = 2;
  counters.slot[1].device[0].lane[LOAM_LANE_COMPUTE].wanting = 1;
}

TEST_F(Arena, WhatADeadProcessAskedForRenewsNoTurn) {
  SliceLimits first = share(900, SliceMode::burstable);
  first.linger_ns = 50 * ms;  // its pause alone does not end the turn
  Player& a = join("a", first, 11 * ms / 2, second);
  Player& b = join("b", share(100, SliceMode::burstable), ms);
  leave_a_dead_waiter(a.page());
  play(40 * ms);
  EXPECT_LE(b.longest_wait_ns(), 11 * ms) << "the first lease's turn went on beyond its quantum";
  EXPECT_EQ(a.page().counters().slot[1].device[0].lane[LOAM_LANE_COMPUTE].wanting, 0u);
}

TEST_F(Arena, WhoDiedWaitingCostsItsLeaseNoDeviceTime) {
  SliceLimits first = share(900, SliceMode::burstable);
  first.linger_ns = 50 * ms;
  Player& a = join("a", first, 11 * ms / 2, second);
  join("b", share(100, SliceMode::burstable), ms);
  leave_a_dead_waiter(a.page());
  play(40 * ms);
  EXPECT_DOUBLE_EQ(a.busy_s(), 0.0055);
}

TEST_F(Arena, WhoDiedAtWorkIsChargedAndHoldsNothing) {
  Player& a = join("a", share(900, SliceMode::burstable), ms, second);
  Player& b = join("b", share(100, SliceMode::burstable), ms);
  loam_slice_counters& counters = a.page().counters();
  counters.slots_used = 2;
  counters.slot[1].device[0].lane[LOAM_LANE_COMPUTE].in_flight = 1;
  counters.slot[1].device[0].lane[LOAM_LANE_COMPUTE].wanting = 1;
  play(200 * ms);
  EXPECT_LE(b.longest_wait_ns(), 50 * ms);
  EXPECT_GT(b.busy_s(), 0.14);
}

TEST_F(Arena, WhoPausesWithTheTurnInHandSavesUpNothing) {
  Player& a = join("a", share(700, SliceMode::burstable), ms);
  Player& b = join("b", share(300, SliceMode::burstable), ms);
  play(second);
  a.play(false, now_);
  play(20 * ms);  // the other one has the device to itself, and its turn no end
  b.play(false, now_);
  play(3 * second);
  const double before_a = a.busy_s(), before_b = b.busy_s();
  a.play(true, now_);
  b.play(true, now_);
  play(second);
  const double of_a = a.busy_s() - before_a, of_b = b.busy_s() - before_b;
  EXPECT_NEAR(of_a / (of_a + of_b), 0.70, 0.03);
}

TEST_F(Arena, ATurnThatIsOverIsNotLingeredIn) {
  SliceLimits patient = share(500, SliceMode::burstable);
  patient.linger_ns = 500 * ms;
  join("a", patient, ms, 10 * second);
  Player& b = join("b", share(500, SliceMode::burstable), ms);
  play(100 * ms);
  EXPECT_LE(b.longest_wait_ns(), 11 * ms);
}

TEST_F(Arena, LeasesThatOverlapAreGivenNoMoreThanTheClock) {
  SliceLimits overlapping = share(300, SliceMode::burstable);
  overlapping.concurrent = true;
  Player& a = join("a", overlapping, 3 * ms);
  Player& b = join("b", overlapping, 5 * ms);
  const Nanoseconds began = now_;
  play(5 * second);
  EXPECT_EQ(most_at_once_, 2);
  const double wall = static_cast<double>(now_ - began) / 1e9;
  EXPECT_LE(a.busy_s() + b.busy_s(), wall);
  EXPECT_GT(a.busy_s() + b.busy_s(), 0.99 * wall);
  EXPECT_NEAR(a.busy_s() / b.busy_s(), 1.0, 0.05);
}

TEST_F(Arena, StrictLeasesKeepTheirSharesAlsoWhereTheyOverlap) {
  SliceLimits less = share(200, SliceMode::strict), more = share(500, SliceMode::strict);
  less.concurrent = more.concurrent = true;
  Player& a = join("a", less, ms);
  Player& b = join("b", more, ms);
  play(10 * second);
  EXPECT_NEAR(a.busy_s() / 10, 0.2, 0.02);
  EXPECT_NEAR(b.busy_s() / 10, 0.5, 0.02);
}

TEST_F(Arena, OneLeaseThatMustBeAloneMakesAllTakeTurns) {
  SliceLimits overlapping = share(300, SliceMode::burstable);
  overlapping.concurrent = true;
  join("a", overlapping, ms);
  join("b", overlapping, ms);
  play(100 * ms);
  EXPECT_EQ(most_at_once_, 2);
  Player& alone = join("c", share(300, SliceMode::burstable), ms);
  play(50 * ms);  // what was in flight ends
  most_at_once_ = 0;
  play(second);
  EXPECT_EQ(most_at_once_, 1);
  EXPECT_GT(alone.busy_s(), 0.3);
}

TEST_F(Arena, TheLingerOfThePageIsKept) {
  // The first pauses 3 ms between kernels. With a linger longer than that its turn stays its own.
  SliceLimits patient = share(500, SliceMode::burstable);
  patient.linger_ns = 4 * ms;
  patient.quantum_ns = 40 * ms;
  Player& a = join("a", patient, ms, 3 * ms);
  join("b", share(500, SliceMode::burstable), ms);
  play(2 * second);
  const std::uint64_t turns = a.page().counters().device[0].turn[0].turns;
  const std::uint64_t kernels = a.page().counters().device[0].usage[0].commands;
  EXPECT_GT(kernels, 5 * turns) << "the turn ended with every pause";
}

}  // namespace
}  // namespace loam::node
