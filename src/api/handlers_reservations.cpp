// Reservations: quoted, made, seen, cancelled.
#include <algorithm>
#include <boost/describe/enum_to_string.hpp>

#include "api/handlers.hpp"
#include "api/requests.hpp"
#include "engine/reservations.hpp"

namespace loam::api::handlers {
namespace {

template <class Enum>
std::string word(Enum value) {
  return boost::describe::enum_to_string(value, "?");
}

struct Asked {
  TenantRef tenant;
  ReservationOrder order;
};

// A device may be named by its id too; the engine knows UUIDs and names.
Result<Asked> asked_of(Call& call) {
  LOAM_TRY(request, body_of<ReservationRequest>(call));
  LOAM_TRY(tenant, call.tenant(request.tenant));
  Result<ReservationOrder> order = ReservationOrder{};
  call.backend().read([&](const engine::State& state, Instant now) {
    order = order_of(request, std::max(now, state.now));
    if (!order || order->request.device.empty()) return;
    if (const Device* device = find_device(state, order->request.device))
      order->request.device = device->facts->uuid;
  });
  if (!order) return order.error();
  return Asked{std::move(tenant), std::move(*order)};
}

std::string devices_text(const engine::State& state, const schedule::Place& place) {
  std::string text;
  for (const schedule::UnitPlacement& unit : place) {
    for (const schedule::Placement& slice : unit.slices) {
      const Device& device = state.device(slice.device);
      text += (text.empty() ? "" : ", ") + device_name(state.node(device.node), device) + " " +
              decimal_text(slice.share.value, 3);
    }
  }
  return text;
}

ReservationQuoteView view_of(const engine::State& state, const Asked& asked, Instant now,
                             const engine::ReservationQuote& quote) {
  ReservationQuoteView view;
  view.tenant = asked.tenant.name;
  view.currency = std::string(asked.tenant.currency.code());
  view.from = to_text(asked.order.from == Instant{} ? now : asked.order.from);
  view.to = to_text(asked.order.to);
  view.devices = devices_text(state, quote.place);
  view.ce = to_text(quote.ce);
  view.billable_ce = to_text(quote.billable_ce);
  view.isolation = word(quote.isolation);
  view.unit_price = amount_text(quote.unit_price);
  view.per_hour = amount_text(quote.per_hour);
  view.used = amount_text(quote.used);
  view.unused = amount_text(quote.unused);
  view.unused_percent = decimal_text(quote.unused_share.value, 2);
  view.held = amount_text(quote.held);
  return view;
}

std::string state_of(const ReservationRecord& record, Instant now) {
  if (record.end) return word(*record.end);
  const ReservationOrder& order = record.reservation.order;
  return order.from > now ? "coming" : order.to > now ? "in_force" : "over";
}

ReservationView view_of(const engine::State& state, Instant now, const ReservationRecord& record) {
  const Reservation& reservation = record.reservation;
  const ReservationOrder& order = reservation.order;
  ReservationView view;
  view.id = reservation.id.text();
  view.tenant = tenant_name(state, reservation.tenant);
  view.currency = std::string(reservation.held.currency().code());
  view.state = state_of(record, now);
  view.ce = to_text(reservation.billable_ce);
  view.devices = record.devices;
  view.from = to_text(order.from);
  view.to = to_text(std::clamp(reservation.ended_at, order.from, order.to));
  view.isolation = word(reservation.isolation);
  view.tariff = word(order.tariff);
  view.project = order.attribution.project;
  view.environment = order.attribution.environment;
  view.model = order.attribution.model;
  view.model_version = order.attribution.model_version;
  view.tags = order.attribution.tags;
  view.charged_to = to_text(reservation.charged_to);
  view.held = amount_text(reservation.held);
  view.reason = record.reason;
  return view;
}

// Those that the caller may see.
Result<ReservationList> seen_by(Call& call) {
  std::optional<TenantId> only;
  if (call.caller.role == Role::member) {
    LOAM_TRY(tenant, call.tenant(call.caller.tenant));
    only = tenant.id;
  }
  LOAM_TRY(records, call.backend().reservations(only));
  ReservationList list;
  call.backend().read([&](const engine::State& state, Instant now) {
    for (const ReservationRecord& record : records)
      list.reservations.push_back(view_of(state, std::max(now, state.now), record));
  });
  return list;
}

Result<std::string> json_of(Call& call, const std::string& id) {
  LOAM_TRY(list, seen_by(call));
  for (const ReservationView& view : list.reservations) {
    if (view.id == id) return to_json(view);
  }
  return Error{ErrorKind::not_found, "there is no reservation " + id,
               "see them with: loam reservation list"};
}

}  // namespace

void list_reservations(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(list, seen_by(*call));
    return to_json(list);
  }());
}

void quote_reservation(const CallPtr& call) {
  const auto asked = asked_of(*call);
  if (!asked) return call->fail(asked.error());
  ReservationQuoteView view;
  std::optional<Reject> reject;
  call->backend().read([&](const engine::State& state, Instant clock) {
    const Instant now = std::max(clock, state.now);
    engine::ReservationAnswer answer =
        engine::quote_reservation(state, now, asked->tenant.id, asked->order);
    reject = std::move(answer.reject);
    if (answer.quote) view = view_of(state, *asked, now, *answer.quote);
  });
  if (reject) return call->fail(*reject);
  call->answer(to_json(view));
}

void make_reservation(const CallPtr& call) {
  auto asked = asked_of(*call);
  if (!asked) return call->fail(asked.error());
  call->post(MakeReservation{asked->tenant.id, std::move(asked->order)},
             [call](const std::string& subject) { return json_of(*call, subject); });
}

void cancel_reservation(const CallPtr& call) {
  const auto request = body_of<CancelRequest>(*call);
  if (!request) return call->fail(request.error());
  // Somebody else's is not there.
  const std::string id = call->parameter("id");
  const auto known = json_of(*call, id);
  if (!known) return call->fail(known.error());
  call->post(CancelReservation{*ReservationId::parse(id), request->reason},
             [call](const std::string& subject) { return json_of(*call, subject); });
}

}  // namespace loam::api::handlers
