// TurnBook against a simulated device: shares, caps, weights, repayment, services and quanta, over
// random loads.
#include "schedule/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

#include "base/random.hpp"

namespace loam::schedule {

static std::uint64_t allocations = 0;

namespace {

constexpr Nanoseconds us = 1'000, ms = 1'000'000, second = 1'000'000'000;

// A program that runs kernels of one length, each `think_ns` after the one before.
struct Load {
  TurnTerms terms;
  Nanoseconds kernel_ns = ms;
  Nanoseconds think_ns = 0;
  Nanoseconds begins = 0, ends = never_ns;

  Nanoseconds used = 0;      // so far
  Nanoseconds wait_max = 0;  // from asking to the turn
  Nanoseconds ready_at = 0;  // when it asks again
};

TurnTerms strict(int share) {
  return {.share_milli = share,
          .weight = std::max(share, 1),
          .quantum_ns = 10 * ms,
          .linger_ns = 500 * us};
}
TurnTerms burstable(int share, int weight = 0) {
  TurnTerms terms = strict(share);
  if (weight != 0) terms.weight = weight;
  terms.strict = false;
  return terms;
}

// Plays the keeper and the device. Calls `each(now)` after every turn.
template <class Each>
void simulate(std::vector<Load>& loads, Nanoseconds duration, Each each) {
  TurnBook book;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    book.set_terms(i + 1, loads[i].terms, 0);
    loads[i].ready_at = loads[i].begins;
  }
  Nanoseconds now = 0;
  while (now < duration) {
    Nanoseconds next_ready = never_ns;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const bool asks = loads[i].ready_at <= now && now < loads[i].ends;
      book.set_waiting(i + 1, asks, now);
      if (loads[i].ready_at > now) next_ready = std::min(next_ready, loads[i].ready_at);
    }
    const TurnChoice choice = book.choose(now);
    if (!choice.grant) {
      now = std::min({choice.look_again_ns, next_ready, duration});
      continue;
    }
    Load& load = loads[choice.grant->lease - 1];
    Nanoseconds until = choice.grant->until_ns;
    const Nanoseconds start = now;
    Nanoseconds used = 0;
    book.set_waiting(choice.grant->lease, false, now);
    load.wait_max = std::max(load.wait_max, now - load.ready_at);
    do {
      now += load.kernel_ns;
      used += load.kernel_ns;
      for (std::size_t i = 0; i < loads.size(); ++i)
        if (i + 1 != choice.grant->lease && loads[i].ready_at <= now && now < loads[i].ends)
          book.set_waiting(i + 1, true, now);
      if (until == never_ns && book.rival_ready(now))
        until = now + book.turn_ns(choice.grant->lease);
      load.ready_at = now + load.think_ns;
    } while (load.think_ns == 0 && now < until && now < duration && now < load.ends &&
             !book.service_kept_waiting(now));
    ASSERT_GT(now, start);
    load.used += used;
    book.close(used, now, now);
    each(now);
  }
}
void simulate(std::vector<Load>& loads, Nanoseconds duration) {
  simulate(loads, duration, [](Nanoseconds) {});
}

double share_of(const Load& load, Nanoseconds duration) {
  return static_cast<double>(load.used) / static_cast<double>(duration);
}

TEST(TurnBook, StrictLeasesGetTheirSharesAndNoMore) {
  std::vector<Load> loads{{strict(600), ms}, {strict(300), ms}};
  simulate(loads, 10 * second);
  EXPECT_NEAR(share_of(loads[0], 10 * second), 0.6, 0.005);
  EXPECT_NEAR(share_of(loads[1], 10 * second), 0.3, 0.005);
}

TEST(TurnBook, AStrictLeaseAloneIsCappedInEveryWindow) {
  std::vector<Load> loads{{strict(300), ms}};
  Nanoseconds window_end = 100 * ms, used_before = 0;
  double most = 0, least = 1;
  simulate(loads, 10 * second, [&](Nanoseconds now) {
    if (now < window_end) return;
    const auto share = static_cast<double>(loads[0].used - used_before) /
                       static_cast<double>(now - window_end + 100 * ms);
    if (window_end > second) {
      most = std::max(most, share);
      least = std::min(least, share);
    }
    used_before = loads[0].used;
    window_end = now + 100 * ms;
  });
  EXPECT_LT(most, 0.42);
  EXPECT_GT(least, 0.2);
  EXPECT_NEAR(share_of(loads[0], 10 * second), 0.3, 0.005);
}

