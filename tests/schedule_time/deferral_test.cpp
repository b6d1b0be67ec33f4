// Deferral to cheap hours and the cutting of long tasks, against everything tried by hand.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>

#include "base/random.hpp"
#include "schedule/deferral.hpp"
#include "schedule/segments.hpp"

namespace loam::schedule {
namespace {

TEST(Deferral, StartsInTheCheapestHoursThatMeetTheDeadline) {
  const Instant day{1'772'409'600'000};
  const auto hour = [&](std::int64_t h) { return day + Duration::hours(h); };
  const std::vector<PriceStep> steps{{hour(0), 30}, {hour(8), 50}, {hour(20), 20}, {hour(30), 40}};
  EXPECT_EQ(cheapest_start(steps, {hour(1), hour(40)}, Duration::hours(2)), hour(20));
  EXPECT_EQ(cheapest_start(steps, {hour(1), hour(21)}, Duration::hours(2)), hour(1));
  EXPECT_EQ(cheapest_start(steps, {hour(7), hour(21)}, Duration::hours(2)), hour(19));
  EXPECT_EQ(cheapest_start(steps, {hour(1), hour(40)}, Duration::hours(12)), hour(20));
  EXPECT_EQ(cheapest_start(steps, {hour(9), hour(11)}, Duration::hours(2)), hour(9));
  EXPECT_FALSE(cheapest_start(steps, {hour(9), hour(11)}, Duration::hours(3)));
  EXPECT_FALSE(cheapest_start(steps, {hour(9), hour(8)}, Duration::hours(1)));
}

TEST(Deferral, NoStartIsCheaperAndNoneAsCheapIsEarlier) {
  Random random(3);
  for (int round = 0; round < 400; ++round) {
    std::vector<PriceStep> steps;
    Instant from{0};
    for (std::int64_t i = random.between(1, 7); i > 0; --i) {
      steps.push_back({from, random.between(0, 6)});
      from = from + Duration{random.between(1, 12)};
    }
    const Window window{Instant{random.between(0, 20)}, Instant{random.between(0, 60)}};
    const Duration run{random.between(1, 25)};
    std::optional<Instant> best;
    for (Instant start = window.earliest; start + run <= window.deadline;
         start = start + Duration{1})
      if (!best || cost_over(steps, start, run) < cost_over(steps, *best, run)) best = start;
    EXPECT_EQ(cheapest_start(steps, window, run), best) << "round " << round;
  }
}

Int128 cost_of(const std::vector<std::int64_t>& prices, std::uint64_t chosen,
               std::int64_t restart) {
  Int128 cost = 0;
  for (std::size_t slot = 0; slot < prices.size(); ++slot) {
    if (((chosen >> slot) & 1) == 0) continue;
    cost += prices[slot];
    if (slot == 0 || ((chosen >> (slot - 1)) & 1) == 0) cost += restart;
  }
  return cost;
}

TEST(Deferral, SlotsEqualEverySubsetTriedByHand) {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> prices(static_cast<std::size_t>(random.between(1, 11)));
    for (auto& price : prices) price = random.between(0, 9);
    const std::int64_t restart = random.between(0, 5);
    const std::size_t needed = random.below(prices.size()) + 1;
    Int128 least = Int128{1} << 100;
    for (std::uint64_t set = 0; set < std::uint64_t{1} << prices.size(); ++set)
      if (static_cast<std::size_t>(__builtin_popcountll(set)) == needed)
        least = std::min(least, cost_of(prices, set, restart));
    std::uint64_t chosen = 0;
    for (const std::size_t slot : cheapest_slots(prices, needed, restart))
      chosen |= std::uint64_t{1} << slot;
    EXPECT_EQ(static_cast<std::size_t>(__builtin_popcountll(chosen)), needed);
    EXPECT_TRUE(cost_of(prices, chosen, restart) == least) << "round " << round;
  }
  EXPECT_TRUE(cheapest_slots(std::vector<std::int64_t>{1, 2}, 3, 0).empty());
  EXPECT_EQ(cheapest_slots(std::vector<std::int64_t>{2, 2, 2, 2}, 2, 1),
            (std::vector<std::size_t>{0, 1}));
}

TEST(Segments, SumToTheRunAndDifferByAMillisecond) {
  EXPECT_TRUE(rc::check([] {
    const Duration run{*rc::gen::inRange<std::int64_t>(1, 1'000'000'000)};
    const Duration segment{*rc::gen::inRange<std::int64_t>(10'000, 10'000'000)};
    const auto pieces = cut(run, segment);
    Duration sum;
    for (const Duration piece : pieces) {
      sum += piece;
      RC_ASSERT(piece <= segment);
      RC_ASSERT(pieces.front().ms - piece.ms <= 1);
    }
    RC_ASSERT(sum == run);
    RC_ASSERT((static_cast<std::int64_t>(pieces.size()) - 1) * segment.ms < run.ms);
    const Duration done{*rc::gen::inRange<std::int64_t>(0, run.ms)};
    const Piece piece = piece_at(pieces, done);
    RC_ASSERT(piece.begin <= done && done < piece.end);
    RC_ASSERT(piece.end - piece.begin == pieces[piece.index]);
  }));
}

TEST(Segments, TheBestLengthBalancesSavingAndLosing) {
  const SegmentTerms terms;
  // sqrt(2 * 30 s * 10 h) = 24.5 min: too short for these terms.
  EXPECT_EQ(best_segment(terms, Duration::seconds(30), Duration::hours(10)), terms.shortest);
  EXPECT_EQ(best_segment(terms, Duration::seconds(60), Duration::hours(20)),
            Duration{2'939'387});  // 49 min
  EXPECT_EQ(best_segment(terms, Duration::minutes(5), Duration::hours(100)), terms.longest);
  EXPECT_EQ(best_segment(terms, Duration{}, Duration::hours(1)), terms.shortest);
  EXPECT_EQ(best_segment(terms, Duration::seconds(60), Duration{}), terms.longest);
}

}  // namespace
}  // namespace loam::schedule
