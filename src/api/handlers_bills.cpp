// Bills: of one tenant, and of one or all cut into buckets of time.
#include <algorithm>

#include "api/bill_maker.hpp"
#include "api/handlers.hpp"
#include "billing/attribution.hpp"

namespace loam::api::handlers {
namespace {

constexpr std::size_t buckets_max = 10'000;  // a year of hours
constexpr std::int64_t page_max = 500;

struct Span {
  std::optional<Instant> from;
  std::optional<Instant> until;
  Instant now;
  CardTaxes taxes;

  Instant begin() const { return from.value_or(Instant{}); }
  // What a heartbeat of this very millisecond billed is on it too.
  Instant end() const { return until ? *until : now + Duration{1}; }
};

Result<Span> span_of(Call& call) {
  Span span;
  LOAM_TRY(from, call.instant("from"));
  LOAM_TRY(until, call.instant("to"));
  span.from = from;
  span.until = until;
  call.backend().read([&](const engine::State& state, Instant at) {
    span.now = at;
    for (const auto& table : state.rates.all())
      span.taxes[table->card().id] = table->card().terms.taxes;
  });
  if (from && *from >= span.end()) {
    return invalid("the period from " + to_text(*from) + " to " + to_text(span.end()) + " is empty",
                   "give a 'from' before 'to'");
  }
  return span;
}

// A tenant's invoices and credit notes, and which charge is on which.
struct Documents {
  std::vector<InvoiceRecord> invoices;
  std::vector<CreditNoteRecord> notes;
  InvoiceFinder finder;
};

Result<Documents> documents_of(Backend& backend, TenantId tenant) {
  Documents documents;
  InvoiceId before;
  while (true) {
    LOAM_TRY(page, backend.invoices(tenant, before, page_max));
    for (InvoiceRecord& record : page) {
      documents.finder.add(record);
      documents.invoices.push_back(std::move(record));
    }
    if (static_cast<std::int64_t>(page.size()) < page_max) break;
    before = documents.invoices.back().invoice.id;
  }
  std::reverse(documents.invoices.begin(), documents.invoices.end());
  CreditNoteFilter filter;
  filter.tenant = tenant;
  LOAM_TRY(notes, backend.credit_notes(filter));
  documents.notes = std::move(notes);
  return documents;
}

// The tenant's makers, one for each of `periods`, which follow one another; filled in one walk.
Result<std::vector<BillMaker>> makers_of(Backend& backend, const TenantRef& tenant,
                                         const std::vector<billing::Period>& periods,
                                         const CardTaxes& taxes) {
  std::vector<BillMaker> makers;
  std::string zone, seller;
  backend.read([&](const engine::State& state, Instant) {
    zone = state.tenant(tenant.id).spec.billing_zone;
    seller = state.seller.name;
  });
  makers.reserve(periods.size());
  for (const billing::Period& period : periods)
    makers.emplace_back(tenant.name, tenant.currency, zone, seller, period, taxes);
  // Those that meet [from, to], both included.
  const auto each_between = [&](Instant from, Instant to, const auto& give) {
    auto at = std::upper_bound(
        periods.begin(), periods.end(), from,
        [](Instant instant, const billing::Period& period) { return instant < period.to; });
    for (; at != periods.end() && at->from <= to; ++at)
      give(makers[static_cast<std::size_t>(at - periods.begin())]);
  };
  LOAM_TRY(documents, documents_of(backend, tenant.id));
  const Instant begin = periods.front().from, end = periods.back().to;
  LOAM_CHECK(
      backend.usage(tenant.id, begin, end, [&](const UsageRecord& record, const UsageFacts& facts) {
        const Invoiced on = documents.finder.of(record);
        each_between(std::min(record.from, record.to), std::max(record.from, record.to),
                     [&](BillMaker& maker) { maker.add(record, facts, on); });
      }));
  // Those that are cut last an hour at most.
  const Duration reach = Duration::hours(1);
  LOAM_TRY(adjustments, backend.adjustments(tenant.id, Instant{begin.ms - reach.ms}, end));
  for (const AdjustmentRecord& record : adjustments) {
    each_between(record.from, std::max(record.from, std::min(record.to, record.from + reach)),
                 [&](BillMaker& maker) { maker.add(record, documents.finder.of(record)); });
  }
  for (const InvoiceRecord& record : documents.invoices)
    each_between(record.issued_at, record.issued_at, [&](BillMaker& maker) { maker.add(record); });
  for (const CreditNoteRecord& record : documents.notes)
    each_between(record.issued_at, record.issued_at, [&](BillMaker& maker) { maker.add(record); });
  std::map<TaskId, std::optional<TaskRecord>> tasks;
  for (BillMaker& maker : makers) {
    for (const TaskId id : maker.tasks()) {
      auto known = tasks.find(id);
      if (known == tasks.end()) {
        LOAM_TRY(record, backend.task(id));
        known = tasks.emplace(id, std::move(record)).first;
      }
      if (known->second) maker.describe(*known->second);
    }
  }
  return makers;
}

std::vector<TenantRef> tenants_of(Backend& backend) {
  std::vector<TenantRef> all;
  backend.read([&](const engine::State& state, Instant) {
    for (const Tenant& tenant : state.tenants)
      all.push_back({tenant.id, tenant.spec.name, tenant.spec.currency});
  });
  return all;
}

// The instant at which the first of the tenants' charges belongs; the end where there is none.
Result<Instant> first_charge(Backend& backend, const std::vector<TenantRef>& tenants,
                             const Span& span) {
  Instant first = span.end();
  for (const TenantRef& tenant : tenants) {
    LOAM_CHECK(backend.usage(tenant.id, span.begin(), span.end(),
                             [&](const UsageRecord& record, const UsageFacts&) {
                               first = std::min({first, record.from, record.to});
                             }));
    LOAM_TRY(adjustments, backend.adjustments(tenant.id, span.begin(), span.end()));
    for (const AdjustmentRecord& record : adjustments) first = std::min(first, record.from);
    CreditNoteFilter filter;
    filter.tenant = tenant.id;
    LOAM_TRY(notes, backend.credit_notes(filter));
    for (const CreditNoteRecord& note : notes) first = std::min(first, note.issued_at);
  }
  return std::max(first, span.begin());
}

}  // namespace

void bill(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(tenant, call->tenant(call->query("tenant")));
    LOAM_TRY(span, span_of(*call));
    LOAM_TRY(makers, makers_of(call->backend(), tenant, {{span.begin(), span.end()}}, span.taxes));
    return to_json(makers.front().view(span.from, span.until ? *span.until : span.now));
  }());
}

