// Memory in time: phases of a training iteration, loans of idle quota. Pure, on clocks of
// the tests' own.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.hpp"
#include "node/keeper/memory_loans.hpp"
#include "node/keeper/memory_phases.hpp"
#include "node/keeper/units.hpp"

namespace loam::node {
namespace {

TEST(MemoryPhases, AnIterationIsFoundAndItsPeakExpected) {
  MemoryPhases phases;
  const std::vector<std::uint64_t> iteration{200, 400, 800, 1600, 1200, 600, 300,
                                             200, 200, 200, 200,  200,  200};
  for (int i = 0; i < 13 * 12; ++i)
    phases.note(iteration[static_cast<std::size_t>(i) % iteration.size()] * mib);
  ASSERT_TRUE(phases.period().has_value());
  EXPECT_EQ(*phases.period(), 13u);
  // The next sample is an iteration's first: nothing large for a while, then the peak.
  EXPECT_LE(phases.peak_within(1), 800 * mib);
  EXPECT_EQ(phases.peak_within(5), 1600 * mib);
  EXPECT_EQ(phases.peak_within(1000), 1600 * mib);
}

TEST(MemoryPhases, WithoutARhythmTheLargestEverIsExpected) {
  MemoryPhases phases;
  EXPECT_EQ(phases.peak_within(1), UINT64_MAX) << "nothing is known";
  Random random(5);
  for (int i = 0; i < 240; ++i) phases.note(random.below(1000) * mib);
  EXPECT_FALSE(phases.period().has_value());
  EXPECT_GT(phases.peak_within(1), 900 * mib);
  MemoryPhases level;
  for (int i = 0; i < 240; ++i) level.note(500 * mib);
  EXPECT_FALSE(level.period().has_value());
  EXPECT_EQ(level.peak_within(10), 500 * mib);
}

// Leases on pages: what each may hold is what its page said last, and it allocates within that.
class Loans : public ::testing::Test {
 protected:
  void join(std::uint64_t lease, std::uint64_t quota, bool lends, bool borrows) {
    LoanParty party;
    party.quota_bytes = quota;
    party.lends = lends;
    party.borrows = borrows;
    parties_[lease] = party;
    pages_[lease] = {};
  }
  bool allocate(std::uint64_t lease, std::uint64_t bytes) {
    LoanParty& party = parties_[lease];
    const Loan& page = pages_[lease];
    if (party.used_bytes + bytes > party.quota_bytes - page.lent_bytes + page.borrowed_bytes) {
      party.wanted_bytes = party.used_bytes + bytes;
      return false;
    }
    party.used_bytes += bytes;
    return true;
  }
  MemoryLoans::Outcome round(Nanoseconds now) {
    for (const auto& [lease, party] : parties_) {
      LoanParty known = party;
      known.expected_bytes = party.used_bytes;
      loans_.set(lease, known);
    }
    const MemoryLoans::Outcome outcome = loans_.settle(now);
    for (const auto& [lease, page] : pages_) pages_[lease] = loans_.loan(lease);
    for (const std::uint64_t lease : outcome.answered) parties_[lease].wanted_bytes = 0;
    return outcome;
  }
  void rounds(Nanoseconds now, int count = 4) {
    for (int i = 0; i < count; ++i) round(now);
  }
  std::uint64_t held() const {
    std::uint64_t sum = 0;
    for (const auto& [lease, party] : parties_) sum += party.used_bytes;
    return sum;
  }