TEST(TurnBook, KernelsOfAnyLengthGetTheirShareInTheLongRun) {
  for (const Nanoseconds kernel : {50 * us, ms, 20 * ms, 200 * ms}) {
    std::vector<Load> loads{{strict(600), kernel}, {strict(300), ms}};
    simulate(loads, 100 * second);
    EXPECT_NEAR(share_of(loads[0], 100 * second), 0.6, 0.015) << kernel;
    EXPECT_NEAR(share_of(loads[1], 100 * second), 0.3, 0.015) << kernel;
  }
}

TEST(TurnBook, LongKernelsOfABurstableLeaseAreRepaid) {
  for (const Nanoseconds kernel : {60 * ms, 500 * ms}) {
    std::vector<Load> loads{{burstable(300), kernel}, {burstable(600), ms}};
    simulate(loads, 100 * second);
    // What a long kernel overran in idle time is repaid as well, so the other may get a bit more.
    const double ratio = share_of(loads[1], 100 * second) / share_of(loads[0], 100 * second);
    EXPECT_GT(ratio, 1.9) << kernel;
    EXPECT_LT(ratio, 2.4) << kernel;
    EXPECT_GT(share_of(loads[0], 100 * second), 0.295) << kernel;
  }
}

TEST(TurnBook, BurstableLeasesTakeWhatIdles) {
  std::vector<Load> loads{{burstable(300), ms}, {burstable(700), ms}};
  loads[1].ends = 5 * second;
  simulate(loads, 10 * second);
  EXPECT_NEAR(share_of(loads[1], 5 * second), 0.7, 0.01);
  EXPECT_NEAR(static_cast<double>(loads[0].used) / second, 1.5 + 5.0, 0.05);
}

TEST(TurnBook, AStrictNeighbourLeavesTheRestToABurstableOne) {
  std::vector<Load> loads{{strict(300), ms}, {burstable(100), ms}};
  simulate(loads, 10 * second);
  EXPECT_NEAR(share_of(loads[0], 10 * second), 0.3, 0.01);
  EXPECT_NEAR(share_of(loads[1], 10 * second), 0.7, 0.01);
}

// A device lent 1.5 times: of the burstable leases two thirds are promised, and their weights are
// what they were lent.
TEST(TurnBook, OfADeviceLentTwiceAStrictLeaseGetsItsShareAndOthersTheRest) {
  std::vector<Load> loads{{strict(400), ms}, {burstable(200, 300), ms}, {burstable(400, 600), ms}};
  simulate(loads, 10 * second);
  EXPECT_NEAR(share_of(loads[0], 10 * second), 0.4, 0.01);
  EXPECT_NEAR(share_of(loads[1], 10 * second), 0.2, 0.01);
  EXPECT_NEAR(share_of(loads[2], 10 * second), 0.4, 0.01);
  // Half of the strict one's time idles: by what they were lent.
  std::vector<Load> some{{strict(200), ms}, {burstable(200, 300), ms}, {burstable(400, 600), ms}};
  simulate(some, 10 * second);
  EXPECT_NEAR(share_of(some[0], 10 * second), 0.2, 0.01);
  EXPECT_NEAR(share_of(some[1], 10 * second), 0.8 / 3, 0.01);
  EXPECT_NEAR(share_of(some[2], 10 * second), 1.6 / 3, 0.01);
}

TEST(TurnBook, WeightsDivideWhatNobodyWasPromised) {
  std::vector<Load> loads{{burstable(0, 30), ms}, {burstable(0, 70), 5 * ms}};
  simulate(loads, 20 * second);
  EXPECT_NEAR(share_of(loads[0], 20 * second), 0.3, 0.01);
  EXPECT_NEAR(share_of(loads[1], 20 * second), 0.7, 0.01);
}

TEST(TurnBook, AnIdleLeaseSavesUpNoMoreThanATurn) {
  std::vector<Load> loads{{burstable(500), ms}, {burstable(500), ms}};
  loads[1].begins = 5 * second;
  Nanoseconds late = 0;
  simulate(loads, 5 * second + 200 * ms, [&](Nanoseconds) { late = loads[1].used; });
  EXPECT_LT(late, 130 * ms);
  EXPECT_GT(late, 80 * ms);
}

TEST(TurnBook, AProgramThatThinksBetweenKernelsKeepsItsShareAgainstAFullQueue) {
  // It asks for 500 us of every 600; the other would take everything.
  std::vector<Load> loads{{burstable(600), 500 * us, 100 * us}, {burstable(300), 20 * ms}};
  simulate(loads, 20 * second);
  EXPECT_GT(share_of(loads[0], 20 * second), 0.45);
}

