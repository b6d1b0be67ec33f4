#include "schedule/capacity.hpp"

#include <limits>

#include "base/assert.hpp"

namespace loam::schedule {

Capacity::KindKey Capacity::key_of(const DeviceFacts& facts) {
  const CeFactors& f = facts.factors;
  return {facts.type,
          facts.memory.value,
          {f.general.value, f.train.value, f.prefill.value, f.decode.value}};
}

void Capacity::forget(Entry& entry) {
  if (!entry.known) return;
  if (entry.placeable) entry.kind->levels.erase(entry.level);
  if (entry.healthy) --entry.kind->healthy;
  entry.known = false;
}

void Capacity::refresh(const Device& device) {
  LOAM_ASSERT(device.id.valid() && device.facts != nullptr);
  if (entries_.size() < device.id.value) entries_.resize(device.id.value);
  Entry& entry = entries_[device.id.value - 1];
  forget(entry);
  if (entry.facts != device.facts) {
    entry.facts = device.facts;
    entry.kind =
        &kinds_.try_emplace(key_of(*device.facts), Kind{*device.facts, {}, 0}).first->second;
  }
  entry.level = {device.free().value, device.memory_free().value, device.id.value};
  entry.placeable = device.placeable();
  entry.healthy = device.health == DeviceHealth::healthy;
  entry.known = true;
  if (entry.placeable) entry.kind->levels.insert(entry.level);
  if (entry.healthy) ++entry.kind->healthy;
}

std::optional<Placement> Capacity::best_of_kind(const Kind& kind, const Demand& demand) const {
  Placement needs = needs_on(demand, kind.facts);
  auto at = kind.levels.lower_bound({needs.share.value, needs.memory.value, 0});
  while (at != kind.levels.end()) {
    const auto [free_milli, free_mib, id] = *at;
    if (free_mib >= needs.memory.value) {
      needs.device = DeviceId{id};
      return needs;
    }
    // Short of memory at this level: its members are sorted by memory, so jump, do not walk.
    const auto roomier = kind.levels.lower_bound({free_milli, needs.memory.value, 0});
    at = roomier;
    if (at != kind.levels.end() && std::get<0>(*at) != free_milli) {
      at = kind.levels.lower_bound({std::get<0>(*at), needs.memory.value, 0});
    }
  }
  return std::nullopt;
}

std::optional<Placement> Capacity::best_fit(const Demand& demand) const {
  if (demand.device.valid()) {
    if (demand.device.value > entries_.size()) return std::nullopt;
    const Entry& entry = entries_[demand.device.value - 1];
    if (!entry.known || !entry.placeable) return std::nullopt;
    Placement needs = needs_on(demand, entry.kind->facts);
    needs.device = demand.device;
    const auto [free_milli, free_mib, id] = entry.level;
    const bool fits = needs.share.value <= free_milli && needs.memory.value <= free_mib;
    return fits ? std::optional(needs) : std::nullopt;
  }
  std::optional<Placement> best;
  std::int64_t best_waste = std::numeric_limits<std::int64_t>::max();
  for (const auto& [key, kind] : kinds_) {
    if (!admits(demand, kind.facts.type)) continue;
    const std::optional<Placement> found = best_of_kind(kind, demand);
    if (!found) continue;
    // Worth taken in general CE: a small piece of a big card may cost the pool more than all of a
    // small one. In milli-CE × 1000.
    const std::int64_t taken = found->share.value * kind.facts.factors.general.value;
    if (taken < best_waste) {
      best = found;
      best_waste = taken;
    }
  }
  return best;
}

std::vector<Capacity::Fit> Capacity::fits_when_empty(const Demand& demand) const {
  std::vector<Fit> fits;
  const auto consider = [&](const Kind& kind) {
    Placement needs = needs_on(demand, kind.facts);
    needs.device = demand.device;
    if (needs.share <= whole_device && needs.memory <= kind.facts.memory)
      fits.push_back({needs, &kind.facts});
  };
  if (demand.device.valid()) {
    if (demand.device.value > entries_.size()) return fits;
    const Entry& entry = entries_[demand.device.value - 1];
    if (entry.known && entry.healthy) consider(*entry.kind);
    return fits;
  }
  for (const auto& [key, kind] : kinds_) {
    if (kind.healthy > 0 && admits(demand, kind.facts.type)) consider(kind);
  }
  return fits;
}

bool Capacity::could_hold(const Demand& demand) const {
  const auto holds = [&](const Kind& kind) {
    const Placement needs = needs_on(demand, kind.facts);
    return needs.share <= whole_device && needs.memory <= kind.facts.memory;
  };
  if (demand.device.valid()) {
    if (demand.device.value > entries_.size()) return false;
    const Entry& entry = entries_[demand.device.value - 1];
    return entry.known && entry.placeable && holds(*entry.kind);
  }
  for (const auto& [key, kind] : kinds_) {
    if (!kind.levels.empty() && admits(demand, kind.facts.type) && holds(kind)) return true;
  }
  return false;
}

}  // namespace loam::schedule
