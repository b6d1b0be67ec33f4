// Decisions on what is given back of a lease: what it was promised and did not get, and work that
// was lost.
#include <algorithm>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "billing/attribution.hpp"
#include "engine/decisions.hpp"

namespace loam::engine {
namespace {

// What is left of a repeated report is no report of its own.
constexpr Duration interval_min = Duration::seconds(1);
constexpr BasisPoints whole{10'000};

std::optional<Reject> fault_of(const Lease& lease, const ReportShortfall& asked) {
  const auto bad = [](std::string message, std::string next_step) {
    return Reject{RejectCode::invalid_argument, std::move(message), std::move(next_step)};
  };
  if (!lease.started()) {
    return Reject{RejectCode::wrong_state, "the lease " + lease.id.text() + " has not started",
                  "report what it got once it runs"};
  }
  if (asked.slice < 0 || asked.slice >= static_cast<std::int64_t>(lease.slices.size())) {
    return bad("the lease " + lease.id.text() + " has no slice " + std::to_string(asked.slice),
               "slices are counted from 0");
  }
  if (asked.from > asked.to) {
    return bad("the shortfall from " + to_text(asked.from) + " ends at " + to_text(asked.to) +
                   ", before it begins",
               "turn it round");
  }
  if (asked.delivered.value < 0 || asked.promised > whole || asked.delivered >= asked.promised) {
    return bad("a share of " + std::to_string(asked.delivered.value) + " basis points of " +
                   std::to_string(asked.promised.value) + " is no shortfall",
               "report what was promised, and less of it delivered");
  }
  return std::nullopt;
}

// What the time from the lease's start up to `to` comes to, whether it was charged already or not:
// its mean is the price of any part of it.
Money price_of(const State& state, const Lease& lease, const Task& task, Instant to) {
  Money net = lease.rated_net;
  for (const UsageRecord& record : billing::rate_until(
           lease, billing::terms_of(*task.spec, lease), payer_of(state.tenant(lease.tenant)),
           state.rates, state.tiers_of(lease.tenant), to))
    net += record.net;
  return net;
}

AdjustmentLine credit_line(const State& state, const Lease& lease, const Task& task, Money credit,
                           Instant at) {
  AdjustmentLine line;
  line.key = billing::key_of(task.spec->attribution);
  line.key.kind = InvoiceLineKind::credit;
  line.key.purchase_model = lease.purchase_model;
  line.key.tariff = task.spec->tariff;
  line.key.unit_price = Money::zero(credit.currency());
  const billing::Terms terms = billing::terms_of(*task.spec, lease);
  line.card = state.rates.selling(credit.currency(), terms, lease.started_at)->card().id;
  line.list = line.net = -credit;
  line.month_end = month_end(state, lease.tenant, at);
  return line;
}

}  // namespace

void credit_lost_work(Draft& draft, const Lease& lease, LostWorkCause cause) {
  const State& state = draft.state();
  const Task& task = state.tasks.at(lease.task);
  const billing::Terms terms = billing::terms_of(*task.spec, lease);
  const Currency currency = lease.rated_net.currency();
  const billing::PriceTable* table = state.rates.selling(currency, terms, lease.started_at);
  const LostWork& rules = table->terms().lost_work;
  const Duration ran = lease.billed_until - lease.started_at;
  const InterruptionRule rule =
      cause == LostWorkCause::displaced ? rules.displaced : rules.device_lost;
  if (billing::billed_when_interrupted(rule, ran).ms > 0) return;
  // What a commitment covered so long ago was given back for good.
  const bool settled = state.commitment_books.contains(lease.tenant) &&
                       draft.now() - lease.started_at > cover_hours_kept;
  // What shortfalls gave back of it is not given back again.
  const Money credit = lease.rated_net - lease.credited;
  if (settled || credit.is_zero() || credit.is_negative()) return;
  const AdjustmentLine line = credit_line(state, lease, task, credit, lease.started_at);
  const Money tax = billing::tax_on(table->terms(), credit);
  draft.add(LostWorkCredited{lease.tenant, lease.task, lease.id, cause, lease.started_at,
                             lease.billed_until, line});
  draft.add(TransactionPosted{billing::refund(TransactionId{draft.next().transaction++},
                                              lease.tenant, lease.task, credit, tax)});
}

Decision decide_on(const State& state, Instant now, const ReportShortfall& asked) {
  const Lease* lease = state.find_lease(asked.lease);
  if (lease == nullptr || lease->epoch != asked.epoch) {
    return Draft::rejected(
        {RejectCode::stale_epoch, "the lease " + asked.lease.text() + " is over", {}});
  }
  if (auto reject = fault_of(*lease, asked)) return Draft::rejected(std::move(*reject));
  Draft draft(state, now);
  draft.subject(lease->task.text());
  // Spot is what is left over: it is promised to nobody.
  if (lease->purchase_model == PurchaseModel::spot) return draft.done();
  const auto slice = static_cast<std::size_t>(asked.slice);
  // Of an oversubscribed device less is promised than lent.
  const Slice& held = lease->slices[slice];
  BasisPoints promised = asked.promised;
  if (held.unpromised.value > 0)
    promised = std::min(promised, BasisPoints{held.promised().value * whole.value / 1000});
  if (asked.delivered >= promised) return draft.done();
  Instant from = std::max(asked.from, lease->started_at);
  if (slice < lease->credited_until.size()) from = std::max(from, lease->credited_until[slice]);
  const Instant to = std::min(asked.to, now);
  if (to - from < interval_min) {
    return Draft::rejected({RejectCode::duplicate_report,
                            "the shortfall of " + asked.lease.text() + " up to " +
                                to_text(asked.to) + " was reported before",
                            {}});
  }
  const Task& task = state.tasks.at(lease->task);
  const Instant priced_to = std::max(to, lease->billed_until);
  const Money price = price_of(state, *lease, task, priced_to);
  // The interval's part of the price × (promised − delivered) / promised, rounded once.
  const Int128 run_ms = (priced_to - lease->started_at).ms;
  const Money credit = price.times_ratio(
      static_cast<Int128>((to - from).ms) * (promised.value - asked.delivered.value),
      run_ms * static_cast<Int128>(lease->slices.size()) * promised.value, Rounding::half_even);
  if (credit.is_zero()) return draft.done();
  const AdjustmentLine line = credit_line(state, *lease, task, credit, from);
  const Money tax = billing::tax_on(state.card(line.card).terms(), credit);
  draft.add(ShortfallCredited{lease->tenant, lease->task, lease->id, asked.slice, from, to,
                              promised, asked.delivered, line});
  draft.add(TransactionPosted{billing::refund(TransactionId{draft.next().transaction++},
                                              lease->tenant, lease->task, credit, tax)});
  return draft.done();
}

}  // namespace loam::engine