TEST(TurnBook, AStrictLeaseWithoutAShareNeverRuns) {
  std::vector<Load> loads{{strict(0), ms}, {strict(500), ms}};
  simulate(loads, second);
  EXPECT_EQ(loads[0].used, 0);
}

TEST(TurnBook, AHolderThatGoesAwayFreesTheDevice) {
  TurnBook book;
  book.set_terms(1, strict(500), 0);
  book.set_terms(2, strict(500), 0);
  book.set_waiting(1, true, 1);
  ASSERT_TRUE(book.choose(1).grant);
  book.set_waiting(2, true, 2);
  book.remove(1);
  EXPECT_FALSE(book.holder());
  const TurnChoice choice = book.choose(3);
  ASSERT_TRUE(choice.grant);
  EXPECT_EQ(choice.grant->lease, 2u);
}

// Random mixes whose shares fit the device: everybody who saturates gets at least the guaranteed
// share (less one kernel of each neighbour a second), no strict lease gets more, nobody starves.
TEST(TurnBook, RandomMixesKeepEveryPromise) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    std::vector<Load> loads;
    std::int64_t left = 950;
    const auto count = random.between(1, 6);
    for (std::int64_t i = 0; i < count && left > 60; ++i) {
      const auto share = random.between(50, std::max<std::int64_t>(left / 2, 50));
      left -= share;
      Load load;
      load.terms =
          random.chance(500) ? strict(static_cast<int>(share)) : burstable(static_cast<int>(share));
      load.terms.quantum_ns = random.between(2, 20) * ms;
      load.kernel_ns = random.between(20, 30'000) * us;
      loads.push_back(load);
    }
    const Nanoseconds duration = 40 * second;
    simulate(loads, duration);
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const double promised = loads[i].terms.share_milli / 1000.0;
      EXPECT_GT(share_of(loads[i], duration), promised - 0.015)
          << "seed " << seed << " lease " << i;
      if (loads[i].terms.strict) {
        EXPECT_LT(share_of(loads[i], duration), promised + 0.015)
            << "seed " << seed << " lease " << i;
      }
    }
  }
}

TurnTerms service(int share) {
  TurnTerms terms = burstable(share);
  terms.service = true;
  return terms;
}

TEST(TurnBook, AServiceWaitsForOneKernelOfAGuestAtMost) {
  for (const Nanoseconds kernel : {200 * us, ms, 4 * ms}) {
    // The guest has no share and takes the gaps; its turns of 10 ms would be far too long.
    std::vector<Load> loads{{service(1000), ms, 7 * ms}, {burstable(0, 1), kernel}};
    simulate(loads, 10 * second);
    EXPECT_LE(loads[0].wait_max, kernel) << kernel;
    EXPECT_GT(share_of(loads[0], 10 * second), 0.07) << kernel;
    EXPECT_GT(share_of(loads[1], 10 * second), 0.5) << kernel;
  }
}

TEST(TurnBook, WithoutPriorityTheSameServiceWaitsForAWholeTurn) {
  std::vector<Load> loads{{burstable(500), ms, 7 * ms}, {burstable(500), ms}};
  simulate(loads, 10 * second);
  EXPECT_GT(loads[0].wait_max, 5 * ms);
}

TEST(TurnBook, AServiceBeyondItsShareTakesNoGuaranteedTime) {
  std::vector<Load> loads{{service(400), ms}, {strict(500), ms}, {burstable(0, 1), ms}};
  simulate(loads, 20 * second);
  EXPECT_NEAR(share_of(loads[1], 20 * second), 0.5, 0.01);
  EXPECT_NEAR(share_of(loads[0], 20 * second), 0.5, 0.01);
  EXPECT_LT(share_of(loads[2], 20 * second), 0.01);
}

TEST(TurnBook, AMixedPoolKeepsEverybodysShare) {
  // Long predictable tasks with fixed turns, short bursts with dynamic ones.
  std::vector<Load> loads{
      {strict(300), ms}, {burstable(300), ms}, {burstable(300), 2 * ms, 9 * ms}};
  loads[1].terms.quantum_ns = 50 * ms;
  loads[2].terms.kind = TurnKind::dynamic;
  loads[2].terms.quantum_ns = 2 * ms;
  simulate(loads, 20 * second);
  EXPECT_NEAR(share_of(loads[0], 20 * second), 0.3, 0.01);
  EXPECT_GT(share_of(loads[1], 20 * second), 0.3);
  EXPECT_GT(share_of(loads[2], 20 * second), 0.03);
}

