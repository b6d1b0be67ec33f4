// What attempts held and used, and what there was to hold.
#include <algorithm>

#include "api/handlers.hpp"
#include "api/page.hpp"

namespace loam::api::handlers {
namespace {

struct TimeAsked {
  Instant from{};
  Instant to = Instant::never();
};

Result<TimeAsked> span_of(Call& call) {
  LOAM_TRY(from, call.instant("from"));
  LOAM_TRY(to, call.instant("to"));
  const TimeAsked span{from.value_or(Instant{}), to.value_or(Instant::never())};
  if (span.from >= span.to) {
    return invalid("the time from " + to_text(span.from) + " to " + to_text(span.to) + " is empty",
                   "give a 'from' before 'to'");
  }
  return span;
}

Instant now_of(Backend& backend) {
  Instant now;
  backend.read([&](const engine::State& state, Instant at) { now = std::max(at, state.now); });
  return now;
}

}  // namespace

void list_leases(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LeaseFilter filter;
    LOAM_TRY(tenant, call->tenant_filter(call->query("tenant")));
    if (tenant) filter.tenant = tenant->id;
    if (const std::string id = call->query("task"); !id.empty()) {
      LOAM_TRY(task, call->task(id));
      filter.tasks = {task.id};
    }
    LOAM_TRY(span, span_of(*call));
    filter.from = span.from;
    filter.to = span.to;
    LOAM_TRY(limit, page_limit(*call, " leases"));
    LOAM_TRY(after, page_after<LeaseId>(*call));
    filter.before = after;
    filter.limit = limit + 1;  // one more tells whether there is a next page
    LOAM_TRY(uses, call->backend().leases(filter));
    LeasePage page;
    page.next = cut_to_page(uses, limit, [](const LeaseUse& use) { return use.lease.id; });
    call->backend().read([&](const engine::State& state, Instant now) {
      for (const LeaseUse& use : uses)
        page.leases.push_back(view_of(state, std::max(now, state.now), use));
    });
    return to_json(page);
  }());
}

void capacity(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(span, span_of(*call));
    const Instant now = now_of(call->backend());
    if (span.from >= now) {
      return invalid("what there is from " + to_text(span.from) + " on is not known yet",
                     "give a 'from' before " + to_text(now));
    }
    span.to = std::min(span.to, now);
    LOAM_TRY(pieces, call->backend().capacity(span.from, span.to));
    CapacityList list;
    list.from = to_text(span.from);
    list.to = to_text(span.to);
    for (const CapacityPiece& piece : pieces) list.pieces.push_back(view_of(piece));
    return to_json(list);
  }());
}

}  // namespace loam::api::handlers
