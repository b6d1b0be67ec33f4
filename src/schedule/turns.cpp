#include "schedule/turns.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace loam::schedule {

namespace {

__extension__ typedef __int128 Wide;

// A lease kept waiting by others' long kernels is repaid up to this much of its entitlement: long
// enough for kernels of half a second, short enough that a repaid lease does not rule for minutes.
constexpr Nanoseconds wronged_window_ns = 5'000'000'000;
// A lease that asked for nothing this long has given up what it was owed.
constexpr Nanoseconds forgiven_after_ns = 200'000'000;
// Debt beyond this is not remembered: one hour of the whole device.
constexpr std::int64_t debt_max = 3'600'000'000'000 * 1000;
// A step of the clock beyond this counts as this much (a suspended machine).
constexpr Nanoseconds step_max_ns = 10'000'000'000;
constexpr std::int64_t virtual_scale = 1024;
// Progress beyond this makes no turn longer.
constexpr Nanoseconds progress_max_ns = 3'600'000'000'000;
constexpr std::int64_t surplus_turns_kept = 4;
// A program that takes longer than this between kernels is not waited for: the device would idle
// more than a neighbour's turn is worth. On a busy machine waking up alone takes milliseconds.
constexpr Nanoseconds think_max_ns = 5'000'000;

std::int64_t entitlement(const TurnTerms& terms, Nanoseconds window_ns) {
  return window_ns * terms.share_milli;
}

// What an idle lease may save up: one turn, so that a cap holds in every short window.
std::int64_t idle_credit_max(const TurnTerms& terms) {
  return entitlement(terms, terms.quantum_ns);
}

}  // namespace

void TurnBook::accrue(Nanoseconds now) {
  if (!started_) {
    now_ = now;
    started_ = true;
  }
  LOAM_ASSERT(now >= now_);
  const Nanoseconds step = std::min(now - now_, step_max_ns);
  now_ = now;
  for (auto& [lease, account] : accounts_) {
    const std::int64_t gain = entitlement(account.terms, step);
    const bool active = account.waiting || holder_ == lease;
    // A cap saves up one turn and no more, whatever was missed.
    account.allowance = std::min(account.allowance + step * account.terms.cap_milli,
                                 account.terms.quantum_ns * account.terms.cap_milli);
    const std::int64_t most =
        active ? entitlement(account.terms, wronged_window_ns) : idle_credit_max(account.terms);
    if (account.credit < most) account.credit = std::min(account.credit + gain, most);
    if (!active && now - account.idle_since_ns > forgiven_after_ns) {
      account.credit = std::min(account.credit, idle_credit_max(account.terms));
      account.progress_ns = 0;
    }
  }
}

void TurnBook::set_terms(std::uint64_t lease, const TurnTerms& terms, Nanoseconds now) {
  LOAM_ASSERT(terms.share_milli >= 0 && terms.share_milli <= 1000 && terms.weight >= 1);
  LOAM_ASSERT(terms.quantum_ns > 0 && terms.cap_milli >= 1 && terms.cap_milli <= 1000);
  accrue(now);
  const auto [entry, added] = accounts_.try_emplace(lease);
  entry->second.terms = terms;
  if (added) {
    entry->second.idle_since_ns = now;
    entry->second.credit = idle_credit_max(terms);
    entry->second.allowance = terms.quantum_ns * terms.cap_milli;
    entry->second.virtual_time = virtual_clock_;
  }
}

void TurnBook::remove(std::uint64_t lease) {
  accounts_.erase(lease);
  if (holder_ == lease) holder_.reset();
}

