// The auditor's books of commitments and shortfalls: what is given back is never more than the
// right held, nor than what was charged.
#include <algorithm>

#include "sim/auditor.hpp"

namespace loam::sim {

void Auditor::on(const Record& record, const CommitmentBought& event) {
  const Commitment& commitment = event.commitment;
  const CommitmentTerms& terms = commitment.terms;
  CoverBook& book = covers_[commitment.tenant];
  if (terms.from < record.at || terms.from >= terms.to || terms.fees.empty())
    fail(9, commitment.id.text() + " begins in the past, or lasts no time");
  Instant from = terms.from;
  for (const CommitmentFee& fee : terms.fees) {
    if (fee.from != from) fail(9, commitment.id.text() + " leaves days without a fee");
    if (fee.days < 1 || fee.days > fee.days_of_period || fee.net > fee.list)
      fail(9, commitment.id.text() + " has a fee that is not its days' part of the whole");
    from = fee.to;
  }
  if (from != terms.to) fail(9, commitment.id.text() + " is not paid to its end");
  book.commitments.push_back({commitment, terms.to});
}

void Auditor::on(const Record& record, const CommitmentCharged& event) {
  for (CommitmentEntry& entry : covers_[event.tenant].commitments) {
    if (entry.commitment.id != event.commitment) continue;
    const auto index = static_cast<std::size_t>(event.fee);
    if (event.fee != entry.commitment.fees_charged ||
        event.line.net != entry.commitment.terms.fees.at(index).net ||
        event.from != entry.commitment.terms.fees.at(index).from)
      fail(9, event.commitment.text() + " was charged another fee than agreed");
    if (record.at < entry.commitment.terms.fees.at(index).from)
      fail(9, event.commitment.text() + " was charged before its period began");
    ++entry.commitment.fees_charged;
    owe(event.tenant, event.line);
    return;
  }
  fail(9, event.commitment.text() + " was never bought");
}

void Auditor::on(const Record&, const CommitmentEnded& event) {
  for (CommitmentEntry& entry : covers_[event.tenant].commitments) {
    if (entry.commitment.id != event.commitment) continue;
    const std::int64_t paid = entry.commitment.fees_charged;
    const auto& fees = entry.commitment.terms.fees;
    const bool to_what_is_paid = paid < static_cast<std::int64_t>(fees.size()) &&
                                 event.at == fees.at(static_cast<std::size_t>(paid)).from;
    if (!to_what_is_paid) fail(9, event.commitment.text() + " does not end with what is paid");
    entry.until = event.at;
  }
}

void Auditor::on(const Record& record, const UseCovered& event) {
  CoverBook& book = covers_[event.tenant];
  TenantBook& tenant = tenants_.at(event.tenant.value - 1);
  const Instant end = event.hour + Duration::hours(1);
  if (end > record.at) fail(9, "an hour was covered before it was over");
  Int128& covered = book.covered[event.hour];
  if (book.given.is_zero()) book.given = Money::zero(tenant.spec.currency);
  for (const AdjustmentLine& line : event.lines) {
    covered -= line.milli_ce_ms;
    book.given -= line.net;
    owe(event.tenant, line);
    if (!line.net.is_negative()) tenant.overrun += line.net + line.net;  // with any tax on it
  }
  Int128 right = 0;
  for (const CommitmentEntry& entry : book.commitments) {
    const Instant from = std::max(entry.commitment.terms.from, event.hour);
    const Instant to = std::min(entry.until, end);
    const CommitmentTerms& terms = entry.commitment.terms;
    if (from >= to) continue;
    right += Int128{terms.ce.value} * (to - from).ms;
    if (!terms.spend.is_zero())
      right += terms.spend.units() * (to - from).ms * 1000 / terms.unit_price.units();
  }
  if (covered < 0 || covered > right)
    fail(9, "more was covered in an hour of " + tenant.spec.name + " than was committed");
}

// Once every correction was made: what is covered was charged before.
void Auditor::check_covers() {
  for (const auto& [id, book] : covers_) {
    const TenantBook& tenant = tenants_.at(id.value - 1);
    if (book.covered.empty()) continue;
    // Every part is rounded by itself: up to half of the last decimal each.
    const Money rounding(static_cast<Int128>(records_), tenant.spec.currency);
    if (book.given.is_negative() || book.given > book.used + rounding)
      fail(9, "more was given back to " + tenant.spec.name + " than it was charged");
  }
}

void Auditor::on(const Record&, const TokensUsed& event) {
  TenantBook& caller = tenants_.at(event.use.caller.value - 1);
  Money passed_on = Money::zero(caller.spec.currency);
  Money charged = passed_on;
  std::int64_t tokens = 0;
  for (const AdjustmentLine& line : event.charged) {
    charged += line.net;
    tokens += line.milli_ce_ms;
    owe(event.use.caller, line);
    caller.overrun += line.net + line.net;  // with any tax on it
    if (line.net.is_negative() || line.net > line.list)
      fail(9, "tokens of " + event.use.model + " cost " + to_text(line.net));
  }
  if (!event.charged.empty() && tokens != event.use.prompt_tokens + event.use.generated_tokens)
    fail(9, "tokens of " + event.use.model + " were charged that nobody used");
  for (const AdjustmentLine& line : event.earned) {
    passed_on -= line.net;
    owe(event.use.owner, line);
  }
  if (!event.earned.empty() && (passed_on != charged || event.use.owner == event.use.caller))
    fail(9, "the owner of " + event.use.model + " got other money than was charged");
}

// What a task keeps on disk without a lease is billed without a gap up to its start or its end.
void Auditor::check_kept(const TaskBook& book, Instant until) {
  if (book.kept_from && *book.kept_from != until)
    fail(8, book.id.text() + " keeps " + to_text(book.kept) + " and was billed for it until " +
                to_text(*book.kept_from));
}

void Auditor::on(const Record& record, const ServicesUsed& event) {
  TaskBook* owner = task(event.task, 8);
  if (owner == nullptr) return;
  const std::string what = "storage and network of " + event.task.text();
  if (event.from >= event.to || event.to > record.at) fail(8, what + " are billed for no time");
  if (event.lease.valid()) {
    LeaseBook* book = lease(event.lease, 8);
    if (book == nullptr) return;
    if (book->task != event.task || !book->started_at || event.from < *book->started_at)
      fail(8, what + " are billed before " + event.lease.text() + " ran");
    if (book->services_until && event.from != *book->services_until)
      fail(8, what + " are billed twice or not at all");
    book->services_until = event.to;
    owner->kept = event.kept;
    owner->backed_up = event.backed_up;
  } else {
    if (!owner->leases.empty() || !owner->kept_from || event.from != *owner->kept_from)
      fail(8, what + " are billed twice or not at all");
    if (event.kept != owner->kept ||
        event.use.storage_mib_ms != owner->kept.value * (event.to - event.from).ms)
      fail(8, what + " are not what is kept");
    if (event.backed_up != owner->backed_up) fail(8, what + " changed without a lease");
    owner->kept_from = event.to;
  }
  if (event.use.backup_mib_ms != event.backed_up.value * (event.to - event.from).ms)
    fail(8, what + " have other backups than are held");
  Int128 stored = 0;
  Int128 backed_up = 0;
  Int128 moved = 0;
  for (const AdjustmentLine& line : event.lines) {
    (line.key.kind == InvoiceLineKind::storage  ? stored
     : line.key.kind == InvoiceLineKind::backup ? backed_up
                                                : moved) += line.milli_ce_ms;
    owner->rated += line.net;
    owe(event.tenant, line);
    if (!line.net.is_zero()) owner->services = line.net;
    if (line.net.is_negative() || line.net > line.list)
      fail(9, what + " cost " + to_text(line.net));
  }
  if (stored > event.use.storage_mib_ms || backed_up > event.use.backup_mib_ms ||
      moved > event.use.received_bytes + event.use.sent_bytes)
    fail(9, what + " were charged beyond what was used");
}

void Auditor::on(const Record& record, const ShortfallCredited& event) {
  const LeaseBook* book = lease(event.lease, 9);
  TaskBook* owner = task(event.task, 9);
  if (book == nullptr || owner == nullptr) return;
  if (!book->started_at || event.from < *book->started_at || event.to > record.at ||
      event.from >= event.to)
    fail(9, event.lease.text() + " is credited for a time in which it did not run");
  if (!event.line.net.is_negative() || event.delivered >= event.promised)
    fail(9, event.lease.text() + " is credited for what it got");
  owner->rated += event.line.net;
  owe(owner->tenant, event.line);
}

void Auditor::on(const Record& record, const LostWorkCredited& event) {
  LeaseBook* book = lease(event.lease, 9);
  TaskBook* owner = task(event.task, 9);
  if (book == nullptr || owner == nullptr) return;
  if (!book->started_at || event.from != *book->started_at || event.to != book->rated_until ||
      event.to > record.at)
    fail(9, event.lease.text() + " is credited for another time than it ran");
  if (event.line.net.is_zero() || !event.line.net.is_negative() ||
      (book->net + event.line.net).is_negative())
    fail(9, event.lease.text() + " is credited with more than it was charged");
  owner->rated += event.line.net;
  owe(owner->tenant, event.line);
}

}  // namespace loam::sim
