#include "engine/commitments.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "billing/attribution.hpp"
#include "billing/commitments.hpp"
#include "engine/adjustment_books.hpp"
#include "engine/decisions.hpp"
#include "engine/queries.hpp"

namespace loam::engine {
namespace {

Instant covers_until(const Commitment& commitment) {
  return std::min(commitment.terms.to, commitment.ended_at);
}

bool fee_open(const Commitment& commitment) {
  return commitment.ended_at == Instant::never() &&
         commitment.fees_charged < static_cast<std::int64_t>(commitment.terms.fees.size());
}

const CommitmentFee& next_fee(const Commitment& commitment) {
  return commitment.terms.fees.at(static_cast<std::size_t>(commitment.fees_charged));
}

Instant due_of(const CommitmentBook& book) {
  Instant due = Instant::never();
  for (const Commitment& commitment : book.commitments) {
    if (fee_open(commitment)) due = std::min(due, next_fee(commitment).from);
  }
  for (const auto& [start, of] : book.hours) {
    if (!of.due) continue;
    due = std::min(due, start + cover_interval + cover_slack);
    break;
  }
  return due;
}

void set_due(State& state, TenantId tenant, CommitmentBook& book) {
  const Instant due = due_of(book);
  if (due == book.due) return;
  if (book.due != Instant::never()) state.commitment_dues.erase({book.due, tenant});
  if (due != Instant::never()) state.commitment_dues.insert({due, tenant});
  book.due = due;
}

Commitment& commitment_in(CommitmentBook& book, CommitmentId id) {
  const auto found = std::find_if(book.commitments.begin(), book.commitments.end(),
                                  [&](const Commitment& each) { return each.id == id; });
  LOAM_ASSERT(found != book.commitments.end());
  return *found;
}

AdjustmentLine fee_line(const Commitment& commitment) {
  const CommitmentTerms& terms = commitment.terms;
  const CommitmentFee& fee = next_fee(commitment);
  AdjustmentLine line;
  line.key = billing::key_of(commitment.attribution);
  line.key.kind = InvoiceLineKind::fee;
  line.key.purchase_model = PurchaseModel::commitment;
  line.key.unit_price = terms.unit_price;
  line.card = terms.card;
  const Int128 hours = static_cast<Int128>(billing::hours_of_month) * terms.months;
  // Money stands for the use that it is worth.
  const Int128 an_hour = terms.spend.is_zero() ? Int128{terms.ce.value} * cover_interval.ms
                                               : terms.spend.units() * cover_interval.ms * 1000 /
                                                     terms.unit_price.units();
  line.milli_ce_ms = static_cast<std::int64_t>(an_hour * hours * fee.days / fee.days_of_period);
  line.list = fee.list;
  line.net = fee.net;
  return line;
}

// What the hour's use and the commitments in force come to now: lines below zero.
std::vector<AdjustmentLine> lines_of(const CommitmentBook& book, Instant start,
                                     const CoverHour& of) {
  const billing::Period period{start, start + cover_interval};
  std::vector<billing::CapacityRight> rights;
  std::vector<billing::SpendRight> spends;
  for (const Commitment& commitment : book.commitments) {
    const CommitmentTerms& terms = commitment.terms;
    const billing::Period in_force{terms.from, covers_until(commitment)};
    if (in_force.from >= period.to || in_force.to <= period.from) continue;
    if (terms.spend.is_zero()) {
      rights.push_back({commitment.id.text(), in_force, terms.ce});
    } else {
      spends.push_back({in_force, terms.spend, terms.unit_price});
    }
  }
  std::vector<billing::CoverUse> uses;
  for (const CoverPiece& piece : of.pieces)
    uses.push_back({piece.since, piece.lease, {piece.from, piece.to}, piece.ce});
  // Capacity first: what it leaves is what money is for.
  billing::Covered covered = billing::cover(uses, rights, period);
  billing::cover_spend(uses, spends, period, covered);
  std::vector<AdjustmentLine> lines;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Int128 amount = covered.milli_ce_ms[i];
    if (amount != 0) add_to(lines, given_back(of.pieces[i], amount));
  }
  return lines;
}

// Charges the next fee, or ends the commitment where the wallet does not reach.
void charge_fee(Draft& draft, const Commitment& commitment) {
  const State& state = draft.state();
  AdjustmentLine line = fee_line(commitment);
  line.month_end = month_end(state, commitment.tenant, next_fee(commitment).from);
  const Money tax = billing::tax_on(state.card(line.card).terms(), line.net);
  if (line.net + tax > available(state, commitment.tenant)) {
    draft.add(CommitmentEnded{commitment.tenant, commitment.id, next_fee(commitment).from, false,
                              "the wallet does not cover the fee of its next period"});
    return;
  }
  const CommitmentFee& fee = next_fee(commitment);
  draft.add(CommitmentCharged{commitment.tenant, commitment.id, commitment.fees_charged, fee.from,
                              fee.to, line});
  if ((line.net + tax).is_zero()) return;
  draft.add(TransactionPosted{billing::charge(TransactionId{draft.next().transaction++},
                                              commitment.tenant, TaskId{}, line.net, tax,
                                              Money::zero(line.net.currency()))});
}

void cover_hour(Draft& draft, TenantId tenant, const CommitmentBook& book, Instant start,
                const CoverHour& of) {
  UseCovered event{tenant, start, change_from(of.given, lines_of(book, start, of))};
  const State& state = draft.state();
  const Currency currency = state.tenant(tenant).spec.currency;
  const LineSum sum = sum_of(state, event.lines, currency);
  draft.add(std::move(event));
  if (sum.net.is_zero() && sum.tax.is_zero()) return;
  const TransactionId id{draft.next().transaction++};
  draft.add(TransactionPosted{
      sum.whole().is_negative()
          ? billing::refund(id, tenant, TaskId{}, -sum.net, -sum.tax)
          : billing::charge(id, tenant, TaskId{}, sum.net, sum.tax, Money::zero(currency))});
}

// The part of a record that lies in each hour; nothing where no commitment is in force then.
void add_pieces(CommitmentBook& book, const UsageRecord& record, const Lease& lease,
                const Task& task, Instant oldest) {
  for (const billing::Period& period : billing::tiles(record.from, record.to, cover_interval)) {
    const bool in_force = std::any_of(
        book.commitments.begin(), book.commitments.end(), [&](const Commitment& commitment) {
          return commitment.terms.from < period.to && covers_until(commitment) > period.from;
        });
    if (!in_force || hour_of(period.from) < oldest) continue;
    CoverHour& of = book.hours[hour_of(period.from)];
    of.pieces.push_back(piece_of(record, lease, task, period, PurchaseModel::commitment));
    of.due = true;
  }
}

}  // namespace