void bills(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(only, call->tenant_filter(call->query("tenant")));
    LOAM_TRY(span, span_of(*call));
    const std::string asked = call->query("bucket"), place = call->query("zone");
    LOAM_TRY(bucket, billing::parse_bucket(asked.empty() ? "none" : asked));
    LOAM_TRY(zone, billing::Zone::open(place.empty() ? "UTC" : place));
    const std::vector<TenantRef> tenants =
        only ? std::vector<TenantRef>{*only} : tenants_of(call->backend());
    Instant begin = span.begin();
    if (!span.from) {
      LOAM_TRY(first, first_charge(call->backend(), tenants, span));
      begin = std::min(first, span.end() - Duration{1});
    }
    const auto periods = billing::cut_into({begin, span.end()}, bucket, zone);
    if (periods.size() > buckets_max)
      return invalid(std::to_string(periods.size()) + " buckets of time are too many",
                     "take a larger bucket, or a shorter time");
    BillList list;
    list.from = to_text(begin);
    list.to = to_text(span.until ? *span.until : span.now);
    for (const TenantRef& tenant : tenants) {
      LOAM_TRY(makers, makers_of(call->backend(), tenant, periods, span.taxes));
      for (std::size_t i = 0; i < makers.size(); ++i) {
        // Of a tenant that was asked for there is always one, which tells its currency.
        if (makers[i].empty() && !(only && i == 0)) continue;
        const bool last = i + 1 == makers.size() && !span.until;
        list.bills.push_back(makers[i].view(periods[i].from, last ? span.now : periods[i].to));
      }
    }
    return to_json(list);
  }());
}

}  // namespace loam::api::handlers
