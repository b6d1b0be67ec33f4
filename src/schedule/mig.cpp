#include "schedule/mig.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/assert.hpp"

namespace loam::schedule {
namespace {

// What is taken of a card.
struct Taken {
  std::uint32_t slots = 0;  // bits
  std::int32_t compute = 0;
};

std::uint32_t bits_of(const MigProfile& profile, std::int32_t start) {
  return ((1U << static_cast<std::uint32_t>(profile.memory_slots)) - 1U)
         << static_cast<std::uint32_t>(start);
}

bool fits(const MigGeometry& geometry, const Taken& taken, const MigProfile& profile,
          std::int32_t start) {
  return start + profile.memory_slots <= geometry.memory_slots &&
         (taken.slots & bits_of(profile, start)) == 0 &&
         taken.compute + profile.compute_slices <= geometry.compute_slices;
}

Taken with(Taken taken, const MigProfile& profile, std::int32_t start) {
  taken.slots |= bits_of(profile, start);
  taken.compute += profile.compute_slices;
  return taken;
}

std::optional<Taken> taken_by(const MigGeometry& geometry, const MigLayout& layout) {
  Taken taken;
  for (const MigInstance& instance : layout) {
    if (instance.profile >= geometry.profiles.size()) return std::nullopt;
    const MigProfile& profile = geometry.profiles[instance.profile];
    const auto& starts = profile.starts;
    if (std::find(starts.begin(), starts.end(), instance.start) == starts.end())
      return std::nullopt;
    if (!fits(geometry, taken, profile, instance.start)) return std::nullopt;
    taken = with(taken, profile, instance.start);
  }
  return taken;
}

std::int64_t most(const MigGeometry& geometry, const Taken& taken, const MigProfile& profile,
                  std::size_t from = 0) {
  std::int64_t best = 0;
  for (std::size_t i = from; i < profile.starts.size(); ++i) {
    if (!fits(geometry, taken, profile, profile.starts[i])) continue;
    const Taken next = with(taken, profile, profile.starts[i]);
    best = std::max(best, 1 + most(geometry, next, profile, i + 1));
  }
  return best;
}

struct Left {
  std::int64_t weighted = 0;
  std::int64_t open = 0;

  friend auto operator<=>(const Left&, const Left&) = default;
};

Left left_with(const MigGeometry& geometry, const Taken& taken,
               const std::vector<std::int64_t>& weights) {
  Left left;
  for (std::size_t i = 0; i < geometry.profiles.size(); ++i) {
    const MigProfile& profile = geometry.profiles[i];
    left.weighted += (weights.empty() ? 1 : weights[i]) * most(geometry, taken, profile);
    for (const std::int32_t start : profile.starts)
      left.open += fits(geometry, taken, profile, start);
  }
  return left;
}

// What a set of free instances gives to those who wait.
struct Service {
  std::int64_t slices = 0;
  std::int64_t requests = 0;

  friend auto operator<=>(const Service&, const Service&) = default;
};

Service service_of(const MigGeometry& geometry, const std::vector<std::int64_t>& instances,
                   const std::vector<std::int64_t>& wanted) {
  Service service;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const std::int64_t used = std::min(instances[i], wanted[i]);
    service.requests += used;
    service.slices += used * geometry.profiles[i].compute_slices;
  }
  return service;
}

std::vector<std::int64_t> counts_of(const MigGeometry& geometry, const MigLayout& layout) {
  std::vector<std::int64_t> counts(geometry.profiles.size(), 0);
  for (const MigInstance& instance : layout) ++counts[instance.profile];
  return counts;
}

// Calls `visit` for every layout of new instances beside what is taken; each set once.
void every_layout(const MigGeometry& geometry, const Taken& taken, MigLayout& made,
                  const std::vector<std::int64_t>& wanted,
                  const std::function<void(const MigLayout&, const Taken&)>& visit) {
  visit(made, taken);
  const MigInstance last = made.empty() ? MigInstance{} : made.back();
  for (std::size_t i = last.profile; i < geometry.profiles.size(); ++i) {
    const MigProfile& profile = geometry.profiles[i];
    if (wanted[i] == 0) continue;
    for (const std::int32_t start : profile.starts) {
      const MigInstance next{i, start};
      if (!made.empty() && !(last < next)) continue;
      if (!fits(geometry, taken, profile, start)) continue;
      made.push_back(next);
      every_layout(geometry, with(taken, profile, start), made, wanted, visit);
      made.pop_back();
    }
  }
}

}  // namespace

