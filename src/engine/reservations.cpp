#include "engine/reservations.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "billing/attribution.hpp"
#include "billing/commitments.hpp"
#include "billing/quotes.hpp"
#include "engine/adjustment_books.hpp"
#include "engine/decisions.hpp"
#include "engine/queries.hpp"
#include "engine/reservation_terms.hpp"
#include "engine/scheduling.hpp"
#include "engine/service_books.hpp"

namespace loam::engine {
namespace {

billing::Period hour_in(const Reservation& reservation, Instant start) {
  return {std::max(start, reservation.order.from),
          std::min(start + cover_interval, locks_until(reservation))};
}

// Where it ended and somebody still waits for it.
bool to_be_cleared(const State& state, const ReservationBook& book) {
  if (book.reservation.ended_at == Instant::never()) return false;
  return std::any_of(book.tasks.begin(), book.tasks.end(),
                     [&](TaskId id) { return state.tasks.at(id).state == TaskState::waiting; });
}

Instant due_of(const State& state, const ReservationBook& book) {
  const Reservation& reservation = book.reservation;
  Instant due = Instant::never();
  if (reservation.ended_at == Instant::never()) due = reservation.order.to;
  if (to_be_cleared(state, book)) due = std::min(due, reservation.ended_at);
  if (is_open(reservation))
    due = std::min(due, hour_of(reservation.charged_to) + cover_interval + cover_slack);
  for (const auto& [start, of] : book.hours) {
    if (!of.due || start >= reservation.charged_to) continue;
    due = std::min(due, start + cover_interval + cover_slack);
    break;
  }
  return due;
}

void set_due(State& state, ReservationBook& book) {
  const ReservationId id = book.reservation.id;
  const Instant due = due_of(state, book);
  if (due == book.due) return;
  if (book.due != Instant::never()) state.reservation_dues.erase({book.due, id});
  if (due != Instant::never()) state.reservation_dues.insert({due, id});
  book.due = due;
}

void count_set_aside(State& state, const Reservation& reservation, Instant at) {
  state.budgets.set_aside(reservation.id.text(), reservation.tenant, reservation.order.attribution,
                          reservation.held, at);
}

// What the whole of it comes to in a stretch of time, price by price.
std::vector<UsageRecord> rated(const State& state, const Reservation& reservation,
                               const billing::Period& period) {
  const Tenant& tenant = state.tenant(reservation.tenant);
  const TaskSpec spec = spec_of(reservation.order);
  Lease all;
  all.tenant = tenant.id;
  all.billable_ce = reservation.billable_ce;
  all.isolation = reservation.isolation;
  all.purchase_model = PurchaseModel::reservation;
  all.started_at = all.billed_until = period.from;
  all.rated_list = all.rated_net = Money::zero(tenant.spec.currency);
  const billing::Terms terms = billing::terms_of(spec, all);
  std::vector<UsageRecord> records;
  while (all.billed_until < period.to) {
    const Instant end = month_end(state, tenant.id, all.billed_until);
    for (UsageRecord& record :
         billing::rate_until(all, terms, payer_of(tenant), state.rates, state.tiers_of(tenant.id),
                             std::min(period.to, end))) {
      record.month_end = end;
      billing::advance(all, record);
      records.push_back(std::move(record));
    }
  }
  return records;
}

AdjustmentLine unused_line(const State& state, const Reservation& reservation,
                           const UsageRecord& record, Int128 milli_ce_ms) {
  const auto share_of = [&](Money price) {
    constexpr std::int64_t whole = 10'000;
    return billing::covered_part(price, milli_ce_ms, record.billable_ce, record.length())
        .times_ratio(state.card(record.card).terms().reservation_unused.value, whole,
                     Rounding::half_even);
  };
  AdjustmentLine line;
  line.key = billing::key_of(reservation.order.attribution);
  line.key.kind = InvoiceLineKind::unused;
  line.key.purchase_model = PurchaseModel::reservation;
  line.key.tariff = record.tariff;
  line.key.window = record.window;
  line.key.unit_price = record.unit_price;
  line.card = record.card;
  line.month_end = record.month_end;
  line.milli_ce_ms = static_cast<std::int64_t>(milli_ce_ms);
  line.list = share_of(record.list);
  line.net = share_of(record.net);
  return line;
}

// What an hour's use leaves over of the reservation, and what it took beyond it.
std::vector<AdjustmentLine> lines_of(const State& state, const Reservation& reservation,
                                     const billing::Period& period, const CoverHour& of) {
  std::vector<billing::Usage> uses;
  for (const CoverPiece& piece : of.pieces) {
    billing::Usage& use = uses.emplace_back();
    use.id = piece.lease.text();
    use.from = piece.from;
    use.to = piece.to;
    use.billable_ce = piece.ce;
  }
  const billing::Coverage coverage =
      billing::cover(uses, {reservation.id.text(), period, reservation.billable_ce});
  std::vector<AdjustmentLine> lines;
  const auto records = rated(state, reservation, period);
  for (const billing::UnusedPiece& unused : coverage.unused) {
    for (const UsageRecord& record : records) {
      const Duration both =
          std::min(unused.period.to, record.to) - std::max(unused.period.from, record.from);
      if (both.ms <= 0) continue;
      add_to(lines, unused_line(state, reservation, record, Int128{unused.ce.value} * both.ms));
    }
  }
  for (const billing::CoveredPiece& piece : coverage.pieces) {
    const bool inside = period.contains(piece.period.from);
    if (!inside || piece.rest.value == 0) continue;
    const Int128 rest = Int128{piece.rest.value} * (piece.period.to - piece.period.from).ms;
    add_to(lines, given_back(of.pieces[piece.usage], rest));
  }
  return lines;
}

// What was used since then, and is paid already; tax included.
Money drawn_since(const State& state, const ReservationBook& book, Instant from) {
  Money drawn = Money::zero(book.reservation.held.currency());
  for (auto of = book.hours.lower_bound(hour_of(from)); of != book.hours.end(); ++of) {
    for (const CoverPiece& piece : of->second.pieces) {
      if (piece.from < from) continue;
      const Int128 amount = Int128{piece.ce.value} * (piece.to - piece.from).ms;
      const Money net = billing::covered_part(piece.net, amount, piece.ce, piece.length);
      drawn += net + billing::tax_on(state.card(piece.card).terms(), net);
    }
  }
  return drawn;
}

// Posts what the lines come to, first from what is held.
void pay(Draft& draft, const Reservation& reservation, const LineSum& sum) {
  if (sum.net.is_zero() && sum.tax.is_zero()) return;
  const TransactionId id{draft.next().transaction++};
  draft.add(TransactionPosted{
      sum.whole().is_negative()
          ? billing::refund(id, reservation.tenant, TaskId{}, -sum.net, -sum.tax)
          : billing::charge(id, reservation.tenant, TaskId{}, sum.net, sum.tax, reservation.held)});
}

// What is set aside follows what may still be charged from `from` on; one that nobody can pay for
// ends. `held` is what is left of it, `beyond` what this decision took from the wallet.
void keep_covered(Draft& draft, const ReservationBook& book, Instant from, Money held,
                  Money beyond) {
  const State& state = draft.state();
  const Reservation& reservation = book.reservation;
  const Tenant& tenant = state.tenant(reservation.tenant);
  const Money nothing = Money::zero(held.currency());
  Money needed = nothing;
  if (from < locks_until(reservation)) {
    const Money most = most_of(state, tenant, reservation, from);
    needed = std::max(nothing, most - drawn_since(state, book, from));
  }
  const Money rounding(1000, held.currency());
  const Money more = needed - held;
  const auto id = [&] { return TransactionId{draft.next().transaction++}; };
  bool unpaid = false;
  if (-more > rounding || (needed.is_zero() && !held.is_zero())) {
    draft.add(TransactionPosted{billing::release(id(), tenant.id, TaskId{}, -more)});
    held = needed;
  } else if (more > rounding && reservation.ended_at == Instant::never()) {
    unpaid = more > available(state, tenant.id) - beyond;
    if (!unpaid) {
      draft.add(TransactionPosted{billing::hold(id(), tenant.id, TaskId{}, more)});
      held = needed;
    }
  }
  if (held != reservation.held)
    draft.add(ReservationHeld{reservation.tenant, reservation.id, held});
  if (!unpaid) return;
  Reservation left = reservation;
  left.charged_to = from;
  left.held = held;
  end_reservation(draft, left, std::clamp(draft.now(), from, reservation.order.to),
                  ReservationEnd::unpaid,
                  "the wallet does not cover what is left of it at the price of today");
}

void charge_hour(Draft& draft, const ReservationBook& book, Instant start, const CoverHour& of) {
  const Reservation& reservation = book.reservation;
  const State& state = draft.state();
  const billing::Period period = hour_in(reservation, start);
  ReservationCharged event{reservation.tenant, reservation.id, period.from, period.to,
                           change_from(of.given, lines_of(state, reservation, period, of))};
  const LineSum sum = sum_of(state, event.lines, state.tenant(reservation.tenant).spec.currency);
  draft.add(std::move(event));
  pay(draft, reservation, sum);
  const Money charged = std::max(sum.whole(), Money::zero(sum.net.currency()));
  const Money covered = std::min(charged, reservation.held);
  keep_covered(draft, book, std::max(reservation.charged_to, period.to), reservation.held - covered,
               charged - covered);
}

// One that waits for a reservation that ended would wait for ever.
bool end_waiting(Draft& draft, const ReservationBook& book) {
  const State& state = draft.state();
  for (const TaskId id : book.tasks) {
    const Task& task = state.tasks.at(id);
    if (task.state != TaskState::waiting) continue;
    release_hold(draft, task);
    settle_kept(draft, task);
    draft.add(TaskFinished{task.id, TaskOutcome::stopped, 0,
                           "its reservation " + book.reservation.id.text() + " ended"});
    return true;
  }
  return false;
}

ReservationBook& book_of(State& state, ReservationId id) {
  return state.reservations.at(id);
}

void lock(State& state, const Reservation& reservation) {
  schedule::Reservation locked;
  locked.id = reservation.id;
  locked.tenant = reservation.tenant;
  locked.from = reservation.order.from;
  locked.to = reservation.order.to;
  locked.place = place_of(state, reservation.members);
  state.scheduler.reserve(std::move(locked));
}

// Nothing can come of it any more.
bool is_forgotten(const ReservationBook& book, Instant now) {
  return book.due == Instant::never() && book.tasks.empty() &&
         locks_until(book.reservation) + cover_hours_kept < now;
}

}  // namespace

bool settle_reservations(Draft& draft) {
  const State& state = draft.state();
  if (state.reservation_dues.empty() || state.reservation_dues.begin()->first > draft.now())
    return false;
  const ReservationBook& book = state.reservations.at(state.reservation_dues.begin()->second);
  const Reservation& reservation = book.reservation;
  if (reservation.ended_at == Instant::never() && reservation.order.to <= draft.now()) {
    draft.add(ReservationEnded{reservation.tenant, reservation.id, reservation.order.to,
                               ReservationEnd::over, "its time is over"});
    return true;
  }
  if (to_be_cleared(state, book)) return end_waiting(draft, book);
  for (const auto& [start, of] : book.hours) {
    if (!of.due || start >= reservation.charged_to) continue;
    charge_hour(draft, book, start, of);
    return true;
  }
  LOAM_ASSERT(is_open(reservation));  // what is due is one of these
  const Instant start = hour_of(reservation.charged_to);
  const auto of = book.hours.find(start);
  charge_hour(draft, book, start, of == book.hours.end() ? CoverHour{} : of->second);
  return true;
}

void apply_to_books(State& state, const ReservationMade& event, Instant at) {
  std::erase_if(state.reservations,
                [&](const auto& entry) { return is_forgotten(entry.second, at); });
  ReservationBook& book = state.reservations[event.reservation.id];
  book.reservation = event.reservation;
  state.next.reservation = event.reservation.id.value + 1;
  lock(state, book.reservation);
  count_set_aside(state, book.reservation, at);
  set_due(state, book);
}

void apply_to_books(State& state, const ReservationMoved& event, Instant) {
  Reservation& reservation = book_of(state, event.reservation).reservation;
  reservation.members = event.members;
  lock(state, reservation);
}

void apply_to_books(State& state, const ReservationCharged& event, Instant at) {
  ReservationBook& book = book_of(state, event.reservation);
  CoverHour& of = book.hours[hour_of(event.from)];
  of.due = false;
  for (const AdjustmentLine& line : event.lines) {
    add_open(state, event.tenant, line, event.from);
    add_to(of.given, line);
    count_in_budgets(state, event.tenant, line, at);
  }
  book.reservation.charged_to = std::max(book.reservation.charged_to, event.to);
  forget_hours(book.hours, hour_of(event.from));
  set_due(state, book);
}

void apply_to_books(State& state, const ReservationEnded& event, Instant) {
  ReservationBook& book = book_of(state, event.reservation);
  book.reservation.ended_at = event.at;
  state.scheduler.unreserve(event.reservation);
  set_due(state, book);
}

void apply_to_books(State& state, const ReservationHeld& event, Instant at) {
  Reservation& reservation = book_of(state, event.reservation).reservation;
  reservation.held = event.held;
  count_set_aside(state, reservation, at);
}

void count_held(State& state, ReservationId id, Money change, Instant at) {
  Reservation& reservation = book_of(state, id).reservation;
  reservation.held += change;
  count_set_aside(state, reservation, at);
}

void note_reserved(State& state, const Task& task) {
  if (!task.spec->reservation.valid()) return;
  ReservationBook& book = book_of(state, task.spec->reservation);
  book.tasks.insert(task.id);
  set_due(state, book);
}

void note_reserved_no_more(State& state, const Task& task) {
  if (!task.spec->reservation.valid()) return;
  ReservationBook& book = book_of(state, task.spec->reservation);
  book.tasks.erase(task.id);
  set_due(state, book);
}

void note_reserved_use(State& state, const UsageRecord& record, const Lease& lease,
                       const Task& task) {
  if (lease.purchase_model != PurchaseModel::reservation || record.from == record.to) return;
  const auto found = state.reservations.find(task.spec->reservation);
  if (found == state.reservations.end()) return;
  ReservationBook& book = found->second;
  if (record.to < record.from) {
    trim_pieces(book.hours, lease.id, record.to);
  } else {
    const Reservation& reservation = book.reservation;
    for (const billing::Period& period : billing::tiles(record.from, record.to, cover_interval)) {
      const bool in_force =
          period.from < locks_until(reservation) && period.to > reservation.order.from;
      if (!in_force || hour_of(period.from) + cover_hours_kept < hour_of(reservation.charged_to))
        continue;
      CoverHour& of = book.hours[hour_of(period.from)];
      of.pieces.push_back(piece_of(record, lease, task, period, PurchaseModel::reservation));
      of.due = true;
    }
  }
  set_due(state, book);
}

void index_reservations(State& state) {
  for (auto& [id, book] : state.reservations) {
    if (book.reservation.ended_at == Instant::never()) lock(state, book.reservation);
  }
  for (const auto& [id, task] : state.tasks) {
    if (task.spec->reservation.valid())
      book_of(state, task.spec->reservation).tasks.insert(task.id);
  }
  for (auto& [id, book] : state.reservations) set_due(state, book);
}

}  // namespace loam::engine
