// Commitments: bought, seen, cancelled.
#include <algorithm>

#include "api/handlers.hpp"
#include "base/assert.hpp"
#include "billing/attribution.hpp"
#include "billing/calendar.hpp"

namespace loam::api::handlers {
namespace {

struct PeriodName {
  const char* name;
  std::int64_t months;
};
constexpr PeriodName periods[] = {{"month", 1}, {"quarter", 3}, {"year", 12}};

CommitmentView view_of(const engine::State& state, Instant now, const Commitment& commitment) {
  const CommitmentTerms& terms = commitment.terms;
  CommitmentView view;
  view.id = commitment.id.text();
  view.tenant = tenant_name(state, commitment.tenant);
  view.currency = std::string(terms.unit_price.currency().code());
  const bool ended = commitment.ended_at <= now;
  view.state = commitment.cancelled
                   ? (ended || commitment.fees_charged == 0 ? "cancelled" : "ending")
               : ended            ? "unpaid"
               : terms.to <= now  ? "over"
               : terms.from > now ? "coming"
                                  : "in_force";
  view.ce = to_text(terms.ce);
  view.spend = amount_text(terms.spend);
  for (const PeriodName& period : periods) {
    if (period.months == terms.months) view.period = period.name;
  }
  view.from = to_text(terms.from);
  view.to = to_text(std::min(terms.to, commitment.ended_at));
  view.unit_price = amount_text(terms.unit_price);
  view.project = commitment.attribution.project;
  view.environment = commitment.attribution.environment;
  view.model = commitment.attribution.model;
  view.model_version = commitment.attribution.model_version;
  view.tags = commitment.attribution.tags;
  std::int64_t index = 0;
  for (const CommitmentFee& fee : terms.fees) {
    view.fees.push_back({to_text(fee.from), to_text(fee.to), fee.days, fee.days_of_period,
                         amount_text(fee.net), index < commitment.fees_charged,
                         amount_text(fee.list)});
    ++index;
  }
  return view;
}

// A day of the card's zone, as its first instant; an instant as it is.
Result<std::optional<Instant>> day_of(const char* field, const std::optional<std::string>& text,
                                      const billing::Zone& zone) {
  if (!text) return std::optional<Instant>();
  if (const auto date = billing::parse_date(*text); date.ok())
    return std::optional(zone.first_instant({*date, {}}));
  const auto instant = parse_instant(*text);
  if (instant.ok()) return std::optional(*instant);
  return invalid("'" + std::string(field) + "': '" + *text + "' is no day",
                 "write it as 2026-03-01");
}

Result<BuyCommitment> order_of(Call& call, const CommitmentRequest& request) {
  BuyCommitment order;
  LOAM_TRY(tenant, call.tenant(request.tenant));
  order.tenant = tenant.id;
  if (request.spend) {
    LOAM_TRY(spend, Money::parse(*request.spend, tenant.currency));
    order.spend = spend;
  }
  if (!request.spend || !request.ce.empty()) {
    LOAM_TRY(ce, parse_ce(request.ce));
    order.ce = ce;
  }
  order.months = 0;
  for (const PeriodName& period : periods) {
    if (request.period == period.name) order.months = period.months;
  }
  if (order.months == 0)
    return invalid("'period': '" + request.period + "' is not sold", "use month, quarter or year");
  billing::Zone zone;
  call.backend().read([&](const engine::State& state, Instant now) {
    const billing::PriceTable* table = state.rates.at(tenant.currency, std::max(now, state.now));
    if (table != nullptr) zone = table->zone();
  });
  LOAM_TRY(from, day_of("from", request.from, zone));
  LOAM_TRY(until, day_of("until", request.until, zone));
  LOAM_TRY(anchor, day_of("anchor", request.anchor, zone));
  order.from = from;
  order.until = until;
  order.anchor = anchor;
  order.attribution.project = request.project;
  order.attribution.environment = request.environment;
  LOAM_CHECK(billing::take_model(request.model, order.attribution));
  if (const auto good = billing::check(request.tags); !good.ok())
    return invalid("'tags': " + good.error().message, good.error().next_step);
  order.attribution.tags = request.tags;
  return order;
}

}  // namespace

void list_commitments(const CallPtr& call) {
  CommitmentList list;
  call->backend().read([&](const engine::State& state, Instant now) {
    for (const auto& [tenant, book] : state.commitment_books) {
      if (call->caller.role == Role::member && tenant_name(state, tenant) != call->caller.tenant)
        continue;
      for (const Commitment& commitment : book.commitments)
        list.commitments.push_back(view_of(state, std::max(now, state.now), commitment));
    }
  });
  call->answer(to_json(list));
}

namespace {

std::string commitment_json(Backend& backend, const std::string& subject) {
  std::string json;
  backend.read([&](const engine::State& state, Instant now) {
    for (const auto& [tenant, book] : state.commitment_books) {
      for (const Commitment& commitment : book.commitments) {
        if (commitment.id.text() == subject)
          json = to_json(view_of(state, std::max(now, state.now), commitment));
      }
    }
  });
  LOAM_ASSERT(!json.empty());
  return json;
}

}  // namespace

void buy_commitment(const CallPtr& call) {
  const auto order = [&]() -> Result<BuyCommitment> {
    LOAM_TRY(request, body_of<CommitmentRequest>(*call));
    return order_of(*call, request);
  }();
  if (!order) return call->fail(order.error());
  call->post(*order, [call](const std::string& subject) -> Result<std::string> {
    return commitment_json(call->backend(), subject);
  });
}

void cancel_commitment(const CallPtr& call) {
  const auto request = body_of<CancelRequest>(*call);
  if (!request) return call->fail(request.error());
  const std::string id_text = call->parameter("id");
  const auto id = CommitmentId::parse(id_text);
  if (!id) {
    return call->fail(Error{ErrorKind::not_found, "there is no commitment " + id_text,
                            "see them with: loam commit list"});
  }
  call->post(CancelCommitment{*id, request->reason},
             [call](const std::string& subject) -> Result<std::string> {
               return commitment_json(call->backend(), subject);
             });
}

}  // namespace loam::api::handlers
