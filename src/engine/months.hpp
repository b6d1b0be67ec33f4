// Billing months: which month of its tenant's zone a charge belongs to, and the invoices that end
// one. Pure.
#pragma once

#include "domain/event.hpp"

namespace loam::engine {

class Draft;
class State;

// How long after a month's end its invoice is issued unasked, so that what ended before it is
// metered, covered and reported first. What comes later is a correction on the next one.
inline constexpr Duration invoice_slack = Duration::hours(1);

// The end of the month that `at` lies in, by the clock of the tenant's billing zone.
Instant month_end(const State& state, TenantId tenant, Instant at);
// The beginning of the month that the time just before `at` lies in.
Instant month_before(const State& state, TenantId tenant, Instant at);

// Issues the next invoice that a month's end brings, of one tenant. True where the draft has events
// now.
bool close_month(Draft& draft);

// Whether the tenant's zone can be used on this machine. The error names it.
Result<void> check_zone(const TenantSpec& spec);

// For evolve(): after a tenant's terms changed. Requires that check_zone() passes.
void note_zone(State& state, const TenantSpec& spec);
// Likewise, after its open charges or terms did.
void set_invoice_due(State& state, TenantId tenant);
// After a snapshot was loaded.
void index_months(State& state);

}  // namespace loam::engine