TEST(TurnBook, DynamicTurnsGrowWithProgressAndShrinkWithTheQueue) {
  TurnBook book(QuantumTerms{100 * us, 50, 40 * ms});
  TurnTerms terms = burstable(300);
  terms.kind = TurnKind::dynamic;
  terms.quantum_ns = 2 * ms;
  book.set_terms(1, terms, 0);
  Nanoseconds now = 0;
  std::vector<Nanoseconds> turns;
  for (int i = 0; i < 8; ++i) {
    turns.push_back(book.turn_ns(1));
    book.set_waiting(1, true, now);
    ASSERT_TRUE(book.choose(now).grant);
    now += turns.back();
    book.close(turns.back(), now, now);
  }
  EXPECT_EQ(turns, (std::vector<Nanoseconds>{2 * ms, 2 * ms, 4 * ms, 8 * ms, 16 * ms, 32 * ms,
                                             64 * ms, 64 * ms}));
  for (std::uint64_t other = 2; other <= 5; ++other) {
    book.set_terms(other, burstable(100), now);
    book.set_waiting(other, true, now);
  }
  EXPECT_EQ(book.turn_ns(1), 40 * ms / 4 - 100 * us);
  // Long idle, it starts anew.
  book.set_waiting(1, false, now);
  book.set_terms(1, terms, now + second);
  EXPECT_EQ(book.turn_ns(1), 2 * ms);
}

TEST(TurnBook, AnEarlyFinisherIsChargedWhatItUsedAndTheNextOneGoesAtOnce) {
  TurnBook book;
  book.set_terms(1, strict(500), 0);
  book.set_terms(2, strict(500), 0);
  book.set_waiting(1, true, 0);
  book.set_waiting(2, true, 0);
  const TurnChoice first = book.choose(0);
  ASSERT_TRUE(first.grant);
  EXPECT_EQ(first.grant->until_ns, 10 * ms);
  book.set_waiting(1, false, 0);
  const Nanoseconds credit = book.credit_ns(1);
  book.close(ms, ms, ms);
  EXPECT_EQ(book.credit_ns(1), credit - ms + ms / 2);
  const TurnChoice second = book.choose(ms);
  ASSERT_TRUE(second.grant);
  EXPECT_EQ(second.grant->lease, 2u);
}

TEST(TurnBook, AGrantTakesNoMemory) {
  TurnBook book;
  for (std::uint64_t lease = 1; lease <= 20; ++lease) {
    TurnTerms terms = lease % 2 == 0 ? burstable(40) : strict(40);
    terms.kind = lease % 3 == 0 ? TurnKind::dynamic : TurnKind::fixed;
    terms.service = lease % 7 == 0;
    book.set_terms(lease, terms, 0);
  }
  const std::uint64_t before = allocations;
  Nanoseconds now = 0;
  for (int i = 0; i < 1'000; ++i) {
    for (std::uint64_t lease = 1; lease <= 20; ++lease) book.set_waiting(lease, true, now);
    const TurnChoice choice = book.choose(now);
    if (!choice.grant) {
      now = choice.look_again_ns;
      continue;
    }
    now += ms;
    book.service_kept_waiting(now);
    book.close(ms, now, now);
  }
  EXPECT_EQ(allocations, before);
}

TEST(Quantum, TheSwitchCostBoundsItFromBelowAndTheWaitFromAbove) {
  const QuantumTerms terms{500 * us, 50, 200 * ms};
  EXPECT_EQ(quantum_min_ns(terms), 9'500 * us);  // 0.5 ms of every 10 ms
  EXPECT_EQ(fixed_quantum_ns(terms, 1), 200 * ms);
  EXPECT_EQ(fixed_quantum_ns(terms, 5), 49'500 * us);   // 4 (q + c) = 200 ms
  EXPECT_EQ(fixed_quantum_ns(terms, 100), 9'500 * us);  // the wait gives way
  EXPECT_EQ(guest_quantum_ns(terms, 5 * ms), 4'500 * us);
  EXPECT_EQ(guest_quantum_ns(terms, 100 * us), 0);
  EXPECT_EQ(quantum_min_ns({0, 50, ms}), 0);
}

}  // namespace
}  // namespace loam::schedule

// Every allocation of this program is counted. Not inlined: the compiler would see malloc meet
// delete, and warn.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++loam::schedule::allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// Temporary buffers of the standard library ask so; the sanitizer's own would not meet our delete.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++loam::schedule::allocations;
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
