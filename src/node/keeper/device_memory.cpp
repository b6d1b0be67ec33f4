#include "node/keeper/device_memory.hpp"

#include <algorithm>

#include "node/keeper/page_words.hpp"

namespace loam::node {

namespace {

// Four samples a second: an iteration of a training run takes a good part of one.
constexpr Nanoseconds sample_ns = 250'000'000;
// Expected for the next ten seconds, which is as long as a notice.
constexpr std::size_t samples_ahead = 40;
// A round gives only what the one before it took, so a wish needs three: take, give, settle.
constexpr int rounds_max = 6;

}  // namespace

void DeviceMemory::add(std::uint64_t lease, std::string name, const MappedPage* page,
                       std::uint32_t device) {
  Member member;
  member.name = std::move(name);
  member.page = page;
  member.device = device;
  const Loan adopted{load(member.limits().lent_bytes), load(member.limits().borrowed_bytes)};
  loans_.set(lease, party_of(member), adopted);
  members_.emplace(lease, std::move(member));
}

void DeviceMemory::remove(std::uint64_t lease) {
  members_.erase(lease);
  loans_.remove(lease);
}

bool DeviceMemory::anything_to_do() const {
  bool lends = false, borrows = false;
  for (const auto& [lease, member] : members_) {
    const Loan loan = loans_.loan(lease);
    if (loan != Loan{}) return true;
    lends = lends || loam_limits_have(&member.limits(), LOAM_LIMIT_LENDS);
    borrows = borrows || loam_limits_have(&member.limits(), LOAM_LIMIT_BORROWS);
  }
  return lends && borrows;
}

LoanParty DeviceMemory::party_of(const Member& member) const {
  LoanParty party;
  party.quota_bytes = load(member.limits().memory_bytes);
  const bool unlimited = party.quota_bytes == LOAM_SLICE_NO_LIMIT;
  if (unlimited) party.quota_bytes = 0;
  // The book is the task's to write: what no device has is not believed.
  constexpr std::uint64_t most = std::uint64_t{1} << 50;
  party.used_bytes = unlimited ? 0 : std::min(load(member.book().used), most);
  party.wanted_bytes = unlimited ? 0 : std::min(load(member.book().wanted_bytes), most);
  party.lends = !unlimited && loam_limits_have(&member.limits(), LOAM_LIMIT_LENDS);
  party.borrows = !unlimited && loam_limits_have(&member.limits(), LOAM_LIMIT_BORROWS);
  const bool known = member.samples > 0 &&
                     static_cast<Nanoseconds>(member.samples) * sample_ns >= terms_.lend_after_ns;
  party.expected_bytes = known ? member.phases.peak_within(samples_ahead) : party.quota_bytes;
  return party;
}

void DeviceMemory::answer(const Member& member) {
  count_up_and_wake(member.book().answers);
}

void DeviceMemory::tell(ReportKind kind, std::uint64_t lease, Nanoseconds now) {
  const Member& member = members_.at(lease);
  KeeperReport report;
  report.kind = kind;
  report.lease = member.name;
  report.device = member.device;
  report.from_ns = report.until_ns = now;
  const std::uint64_t used = load(member.book().used);
  const std::uint64_t quota = loam_quota_bytes(&member.limits());
  report.bytes = used > quota ? used - quota : 0;
  report.end = kind == ReportKind::overdue;
  tell_(report);
}

// One look at the books and one round of the loans; true if anything changed.
bool DeviceMemory::round(Nanoseconds now) {
  for (const auto& [lease, member] : members_) {
    // What is missed may be held by the dead alone.
    if (load(member.book().used) > loam_quota_bytes(&member.limits())) member.page->reclaim_dead();
    loans_.set(lease, party_of(member));
  }
  const MemoryLoans::Outcome outcome = loans_.settle(now);
  for (const std::uint64_t lease : outcome.changed) {
    const Member& member = members_.at(lease);
    const Loan loan = loans_.loan(lease);
    // A page that is gone in this very moment is dropped at the next look.
    static_cast<void>(
        write_loan(root_, member.name, member.device, loan.lent_bytes, loan.borrowed_bytes));
    answer(member);
  }
  for (const std::uint64_t lease : outcome.answered) {
    const Member& member = members_.at(lease);
    __atomic_store_n(&member.book().wanted_bytes, std::uint64_t{0}, __ATOMIC_SEQ_CST);
    answer(member);
  }
  for (const std::uint64_t lease : outcome.noticed) tell(ReportKind::reclaim, lease, now);
  for (const std::uint64_t lease : outcome.overdue) tell(ReportKind::overdue, lease, now);
  return !outcome.changed.empty();
}

Nanoseconds DeviceMemory::step(Nanoseconds now) {
  if (!anything_to_do()) {
    // A borrower alone would wait for an answer in vain.
    for (const auto& [lease, member] : members_) {
      if (load(member.book().wanted_bytes) == 0) continue;
      __atomic_store_n(&member.book().wanted_bytes, std::uint64_t{0}, __ATOMIC_SEQ_CST);
      answer(member);
    }
    return schedule::never_ns;
  }
  if (now >= sample_due_ns_) {
    for (auto& [lease, member] : members_) {
      member.phases.note(load(member.book().used));
      ++member.samples;
    }
    sample_due_ns_ = now + sample_ns;
  }
  for (int i = 0; i < rounds_max && round(now); ++i) {
  }
  return std::min(sample_due_ns_, loans_.next_ns());
}

}  // namespace loam::node
