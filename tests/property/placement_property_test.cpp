// Best fit against brute force: on small pools every device is tried by hand.
#include <gtest/gtest.h>

#include <optional>
#include <tuple>

#include "base/random.hpp"
#include "schedule/capacity.hpp"

namespace loam::schedule {
namespace {

std::vector<Device> pool(Random& random, const std::vector<std::shared_ptr<DeviceFacts>>& types) {
  std::vector<Device> devices(static_cast<std::size_t>(random.between(1, 12)));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Device& device = devices[i];
    device.id = DeviceId{i + 1};
    device.facts = types[random.below(types.size())];
    device.used = MilliDevice{random.chance(300) ? 0 : random.between(0, 1000)};
    device.memory_used = Mebibytes{random.between(0, device.facts->memory.value)};
    device.draining = random.chance(100);
    device.health = random.chance(100) ? DeviceHealth::lost : DeviceHealth::healthy;
  }
  return devices;
}

std::vector<std::shared_ptr<DeviceFacts>> device_types(Random& random) {
  std::vector<std::shared_ptr<DeviceFacts>> types;
  for (std::int64_t i = random.between(1, 3); i > 0; --i) {
    auto facts = std::make_shared<DeviceFacts>();
    facts->type = std::string(1, static_cast<char>('a' + i));
    facts->memory = Mebibytes{random.between(1, 100) * 64};
    const MilliCe ce{random.between(1, 300'000)};
    facts->factors = {ce, MilliCe{ce.value * 2}, ce, MilliCe{ce.value / 2 + 1}};
    types.push_back(std::move(facts));
  }
  return types;
}

Demand demand(Random& random, const std::vector<Device>& devices) {
  Demand wanted;
  if (random.chance(500)) {
    wanted.ce = MilliCe{random.between(1, 200'000)};
  } else {
    wanted.share = MilliDevice{random.between(1, 1000)};
  }
  if (random.chance(500)) wanted.memory = Mebibytes{random.between(1, 4000)};
  if (random.chance(150)) wanted.device = devices[random.below(devices.size())].id;
  if (random.chance(200)) wanted.device_type = "b";
  wanted.work_class = static_cast<WorkClass>(random.below(4));
  return wanted;
}

bool room(const Device& device, const Placement& needs) {
  return needs.share <= device.free() && needs.memory <= device.memory_free();
}

// The least worth taken, then the fullest device, then the least free memory, then the first.
std::optional<DeviceId> by_hand(const std::vector<Device>& devices, const Demand& wanted) {
  using Rank = std::tuple<std::int64_t, std::string, std::int64_t, std::int64_t, std::uint64_t>;
  std::optional<Rank> best;
  for (const Device& device : devices) {
    if (!device.placeable()) continue;
    const bool pinned = wanted.device.valid();
    if (pinned && device.id != wanted.device) continue;
    // A device that is named is taken for what it is.
    if (!pinned && !wanted.device_type.empty() && wanted.device_type != device.facts->type)
      continue;
    const Placement needs = needs_on(wanted, *device.facts);
    if (!room(device, needs)) continue;
    const Rank rank{needs.share.value * device.facts->factors.general.value, device.facts->type,
                    device.free().value, device.memory_free().value, device.id.value};
    if (!best || rank < *best) best = rank;
  }
  return best ? std::optional(DeviceId{std::get<4>(*best)}) : std::nullopt;
}

TEST(PlacementProperty, BestFitIsWhatTryingEveryDeviceFinds) {
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    Random random(seed);
    const auto types = device_types(random);
    std::vector<Device> devices = pool(random, types);
    Capacity capacity;
    for (const Device& device : devices) capacity.refresh(device);
    for (int step = 0; step < 6; ++step) {
      const Demand wanted = demand(random, devices);
      const auto found = capacity.best_fit(wanted);
      const auto expected = by_hand(devices, wanted);
      ASSERT_EQ(found.has_value(), expected.has_value()) << "seed " << seed;
      if (!found) continue;
      ASSERT_EQ(found->device, *expected) << "seed " << seed;
      ASSERT_TRUE(capacity.could_hold(wanted)) << "seed " << seed;
      ASSERT_FALSE(capacity.fits_when_empty(wanted).empty()) << "seed " << seed;
      Device& taken = devices[found->device.value - 1];
      taken.used += found->share;
      taken.memory_used += found->memory;
      capacity.refresh(taken);
    }
  }
}

TEST(PlacementProperty, WhatFitsInCeFitsInMilliDevice) {
  // Any parts of a device that sum to at most its CE fit on it together.
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    Random random(seed);
    const MilliCe worth{random.between(1000, 300'000)};
    std::int64_t left = worth.value;
    std::int64_t shares = 0;
    while (left > 0) {
      // Parts below a thousandth are rounded up to one, so they are not promised.
      const std::int64_t least = (worth.value + 999) / 1000;
      if (left < least) break;
      const MilliCe part{random.between(least, left)};
      left -= part.value;
      shares += share_for(part, worth).value;
    }
    ASSERT_LE(shares, 1000) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loam::schedule
