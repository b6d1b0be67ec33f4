// Decisions on money: credit notes, budgets, the price of spot, and what a new card asks of holds.
#include <algorithm>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "billing/invoicing.hpp"
#include "engine/decisions.hpp"
#include "engine/queries.hpp"

namespace loam::engine {
namespace {

constexpr std::size_t reviewed_at_once = 256;  // keeps the command below 2 ms

Reject refused(const Error& error) {
  const RejectCode code = error.kind == ErrorKind::not_found  ? RejectCode::not_found
                          : error.kind == ErrorKind::conflict ? RejectCode::wrong_state
                                                              : RejectCode::invalid_argument;
  return {code, error.message, error.next_step};
}

}  // namespace

Decision decide_on(const State& state, Instant now, const CreditInvoice& asked) {
  const auto found = state.invoices.find(asked.invoice);
  if (found == state.invoices.end()) {
    return Draft::rejected({RejectCode::not_found, "there is no invoice " + asked.invoice.text(),
                            "see the invoices with: loam invoice list"});
  }
  const InvoiceStanding& standing = found->second;
  const Money left = standing.subtotal - standing.credited;
  const Money net = asked.net.value_or(left);
  const Currency currency = left.currency();
  if (left.is_zero()) {
    return Draft::rejected({RejectCode::wrong_state,
                            asked.invoice.text() + " was given back already",
                            "an invoice is given back once"});
  }
  if (net.currency() != currency || net.is_negative() || net.is_zero() ||
      net != net.rounded(Rounding::half_even) || net > left) {
    return Draft::rejected({RejectCode::invalid_argument,
                            "a credit of " + to_text(net) + " cannot be given: " + to_text(left) +
                                " are left of " + asked.invoice.text(),
                            "give more than zero and at most that, in whole payable units"});
  }
  Draft draft(state, now);
  CreditNote note;
  note.id = CreditNoteId{draft.next().credit_note++};
  note.invoice = asked.invoice;
  note.tenant = standing.tenant;
  note.currency = currency;
  note.net = note.total = net;
  note.reason = asked.reason;
  Money tax = Money::zero(currency);
  for (const TaxLine& of : standing.taxes) {
    // The rest of an invoice gives back the rest of its taxes: what was given before is taken off.
    const TaxLine before = billing::tax_line(of.name, of.parts_per_million, standing.credited);
    const TaxLine after = billing::tax_line(of.name, of.parts_per_million, standing.credited + net);
    Money amount = after.amount - before.amount;
    if (net == left) amount = of.amount - before.amount;
    note.taxes.push_back({of.name, of.parts_per_million, net, amount});
    tax += amount;
  }
  note.total += tax;
  const TransactionId id{draft.next().transaction++};
  draft.add(CreditNoteIssued{note});
  draft.add(TransactionPosted{billing::refund(id, note.tenant, TaskId{}, net, tax)});
  draft.subject(note.id.text());
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const SetBudget& asked) {
  const Budget& budget = asked.budget;
  if (!is_name(budget.name)) {
    return Draft::rejected({RejectCode::invalid_argument,
                            "'" + budget.name + "' is not a name for a budget",
                            "use 1 to 63 of a-z, 0-9 and '-', starting with a letter"});
  }
  const TenantId tenant = budget.scope.tenant;
  if (!tenant.valid() || tenant.value > state.tenants.size()) {
    return Draft::rejected({RejectCode::no_such_tenant, "there is no " + tenant.text(),
                            "see the tenants with: loam tenant list"});
  }
  const Currency currency = state.tenant(tenant).spec.currency;
  if (budget.monthly.currency() != currency) {
    return Draft::rejected({RejectCode::invalid_argument,
                            "a budget of " + to_text(budget.monthly) +
                                " does not fit the tenant, who pays in " +
                                std::string(currency.code()),
                            "give it in that currency"});
  }
  billing::BudgetBook tried;  // with the one that is to change, where there is one
  Result<void> taken = {};
  if (state.budgets.knows(budget.name)) {
    taken = tried.add(state.budgets.budget(budget.name));
    LOAM_ASSERT(taken.ok());
    taken = tried.change(budget);
  } else {
    taken = tried.add(budget);
  }
  if (!taken.ok()) return Draft::rejected(refused(taken.error()));
  Draft draft(state, now);
  draft.subject(budget.name);
  const bool known = state.budgets.knows(budget.name);
  const bool same = known && state.budgets.budget(budget.name) == budget;
  const Money spent = known ? Money::zero(currency) : state.budgets.found(budget, now);
  if (!same) draft.add(BudgetSet{budget, spent});
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const RemoveBudget& asked) {
  if (!state.budgets.knows(asked.name)) {
    return Draft::rejected({RejectCode::not_found, "there is no budget '" + asked.name + "'",
                            "see them with: loam budget list"});
  }
  Draft draft(state, now);
  draft.subject(asked.name);
  draft.add(BudgetRemoved{asked.name});
  return draft.done();
}

Decision decide_on(const State& state, Instant now, const AnswerBudget& asked) {
  const auto notice = asked.approve
                          ? state.budgets.check(asked.name, asked.approval, now)
                          : state.budgets.check_refusal(asked.name, asked.approval.by, now);
  if (!notice.ok()) return Draft::rejected(refused(notice.error()));
  Draft draft(state, now);
  draft.subject(asked.name);
  if (asked.approve) draft.add(BudgetApproved{asked.name, asked.approval});
  draft.add(BudgetNoticed{*notice});
  return draft.done();
}

// Of up to so many tasks from the cursor on: what their holds lack is taken from the wallet while
// there is some; a task that it does not reach for is stopped, now, while what it has still covers
// its stopping.
bool review_holds(Draft& draft) {
  const State& state = draft.state();
  if (state.reviews.empty()) return false;
  const auto& [currency, after] = *state.reviews.begin();
  std::map<TenantId, Money> taken;
  std::size_t seen = 0;
  TaskId last;
  for (auto at = state.tasks.upper_bound(after); at != state.tasks.end(); ++at) {
    if (seen++ == reviewed_at_once) {
      draft.add(HoldsReviewed{currency, last});
      return true;
    }
    const Task& task = at->second;
    last = task.id;
    if (task.leases.empty() || task.held.currency() != currency) continue;
    Money needed = Money::zero(currency);
    for (const LeaseId id : task.leases)
      needed += most_left_of(state, draft.now(), task, state.leases.at(id));
    const Money more = needed - task.held;
    if (more <= Money(1000, currency)) continue;  // what rounding may differ by
    Money& from_wallet = taken.try_emplace(task.tenant, Money::zero(currency)).first->second;
    if (more <= available(state, task.tenant) - from_wallet) {
      from_wallet += more;
      draft.add(TransactionPosted{
          billing::hold(TransactionId{draft.next().transaction++}, task.tenant, task.id, more)});
      continue;
    }
    for (const LeaseId id : task.leases) {
      if (state.leases.at(id).stopping == StopReason::none)
        draft.add(StopRequested{id, StopReason::funds});
    }
  }
  draft.add(HoldsReviewed{currency, TaskId{}});
  return true;
}

bool move_spot(Draft& draft) {
  const State& state = draft.state();
  if (!state.rates.sells_spot()) return false;
  const billing::SpotMarket market = state.market.spot_market();
  for (const Currency currency : state.rates.currencies()) {
    const billing::PriceTable* table = state.rates.at(currency, draft.now());
    if (table == nullptr || !table->terms().spot.sold) continue;
    const billing::SpotSeries* series = state.rates.spot(currency);
    const SpotTerms& terms = table->terms().spot;
    const Money on_demand = table->card().on_demand;
    const std::optional<Money> price =
        series != nullptr ? series->next(draft.now(), terms, on_demand, market)
                          : std::optional(billing::spot_price(terms, on_demand, market));
    if (!price) continue;
    draft.add(SpotPriceMoved{currency, *price, market.supply, market.demand});
    return true;
  }
  return false;
}

bool tell_budget(Draft& draft) {
  if (draft.state().budgets.empty()) return false;
  const auto notice = draft.state().budgets.due(draft.now());
  if (!notice) return false;
  draft.add(BudgetNoticed{*notice});
  return true;
}

bool end_by_budget(Draft& draft) {
  const State& state = draft.state();
  if (state.ending.empty()) return false;
  const Task& task = state.tasks.at(state.ending.begin()->second);
  LOAM_ASSERT(!task.leases.empty());
  for (const LeaseId id : task.leases) {
    if (state.leases.at(id).stopping == StopReason::none)
      draft.add(StopRequested{id, StopReason::budget});
  }
  LOAM_ASSERT(!draft.empty());
  return true;
}

}  // namespace loam::engine
