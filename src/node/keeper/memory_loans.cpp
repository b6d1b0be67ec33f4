#include "node/keeper/memory_loans.hpp"

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"

namespace loam::node {

std::uint64_t MemoryLoans::Account::may_hold() const {
  return party.quota_bytes - loan.lent_bytes + loan.borrowed_bytes;
}

std::uint64_t MemoryLoans::Account::over() const {
  return party.used_bytes > may_hold() ? party.used_bytes - may_hold() : 0;
}

std::uint64_t MemoryLoans::Account::needs() const {
  const std::uint64_t mark = std::max(party.wanted_bytes, party.used_bytes);
  return mark > may_hold() ? mark - may_hold() : 0;
}

void MemoryLoans::set(std::uint64_t lease, const LoanParty& party, const Loan& adopted) {
  const auto [entry, added] = accounts_.try_emplace(lease);
  Account& account = entry->second;
  account.party = party;
  if (added) {
    account.loan = adopted;
    into_pool(adopted.lent_bytes);
    out_of_pool(adopted.borrowed_bytes);
  }
  // A quota that was lowered below what is lent of it lends no more than it has.
  if (account.loan.lent_bytes > party.quota_bytes) {
    const std::uint64_t gone = account.loan.lent_bytes - party.quota_bytes;
    account.loan.lent_bytes = party.quota_bytes;
    ownerless_bytes_ += gone;
  }
}

void MemoryLoans::remove(std::uint64_t lease) {
  const auto entry = accounts_.find(lease);
  if (entry == accounts_.end()) return;
  into_pool(entry->second.loan.borrowed_bytes);
  ownerless_bytes_ += entry->second.loan.lent_bytes;
  accounts_.erase(entry);
}

std::uint64_t MemoryLoans::round_up(std::uint64_t bytes) const {
  return (bytes + terms_.grain_bytes - 1) / terms_.grain_bytes * terms_.grain_bytes;
}

std::uint64_t MemoryLoans::available() const {
  const std::uint64_t held = std::accumulate(
      accounts_.begin(), accounts_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const auto& entry) { return sum + entry.second.over(); });
  return pool() > held ? pool() - held : 0;
}

// To owners first, in order of their leases; then what the dead have lent leaves the books.
void MemoryLoans::hand_back(Outcome& outcome) {
  for (auto& [lease, account] : accounts_) {
    // What is over its quota does not stand in the way of giving the quota back.
    const std::uint64_t room = available() + std::min(account.over(), pool());
    const std::uint64_t given = std::min({account.needs(), account.loan.lent_bytes, room, pool()});
    if (given == 0) continue;
    account.loan.lent_bytes -= given;
    out_of_pool(given);
    outcome.changed.insert(lease);
  }
  const std::uint64_t gone = std::min(ownerless_bytes_, available());
  ownerless_bytes_ -= gone;
  out_of_pool(gone);
}

void MemoryLoans::grant(Outcome& outcome) {
  for (auto& [lease, account] : accounts_) {
    if (!account.party.borrows || account.party.wanted_bytes == 0) continue;
    const std::uint64_t needed = round_up(account.needs());
    if (needed == 0 || needed > available()) continue;
    account.loan.borrowed_bytes += needed;
    out_of_pool(needed);
    outcome.changed.insert(lease);
  }
}

// The largest loan first, so that few are disturbed; ties: the older lease.
void MemoryLoans::call_back(Outcome& outcome, std::uint64_t bytes) {
  while (bytes > 0) {
    auto largest = accounts_.end();
    for (auto at = accounts_.begin(); at != accounts_.end(); ++at)
      if (at->second.loan.borrowed_bytes > 0 &&
          (largest == accounts_.end() ||
           at->second.loan.borrowed_bytes > largest->second.loan.borrowed_bytes))
        largest = at;
    if (largest == accounts_.end()) return;
    Loan& loan = largest->second.loan;
    const std::uint64_t taken = std::min(round_up(bytes), loan.borrowed_bytes);
    loan.borrowed_bytes -= taken;
    into_pool(taken);
    bytes -= std::min(bytes, taken);
    outcome.changed.insert(largest->first);
  }
}

