#include "schedule/placement/state_table.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 32);
}

// Dead states that are kept: fewer where nodes have many devices, so that memory stays bounded by
// slots (some 50 MB), not by states.
std::size_t dead_kept_max(std::size_t slots) {
  constexpr std::size_t slots_max = 2'000'000;
  constexpr std::size_t states_max = 16'384;
  return std::min(states_max, slots_max / std::max<std::size_t>(1, slots));
}

bool equal(const NodeState& state, std::uint32_t site, const NodeView& view) {
  return state.site == site && state.cpu_milli == view.cpu_milli &&
         state.memory_mib == view.memory_mib &&
         std::equal(state.slots.begin(), state.slots.end(), view.slots.begin(), view.slots.end());
}

}  // namespace

std::uint64_t hash_of(const NodeView& view, std::uint64_t site) {
  std::uint64_t hash = mixed(site + 1, static_cast<std::uint64_t>(view.cpu_milli));
  hash = mixed(hash, static_cast<std::uint64_t>(view.memory_mib));
  for (const DeviceSlot& slot : view.slots) {
    const std::uint64_t both =
        (static_cast<std::uint64_t>(slot.kind) << 32) | static_cast<std::uint32_t>(slot.free_milli);
    hash = mixed(hash, both ^ (static_cast<std::uint64_t>(slot.free_mib) << 20));
  }
  return hash;
}

std::size_t StateTable::slot_of(std::uint32_t site, const NodeView& view,
                                std::uint64_t hash) const {
  const std::size_t mask = index_.size() - 1;
  std::size_t at = static_cast<std::size_t>(hash) & mask;
  while (index_[at] != 0) {
    const NodeState& state = states_[index_[at] - 1];
    if (state.hash == hash && equal(state, site, view)) return at;
    at = (at + 1) & mask;
  }
  return at;
}

void StateTable::grow_index() {
  std::vector<std::uint32_t> old = std::move(index_);
  index_.assign(std::max<std::size_t>(64, known_ * 4), 0);
  std::size_t size = 64;
  while (size < index_.size()) size *= 2;
  index_.assign(size, 0);
  for (const std::uint32_t entry : old) {
    if (entry == 0) continue;
    const NodeState& state = states_[entry - 1];
    if (!state.used) continue;
    index_[slot_of(state.site, state.view(), state.hash)] = entry;
  }
}

std::uint32_t StateTable::fresh_index() {
  if (unused_.empty()) {
    states_.emplace_back();
    return static_cast<std::uint32_t>(states_.size() - 1);
  }
  const std::uint32_t index = unused_.back();
  unused_.pop_back();
  return index;
}

// Dead states keep their scores in case they come back; too many of them are let go.
void StateTable::drop_dead() {
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    NodeState& state = states_[i];
    if (!state.used || !state.nodes.empty()) continue;
    state.used = false;
    state.slots = {};
    state.value_epoch = 0;
    ++state.generation;
    unused_.push_back(i);
    --known_;
  }
  grow_index();
}

void StateTable::trim_births() {
  const std::size_t half = births_.size() / 2;
  births_.erase(births_.begin(), births_.begin() + static_cast<std::ptrdiff_t>(half));
  births_base_ += half;
}

StateRef StateTable::add(std::uint64_t node, std::uint32_t site, const NodeView& view) {
  if (known_ > 2 * live_.size() + dead_kept_max(view.slots.size())) drop_dead();
  if (index_.size() < 2 * (known_ + 1)) grow_index();
  const std::uint64_t hash = hash_of(view, site);
  const std::size_t at = slot_of(site, view, hash);
  if (index_[at] == 0) {
    const std::uint32_t fresh = fresh_index();
    NodeState& state = states_[fresh];
    state.site = site;
    state.cpu_milli = view.cpu_milli;
    state.memory_mib = view.memory_mib;
    state.slots.assign(view.slots.begin(), view.slots.end());
    state.hash = hash;
    state.used = true;
    index_[at] = fresh + 1;
    ++known_;
  }
  const std::uint32_t index = index_[at] - 1;
  NodeState& state = states_[index];
  const StateRef ref{index, state.generation};
  if (state.nodes.empty()) {
    state.live_at = static_cast<std::uint32_t>(live_.size());
    live_.push_back(ref);
    if (births_.size() > 8 * live_.size() + 65'536) trim_births();
    births_.push_back(ref);
  }
  const bool fresh = state.nodes.insert(node).second;
  LOAM_ASSERT(fresh);
  return ref;
}

void StateTable::remove(std::uint64_t node, StateRef ref) {
  NodeState& state = states_[ref.index];
  LOAM_ASSERT(state.generation == ref.generation);
  const std::size_t erased = state.nodes.erase(node);
  LOAM_ASSERT(erased == 1);
  if (!state.nodes.empty()) return;
  states_[live_.back().index].live_at = state.live_at;
  live_[state.live_at] = live_.back();
  live_.pop_back();
}

}  // namespace loam::schedule
