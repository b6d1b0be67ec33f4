#include "engine/queries.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"
#include "billing/quotes.hpp"
#include "engine/decide.hpp"
#include "engine/oversubscription.hpp"
#include "engine/reservations.hpp"
#include "engine/scheduling.hpp"
#include "engine/start_times.hpp"
#include "engine/terms.hpp"

namespace loam::engine {
namespace {

// To the second begun.
std::string in_seconds(Instant at) {
  return to_text(Instant{(at.ms + 999) / 1000 * 1000});
}
std::string again_at(Instant at) {
  return "is tried again at " + in_seconds(at);
}

// When a node starts tasks again, if none does now.
Instant free_of_marks(const State& state) {
  const bool all = state.marked.size() == state.nodes.size() && !state.nodes.empty();
  return all ? state.marked.begin()->first : Instant{};
}

// Beyond so many lines of a queue a reason is of little use, and costs more than a command may.
constexpr std::size_t lines_explained_max = 2'000;

std::string room_words(const State& state, const schedule::Demand& demand) {
  if (demand.device.valid()) {
    const Device& device = state.device(demand.device);
    const std::string name = device_name(state.node(device.node), device);
    if (device.draining) return name + " is draining";
    if (device.health == DeviceHealth::lost) return name + " is lost";
    if (const Node& node = state.node(device.node); node.marked())
      return name + " is on a node that fails to start tasks; " + again_at(node.marked_until);
    return name + " has " + to_text(device.free()) + " of its share and " +
           to_text(device.memory_free()) + " free";
  }
  if (!state.pool.could_hold(demand)) {
    std::string words =
        "every device that could hold it is draining, lost or on a node that fails to start tasks";
    if (!state.marked.empty()) words += "; the next " + again_at(state.marked.begin()->first);
    return words;
  }
  return "no device has enough free share and memory at once";
}

// A device of the kind that a demand would fit, for the quote's example.
const Device* example_of(const State& state, const schedule::Pool::Fit& fit) {
  if (fit.needs.device.valid()) return &state.device(fit.needs.device);
  const auto found = state.device_by_uuid.find(fit.facts->uuid);
  return found == state.device_by_uuid.end() ? nullptr : &state.device(found->second);
}

// Tasks in the queue that could be tried before a new one, at most some thousand.
std::size_t waiting_beside(const State& state, const TaskSpec& spec, Instant now) {
  const auto queue = queue_named(state, spec.queue);
  if (!queue) return 0;
  std::size_t count = 0;
  schedule::Line first;
  first.queue = *queue;
  first.level = std::numeric_limits<std::int64_t>::min();
  const schedule::Lines& lines = state.scheduler.lines();
  std::size_t looked_at = 0;
  for (auto line = lines.lower_bound(first);
       line != lines.end() && line->first.queue == *queue && ++looked_at < lines_explained_max;
       ++line) {
    if (line->first.not_before <= now) count += line->second.size();
  }
  return count;
}

// When there is room for it, by the limits of what runs; nothing: not within so many ends.
std::optional<Instant> room_by(const State& state, Instant now, const schedule::Ask& ask) {
  constexpr std::size_t ends_max = 256;
  const auto room = schedule::PoolRoom(state.pool, state.kinds).copy();
  std::size_t looked_at = 0;
  for (const auto& [at, task] : state.scheduler.ends()) {
    if (++looked_at > ends_max) return std::nullopt;
    room->give_back(state.scheduler.standing(task).place);
    if (room->find(ask, 0)) return std::max(at, now);
  }
  return std::nullopt;
}

}  // namespace

Money available(const State& state, TenantId tenant) {
  const TenantSpec& spec = state.tenant(tenant).spec;
  return state.accounts.balance(billing::wallet_of(tenant, spec.currency)) + spec.credit_limit;
}

namespace {

// The reservation in force that keeps what would hold it, were that free for all; nothing: there is
// no room at all.
std::optional<ReservationId> holder_of(const State& state, const schedule::Ask& ask) {
  if (state.scheduler.reservations().empty()) return std::nullopt;
  const auto place = schedule::PoolRoom(state.pool, state.kinds).find(ask, 0);
  if (!place) return std::nullopt;
  for (const auto& [id, reservation] : state.scheduler.reservations()) {
    if (reservation.from <= state.now && schedule::touch(*place, reservation.place)) return id;
  }
  return std::nullopt;
}

WaitReason reason_of(const State& state, const Task& task, const schedule::Wait& wait) {
  using schedule::WaitCode;
  WaitReason reason{schedule::code_text(wait), schedule::to_text(wait), wait.other};
  const Tenant& tenant = state.tenant(task.tenant);
  const schedule::Ask& ask = state.scheduler.standing(task.id).job.ask;
  switch (wait.code) {
    case WaitCode::no_room:
      if (const auto held = holder_of(state, ask)) {
        reason.code = "held_by_reservation(" + held->text() + ")";
        reason.words = "what is free is reserved, as " + held->text();
      } else {
        reason.words = room_words(state, ask.demand);
      }
      break;
    case WaitCode::never_fits:
      reason.code = kinds_for(state, ask.demand).empty() ? "no_device" : "no_room";
      reason.words = reason.code == "no_device" ? "no healthy device could hold it now"
                                                : room_words(state, ask.demand);
      break;
    case WaitCode::quota_exceeded:
      reason.code = "quota";
      reason.words = "the quota of " + tenant.spec.name + ": it " + reason.words;
      break;
    case WaitCode::backing_off:
      reason.words = "its node was not able to start it; it " +
                     again_at(std::max(wait.at, free_of_marks(state)));
      break;
    default:
      break;
  }
  // The node's own words: nobody else sees its log.
  if (task.verdict.outcome == TaskOutcome::unable && !task.verdict.reason.empty())
    reason.words += ": " + task.verdict.reason;
  return reason;
}

bool cannot_pay(const State& state, const Task& task) {
  const Tenant& tenant = state.tenant(task.tenant);
  const auto* table = state.rates.at(tenant.spec.currency, state.now);
  const schedule::Ask& ask = state.scheduler.standing(task.id).job.ask;
  const schedule::PoolRoom room(state.pool, state.kinds);
  const auto places = room.find(ask, 0);
  if (table == nullptr || !places) return false;
  Money needed = Money::zero(tenant.spec.currency);
  for (const schedule::UnitPlacement& place : *places) {
    const Bought unit = bought({place});
    needed += most_it_costs(state, state.now, tenant, *task.spec,
                            billing::billable_ce(unit.ce, unit.memory, table->card()),
                            task.spec->limit - task.run_time);
  }
  return needed > task.held && needed - task.held > available(state, tenant.id);
}

}  // namespace

void WaitReasons::look() {
  looked_ = true;
  const schedule::PoolRoom room(state_.pool, state_.kinds);
  schedule::Scheduler::PassLimits limits;
  limits.turns_max = lines_explained_max;
  limits.ends_max = 256;
  limits.victims_max = 512;
  limits.victim_tries_max = 64;
  limits.move_tries_max = 0;
  schedule::Pass pass = state_.scheduler.pass(state_.now, room, limits);
  for (auto& [line, wait] : pass.waits) waits_.emplace(line, std::move(wait));
}

WaitReason WaitReasons::of(const Task& task) {
  LOAM_ASSERT(task.state == TaskState::waiting);
  WaitReason reason = in_queue(task);
  if (const auto at = turns_at(state_, task))
    reason.words += "; bought on demand from " + in_seconds(*at) + " on where no spot comes";
  return reason;
}

WaitReason WaitReasons::in_queue(const Task& task) {
  if (auto words = state_.budgets.holds_back(task.tenant, task.spec->attribution, state_.now))
    return {"budget", std::move(*words), {}};
  if (!looked_) look();
  const auto found = waits_.find(state_.scheduler.line(task.id));
  if (found != waits_.end()) return reason_of(state_, task, found->second);
  if (cannot_pay(state_, task)) {
    const std::string& name = state_.tenant(task.tenant).spec.name;
    return {"funds", "the wallet of " + name + " does not cover it any more", {}};
  }
  if (waits_.size() >= lines_explained_max)
    return {"behind", "behind more than a thousand others", {}};
  return {"starting", "about to start", {}};
}

WaitReason why_waits(const State& state, const Task& task) {
  return WaitReasons(state).of(task);
}

namespace {

// Nobody knows before what a program will hold and move.
std::string services_words(const ServiceRates& rates, const TaskSpec& spec) {
  std::string words;
  if (rates.storage) words += "; storage " + to_text(*rates.storage) + " a GiB-hour held";
  if (rates.backup && spec.backups > 0)
    words += "; backup " + to_text(*rates.backup) + " a GiB-hour held";
  if (rates.network) words += "; network " + to_text(*rates.network) + " a GiB moved";
  return words.empty() ? words : words + ", on top";
}

// What is bought as spot and has a deadline may have to be done on demand, all of it.
std::optional<Reject> put_turn(const State& state, Instant now, const Tenant& tenant,
                               const TaskSpec& spec, billing::QuoteRequest request, Quote& quote) {
  request.terms = billing::terms_of(spec, PurchaseModel::on_demand, quote.isolation);
  const auto priced =
      billing::quote(state.rates, payer_of(tenant), request, state.tiers_of(tenant.id));
  if (!priced)
    return Reject{RejectCode::not_sold, priced.error().message, priced.error().next_step};
  quote.best = std::min(quote.best, priced->best);
  quote.worst = std::max(quote.worst, priced->worst);
  quote.turns_at = turns_at(plan_spot(state, now, tenant, spec).plan, now);
  const std::string turns = *quote.turns_at > now ? "from " + in_seconds(*quote.turns_at) + " on"
                                                  : std::string("at once");
  quote.rule = "on spot while there is some, on demand " + turns +
               " where there is none, to end by " + to_text(*spec.deadline) + ": " + quote.rule;
  return std::nullopt;
}

// What it costs, by the code that bills it.
std::optional<Reject> put_price(const State& state, Instant now, Instant start,
                                const Tenant& tenant, const TaskSpec& spec, Duration expected,
                                MilliCe of_member, Quote& quote) {
  const billing::PriceTable& table = *state.rates.at(tenant.spec.currency, now);
  billing::QuoteRequest request;
  request.terms =
      billing::terms_of(spec, model_now(state, now, tenant, spec, quote.ce), quote.isolation);
  request.ce = of_member;
  request.members = spec.gang;
  request.start = start;
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
  quote.rule = priced->rule + services_words(table.terms().services, spec);
  if (spec.purchase_model == PurchaseModel::hybrid) {
    const bool critical = spec.role == GroupRole::critical;
    const bool spot = request.terms.purchase_model == PurchaseModel::spot;
    quote.rule = std::string(critical ? "on demand, as a critical task of its group: "
                             : spot   ? "on spot now, on demand where spot is tight: "
                                      : "on demand now, since spot is tight: ") +
                 quote.rule;
  }
  if (spec.purchase_model == PurchaseModel::commitment) {
    quote.rule =
        "on demand, and given back hour by hour as far as a commitment covers it: " + quote.rule;
  }
  quote.expected_time = request.expected;
  return runs_by_plan(spec) ? put_turn(state, now, tenant, spec, request, quote) : std::nullopt;
}

}  // namespace

std::string beyond_means_words(const State& state, const Tenant& tenant, Money needed) {
  const int places = tenant.spec.currency.exponent();
  const std::string code(tenant.spec.currency.code());
  return "may cost up to " + display_text(needed.rounded(Rounding::up), places) + " " + code +
         " and " + tenant.spec.name + " has " +
         display_text(available(state, tenant.id).rounded(Rounding::down), places) + " " + code +
         " available";
}

namespace {

// One on a reservation starts with that at the earliest.
Instant begin_of(const State& state, const TaskSpec& spec, Instant at) {
  const Reservation* on = find_reservation(state, spec.reservation);
  return on == nullptr ? at : std::max(at, on->order.from);
}

std::string start_words(const TaskSpec& spec) {
  if (spec.reservation.valid()) return spec.reservation.text() + ", which begins at";
  return spec.recurrence.empty() ? "the cheapest hours before its deadline, from"
                                 : "the next time that it is due,";
}

}  // namespace

bool on_reserved(const State& state, Instant now, const DemandAnswer& wanted,
                 const TaskSpec& spec) {
  if (state.scheduler.reservations().empty()) return false;
  schedule::PoolRoom room(state.pool, state.kinds);
  for (const auto& [id, reservation] : state.scheduler.reservations()) {
    const bool yields = spec.purchase_model == PurchaseModel::spot && reservation.from > now;
    if (!yields && reservation.from < now + spec.limit && reservation.to > now)
      room.take(reservation.place);
  }
  return !room.find({wanted.demand, spec.gang}, 0);
}

namespace {

// Whether it starts now, or what it waits for. `fits`: there is room in the pool.
void put_start(const State& state, Instant now, Instant begins, const TaskSpec& spec,
               const DemandAnswer& wanted, const schedule::Placement& slice, bool fits,
               const Tenant& tenant, Quote& quote) {
  const bool pays = quote.at_most <= available(state, tenant.id);
  const auto shortfall =
      state.scheduler.quotas().check(tenant.id, amounts_on(spec, wanted.demand, slice), spec.limit);
  // Whoever waits in its queue may be tried before.
  const std::size_t waiting = waiting_beside(state, spec, now);
  if (!pays) {
    quote.waits_for = "money: it " + beyond_means_words(state, tenant, quote.at_most);
  } else if (shortfall) {
    quote.waits_for = "the quota of " + tenant.spec.name + ": it " + schedule::to_text(*shortfall);
  } else if (begins > now) {
    quote.room_by = begins;
    quote.waits_for = start_words(spec) + " " + to_text(begins);
  } else if (!fits && !spec.reservation.valid()) {
    quote.waits_for = room_words(state, wanted.demand);
    quote.room_by = room_by(state, now, {wanted.demand, spec.gang});
  } else if (waiting > 0 && !spec.reservation.valid()) {
    quote.waits_for = std::to_string(waiting) + (waiting == 1 ? " task waits" : " tasks wait") +
                      " before it in its queue";
  } else if (!spec.reservation.valid() && on_reserved(state, now, wanted, spec)) {
    quote.waits_for = "what is free is reserved before it would end";
  } else {
    quote.starts_now = true;
  }
}

}  // namespace

QuoteAnswer quote(const State& state, Instant now, TenantId tenant_id, const TaskSpec& asked,
                  std::optional<Duration> expected) {
  if (!tenant_id.valid() || tenant_id.value > state.tenants.size()) {
    return {{},
            Reject{RejectCode::no_such_tenant, "there is no " + tenant_id.text(),
                   "see the tenants with: loam tenant list"}};
  }
  if (auto reject = validate(asked)) return {{}, reject};
  std::optional<TaskSpec> with_taken;
  if (asked.auto_ce) with_taken = with_ce(state, tenant_id, asked);
  const TaskSpec& spec = with_taken ? *with_taken : asked;
  if (auto reject = validate_queue(state, spec)) return {{}, reject};
  const Tenant& tenant = state.tenant(tenant_id);
  if (auto reject = validate_reservation(state, now, tenant, spec)) return {{}, std::move(reject)};
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
  quote.promise = promise_words(
      {slice.device, slice.share, slice.memory, slice.unpromised, slice.memory_unpromised});
  quote.ce = all.ce;
  quote.billable_ce = of_member * spec.gang;
  quote.ce_per_gibibyte = card.ce_per_gibibyte;
  quote.isolation =
      isolation_of(device != nullptr ? state.node(device->node) : Node{}, slice.share);
  const StartAnswer start = start_of(state, now, tenant, spec);
  if (start.reject) return {{}, start.reject};
  const Instant begins = begin_of(state, spec, std::max(now, start.not_before));
  if (auto reject = put_price(state, now, begins, tenant, spec, expected.value_or(spec.limit),
                              of_member, quote))
    return {{}, std::move(reject)};
  quote.at_most = hold.amount;
  quote.limit = spec.limit;
  quote.purchase_model = spec.purchase_model;
  quote.tariff = spec.tariff;
  quote.service_class = spec.service_class;
  if (spec.auto_ce) quote.takes = words_of(*spec.auto_ce, *spec.request.ce);
  put_start(state, now, begins, spec, wanted, now_at ? slice : fits.front().needs,
            now_at.has_value(), tenant, quote);
  return {quote, {}};
}

LiveCost live_cost(const State& state, Instant now, const Task& task) {
  LiveCost cost{task.attempt_time, task.charged};
  for (const LeaseId id : task.leases) {
    const Lease& lease = state.leases.at(id);
    if (lease.started()) cost.run_time += now - lease.started_at;
    cost.net += unrated(state, now, lease);
  }
  return cost;
}

Money unrated(const State& state, Instant now, const Lease& lease) {
  Money net = Money::zero(lease.rated_net.currency());
  if (!lease.started()) return net;
  const Task& task = state.tasks.at(lease.task);
  for (const UsageRecord& record : billing::rate_until(
           lease, billing::terms_of(*task.spec, lease), payer_of(state.tenant(task.tenant)),
           state.rates, state.tiers_of(task.tenant), now))
    net += record.net;
  return net;
}

}  // namespace loam::engine
