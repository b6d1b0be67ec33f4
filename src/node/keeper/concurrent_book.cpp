#include "node/keeper/concurrent_book.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::node {

namespace {

// A debt is remembered for this long at the lease's own share, so that one overdraft by a long
// kernel does not shut a lease out for minutes.
constexpr Nanoseconds debt_window_ns = 5'000'000'000;

}  // namespace

void ConcurrentBook::set_terms(std::uint64_t lease, const TurnTerms& terms, Nanoseconds now) {
  pass(now);
  const auto [entry, added] = accounts_.try_emplace(lease);
  entry->second.terms = terms;
  if (added) {
    entry->second.credit = credit_max(entry->second);
    entry->second.allowance = terms.quantum_ns * terms.cap_milli;
  }
}

void ConcurrentBook::set_state(std::uint64_t lease, bool works, bool waits) {
  Account& account = accounts_.at(lease);
  account.works = works;
  account.waits = waits;
}

void ConcurrentBook::pass(Nanoseconds now) {
  if (!started_) {
    now_ = now;
    started_ = true;
  }
  LOAM_ASSERT(now >= now_);
  const Nanoseconds step = now - now_;
  now_ = now;
  const auto working = static_cast<Nanoseconds>(std::count_if(
      accounts_.begin(), accounts_.end(), [](const auto& entry) { return entry.second.works; }));
  Nanoseconds rest = working > 0 ? step % working : 0;
  std::size_t index = 0;
  const std::size_t first = next_remainder_;
  next_remainder_ += static_cast<std::size_t>(rest);
  for (auto& [lease, account] : accounts_) {
    Nanoseconds used = 0;
    if (account.works) {
      used = step / working;
      // Whole nanoseconds; those that do not divide go round.
      const auto place =
          (index + static_cast<std::size_t>(working) - first % static_cast<std::size_t>(working)) %
          static_cast<std::size_t>(working);
      if (static_cast<Nanoseconds>(place) < rest) ++used;
      ++index;
    }
    account.used_ns += used;
    const std::int64_t least = -debt_window_ns * std::max(account.terms.share_milli, 1);
    account.credit = std::clamp(account.credit + step * account.terms.share_milli - used * 1000,
                                least, credit_max(account));
    account.allowance = std::clamp(account.allowance + step * account.terms.cap_milli - used * 1000,
                                   -debt_window_ns * account.terms.cap_milli,
                                   account.terms.quantum_ns * account.terms.cap_milli);
  }
}

bool ConcurrentBook::may_work(std::uint64_t lease) const {
  const Account& account = accounts_.at(lease);
  if (account.terms.cap_milli < 1000 && account.allowance <= 0) return false;
  if (account.credit > 0) return true;
  if (account.terms.strict) return false;
  // Somebody behind its share would be slowed further.
  return std::none_of(accounts_.begin(), accounts_.end(), [&](const auto& entry) {
    return entry.first != lease && entry.second.credit > 0 &&
           (entry.second.works || entry.second.waits);
  });
}

}  // namespace loam::node
