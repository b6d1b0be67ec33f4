// The terms of a task: what it demands, what it may cost, what must be held. One place, used by
// submission, placement and quotes alike, so that a quote is what is billed. Pure.
#pragma once

#include <optional>

#include "domain/command.hpp"
#include "engine/state.hpp"
#include "schedule/demand.hpp"

namespace loam::engine {

// Whether a spec can be honoured as it stands; the first fault otherwise, by field name.
std::optional<Reject> validate(const TaskSpec& spec);
std::optional<Reject> validate(const TenantSpec& spec);

// Requires a valid spec. A reject where it names a device that is not there.
struct DemandAnswer {
  schedule::Demand demand;
  std::optional<Reject> reject;
};
DemandAnswer demand_of(const State& state, const TaskSpec& spec);

billing::Payer payer_of(const Tenant& tenant);

// Net cost of holding `ce` for what is left of the limit, with grace and margin, at the dearest
// price known from now on. Requires a rate card for the tenant's currency.
Money most_it_costs(const State& state, Instant now, const Tenant& tenant, MilliCe billable,
                    Duration rest_of_limit, Duration grace);

// The same for the dearest kind of device that the demand could be given.
// A reject where no device could ever hold it, or there is no price.
struct HoldAnswer {
  Money amount;
  std::optional<Reject> reject;
};
HoldAnswer hold_for(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec,
                    Duration run_time);

// Whether the tenant's quota leaves room for one more lease like this; the words otherwise.
std::optional<std::string> over_quota(const Tenant& tenant, MilliCe ce, Mebibytes memory);

}  // namespace loam::engine