bool committed(const State& state, TenantId tenant, Instant now) {
  const auto found = state.commitment_books.find(tenant);
  if (found == state.commitment_books.end()) return false;
  const auto& all = found->second.commitments;
  return std::any_of(all.begin(), all.end(), [&](const Commitment& commitment) {
    return commitment.terms.from <= now && now < covers_until(commitment);
  });
}

bool settle_commitments(Draft& draft) {
  const State& state = draft.state();
  if (state.commitment_dues.empty() || state.commitment_dues.begin()->first > draft.now())
    return false;
  const TenantId tenant = state.commitment_dues.begin()->second;
  const CommitmentBook& book = state.commitment_books.at(tenant);
  for (const Commitment& commitment : book.commitments) {
    if (!fee_open(commitment) || next_fee(commitment).from > draft.now()) continue;
    charge_fee(draft, commitment);
    return true;
  }
  for (const auto& [start, of] : book.hours) {
    if (!of.due) continue;
    LOAM_ASSERT(start + cover_interval + cover_slack <= draft.now());
    cover_hour(draft, tenant, book, start, of);
    return true;
  }
  LOAM_ASSERT(false);  // what is due is one of the two
  return false;
}

Decision decide_on(const State& state, Instant now, const BuyCommitment& asked) {
  if (!asked.tenant.valid() || asked.tenant.value > state.tenants.size()) {
    return Draft::rejected({RejectCode::no_such_tenant, "there is no " + asked.tenant.text(),
                            "see the tenants with: loam tenant list"});
  }
  const Tenant& tenant = state.tenant(asked.tenant);
  const std::string code(tenant.spec.currency.code());
  const billing::PriceTable* table = state.rates.at(tenant.spec.currency, now);
  if (table == nullptr) {
    return Draft::rejected({RejectCode::no_rate_card, "there is no price in " + code + " yet",
                            "ask the operator to publish one with a price of commitments"});
  }
  for (const std::string& name : {asked.attribution.project, asked.attribution.environment}) {
    if (!is_name(name)) {
      return Draft::rejected({RejectCode::invalid_argument, "'" + name + "' is not a name",
                              "use 1 to 63 of a-z, 0-9 and '-', starting with a letter"});
    }
  }
  const billing::CommitmentOrder order{asked.ce,    asked.months, asked.from,
                                       asked.until, asked.anchor, asked.spend};
  const auto terms = billing::commitment_on(*table, order, tenant.spec.discount, now);
  if (!terms.ok()) {
    const bool sold = terms.error().kind != ErrorKind::not_found;
    return Draft::rejected({sold ? RejectCode::invalid_argument : RejectCode::not_sold,
                            terms.error().message, terms.error().next_step});
  }
  Draft draft(state, now);
  Commitment commitment;
  commitment.id = CommitmentId{draft.next().commitment++};
  commitment.tenant = tenant.id;
  commitment.attribution = asked.attribution;
  commitment.terms = *terms;
  const Money first = terms->fees.front().net;
  const Money whole = first + billing::tax_on(table->terms(), first);
  // Who pays in advance has the money when the order is given, whenever the first day is.
  const bool due = terms->from <= now || tenant.spec.payment == PaymentMode::prepaid;
  if (due && whole > available(state, tenant.id)) {
    return Draft::rejected(
        {RejectCode::insufficient_funds,
         "the first period costs " + to_text(whole.rounded(Rounding::up)) + " with tax, and " +
             tenant.spec.name + " has " +
             to_text(available(state, tenant.id).rounded(Rounding::down)) + " available",
         "top up the wallet (loam tenant topup " + tenant.spec.name + " AMOUNT)"});
  }
  draft.add(CommitmentBought{commitment});
  if (terms->from <= now) charge_fee(draft, commitment);
  draft.subject(commitment.id.text());
  return draft.done();
}