void TurnBook::set_waiting(std::uint64_t lease, bool waiting, Nanoseconds now) {
  const auto entry = accounts_.find(lease);
  LOAM_ASSERT(entry != accounts_.end());
  Account& account = entry->second;
  if (account.waiting == waiting) return;
  accrue(now);
  account.waiting = waiting;
  if (waiting) {
    // An idle lease saves up no surplus: it starts where the others are, but for the few turns that
    // one which was only slow to ask again has missed.
    account.virtual_time = std::max(account.virtual_time,
                                    virtual_clock_ - surplus_turns_kept * account.terms.quantum_ns *
                                                         virtual_scale / account.terms.weight);
    if (account.served && holder_ != lease) {
      // The mean forgets quickly, and one long pause does not make a program slow.
      const Nanoseconds took = std::min(now - account.idle_since_ns, 4 * think_max_ns);
      account.think_ns = (3 * account.think_ns + took) / 4;
      account.served = false;
    }
  } else if (holder_ != lease) {
    account.idle_since_ns = now;
  }
  note_contention(now);
}

bool TurnBook::others_wait(std::uint64_t lease) const {
  return std::any_of(accounts_.begin(), accounts_.end(), [&](const auto& entry) {
    return entry.first != lease && entry.second.waiting;
  });
}

void TurnBook::note_contention(Nanoseconds now) {
  if (!holder_) return;
  if (!others_wait(*holder_)) {
    contended_ns_ = never_ns;
  } else if (contended_ns_ == never_ns) {
    contended_ns_ = now;
  }
}

Nanoseconds TurnBook::eligible_ns(const Account& account, Nanoseconds now) {
  if (is_capped(account) && account.allowance <= 0)
    return now + (-account.allowance) / account.terms.cap_milli + 1;
  if (account.credit > 0 || !account.terms.strict) return now;
  if (account.terms.share_milli == 0) return never_ns;
  return now + (-account.credit) / account.terms.share_milli + 1;
}

bool TurnBook::rival_ready(Nanoseconds now) {
  return rival_ready_ns(now) <= now;
}

Nanoseconds TurnBook::rival_ready_ns(Nanoseconds now) {
  accrue(now);
  Nanoseconds first = never_ns;
  for (const auto& [lease, account] : accounts_)
    if (account.waiting && holder_ != lease) first = std::min(first, eligible_ns(account, now));
  return first;
}

bool TurnBook::service_kept_waiting(Nanoseconds now) {
  if (!holder_ || accounts_.at(*holder_).terms.service) return false;
  accrue(now);
  return std::any_of(accounts_.begin(), accounts_.end(), [&](const auto& entry) {
    const Account& account = entry.second;
    return account.terms.service && account.waiting && eligible_ns(account, now) <= now;
  });
}

std::int64_t TurnBook::waiting_beside(std::uint64_t lease) const {
  return std::count_if(accounts_.begin(), accounts_.end(), [&](const auto& entry) {
    return entry.first != lease && entry.second.waiting;
  });
}

Nanoseconds TurnBook::turn_ns(std::uint64_t lease) const {
  const Account& account = accounts_.at(lease);
  if (account.terms.kind == TurnKind::fixed) return account.terms.quantum_ns;
  return dynamic_quantum_ns(quantum_, account.terms.quantum_ns, account.progress_ns,
                            waiting_beside(lease));
}

// Services first; of those owed, the one furthest behind in time (the largest credit / share); else
// the one with the least surplus so far. Ties fall to the older lease.
bool TurnBook::goes_before(const Account& a, const Account& b, bool owed) {
  if (a.terms.service != b.terms.service) return a.terms.service;
  if (!owed) return a.virtual_time < b.virtual_time;
  return Wide{a.credit} * b.terms.share_milli > Wide{b.credit} * a.terms.share_milli;
}

Nanoseconds TurnBook::patience_of(const Account& account) {
  if (account.think_ns > think_max_ns) return account.terms.linger_ns;
  return std::max(account.terms.linger_ns, 2 * account.think_ns);
}

Nanoseconds TurnBook::patience_ns(std::uint64_t lease) const {
  const auto entry = accounts_.find(lease);
  return entry == accounts_.end() ? 0 : patience_of(entry->second);
}

Nanoseconds TurnBook::owed_back_ns(Nanoseconds now) const {
  Nanoseconds until = never_ns;
  for (const auto& [lease, account] : accounts_) {
    const Nanoseconds back = account.idle_since_ns + patience_of(account);
    if (!account.waiting && account.served && account.credit > 0 && back > now)
      until = std::min(until, back);
  }
  return until;
}

