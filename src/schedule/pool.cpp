#include "schedule/pool.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "schedule/pool_inside.hpp"

namespace loam::schedule {

Pool::Inside::Inside(PoolOptions given) : options(given) {
  const Oversubscription& lent = options.oversubscription;
  LOAM_ASSERT(lent.ce_permille >= 1000 && lent.ce_permille <= oversubscription_permille_max);
  LOAM_ASSERT(lent.memory_permille >= 1000 &&
              lent.memory_permille <= oversubscription_permille_max);
  const PolicyOptions& placement = options.placement;
  coarse = placement.quantisation == Quantisation::published ||
           (placement.quantisation == Quantisation::automatic &&
            placement.policy != PlacementPolicy::packing_value);
}

Pool::Pool(PoolOptions options) : inside_(std::make_unique<Inside>(options)) {}
Pool::Pool(Pool&&) noexcept = default;
Pool& Pool::operator=(Pool&&) noexcept = default;
Pool::~Pool() = default;

// --- Books ------------------------------------------------------------------------------------

KindIndex Pool::Inside::kind_of(const std::shared_ptr<const DeviceFacts>& facts) {
  const CeFactors& f = facts->factors;
  const Oversubscription lent = lent_of(options.oversubscription, *facts);
  const auto [at, fresh] =
      kinds_by_key.try_emplace({facts->type,
                                facts->memory.value,
                                {f.general.value, f.train.value, f.prefill.value, f.decode.value},
                                lent.memory_permille},
                               static_cast<KindIndex>(kinds.size()));
  if (fresh) {
    kinds.push_back({*facts, whole_device.value, facts->memory.value, lent});
    scorer_is_stale = true;
  }
  return at->second;
}

std::uint32_t Pool::Inside::site_of(const std::string& region, std::vector<std::string> labels) {
  std::sort(labels.begin(), labels.end());
  Site site{region, std::move(labels)};
  const auto [at, fresh] = sites_by_key.try_emplace(site, static_cast<std::uint32_t>(sites.size()));
  if (fresh) sites.push_back(std::move(site));
  return at->second;
}

NodeEntry& Pool::Inside::node(std::uint64_t id) {
  LOAM_ASSERT(id > 0);
  if (nodes.size() < id) nodes.resize(id);
  return nodes[id - 1];
}

DeviceEntry& Pool::Inside::device(std::uint64_t id) {
  LOAM_ASSERT(id > 0);
  if (devices.size() < id) devices.resize(id);
  return devices[id - 1];
}

void Pool::Inside::slots_of(const NodeEntry& entry, std::vector<OpenSlot>& slots) const {
  slots.clear();
  for (const std::uint64_t id : entry.devices) {
    const DeviceEntry& one = devices[id - 1];
    if (one.placeable) slots.push_back({one.slot(kinds[one.kind]), id});
  }
  std::sort(slots.begin(), slots.end());
}

void Pool::Inside::leave_state(std::uint64_t id) {
  NodeEntry& entry = node(id);
  if (!entry.known) return;
  states.remove(id, entry.state);
  for (const std::uint64_t device_id : entry.devices) {
    const DeviceEntry& one = devices[device_id - 1];
    if (!one.placeable) continue;
    const DeviceSlot slot = one.slot(kinds[one.kind]);
    --totals.devices;
    totals.free_milli -= slot.free_milli;
    totals.idle_devices -= slot.free_milli == kinds[one.kind].milli_max ? 1 : 0;
  }
  --totals.nodes;
  entry.known = false;
}

void Pool::Inside::enter_state(std::uint64_t id) {
  NodeEntry& entry = node(id);
  LOAM_ASSERT(!entry.known);
  // At most a few dozen devices: gathered anew each time, without a list to keep in step.
  std::vector<DeviceSlot>& slots = after_;
  slots.clear();
  for (const std::uint64_t device_id : entry.devices) {
    const DeviceEntry& one = devices[device_id - 1];
    if (!one.placeable) continue;
    const DeviceSlot slot = one.slot(kinds[one.kind]);
    slots.push_back(slot);
    ++totals.devices;
    totals.free_milli += slot.free_milli;
    totals.idle_devices += slot.free_milli == kinds[one.kind].milli_max ? 1 : 0;
  }
  std::sort(slots.begin(), slots.end());
  entry.state = states.add(id, entry.site, {entry.cpu_milli, entry.memory_mib, slots});
  entry.known = true;
  ++totals.nodes;
  ++changes;
}

void Pool::Inside::recount(std::uint64_t id, MilliCpu cpu, Mebibytes memory) {
  NodeEntry& entry = node(id);
  if (entry.counted) {
    const auto at = shapes_of_nodes.find(entry.shape);
    if (--at->second == 0) shapes_of_nodes.erase(at);
  }
  NodeShape shape;
  shape.site = entry.site;
  shape.cpu_milli = cpu.value;
  shape.memory_mib = memory.value;
  for (const std::uint64_t device_id : entry.devices) {
    const DeviceEntry& one = devices[device_id - 1];
    if (!one.healthy) continue;
    auto at = std::find_if(shape.devices.begin(), shape.devices.end(),
                           [&](const auto& counted) { return std::get<0>(counted) == one.kind; });
    if (at == shape.devices.end()) at = shape.devices.insert(at, {one.kind, 0, 0});
    ++std::get<1>(*at);
    std::get<2>(*at) += one.placeable ? 1 : 0;
  }
  std::sort(shape.devices.begin(), shape.devices.end());
  entry.shape = shape;
  entry.counted = true;
  ++shapes_of_nodes[entry.shape];
}

void Pool::refresh(const NodeFigures& figures) {
  Inside& in = *inside_;
  const std::uint64_t id = figures.id.value;
  in.leave_state(id);
  NodeEntry& entry = in.node(id);
  if (figures.cpu.value != entry.shape.cpu_milli) in.scorer_is_stale = true;
  in.totals_for_scores.cpu_milli += figures.cpu.value - entry.shape.cpu_milli;
  entry.site = in.site_of(figures.region, figures.labels);
  entry.cpu_milli = figures.cpu.value - figures.cpu_used.value;
  entry.memory_mib = figures.memory.value - figures.memory_used.value;
  in.recount(id, figures.cpu, figures.memory);
  in.enter_state(id);
}

void Pool::refresh(const Device& device, bool locked) {
  LOAM_ASSERT(device.id.valid() && device.node.valid() && device.facts != nullptr);
  Inside& in = *inside_;
  const std::uint64_t node_id = device.node.value;
  DeviceEntry& entry = in.device(device.id.value);
  LOAM_ASSERT(!entry.known || entry.node == node_id);
  const bool healthy = device.health == DeviceHealth::healthy;
  const bool reshaped = !entry.known || entry.facts != device.facts || entry.healthy != healthy ||
                        entry.placeable != device.placeable();
  in.leave_state(node_id);
  NodeEntry& node = in.node(node_id);
  if (!entry.known) {
    node.devices.insert(std::lower_bound(node.devices.begin(), node.devices.end(), device.id.value),
                        device.id.value);
    ++in.totals_for_scores.devices;
    in.scorer_is_stale = true;
  }
  if (entry.facts != device.facts) {
    entry.facts = device.facts;
    entry.kind = in.kind_of(device.facts);
    if (!device.facts->link_group.empty() || device.facts->numa_node) in.topology_known = true;
  }
  entry.known = true;
  entry.node = node_id;
  entry.used_milli = device.promised().value;
  entry.used_mib = device.memory_promised().value;
  entry.healthy = healthy;
  entry.placeable = device.placeable();
  entry.locked = locked;
  if (reshaped) {
    in.recount(node_id, MilliCpu{node.shape.cpu_milli}, Mebibytes{node.shape.memory_mib});
  }
  in.enter_state(node_id);
}

void Pool::Inside::book(const UnitPlacement& place, std::int64_t sign) {
  // Each node leaves its state once and comes back when all its figures are in.
  std::vector<std::uint64_t> touched;
  const auto touch = [&](std::uint64_t id) {
    if (std::find(touched.begin(), touched.end(), id) != touched.end()) return;
    leave_state(id);
    touched.push_back(id);
  };
  for (const Placement& slice : place.slices) {
    DeviceEntry& entry = device(slice.device.value);
    LOAM_ASSERT(entry.known);
    touch(entry.node);
    entry.used_milli += sign * slice.promised().value;
    entry.used_mib += sign * slice.memory_promised().value;
    const DeviceKind& kind = kinds[entry.kind];
    LOAM_ASSERT(entry.used_milli >= 0 && entry.used_mib >= 0);
    LOAM_ASSERT(sign < 0 || (!entry.locked && entry.used_milli <= kind.milli_max &&
                             entry.used_mib <= kind.memory_max_mib));
    if (place.exclusive) entry.locked = sign > 0;
  }
  for (const HostShare& host : place.hosts) {
    touch(host.node.value);
    NodeEntry& entry = node(host.node.value);
    entry.cpu_milli -= sign * host.cpu.value;
    entry.memory_mib -= sign * host.memory.value;
    LOAM_ASSERT(sign < 0 || (entry.cpu_milli >= 0 && entry.memory_mib >= 0));
  }
  for (const std::uint64_t id : touched) enter_state(id);
}

void Pool::take(const UnitPlacement& place) {
  inside_->book(place, 1);
}
void Pool::give_back(const UnitPlacement& place) {
  inside_->book(place, -1);
}

// --- Mix --------------------------------------------------------------------------------------

void Pool::note_request(const Demand& demand) {
  Inside& in = *inside_;
  if (in.options.mix == MixSource::known || !in.estimator.note(demand)) return;
  // Working out every score anew is worth it only where the mix has moved.
  constexpr double moved = 0.03;
  Mix mix = in.estimator.mix();
  if (distance(mix, in.mix) < moved) return;
  in.mix = std::move(mix);
  in.scorer_is_stale = true;
}

void Pool::set_mix(Mix mix) {
  inside_->mix = std::move(mix);
  inside_->scorer_is_stale = true;
}

// --- What the pool has when empty -------------------------------------------------------------

namespace {

bool bears(const Site& site, const Demand& demand) {
  if (!demand.region.empty() && demand.region != site.region) return false;
  return std::all_of(demand.labels.begin(), demand.labels.end(), [&](const std::string& label) {
    return std::binary_search(site.labels.begin(), site.labels.end(), label);
  });
}

}  // namespace

std::vector<Pool::Fit> Pool::fits_when_empty(const Demand& demand) const {
  Inside& in = *inside_;
  std::vector<Fit> fits;
  std::vector<std::uint8_t> seen(in.kinds.size(), 0);
  const auto consider = [&](KindIndex kind, bool several) {
    if (seen[kind] != 0) return;
    const KindNeed need = need_of(demand, in.kinds[kind]);
    if (!need.possible && !several) return;
    seen[kind] = 1;
    Fit fit;
    fit.needs = needs_on(demand, in.kinds[kind].facts, in.kinds[kind].lent);
    fit.needs.device = demand.device;
    fit.facts = &in.kinds[kind].facts;
    fits.push_back(fit);
  };
  if (demand.devices == 0) return fits;
  if (demand.device.valid()) {
    if (demand.device.value > in.devices.size()) return fits;
    const DeviceEntry& entry = in.devices[demand.device.value - 1];
    // A device that is named is taken for what it is.
    Demand named = demand;
    named.device_type.clear();
    named.device_types.clear();
    if (!entry.known || !entry.healthy || !need_of(named, in.kinds[entry.kind]).possible)
      return fits;
    const DeviceKind& kind = in.kinds[entry.kind];
    Fit fit{needs_on(named, kind.facts, kind.lent), &kind.facts};
    fit.needs.device = demand.device;
    fits.push_back(fit);
    return fits;
  }
  const bool several = in.needs_several(demand) && in.holds_when_empty(demand, true);
  for (const auto& [shape, count] : in.shapes_of_nodes) {
    if (!bears(in.sites[shape.site], demand)) continue;
    if (!several &&
        (demand.cpu.value > shape.cpu_milli || demand.host_memory.value > shape.memory_mib))
      continue;
    for (const auto& [kind, healthy, placeable] : shape.devices) {
      if (several ? admits(demand, in.kinds[kind].facts.type) : healthy >= demand.devices)
        consider(kind, several);
    }
  }
  std::sort(fits.begin(), fits.end(),
            [&](const Fit& a, const Fit& b) { return a.facts < b.facts; });
  return fits;
}

bool Pool::could_hold(const Demand& demand) const {
  return inside_->holds_when_empty(demand, false);
}

bool Pool::Inside::holds_when_empty(const Demand& demand, bool drained_too) {
  if (demand.device.valid()) {
    if (demand.device.value > devices.size()) return false;
    const DeviceEntry& entry = devices[demand.device.value - 1];
    if (!entry.known || !(drained_too ? entry.healthy : entry.placeable)) return false;
    Demand named = demand;
    named.device_type.clear();
    named.device_types.clear();
    return need_of(named, kinds[entry.kind]).possible;
  }
  const bool several = needs_several(demand);
  // Of the widest kind alone: pieces of one unit are of equal worth.
  std::vector<std::int64_t> counts(kinds.size(), 0);
  for (const auto& [shape, count] : shapes_of_nodes) {
    if (count == 0 || !bears(sites[shape.site], demand)) continue;
    const bool host =
        demand.cpu.value <= shape.cpu_milli && demand.host_memory.value <= shape.memory_mib;
    if (demand.devices == 0 && host) return true;
    for (const auto& [kind, healthy, placeable] : shape.devices) {
      const std::int64_t there = drained_too ? healthy : placeable;
      counts[kind] += there * count;
      if (!several && host && there >= demand.devices && need_of(demand, kinds[kind]).possible)
        return true;
    }
  }
  if (!several) return false;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (counts[kind] == 0 || !admits(demand, kinds[kind].facts.type)) continue;
    const std::int64_t worth = kinds[kind].facts.factors.of(demand.work_class).value;
    const std::int64_t by_ce = (demand.ce->value + worth - 1) / worth;
    const std::int64_t memory = kinds[kind].memory_max_mib;
    const std::int64_t by_memory =
        demand.memory && memory > 0 ? (demand.memory->value + memory - 1) / memory : 1;
    if (counts[kind] >= std::max(by_ce, by_memory)) return true;
  }
  return false;
}

