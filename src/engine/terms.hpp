// The terms of a task: what it demands, what it may cost, what must be held. One place, used by
// submission, placement and quotes alike, so that a quote is what is billed. Pure.
#pragma once

#include <optional>

#include "domain/command.hpp"
#include "engine/state.hpp"
#include "schedule/demand.hpp"
#include "schedule/pool.hpp"

namespace loam::engine {

// Whether a spec can be honoured as it stands; the first fault otherwise, by field name.
std::optional<Reject> validate(const TaskSpec& spec);
std::optional<Reject> validate(const TenantSpec& spec);

// What each member of a task needs. Where no single device holds the CE asked for, it is that of
// several devices of one node, as few as hold it. Requires a valid spec. A reject where it names a
// device that is not there.
struct DemandAnswer {
  schedule::Demand demand;
  std::optional<MilliCe> unit_ce;  // asked for in all, where that was split over devices
  std::optional<Reject> reject;
};
DemandAnswer demand_of(const State& state, const TaskSpec& spec);

// A node's figures as the pool takes them.
schedule::NodeFigures figures_of(const Node& node);
// What a lease holds, as the pool books it.
schedule::UnitPlacement place_of(const State& state, const Lease& lease);

// The kinds of healthy device, one of which could hold a slice of the demand when empty.
std::vector<schedule::Pool::Fit> kinds_for(const State& state, const schedule::Demand& demand);

// Of one unit split over devices: rounding gives each piece a little more than its part, and a
// surplus is free.
void take_off_surplus(MilliCe asked, schedule::UnitPlacement& place);

// Places for every member of a task, by rank; nothing where they do not fit now.
std::optional<std::vector<schedule::UnitPlacement>> find_places(const State& state,
                                                                const DemandAnswer& wanted,
                                                                std::int64_t gang);
// What members hold together.
struct Bought {
  MilliCe ce;
  Mebibytes memory;  // of devices
};
Bought bought(const std::vector<schedule::UnitPlacement>& places);

billing::Payer payer_of(const Tenant& tenant);

// Hardware where every slice is a whole device.
Isolation isolation_of(const State& state, const schedule::UnitPlacement& place);
// The same of a slice of this share of a device there.
Isolation isolation_of(const Node& node, MilliDevice share);

// By what a task of a hybrid group is billed if it starts now; of others: as they ask.
PurchaseModel model_now(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec,
                        MilliCe ce);

// The terms that a task could come to be billed by, whatever it is placed on. At least one.
std::vector<billing::Terms> terms_of(const TaskSpec& spec);

// What one member that holds `billable` may cost for what is left of the limit, with grace and
// margin, at the dearest price known from now on, tax included. Requires terms that the card in
// force sells.
Money most_it_costs(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec,
                    MilliCe billable, Duration rest_of_limit);
// The same for a lease from where its billing stands.
Money most_left_of(const State& state, Instant now, const Task& task, const Lease& lease);
// How long a task has from the notice to the kill: what it asked for, and tasks sold as spot that
// others displace two minutes at least.
Duration grace_of(const Task& task, StopReason reason);
// The most of it, whoever asks: what must be set aside for.
Duration longest_grace(const TaskSpec& spec);

// The same for the dearest kind of device that the demand could be given.
// A reject where no device could ever hold it, or there is no price.
struct HoldAnswer {
  Money amount;
  std::optional<Reject> reject;
};
HoldAnswer hold_for(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec,
                    Duration run_time);

}  // namespace loam::engine