TurnChoice TurnBook::choose(Nanoseconds now) {
  LOAM_ASSERT(!holder_);
  accrue(now);
  const std::pair<const std::uint64_t, Account>* owed = nullptr;
  const std::pair<const std::uint64_t, Account>* spare = nullptr;
  TurnChoice choice;
  for (const auto& entry : accounts_) {
    const Account& account = entry.second;
    if (!account.waiting) continue;
    choice.look_again_ns = std::min(choice.look_again_ns, eligible_ns(account, now));
    if (is_capped(account) && account.allowance <= 0) continue;
    if (account.credit > 0 && (!owed || goes_before(account, owed->second, true))) owed = &entry;
    if (!account.terms.strict && (!spare || goes_before(account, spare->second, false)))
      spare = &entry;
  }
  if (!owed && spare) {
    const Nanoseconds expected = owed_back_ns(now);
    if (expected != never_ns) {
      choice.look_again_ns = expected;
      return choice;
    }
  }
  const auto* chosen = owed ? owed : spare;
  if (!chosen) return choice;

  const Account& account = chosen->second;
  surplus_turn_ = !owed;
  if (surplus_turn_) virtual_clock_ = std::max(virtual_clock_, account.virtual_time);
  holder_ = chosen->first;
  granted_ns_ = now;
  contended_ns_ = never_ns;
  note_contention(now);
  const bool endless = contended_ns_ == never_ns && !is_capped(account) &&
                       (!account.terms.strict || account.terms.share_milli == 1000);
  choice.grant =
      TurnChoice::Grant{chosen->first, endless ? never_ns : now + turn_ns(chosen->first)};
  return choice;
}

void TurnBook::close(Nanoseconds used_ns, Nanoseconds idle_since_ns, Nanoseconds now) {
  LOAM_ASSERT(holder_ && used_ns >= 0);
  accrue(now);
  Account& account = accounts_.at(*holder_);
  const std::int64_t used = std::min(used_ns, debt_max / 1000) * 1000;
  const Nanoseconds contended = contended_ns_ == never_ns ? 0 : now - contended_ns_;
  if (account.terms.strict) {
    account.credit -= used;
  } else if (surplus_turn_) {
    // Idle time is free; time beyond the turn that others waited for is not.
    const Nanoseconds beyond = std::max<Nanoseconds>(used_ns - turn_ns(*holder_), 0);
    account.credit -= std::min(beyond, contended) * 1000;
  } else {
    // While nobody waited, the lease only spends what it was owed.
    const std::int64_t disputed = std::min(used_ns, contended) * 1000;
    account.credit -= std::min(used - disputed, std::max<std::int64_t>(account.credit, 0));
    account.credit -= disputed;
  }
  if (surplus_turn_) account.virtual_time += used / 1000 * virtual_scale / account.terms.weight;
  account.credit = std::max(account.credit, -debt_max);
  account.allowance = std::max(account.allowance - used, -debt_max);
  if (account.terms.share_milli == 0) account.credit = 0;
  account.idle_since_ns = std::min(idle_since_ns, now);
  account.served = used_ns > 0;
  account.progress_ns = std::min(account.progress_ns + used_ns, progress_max_ns);
  holder_.reset();
}

std::optional<Nanoseconds> TurnBook::renew(Nanoseconds used_ns, Nanoseconds now) {
  LOAM_ASSERT(holder_);
  const std::uint64_t lease = *holder_;
  TurnBook tried = *this;
  tried.close(used_ns, now, now);
  tried.set_waiting(lease, true, now);
  const TurnChoice choice = tried.choose(now);
  if (!choice.grant || choice.grant->lease != lease) return std::nullopt;
  *this = std::move(tried);
  return choice.grant->until_ns;
}

Nanoseconds TurnBook::credit_ns(std::uint64_t lease) const {
  const auto entry = accounts_.find(lease);
  return entry == accounts_.end() ? 0 : entry->second.credit / 1000;
}

}  // namespace loam::schedule