// For borrowers whose wish can be met as a whole; half of an allocation serves nobody.
void MemoryLoans::collect(Outcome& outcome) {
  std::uint64_t needed = 0;
  for (const auto& [lease, account] : accounts_)
    if (account.party.borrows && account.party.wanted_bytes > 0)
      needed += round_up(account.needs());
  needed -= std::min(needed, available());
  if (needed == 0) return;
  const auto idle_of = [&](const Account& account) -> std::uint64_t {
    const LoanParty& party = account.party;
    if (!party.lends || account.loan.borrowed_bytes > 0) return 0;
    const std::uint64_t kept = std::max(party.used_bytes, party.expected_bytes);
    const std::uint64_t margin =
        party.quota_bytes / 1000 * static_cast<std::uint64_t>(terms_.margin_permille);
    const std::uint64_t may = account.may_hold();
    if (kept >= may || may - kept <= margin) return 0;
    return (may - kept - margin) / terms_.grain_bytes * terms_.grain_bytes;
  };
  const std::uint64_t idle = std::accumulate(
      accounts_.begin(), accounts_.end(), std::uint64_t{0},
      [&](std::uint64_t sum, const auto& entry) { return sum + idle_of(entry.second); });
  if (idle < needed) return;
  for (auto& [lease, account] : accounts_) {
    const std::uint64_t taken = std::min(idle_of(account), needed);
    if (taken == 0) continue;
    account.loan.lent_bytes += taken;
    into_pool(taken);
    needed -= taken;
    outcome.changed.insert(lease);
  }
}

// What no borrower asks for goes home.
void MemoryLoans::return_unwanted(Outcome& outcome) {
  for (auto& [lease, account] : accounts_) {
    const std::uint64_t given = std::min(account.loan.lent_bytes, available());
    if (given == 0) continue;
    account.loan.lent_bytes -= given;
    out_of_pool(given);
    outcome.changed.insert(lease);
  }
}

void MemoryLoans::watch_notices(Outcome& outcome, Nanoseconds now) {
  for (auto& [lease, account] : accounts_) {
    if (account.over() == 0 || !account.party.borrows) {
      account.notice_until_ns = schedule::never_ns;
      account.is_overdue = false;
    } else if (account.notice_until_ns == schedule::never_ns) {
      account.notice_until_ns = now + terms_.notice_ns;
      outcome.noticed.push_back(lease);
    } else if (now >= account.notice_until_ns && !account.is_overdue) {
      account.is_overdue = true;
      outcome.overdue.push_back(lease);
    }
  }
}

MemoryLoans::Outcome MemoryLoans::settle(Nanoseconds now) {
  Outcome outcome;
  if (pool_bytes_ < 0) {
    ownerless_bytes_ += static_cast<std::uint64_t>(-pool_bytes_);
    pool_bytes_ = 0;
  }
  hand_back(outcome);
  std::uint64_t owed = ownerless_bytes_;
  for (const auto& [lease, account] : accounts_)
    owed += std::min(account.needs(), account.loan.lent_bytes);
  if (owed > pool()) call_back(outcome, owed - pool());
  if (owed == 0) {
    grant(outcome);
    collect(outcome);
    if (outcome.changed.empty()) return_unwanted(outcome);
  }
  watch_notices(outcome, now);
  for (const auto& [lease, account] : accounts_) {
    if (account.party.wanted_bytes == 0) continue;
    const bool waits_for_loan = account.loan.lent_bytes > 0 && account.needs() > 0;
    if (!waits_for_loan && !outcome.changed.contains(lease) &&
        (account.needs() == 0 || pool() == 0))
      outcome.answered.push_back(lease);
  }
  return outcome;
}

Loan MemoryLoans::loan(std::uint64_t lease) const {
  const auto entry = accounts_.find(lease);
  return entry == accounts_.end() ? Loan{} : entry->second.loan;
}

Nanoseconds MemoryLoans::next_ns() const {
  Nanoseconds next = schedule::never_ns;
  for (const auto& [lease, account] : accounts_)
    if (!account.is_overdue) next = std::min(next, account.notice_until_ns);
  return next;
}

}  // namespace loam::node
