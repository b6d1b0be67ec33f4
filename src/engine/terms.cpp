#include "engine/terms.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/assert.hpp"
#include "billing/purchase.hpp"
#include "billing/quotes.hpp"
#include "engine/decide.hpp"
#include "engine/scheduling.hpp"
#include "schedule/gang.hpp"

namespace loam::engine {

std::vector<schedule::Pool::Fit> kinds_for(const State& state, const schedule::Demand& demand) {
  auto fits = state.pool.fits_when_empty(demand);
  // The pool also knows units spread over nodes, which no attempt can run on.
  std::erase_if(fits, [](const schedule::Pool::Fit& fit) {
    return fit.needs.share > whole_device || fit.needs.memory > fit.facts->memory;
  });
  return fits;
}

namespace {

constexpr std::int64_t pieces_max = 64;  // devices that one unit is split over

void split_over_devices(const State& state, DemandAnswer& answer) {
  const schedule::Demand& whole = answer.demand;
  if (!whole.ce || whole.devices != 1 || !kinds_for(state, whole).empty()) return;
  const auto part = [](std::int64_t all, std::int64_t pieces) {
    return (all + pieces - 1) / pieces;
  };
  for (std::int64_t pieces = 2; pieces <= pieces_max; ++pieces) {
    schedule::Demand piece = whole;
    piece.devices = pieces;
    piece.ce = MilliCe{part(whole.ce->value, pieces)};
    if (whole.memory) piece.memory = Mebibytes{part(whole.memory->value, pieces)};
    if (kinds_for(state, piece).empty()) continue;
    answer.unit_ce = whole.ce;
    answer.demand = piece;
    return;
  }
}

// To the pool it is a label like others that a node keeps tasks apart; no operator can give it.
constexpr std::string_view sandboxed_label = "(sandboxed)";

std::vector<std::string> labels_of(const Node& node) {
  std::vector<std::string> labels = node.labels;
  if (node.sandboxed) labels.emplace_back(sandboxed_label);
  return labels;
}

}  // namespace

DemandAnswer demand_of(const State& state, const TaskSpec& spec) {
  DemandAnswer answer;
  const ResourceRequest& request = spec.request;
  answer.demand.ce = request.ce;
  answer.demand.share = request.share;
  answer.demand.memory = request.memory;
  answer.demand.device_type = request.device_type;
  answer.demand.work_class = request.work_class;
  answer.demand.devices = request.devices;
  answer.demand.cpu = request.cpu;
  answer.demand.host_memory = request.host_memory;
  answer.demand.region = request.region;
  answer.demand.labels = request.labels;
  if (request.isolation != Isolation::any) answer.demand.labels.emplace_back(sandboxed_label);
  // What is reserved is paid for whether it is used or not: all of it is promised.
  answer.demand.oversubscribable = state.settings.oversubscription != Oversubscription{} &&
                                   request.mode == ShareMode::burstable &&
                                   spec.purchase_model != PurchaseModel::reservation;
  if (auto reject = keep_to_queue(state, spec, answer.demand)) {
    answer.reject = std::move(reject);
    return answer;
  }
  if (request.device.empty()) {
    split_over_devices(state, answer);
    return answer;
  }
  const Device* device = state.find_device(request.device);
  if (device == nullptr) {
    answer.reject =
        Reject{RejectCode::no_such_device, "there is no device '" + request.device + "'",
               "see the devices with: loam device list"};
    return answer;
  }
  if (!request.device_type.empty() && device->facts->type != request.device_type) {
    answer.reject = Reject{RejectCode::invalid_argument,
                           "the device '" + request.device + "' is a " + device->facts->type +
                               ", not a " + request.device_type,
                           "leave out the device or its type"};
    return answer;
  }
  const QueueSettings* queue = queue_of(state, spec);
  if (queue != nullptr && !admits(*queue, state.node(device->node), device->facts->type)) {
    answer.reject =
        Reject{RejectCode::invalid_argument,
               "the device '" + request.device + "' is none of the queue '" + queue->name + "'",
               "name a device of that queue, or another queue"};
    return answer;
  }
  answer.demand.device = device->id;
  return answer;
}

schedule::NodeFigures figures_of(const Node& node) {
  constexpr std::int64_t plenty = std::int64_t{1} << 40;
  schedule::NodeFigures figures;
  figures.id = node.id;
  figures.region = node.region;
  figures.labels = labels_of(node);
  figures.cpu = node.cpu.value > 0 ? node.cpu : MilliCpu{plenty};
  figures.memory = node.memory.value > 0 ? node.memory : Mebibytes{plenty};
  figures.cpu_used = node.cpu_used;
  figures.memory_used = node.memory_used;
  return figures;
}

schedule::UnitPlacement place_of(const State& state, const Lease& lease) {
  schedule::UnitPlacement place;
  NodeId node;
  for (const Slice& slice : lease.slices) {
    node = state.device(slice.device).node;
    place.slices.push_back({slice.device,
                            slice.share,
                            slice.memory,
                            {},
                            node,
                            slice.unpromised,
                            slice.memory_unpromised});
  }
  place.hosts = {{node, lease.cpu, lease.host_memory}};
  return place;
}

void take_off_surplus(MilliCe asked, schedule::UnitPlacement& place) {
  MilliCe sum;
  for (const schedule::Placement& slice : place.slices) sum += slice.ce;
  place.slices.back().ce -= sum - asked;
}

std::optional<std::vector<schedule::UnitPlacement>> find_places(const State& state,
                                                                const DemandAnswer& wanted,
                                                                std::int64_t gang) {
  const schedule::Demand& demand = wanted.demand;
  std::vector<schedule::UnitPlacement> places;
  if (gang == 1) {
    auto found = state.pool.find(demand);
    if (!found) return std::nullopt;
    places.push_back(std::move(*found));
  } else {
    const std::vector<schedule::Demand> members(static_cast<std::size_t>(gang), demand);
    auto found = schedule::find_gang(state.pool, members);
    if (!found) return std::nullopt;
    places = std::move(found->members);
  }
  for (schedule::UnitPlacement& place : places) {
    // An attempt is a process of one node: a unit spread over several has nowhere to run.
    if (place.hosts.size() != 1) return std::nullopt;
    if (wanted.unit_ce) take_off_surplus(*wanted.unit_ce, place);
  }
  return places;
}

Bought bought(const std::vector<schedule::UnitPlacement>& places) {
  Bought all;
  for (const schedule::UnitPlacement& place : places) {
    for (const schedule::Placement& slice : place.slices) {
      all.ce += slice.ce;
      all.memory += slice.memory;
    }
  }
  return all;
}

Duration longest_grace(const TaskSpec& spec) {
  // An auxiliary one of a hybrid group may run on spot.
  const bool spot =
      spec.purchase_model == PurchaseModel::spot ||
      (spec.purchase_model == PurchaseModel::hybrid && spec.role == GroupRole::auxiliary);
  return spot ? std::max(spec.grace, schedule::spot_notice) : spec.grace;
}

Duration grace_of(const Task& task, StopReason reason) {
  const bool for_another = reason == StopReason::preempted || reason == StopReason::moved;
  return for_another ? longest_grace(*task.spec) : task.spec->grace;
}

billing::Payer payer_of(const Tenant& tenant) {
  return {tenant.spec.currency, tenant.spec.discount};
}

Isolation isolation_of(const Node& node, MilliDevice share) {
  if (!node.sandboxed) return Isolation::advisory;
  return share == whole_device ? Isolation::hardware : Isolation::software;
}

Isolation isolation_of(const State& state, const schedule::UnitPlacement& place) {
  MilliDevice least = whole_device;
  for (const schedule::Placement& slice : place.slices) least = std::min(least, slice.share);
  for (const schedule::HostShare& host : place.hosts) {
    if (!state.node(host.node).sandboxed) return Isolation::advisory;
  }
  return isolation_of(Node{}, least);
}

PurchaseModel model_now(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec,
                        MilliCe ce) {
  // Charged on demand, and given back as far as a commitment covers it.
  if (spec.purchase_model == PurchaseModel::commitment) return PurchaseModel::on_demand;
  if (spec.purchase_model != PurchaseModel::hybrid) return spec.purchase_model;
  // On demand from 90 % of its price on: what is saved is not worth an interruption.
  constexpr BasisPoints tight{9'000};
  const billing::PriceTable* table = state.rates.at(tenant.spec.currency, now);
  const billing::SpotSeries* series = state.rates.spot(tenant.spec.currency);
  if (table == nullptr || series == nullptr || !table->terms().spot.sold)
    return PurchaseModel::on_demand;
  billing::SpotMarket market = state.market.spot_market();
  market.demand = state.market.spot;  // others that wait may not come before it
  return billing::hybrid_model(spec.role, ce, market, series->at(now), table->card().on_demand,
                               tight);
}

std::vector<billing::Terms> terms_of(const TaskSpec& spec) {
  std::vector<PurchaseModel> models{spec.purchase_model};
  if (spec.purchase_model == PurchaseModel::commitment) models = {PurchaseModel::on_demand};
  if (runs_by_plan(spec)) models.push_back(PurchaseModel::on_demand);
  if (spec.purchase_model == PurchaseModel::hybrid) {
    models = {PurchaseModel::on_demand};
    if (spec.role == GroupRole::auxiliary) models.push_back(PurchaseModel::spot);
  }
  std::vector<billing::Terms> all;
  for (const PurchaseModel model : models) {
    all.push_back(billing::terms_of(spec, model, Isolation::hardware));
    if (spec.request.isolation != Isolation::hardware)
      all.push_back(billing::terms_of(spec, model, Isolation::software));
  }
  return all;
}

namespace {

// What lies ahead from `from` on, with the tax of the card that may price it.
Money with_tax(const State& state, const billing::Terms& terms, Instant from, Money net) {
  const std::int64_t rate = billing::highest_tax(state.rates, net.currency(), terms, from);
  if (rate == 0) return net;
  return net + net.times_ratio(rate, 1'000'000, Rounding::up);
}

}  // namespace

Money most_it_costs(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec,
                    MilliCe billable, Duration rest_of_limit) {
  const Duration longest = rest_of_limit + longest_grace(spec) + hold_margin;
  Money most = Money::zero(tenant.spec.currency);
  for (const billing::Terms& terms : terms_of(spec)) {
    const Money net =
        billing::dearest_cost(state.rates, payer_of(tenant), terms, billable, now, longest);
    most = std::max(most, with_tax(state, terms, now, net));
  }
  return most;
}

Money most_left_of(const State& state, Instant now, const Task& task, const Lease& lease) {
  const Tenant& tenant = state.tenant(lease.tenant);
  if (!lease.started()) {
    return most_it_costs(state, now, tenant, *task.spec, lease.billable_ce,
                         task.spec->limit - task.run_time);
  }
  const Instant stop = lease.stop_at + longest_grace(*task.spec) + hold_margin;
  const Instant from = lease.billed_until;
  const billing::Terms terms = billing::terms_of(*task.spec, lease);
  Money most = with_tax(state, terms, from,
                        billing::dearest_rest(state.rates, payer_of(tenant), terms, lease, stop));
  if (runs_by_plan(*task.spec)) {  // displaced, it may have to go on on demand
    const billing::Terms on_demand =
        billing::terms_of(*task.spec, PurchaseModel::on_demand, lease.isolation);
    const Money net = billing::dearest_cost(state.rates, payer_of(tenant), on_demand,
                                            lease.billable_ce, from, stop - from);
    most = std::max(most, with_tax(state, on_demand, from, net));
  }
  return most;
}

namespace {

bool bears(const Node& node, const schedule::Demand& demand) {
  if (!demand.region.empty() && demand.region != node.region) return false;
  return std::all_of(demand.labels.begin(), demand.labels.end(), [&](const std::string& label) {
    return label == sandboxed_label
               ? node.sandboxed
               : std::find(node.labels.begin(), node.labels.end(), label) != node.labels.end();
  });
}

// How many members of a gang an empty node has room for. A member's slices are on devices of one
// kind, each on another: k devices with s places each serve ⌊k·s/d⌋ members that need d ≤ k.
std::int64_t members_on(const State& state, const Node& node, const schedule::Demand& demand) {
  if (!bears(node, demand)) return 0;
  std::map<std::string_view, std::pair<std::int64_t, std::int64_t>> kinds;  // devices, places
  for (const DeviceId id : node.devices) {
    const Device& device = state.device(id);
    if (device.health != DeviceHealth::healthy) continue;
    if (!schedule::admits(demand, device.facts->type)) continue;
    const schedule::Placement needs = schedule::needs_on(
        demand, *device.facts, schedule::lent_of(state.settings.oversubscription, *device.facts));
    // However little of it is promised, one lease has no more of a device than there is.
    if (needs.share > whole_device || needs.memory > device.facts->memory) continue;
    const std::int64_t places = std::min(
        whole_device.value / std::max<std::int64_t>(1, needs.promised().value),
        device.facts->memory.value / std::max<std::int64_t>(1, needs.memory_promised().value));
    if (places == 0) continue;
    auto& [devices, all] = kinds[device.facts->type];
    ++devices;
    all += places;
  }
  std::int64_t members = 0;
  for (const auto& [type, kind] : kinds) {
    if (kind.first >= demand.devices) members += kind.second / demand.devices;
  }
  if (node.cpu.value > 0) members = std::min(members, node.cpu.value / demand.cpu.value);
  if (node.memory.value > 0)
    members = std::min(members, node.memory.value / demand.host_memory.value);
  return members;
}

// What was asked of the dimension that the pool has too little of on every device or node, and the
// most that there is of it; empty where no single dimension is to blame. O(devices + nodes).
std::string too_large_words(const State& state, const schedule::Demand& demand) {
  MilliCe ce;
  Mebibytes memory;
  MilliCpu cpu;
  Mebibytes host_memory;
  for (const Device& device : state.devices) {
    ce = std::max(ce, device.facts->factors.of(demand.work_class));
    memory = std::max(memory, device.facts->memory);
  }
  bool bounded_cpu = !state.nodes.empty();  // 0: nobody counts
  bool bounded_memory = bounded_cpu;
  for (const Node& node : state.nodes) {
    cpu = std::max(cpu, node.cpu);
    host_memory = std::max(host_memory, node.memory);
    bounded_cpu = bounded_cpu && node.cpu.value > 0;
    bounded_memory = bounded_memory && node.memory.value > 0;
  }
  const auto words = [](const std::string& asked, const std::string& most) {
    return ": it asks for " + asked + ", and the most there is of it is " + most;
  };
  if (state.devices.empty()) return ": it has none";
  if (!demand.device_type.empty()) {
    std::set<std::string> types;
    for (const Device& device : state.devices) types.insert(device.facts->type);
    if (types.count(demand.device_type) == 0) {
      std::string names;
      for (const std::string& type : types) names += (names.empty() ? "" : ", ") + type;
      return ": there is no device of type '" + demand.device_type + "'; there are: " + names;
    }
  }
  std::size_t most_devices = 0;
  for (const Node& node : state.nodes) most_devices = std::max(most_devices, node.devices.size());
  if (demand.devices > static_cast<std::int64_t>(most_devices)) {
    return words(std::to_string(demand.devices) + " devices of one node",
                 std::to_string(most_devices));
  }
  if (demand.ce && *demand.ce > ce)
    return words(to_text(*demand.ce) + " CE of one device", to_text(ce) + " CE");
  if (demand.memory && *demand.memory > memory)
    return words(to_text(*demand.memory) + " of one device's memory", to_text(memory));
  if (bounded_cpu && demand.cpu > cpu)
    return words(to_text(demand.cpu) + " CPUs of one node", to_text(cpu));
  if (bounded_memory && demand.host_memory > host_memory)
    return words(to_text(demand.host_memory) + " of one node's memory", to_text(host_memory));
  return {};
}

// What besides size may keep a task out is named: no list of devices shows it.
std::string no_fit_words(const State& state, const TaskSpec& spec, const schedule::Demand& demand) {
  std::string words = "no device of this pool could ever hold this task";
  if (spec.gang > 1) words += ", " + std::to_string(spec.gang) + " members at once";
  if (!demand.region.empty()) words += ", in region '" + demand.region + "'";
  for (const std::string& label : demand.labels) {
    words += label == sandboxed_label ? ", on a node that keeps tasks apart in a sandbox"
                                      : ", on a node labelled '" + label + "'";
  }
  return words + too_large_words(state, demand);
}

// Whether an empty pool has room for all members, so that a gang larger than the pool is refused
// instead of waiting for ever. O(devices) for a gang.
bool gang_could_fit(const State& state, const schedule::Demand& demand, std::int64_t gang) {
  if (gang == 1) return true;
  std::int64_t members = 0;
  for (const Node& node : state.nodes) {
    members += members_on(state, node, demand);
    if (members >= gang) return true;
  }
  return false;
}

// What is above a tenant's quota even while nothing else of it runs would wait for ever.
std::optional<Reject> beyond_quota(const State& state, const Tenant& tenant, const TaskSpec& spec,
                                   const schedule::Demand& demand,
                                   const std::vector<schedule::Pool::Fit>& fits) {
  std::optional<schedule::Shortfall> shortfall;
  for (const auto& fit : fits) {
    shortfall =
        state.scheduler.quotas().never(tenant.id, amounts_on(spec, demand, fit.needs), spec.limit);
    if (!shortfall) return std::nullopt;
  }
  return Reject{RejectCode::quota_exceeded,
                "the quota of " + tenant.spec.name + ": it " + schedule::to_text(*shortfall),
                "ask for less, or have the operator raise the quota of " + tenant.spec.name};
}

}  // namespace

HoldAnswer hold_for(const State& state, Instant now, const Tenant& tenant, const TaskSpec& spec,
                    Duration run_time) {
  const DemandAnswer wanted = demand_of(state, spec);
  if (wanted.reject) return {{}, wanted.reject};
  const billing::PriceTable* table = state.rates.at(tenant.spec.currency, now);
  if (table == nullptr) {
    const std::string code(tenant.spec.currency.code());
    return {{},
            Reject{RejectCode::no_rate_card, "there is no price in " + code + " yet",
                   "ask the operator to publish one: loam rate set PRICE --currency " + code}};
  }
  if (spec.purchase_model == PurchaseModel::commitment && !committed(state, tenant.id, now)) {
    return {{},
            Reject{RejectCode::not_sold, tenant.spec.name + " has no commitment in force",
                   "buy one (loam commit buy), or run it on_demand"}};
  }
  for (const billing::Terms& terms : terms_of(spec)) {
    if (const auto sold = billing::sold(*table, terms); !sold.ok()) {
      return {{}, Reject{RejectCode::not_sold, sold.error().message, sold.error().next_step}};
    }
  }
  const auto fits = kinds_for(state, wanted.demand);
  const std::int64_t devices = wanted.demand.devices;
  if (fits.empty() || !gang_could_fit(state, wanted.demand, spec.gang)) {
    return {{},
            Reject{RejectCode::does_not_fit, no_fit_words(state, spec, wanted.demand),
                   "see what there is with: loam device list; then ask for less"}};
  }
  if (auto reject = beyond_quota(state, tenant, spec, wanted.demand, fits))
    return {{}, std::move(reject)};
  MilliCe billable;
  for (const auto& fit : fits) {
    billable = std::max(billable, billing::billable_ce(fit.needs.ce * devices,
                                                       fit.needs.memory * devices, table->card()));
  }
  // What runs on a reservation is paid from what was set aside for that.
  if (spec.reservation.valid()) return {Money::zero(tenant.spec.currency), std::nullopt};
  const Duration rest{std::max<std::int64_t>(0, spec.limit.ms - run_time.ms)};
  const Money of_one = most_it_costs(state, now, tenant, spec, billable, rest);
  const Money amount = of_one.times_ratio(spec.gang, 1, Rounding::up);
  if (const auto admitted = state.budgets.admit(tenant.id, spec.attribution, amount, now);
      !admitted.ok()) {
    return {
        {},
        Reject{RejectCode::budget_exceeded, admitted.error().message, admitted.error().next_step}};
  }
  return {amount, std::nullopt};
}

}  // namespace loam::engine
