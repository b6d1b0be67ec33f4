// MemoryLoans: one device's idle memory quota, lent by those who do not use it to low-class leases,
// and called back when the owner needs it. Never more is handed out than there is: what is lent is
// taken off the owner's quota before it is added to a borrower's, and the other way round.
//
// Calling back: the borrower's quota falls at once (new allocations are refused) and it gets a
// notice; what it holds above its quota when the notice has run out makes it overdue, and it is to
// be checkpointed and stopped within its grace. So an owner waits at most notice + grace.
//
// Pure: the caller gives the time, nanoseconds on a clock that never falls.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "schedule/quantum.hpp"

namespace loam::node {

using schedule::Nanoseconds;

struct LoanTerms {
  Nanoseconds notice_ns = 10'000'000'000;     // for programs that give memory back of themselves
  std::uint64_t grain_bytes = 16u << 20;      // less is not worth a loan
  Nanoseconds lend_after_ns = 5'000'000'000;  // nothing of a lease that was watched for less
  // What an owner keeps above what it is expected to need, in thousandths of its quota.
  std::int32_t margin_permille = 50;
};

// What is known of a lease; the caller brings it up to date before every settle().
struct LoanParty {
  std::uint64_t quota_bytes = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t expected_bytes = 0;  // the most it is expected to need soon
  std::uint64_t wanted_bytes = 0;    // the mark that it asks to come up to; 0: asks for nothing
  bool lends = false;
  bool borrows = false;  // of a low class
};

struct Loan {
  std::uint64_t lent_bytes = 0;      // off the quota
  std::uint64_t borrowed_bytes = 0;  // on top of it

  friend bool operator==(const Loan&, const Loan&) = default;
};

class MemoryLoans {
 public:
  explicit MemoryLoans(const LoanTerms& terms = {}) : terms_(terms) {}

  // Adds a lease or changes what is known of it. `adopted`: what its page said when it was added.
  // Add all that are there before settle(): what is borrowed and not lent was lent by leases that
  // are over, and is called back.
  void set(std::uint64_t lease, const LoanParty& party, const Loan& adopted = {});
  // The lease is over: what it borrowed is free at once; what it lent is called back, and is the
  // device's again when it comes.
  void remove(std::uint64_t lease);

  struct Outcome {
    std::set<std::uint64_t> changed;      // their loans are to be written to their pages
    std::vector<std::uint64_t> noticed;   // borrowers asked to give memory back, told once a call
    std::vector<std::uint64_t> overdue;   // whose notice has run out, told once a call
    std::vector<std::uint64_t> answered;  // whose wish is met or cannot be
  };
  // One round: gives what has come back to owners, else to borrowers; calls back what owners want;
  // takes idle quota for borrowers. What a round takes is given only in a later one, when `used`
  // has been read again under the lower quota: settle until nothing changes. Cost: the leases on
  // the device.
  Outcome settle(Nanoseconds now);

  Loan loan(std::uint64_t lease) const;
  // When a notice runs out; never: none does.
  Nanoseconds next_ns() const;

 private:
  struct Account {
    LoanParty party;
    Loan loan;
    Nanoseconds notice_until_ns = schedule::never_ns;
    bool is_overdue = false;

    std::uint64_t may_hold() const;
    std::uint64_t over() const;   // held above what it may hold
    std::uint64_t needs() const;  // to come up to its mark, or to what it holds
  };

  std::uint64_t pool() const {
    return pool_bytes_ > 0 ? static_cast<std::uint64_t>(pool_bytes_) : 0;
  }
  void into_pool(std::uint64_t bytes) { pool_bytes_ += static_cast<std::int64_t>(bytes); }
  void out_of_pool(std::uint64_t bytes) { pool_bytes_ -= static_cast<std::int64_t>(bytes); }
  std::uint64_t available() const;
  std::uint64_t round_up(std::uint64_t bytes) const;
  void hand_back(Outcome& outcome);
  void grant(Outcome& outcome);
  void call_back(Outcome& outcome, std::uint64_t bytes);
  void collect(Outcome& outcome);
  void return_unwanted(Outcome& outcome);
  void watch_notices(Outcome& outcome, Nanoseconds now);

  LoanTerms terms_;
  std::map<std::uint64_t, Account> accounts_;
  // Taken off quotas and on nobody's; only what nobody holds of it any more can be given. Below
  // zero only between adoptions, when a borrower is known and its lender is not yet.
  std::int64_t pool_bytes_ = 0;
  std::uint64_t ownerless_bytes_ = 0;  // lent by leases that are over, still with borrowers
};

}  // namespace loam::node