  MemoryLoans loans_;
  std::map<std::uint64_t, LoanParty> parties_;
  std::map<std::uint64_t, Loan> pages_;
};

TEST_F(Loans, IdleQuotaIsLentAndCalledBackWithinTheNotice) {
  join(1, 1000 * mib, true, false);
  join(2, 100 * mib, false, true);
  ASSERT_TRUE(allocate(1, 200 * mib));
  ASSERT_FALSE(allocate(2, 500 * mib));
  rounds(0);
  ASSERT_TRUE(allocate(2, 500 * mib)) << "the owner uses a fifth";
  // The owner needs its own again.
  ASSERT_FALSE(allocate(1, 700 * mib));
  auto outcome = round(second);
  EXPECT_EQ(outcome.noticed, std::vector<std::uint64_t>{2});
  EXPECT_FALSE(allocate(2, 50 * mib)) << "nothing new while it is called back";
  parties_[2].wanted_bytes = 0;
  EXPECT_EQ(loans_.next_ns(), 11 * second);
  EXPECT_TRUE(round(10 * second).overdue.empty());
  EXPECT_EQ(round(11 * second).overdue, std::vector<std::uint64_t>{2});
  EXPECT_TRUE(round(12 * second).overdue.empty()) << "told once";
  EXPECT_FALSE(allocate(1, 700 * mib)) << "not before the borrower has let go";
  parties_[2].used_bytes = 100 * mib;
  rounds(13 * second);
  EXPECT_TRUE(allocate(1, 700 * mib));
  EXPECT_LE(pages_[2].borrowed_bytes, 100 * mib) << "what the owner still leaves";
}

TEST_F(Loans, ABorrowerThatGivesBackOfItselfIsNeverOverdue) {
  join(1, 1000 * mib, true, false);
  join(2, 0, false, true);
  ASSERT_FALSE(allocate(2, 800 * mib));
  rounds(0);
  ASSERT_TRUE(allocate(2, 800 * mib));
  ASSERT_FALSE(allocate(1, 900 * mib));
  EXPECT_EQ(round(second).noticed.size(), 1u);
  parties_[2].used_bytes = 0;
  rounds(2 * second);
  EXPECT_TRUE(allocate(1, 900 * mib));
  EXPECT_TRUE(round(60 * second).overdue.empty());
}

TEST_F(Loans, OnlyWhoLendsIsLentFromAndOnlyWhoBorrowsBorrows) {
  join(1, 1000 * mib, false, false);
  join(2, 100 * mib, false, true);
  join(3, 1000 * mib, true, false);
  join(4, 100 * mib, false, false);
  EXPECT_FALSE(allocate(4, 200 * mib));
  EXPECT_FALSE(allocate(2, 400 * mib));
  rounds(0);
  EXPECT_EQ(pages_[1], Loan{});
  EXPECT_EQ(pages_[4], Loan{});
  EXPECT_GT(pages_[3].lent_bytes, 0u);
  EXPECT_FALSE(allocate(4, 200 * mib));
}

TEST_F(Loans, AWishThatCannotBeMetTakesNothing) {
  join(1, 1000 * mib, true, false);
  join(2, 0, false, true);
  ASSERT_FALSE(allocate(2, 2000 * mib));
  rounds(0);
  EXPECT_EQ(pages_[1], Loan{});
  EXPECT_EQ(pages_[2], Loan{});
}

TEST_F(Loans, UnusedLoansGoHome) {
  join(1, 1000 * mib, true, false);
  join(2, 0, false, true);
  ASSERT_FALSE(allocate(2, 400 * mib));
  rounds(0);
  ASSERT_TRUE(allocate(2, 400 * mib));
  parties_.erase(2);
  pages_.erase(2);
  loans_.remove(2);
  rounds(second);
  EXPECT_EQ(pages_[1], Loan{});
}

// Whatever happens in whatever order, the leases together never hold more than their quotas, and an
// owner gets its own back.
TEST_F(Loans, NeverMoreIsHeldThanThereIs) {
  Random random(17);
  for (std::uint64_t lease = 1; lease <= 6; ++lease) join(lease, 500 * mib, lease <= 3, lease > 3);
  const std::uint64_t all = 6 * 500 * mib;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t lease = 1 + random.below(6);
    LoanParty& party = parties_[lease];
    switch (random.below(4)) {
      case 0:
      case 1:
        allocate(lease, random.below(300) * mib);
        break;
      case 2:
        party.used_bytes -= party.used_bytes * random.below(101) / 100;
        break;
      default:
        round(step * second / 10);
    }
    ASSERT_LE(held(), all) << "step " << step;
    for (const auto& [id, page] : pages_) ASSERT_LE(page.lent_bytes, parties_[id].quota_bytes);
  }
  for (std::uint64_t lease = 4; lease <= 6; ++lease)
    parties_[lease].used_bytes = parties_[lease].wanted_bytes = 0;
  for (std::uint64_t lease = 1; lease <= 3; ++lease) {
    parties_[lease].used_bytes = 0;
    parties_[lease].wanted_bytes = 500 * mib;
  }
  rounds(3000 * second, 8);
  for (std::uint64_t lease = 1; lease <= 3; ++lease)
    EXPECT_TRUE(allocate(lease, 500 * mib)) << lease;
}

}  // namespace
}  // namespace loam::node
