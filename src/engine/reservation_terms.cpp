#include "engine/reservation_terms.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "billing/accounts.hpp"
#include "billing/quotes.hpp"
#include "engine/decisions.hpp"
#include "engine/queries.hpp"
#include "engine/scheduling.hpp"

namespace loam::engine {
namespace {

constexpr Duration length_max = Duration::hours(24 * 366);
constexpr Duration ahead_max = Duration::hours(24 * 366);

Reject bad(std::string message, std::string next_step) {
  return {RejectCode::invalid_argument, std::move(message), std::move(next_step)};
}

std::optional<Reject> validate_interval(const ReservationOrder& order, Instant now) {
  if (order.from < now) {
    return bad("a reservation from " + to_text(order.from) + " begins in the past",
               "it is " + to_text(now) + ": reserve from then on");
  }
  if (order.from > now + ahead_max) {
    return bad("a reservation from " + to_text(order.from) + " is too far ahead",
               "reserve at most " + to_text(ahead_max) + " ahead");
  }
  if (order.to <= order.from || order.to - order.from > length_max) {
    return bad("a reservation from " + to_text(order.from) + " to " + to_text(order.to) +
                   " lasts no time, or too long",
               "reserve more than nothing and at most " + to_text(length_max));
  }
  return std::nullopt;
}

// As a task of the same size would be refused: by what it asks, what is sold, the pool, its quota.
std::optional<Reject> validate_as_task(const State& state, Instant now, const Tenant& tenant,
                                       const ReservationOrder& order) {
  TaskSpec spec = spec_of(order);
  spec.purchase_model = PurchaseModel::on_demand;
  if (const auto& longest = tenant.spec.quota.longest)
    spec.limit = std::min(spec.limit, *longest);  // of tasks: several may follow one another on it
  if (auto reject = validate(spec)) return reject;
  if (auto reject = validate_queue(state, spec)) return reject;
  spec.purchase_model = PurchaseModel::reservation;
  return hold_for(state, now, tenant, spec, Duration{0}).reject;
}

// ErrorKind::not_found where the card that is in force then does not sell it.
Result<billing::PriceQuote> price_of(const State& state, const Tenant& tenant, const TaskSpec& spec,
                                     const ReservationQuote& quote, Instant from, Duration length) {
  const billing::QuoteRequest request{
      billing::terms_of(spec, PurchaseModel::reservation, quote.isolation),
      quote.billable_ce,
      1,
      from,
      length,
      length};
  return billing::quote(state.rates, payer_of(tenant), request, state.tiers_of(tenant.id));
}

const Reservation& named(const State& state, const TaskSpec& spec) {
  return state.reservations.at(spec.reservation).reservation;
}

}  // namespace

TaskSpec spec_of(const ReservationOrder& order) {
  TaskSpec spec;
  spec.command = {"(reserved)"};
  spec.request = order.request;
  spec.gang = order.gang;
  spec.attribution = order.attribution;
  spec.purchase_model = PurchaseModel::reservation;
  spec.tariff = order.tariff;
  spec.queue = order.queue;
  spec.limit = order.to - order.from;
  return spec;
}

bool is_open(const Reservation& reservation) {
  return reservation.charged_to < locks_until(reservation);
}

Money most_of(const State& state, const Tenant& tenant, const Reservation& reservation,
              Instant from) {
  return most_it_costs(state, from, tenant, spec_of(reservation.order), reservation.billable_ce,
                       locks_until(reservation) - from);
}

ReservationAnswer quote_reservation(const State& state, Instant now, TenantId id,
                                    const ReservationOrder& asked) {
  if (!id.valid() || id.value > state.tenants.size()) {
    return {{},
            Reject{RejectCode::no_such_tenant, "there is no " + id.text(),
                   "see the tenants with: loam tenant list"}};
  }
  const Tenant& tenant = state.tenant(id);
  ReservationOrder order = asked;
  if (order.from == Instant{}) order.from = now;
  if (auto reject = validate_interval(order, now)) return {{}, std::move(reject)};
  if (auto reject = validate_as_task(state, now, tenant, order)) return {{}, std::move(reject)};
  const billing::PriceTable& table = *state.rates.at(tenant.spec.currency, now);
  if (table.terms().granularity == Granularity::task) {
    return {{},
            Reject{RejectCode::not_sold, "the rate card sells by the task, and no time",
                   "ask the operator for a card with prices per CE-hour"}};
  }
  const TaskSpec spec = spec_of(order);
  const DemandAnswer wanted = demand_of(state, spec);
  const schedule::PoolRoom room(state.pool, state.kinds);
  auto place =
      state.scheduler.reservable({wanted.demand, order.gang}, now, order.from, order.to, room);
  if (!place || !on_one_node_each(*place)) {
    return {{},
            Reject{RejectCode::does_not_fit,
                   "there is no room for it from " + to_text(order.from) + " to " +
                       to_text(order.to) + " beside what runs, was promised or is reserved then",
                   "ask for less, or for another time; see: loam reservation list"}};
  }
  if (wanted.unit_ce) {
    for (schedule::UnitPlacement& unit : *place) take_off_surplus(*wanted.unit_ce, unit);
  }
  ReservationQuote quote;
  quote.isolation = Isolation::hardware;
  for (const schedule::UnitPlacement& unit : *place) {
    const Bought one = bought({unit});
    quote.ce += one.ce;
    quote.billable_ce += billing::billable_ce(one.ce, one.memory, table.card());
    if (isolation_of(state, unit) != Isolation::hardware)
      quote.isolation = isolation_of(state, unit);
  }
  quote.place = std::move(*place);
  const Duration length = order.to - order.from;
  const auto whole = price_of(state, tenant, spec, quote, order.from, length);
  const auto hourly = price_of(state, tenant, spec, quote, order.from, Duration::hours(1));
  if (!whole.ok() || !hourly.ok()) {
    const Error& fault = whole.ok() ? hourly.error() : whole.error();
    return {{}, Reject{RejectCode::not_sold, fault.message, fault.next_step}};
  }
  quote.unit_price = whole->unit_price;
  quote.used = whole->expected;
  quote.per_hour = hourly->expected;
  quote.unused_share = table.terms().reservation_unused;
  quote.unused = quote.used.times_ratio(quote.unused_share.value, 10'000, Rounding::half_even);
  quote.held = most_it_costs(state, order.from, tenant, spec, quote.billable_ce, length);
  return {std::move(quote), std::nullopt};
}

Decision decide_on(const State& state, Instant now, const MakeReservation& asked) {
  ReservationAnswer answer = quote_reservation(state, now, asked.tenant, asked.order);
  if (answer.reject) return Draft::rejected(std::move(*answer.reject));
  const ReservationQuote& quote = *answer.quote;
  const Tenant& tenant = state.tenant(asked.tenant);
  if (quote.held > available(state, tenant.id)) {
    return Draft::rejected(
        {RejectCode::insufficient_funds,
         "this reservation " + beyond_means_words(state, tenant, quote.held),
         "top up the wallet (loam tenant topup " + tenant.spec.name + " AMOUNT) or reserve less"});
  }
  Draft draft(state, now);
  Reservation reservation;
  reservation.id = ReservationId{draft.next().reservation++};
  reservation.tenant = tenant.id;
  reservation.order = asked.order;
  if (reservation.order.from == Instant{}) reservation.order.from = now;
  reservation.members = members_of(quote.place);
  reservation.billable_ce = quote.billable_ce;
  reservation.isolation = quote.isolation;
  reservation.charged_to = reservation.order.from;
  reservation.held = quote.held;
  draft.add(ReservationMade{reservation});
  if (!quote.held.is_zero()) {
    draft.add(TransactionPosted{
        billing::hold(TransactionId{draft.next().transaction++}, tenant.id, TaskId{}, quote.held)});
  }
  draft.subject(reservation.id.text());
  return draft.done();
}

// Before it begins it costs nothing: the capacity is sold to others meanwhile.
Decision decide_on(const State& state, Instant now, const CancelReservation& asked) {
  const Reservation* found = find_reservation(state, asked.reservation);
  const std::string name = asked.reservation.text();
  if (found == nullptr) {
    return Draft::rejected({RejectCode::not_found, "there is no reservation " + name,
                            "see them with: loam reservation list"});
  }
  if (found->ended_at != Instant::never()) {
    return Draft::rejected({RejectCode::wrong_state,
                            name + " ended at " + to_text(found->ended_at) + " already",
                            "a reservation ends once"});
  }
  if (found->order.from <= now) {
    return Draft::rejected({RejectCode::wrong_state,
                            name + " began at " + to_text(found->order.from),
                            "it is charged to its end at " + to_text(found->order.to)});
  }
  Draft draft(state, now);
  draft.subject(name);
  end_reservation(draft, *found, now, ReservationEnd::cancelled,
                  asked.reason.empty() ? "cancelled" : asked.reason);
  return draft.done();
}

const Reservation* find_reservation(const State& state, ReservationId id) {
  const auto found = state.reservations.find(id);
  return found == state.reservations.end() ? nullptr : &found->second.reservation;
}

bool paid_by_reservation(const State& state, const Task& task) {
  return task.spec->reservation.valid() && is_open(named(state, *task.spec));
}

Money held_for(const State& state, const Task& task) {
  return paid_by_reservation(state, task) ? named(state, *task.spec).held : task.held;
}

Instant reserved_until(const State& state, const TaskSpec& spec) {
  return spec.reservation.valid() ? named(state, spec).order.to : Instant::never();
}

std::optional<Reject> validate_reservation(const State& state, Instant now, const Tenant& tenant,
                                           const TaskSpec& spec) {
  if (!spec.reservation.valid()) return std::nullopt;
  const Reservation* reservation = find_reservation(state, spec.reservation);
  const std::string name = spec.reservation.text();
  if (reservation == nullptr || reservation->tenant != tenant.id) {
    return Reject{RejectCode::not_found, "there is no reservation " + name,
                  "see them with: loam reservation list"};
  }
  if (locks_until(*reservation) <= now) {
    return Reject{RejectCode::wrong_state,
                  name + " is over since " + to_text(locks_until(*reservation)),
                  "reserve anew, or run it on_demand"};
  }
  if (spec.tariff != reservation->order.tariff || spec.service_class != "standard") {
    return bad("a task on a reservation has its tariff and the class standard",
               "leave out --class, and give --tariff as the reservation has it");
  }
  const ResourceRequest& request = spec.request;
  const bool elsewhere = !request.device.empty() || !request.region.empty();
  if (elsewhere) {
    return bad("a task on a reservation runs where that lies",
               "leave out the device and the region");
  }
  return std::nullopt;
}

void leave_device(Draft& draft, DeviceId device, std::optional<Instant> lost_at) {
  const State& state = draft.state();
  // As it will be: nothing fits there.
  schedule::PoolRoom room(state.pool, state.kinds);
  schedule::UnitPlacement all;
  const Device& leaving = state.device(device);
  all.slices.push_back({device, whole_device, leaving.facts->memory, {}, leaving.node});
  room.take({all});
  for (const auto& [id, book] : state.reservations) {
    const Reservation& reservation = book.reservation;
    const bool there =
        locks_until(reservation) > draft.now() &&
        std::any_of(reservation.members.begin(), reservation.members.end(), [&](const auto& of) {
          return std::any_of(of.slices.begin(), of.slices.end(),
                             [&](const PromisedSlice& slice) { return slice.device == device; });
        });
    if (!there) continue;
    const std::string name = device_name(state.node(leaving.node), leaving);
    const ReservationOrder& order = reservation.order;
    const auto place = state.scheduler.reservable(
        {demand_of(state, spec_of(order)).demand, order.gang}, draft.now(),
        std::max(order.from, draft.now()), order.to, room, id);
    if (place && on_one_node_each(*place)) {
      draft.add(ReservationMoved{reservation.tenant, id, members_of(*place),
                                 name + (lost_at ? " was lost" : " leaves service")});
      room.take(*place);
    } else if (lost_at) {
      const Instant at = order.from > draft.now()
                             ? draft.now()
                             : std::clamp(*lost_at, reservation.charged_to, order.to);
      end_reservation(draft, reservation, at, ReservationEnd::lost,
                      name + " was lost, and there is no room for it elsewhere");
    }
  }
}

void end_reservation(Draft& draft, const Reservation& reservation, Instant at, ReservationEnd end,
                     std::string reason) {
  draft.add(ReservationEnded{reservation.tenant, reservation.id, at, end, std::move(reason)});
  if (at > reservation.charged_to || reservation.held.is_zero()) return;  // with its last hour
  draft.add(TransactionPosted{billing::release(TransactionId{draft.next().transaction++},
                                               reservation.tenant, TaskId{}, reservation.held)});
  draft.add(ReservationHeld{reservation.tenant, reservation.id,
                            Money::zero(reservation.held.currency())});
}

}  // namespace loam::engine