// --- Figures ----------------------------------------------------------------------------------

Pool::Totals Pool::totals() const {
  Totals totals = inside_->totals;
  totals.states = static_cast<std::int64_t>(inside_->states.live().size());
  return totals;
}

MilliDevice Pool::free_of(DeviceId id) const {
  LOAM_ASSERT(id.valid() && id.value <= inside_->devices.size());
  const DeviceEntry& entry = inside_->devices[id.value - 1];
  LOAM_ASSERT(entry.known);
  return MilliDevice{entry.slot(inside_->kinds[entry.kind]).free_milli};
}

Mebibytes Pool::memory_free_of(DeviceId id) const {
  LOAM_ASSERT(id.valid() && id.value <= inside_->devices.size());
  const DeviceEntry& entry = inside_->devices[id.value - 1];
  LOAM_ASSERT(entry.known);
  return Mebibytes{entry.slot(inside_->kinds[entry.kind]).free_mib};
}

HostShare Pool::free_of(NodeId id) const {
  LOAM_ASSERT(id.valid() && id.value <= inside_->nodes.size());
  const NodeEntry& entry = inside_->nodes[id.value - 1];
  LOAM_ASSERT(entry.known);
  return {id, MilliCpu{entry.cpu_milli}, Mebibytes{entry.memory_mib}};
}

const PoolOptions& Pool::options() const {
  return inside_->options;
}

}  // namespace loam::schedule