MigGeometry seven_slice_geometry(Mebibytes card_memory, std::int32_t card_gb) {
  MigGeometry geometry;
  const auto add = [&](std::int32_t compute, std::int32_t slots, std::vector<std::int32_t> starts) {
    const std::string name =
        std::to_string(compute) + "g." + std::to_string(card_gb * slots / 8) + "gb";
    geometry.profiles.push_back(
        {name, compute, slots, std::move(starts), Mebibytes{card_memory.value * slots / 8}});
  };
  add(1, 1, {0, 1, 2, 3, 4, 5, 6});
  add(1, 2, {0, 2, 4, 6});
  add(2, 2, {0, 2, 4});
  add(3, 4, {0, 4});
  add(4, 4, {0});
  add(7, 8, {0});
  return geometry;
}

bool is_valid(const MigGeometry& geometry, const MigLayout& layout) {
  return taken_by(geometry, layout).has_value();
}

std::vector<std::int32_t> free_starts(const MigGeometry& geometry, const MigLayout& layout,
                                      std::size_t profile) {
  const auto taken = taken_by(geometry, layout);
  LOAM_ASSERT(taken.has_value() && profile < geometry.profiles.size());
  std::vector<std::int32_t> starts;
  for (const std::int32_t start : geometry.profiles[profile].starts) {
    if (fits(geometry, *taken, geometry.profiles[profile], start)) starts.push_back(start);
  }
  return starts;
}

std::int64_t most_of(const MigGeometry& geometry, const MigLayout& layout, std::size_t profile) {
  const auto taken = taken_by(geometry, layout);
  LOAM_ASSERT(taken.has_value() && profile < geometry.profiles.size());
  return most(geometry, *taken, geometry.profiles[profile]);
}

std::optional<std::int32_t> best_start(const MigGeometry& geometry, const MigLayout& layout,
                                       std::size_t profile,
                                       const std::vector<std::int64_t>& weights) {
  LOAM_ASSERT(weights.empty() || weights.size() == geometry.profiles.size());
  const auto taken = taken_by(geometry, layout);
  LOAM_ASSERT(taken.has_value());
  std::optional<std::int32_t> best;
  Left most_left;
  for (const std::int32_t start : free_starts(geometry, layout, profile)) {
    const Left left = left_with(geometry, with(*taken, geometry.profiles[profile], start), weights);
    if (best && left < most_left) continue;
    best = start;
    most_left = left;
  }
  return best;
}

std::optional<Repartition> repartition(const MigGeometry& geometry, const MigLayout& busy,
                                       const MigLayout& idle,
                                       const std::vector<std::int64_t>& wanted) {
  LOAM_ASSERT(wanted.size() == geometry.profiles.size());
  const auto taken = taken_by(geometry, busy);
  LOAM_ASSERT(taken.has_value());
  const Service now = service_of(geometry, counts_of(geometry, idle), wanted);
  std::optional<std::tuple<Service, std::int64_t, Left>> best;
  MigLayout chosen;
  MigLayout made;
  every_layout(geometry, *taken, made, wanted, [&](const MigLayout& layout, const Taken&) {
    const Service service = service_of(geometry, counts_of(geometry, layout), wanted);
    if (service <= now) return;
    // Idle instances stay where they are not in the way, and are no loss where they are kept.
    Taken all = *taken;
    for (const MigInstance& instance : layout) {
      all = with(all, geometry.profiles[instance.profile], instance.start);
    }
    std::int64_t removed = 0;
    for (const MigInstance& instance : idle) {
      const MigProfile& profile = geometry.profiles[instance.profile];
      if (std::find(layout.begin(), layout.end(), instance) != layout.end()) continue;
      if (fits(geometry, all, profile, instance.start)) {
        all = with(all, profile, instance.start);
      } else {
        ++removed;
      }
    }
    const std::tuple rank{service, -removed, left_with(geometry, all, {})};
    if (best && rank <= *best) return;
    best = rank;
    chosen = layout;
  });
  if (!best) return std::nullopt;
  Repartition plan;
  plan.served = std::get<0>(*best).requests;
  plan.served_slices = std::get<0>(*best).slices;
  MigLayout kept = busy;
  for (const MigInstance& instance : chosen) {
    kept.push_back(instance);
    if (std::find(idle.begin(), idle.end(), instance) == idle.end())
      plan.create.push_back(instance);
  }
  for (const MigInstance& instance : idle) {
    if (std::find(chosen.begin(), chosen.end(), instance) != chosen.end()) continue;
    kept.push_back(instance);
    if (is_valid(geometry, kept)) continue;
    kept.pop_back();
    plan.remove.push_back(instance);
  }
  return plan;
}

}  // namespace loam::schedule