// What is paid is kept and covered to its end; what was not begun costs nothing.
Decision decide_on(const State& state, Instant now, const CancelCommitment& asked) {
  const Commitment* found = nullptr;
  for (const auto& [tenant, book] : state.commitment_books) {
    for (const Commitment& commitment : book.commitments) {
      if (commitment.id == asked.commitment) found = &commitment;
    }
  }
  const std::string name = asked.commitment.text();
  if (found == nullptr) {
    return Draft::rejected({RejectCode::not_found, "there is no commitment " + name,
                            "see them with: loam commit list"});
  }
  if (found->ended_at != Instant::never() || found->terms.to <= now) {
    return Draft::rejected({RejectCode::wrong_state,
                            name + " ends at " + to_text(covers_until(*found)) + " already",
                            "a commitment ends once"});
  }
  const bool begun = found->fees_charged > 0;
  if (begun && !fee_open(*found)) {
    return Draft::rejected({RejectCode::wrong_state,
                            name + " is paid to its end at " + to_text(found->terms.to),
                            "it ends then by itself"});
  }
  Draft draft(state, now);
  draft.subject(name);
  draft.add(CommitmentEnded{found->tenant, found->id, next_fee(*found).from, true, asked.reason});
  return draft.done();
}

void apply_to_books(State& state, const CommitmentBought& event, Instant) {
  const Commitment& commitment = event.commitment;
  CommitmentBook& book = state.commitment_books[commitment.tenant];
  book.commitments.push_back(commitment);
  state.next.commitment = commitment.id.value + 1;
  set_due(state, commitment.tenant, book);
}

void apply_to_books(State& state, const CommitmentCharged& event, Instant at) {
  CommitmentBook& book = state.commitment_books.at(event.tenant);
  Commitment& commitment = commitment_in(book, event.commitment);
  LOAM_ASSERT(event.fee == commitment.fees_charged);
  add_open(state, event.tenant, event.line, event.from);
  ++commitment.fees_charged;
  count_in_budgets(state, event.tenant, event.line, at);
  set_due(state, event.tenant, book);
}

void apply_to_books(State& state, const CommitmentEnded& event, Instant) {
  CommitmentBook& book = state.commitment_books.at(event.tenant);
  Commitment& commitment = commitment_in(book, event.commitment);
  commitment.ended_at = event.at;
  commitment.cancelled = event.cancelled;
  set_due(state, event.tenant, book);
}

void uncover(State& state, const LostWorkCredited& event) {
  const auto found = state.commitment_books.find(event.tenant);
  if (found == state.commitment_books.end()) return;
  trim_pieces(found->second.hours, event.lease, event.from);
  set_due(state, event.tenant, found->second);
}

void apply_to_books(State& state, const UseCovered& event, Instant at) {
  CommitmentBook& book = state.commitment_books.at(event.tenant);
  CoverHour& of = book.hours.at(event.hour);
  of.due = false;
  for (const AdjustmentLine& line : event.lines) {
    add_open(state, event.tenant, line, event.hour);
    add_to(of.given, line);
    count_in_budgets(state, event.tenant, line, at);
  }
  forget_hours(book.hours, event.hour);
  set_due(state, event.tenant, book);
}

void note_use(State& state, const UsageRecord& record, const Lease& lease, const Task& task,
              Instant now) {
  const auto found = state.commitment_books.find(record.tenant);
  if (found == state.commitment_books.end()) return;
  // The standard class is what a commitment is priced for; a price per task has no time to cover.
  const bool covers = record.purchase_model == PurchaseModel::on_demand &&
                      task.spec->service_class == "standard" && record.tasks == 0;
  if (!covers || record.from == record.to) return;
  CommitmentBook& book = found->second;
  if (record.to < record.from) {
    trim_pieces(book.hours, lease.id, record.to);
  } else {
    add_pieces(book, record, lease, task, now - cover_hours_kept);
  }
  set_due(state, record.tenant, book);
}

void index_dues(State& state) {
  for (auto& [tenant, book] : state.commitment_books) set_due(state, tenant, book);
}

}  // namespace loam::engine
