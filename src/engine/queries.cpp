#include "engine/queries.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/quotes.hpp"
#include "engine/decide.hpp"
#include "engine/terms.hpp"

namespace loam::engine {
namespace {

std::string room_words(const State& state, const schedule::Demand& demand) {
  if (demand.device.valid()) {
    const Device& device = state.device(demand.device);
    const std::string name = device_name(state.node(device.node), device);
    if (device.draining) return name + " is draining";
    if (device.health == DeviceHealth::lost) return name + " is lost";
    return name + " has " + to_text(device.free()) + " of its share and " +
           to_text(device.memory_free()) + " free";
  }
  if (!state.pool.could_hold(demand)) return "every device that could hold it is draining or lost";
  return "no device has enough free share and memory at once";
}

// A device of the kind that a demand would fit, for the quote's example.
const Device* example_of(const State& state, const schedule::Pool::Fit& fit) {
  if (fit.needs.device.valid()) return &state.device(fit.needs.device);
  const auto found = state.device_by_uuid.find(fit.facts->uuid);
  return found == state.device_by_uuid.end() ? nullptr : &state.device(found->second);
}

}  // namespace

Money available(const State& state, TenantId tenant) {
  const TenantSpec& spec = state.tenant(tenant).spec;
  return state.accounts.balance(billing::wallet_of(tenant, spec.currency)) + spec.credit_limit;
}

WaitReason why_waits(const State& state, const Task& task) {
  LOAM_ASSERT(task.state == TaskState::waiting);
  const auto& heads = state.queue.heads();
  if (heads.count({task.id, task.tenant}) == 0) {
    for (const auto& [head, tenant] : heads) {
      if (tenant == task.tenant)
        return {WaitCode::behind, head, "behind " + head.text() + " of the same tenant"};
    }
  }
  if (auto words = state.budgets.holds_back(task.tenant, task.spec.attribution, state.now))
    return {WaitCode::budget, {}, std::move(*words)};
  const DemandAnswer wanted = demand_of(state, task.spec);
  if (wanted.reject) return {WaitCode::no_device, {}, wanted.reject->message};
  if (kinds_for(state, wanted.demand).empty()) {
    return {WaitCode::no_device, {}, "no healthy device could hold it now"};
  }
  const Tenant& tenant = state.tenant(task.tenant);
  const auto places = find_places(state, wanted, task.spec.gang);
  if (!places) return {WaitCode::no_room, {}, room_words(state, wanted.demand)};
  const Bought all = bought(*places);
  if (auto words = over_quota(tenant, all.ce, all.memory))
    return {WaitCode::quota, {}, std::move(*words)};
  // There is room: either an earlier head of another tenant holds the queue, or money is short.
  for (const auto& [head, owner] : heads) {
    if (head == task.id) break;
    const DemandAnswer ahead = demand_of(state, state.tasks.at(head).spec);
    if (!ahead.reject && state.pool.could_hold(ahead.demand) &&
        !find_places(state, ahead, state.tasks.at(head).spec.gang)) {
      return {WaitCode::behind, head,
              "behind " + head.text() + ", which came first and does not fit yet"};
    }
  }
  if (const auto* table = state.rates.at(tenant.spec.currency, state.now)) {
    Money needed = Money::zero(tenant.spec.currency);
    for (const schedule::UnitPlacement& place : *places) {
      const Bought unit = bought({place});
      needed += most_it_costs(state, state.now, tenant, task.spec,
                              billing::billable_ce(unit.ce, unit.memory, table->card()),
                              task.spec.limit - task.run_time);
    }
    if (needed > task.held && needed - task.held > available(state, tenant.id)) {
      return {
          WaitCode::funds, {}, "the wallet of " + tenant.spec.name + " does not cover it any more"};
    }
  }
  return {WaitCode::starting, {}, "about to start"};
}

namespace {

// What it costs, by the code that bills it.
std::optional<Reject> put_price(const State& state, Instant now, const Tenant& tenant,
                                const TaskSpec& spec, Duration expected, MilliCe of_member,
                                Quote& quote) {
  const billing::PriceTable& table = *state.rates.at(tenant.spec.currency, now);
  billing::QuoteRequest request;
  request.terms =
      billing::terms_of(spec, model_now(state, now, tenant, spec, quote.ce), quote.isolation);
  request.ce = of_member;
  request.members = spec.gang;
  request.start = now;
  request.expected = std::clamp(expected, Duration{1}, spec.limit);
  request.longest = spec.limit + spec.grace + hold_margin;
  const billing::Payer payer = payer_of(tenant);
  const auto priced = billing::quote(state.rates, payer, request, state.tiers_of(tenant.id));
  if (!priced)
    return Reject{RejectCode::not_sold, priced.error().message, priced.error().next_step};
  quote.unit_price = priced->unit_price;
  quote.per_task = table.terms().granularity == Granularity::task;
  quote.discount = table.discount(request.terms.purchase_model, payer.discount);
  quote.per_hour = quote.per_task ? Money::zero(payer.currency)
                                  : billing::rate(quote.billable_ce, Duration::hours(1),
                                                  quote.unit_price, quote.discount)
                                        .net;
  quote.expected = priced->expected;
  quote.best = priced->best;
  quote.worst = priced->worst;
  quote.tax_parts_per_million = billing::tax_rate(table.terms());
  quote.rule = priced->rule;
  if (spec.purchase_model == PurchaseModel::hybrid) {
    quote.rule = std::string(request.terms.purchase_model == PurchaseModel::spot
                                 ? "on spot now, on demand where spot is tight: "
                                 : "on demand now, since spot is tight: ") +
                 quote.rule;
  }
  if (spec.purchase_model == PurchaseModel::commitment) {
    quote.rule =
        "on demand, and given back hour by hour as far as a commitment covers it: " + quote.rule;
  }
  quote.expected_time = request.expected;
  return std::nullopt;
}

}  // namespace

QuoteAnswer quote(const State& state, Instant now, TenantId tenant_id, const TaskSpec& spec,
                  std::optional<Duration> expected) {
  if (!tenant_id.valid() || tenant_id.value > state.tenants.size()) {
    return {{},
            Reject{RejectCode::no_such_tenant, "there is no " + tenant_id.text(),
                   "see the tenants with: loam tenant list"}};
  }
  if (auto reject = validate(spec)) return {{}, reject};
  const Tenant& tenant = state.tenant(tenant_id);
  const HoldAnswer hold = hold_for(state, now, tenant, spec, Duration{0});
  if (hold.reject) return {{}, hold.reject};

  const DemandAnswer wanted = demand_of(state, spec);
  const schedule::Demand& demand = wanted.demand;
  const auto fits = kinds_for(state, demand);
  const auto now_at = find_places(state, wanted, spec.gang);
  const schedule::Placement slice = now_at ? now_at->front().slices.front() : fits.front().needs;
  const Device* device = now_at ? &state.device(slice.device) : example_of(state, fits.front());
  const RateCard& card = state.rates.at(tenant.spec.currency, now)->card();
  const std::int64_t slices = spec.gang * demand.devices;
  const Bought all = now_at ? bought(*now_at) : Bought{slice.ce * slices, slice.memory * slices};
  const Bought one = now_at ? bought({now_at->front()})
                            : Bought{slice.ce * demand.devices, slice.memory * demand.devices};
  const MilliCe of_member = billing::billable_ce(one.ce, one.memory, card);

  Quote quote;
  if (device != nullptr) {
    quote.device = device_name(state.node(device->node), *device);
    quote.device_type = device->facts->type;
  }
  quote.devices = slices;
  quote.share = slice.share;
  quote.memory = slice.memory;
  quote.ce = all.ce;
  quote.billable_ce = of_member * spec.gang;
  quote.ce_per_gibibyte = card.ce_per_gibibyte;
  quote.isolation = slice.share == whole_device ? Isolation::hardware : Isolation::software;
  if (auto reject =
          put_price(state, now, tenant, spec, expected.value_or(spec.limit), of_member, quote))
    return {{}, std::move(reject)};
  quote.at_most = hold.amount;
  quote.limit = spec.limit;
  quote.purchase_model = spec.purchase_model;
  quote.tariff = spec.tariff;
  quote.service_class = spec.service_class;
  // First come, first served: whoever waits already is tried before.
  const bool first = state.queue.empty();
  const auto quota_words = over_quota(tenant, all.ce, all.memory);
  quote.starts_now = now_at.has_value() && first && !quota_words;
  if (quota_words) {
    quote.waits_for = *quota_words;
  } else if (!now_at) {
    quote.waits_for = room_words(state, demand);
  } else if (!first) {
    quote.waits_for = std::to_string(state.queue.size()) + " tasks wait already";
  }
  return {quote, {}};
}

LiveCost live_cost(const State& state, Instant now, const Task& task) {
  LiveCost cost{task.attempt_time, task.charged};
  const billing::Payer payer = payer_of(state.tenant(task.tenant));
  for (const LeaseId id : task.leases) {
    const Lease& lease = state.leases.at(id);
    if (!lease.started()) continue;
    cost.run_time += now - lease.started_at;
    for (const UsageRecord& record :
         billing::rate_until(lease, billing::terms_of(task.spec, lease), payer, state.rates,
                             state.tiers_of(task.tenant), now))
      cost.net += record.net;
  }
  return cost;
}

}  // namespace loam::engine
