// Small random pools for placement tests, kept beside the pool under test in plain vectors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "schedule/pool.hpp"

namespace loam::schedule::testing {

inline std::shared_ptr<DeviceFacts> kind(const std::string& type, std::int64_t ce,
                                         std::int64_t memory_mib) {
  auto facts = std::make_shared<DeviceFacts>();
  facts->type = type;
  facts->memory = Mebibytes{memory_mib};
  facts->factors = {MilliCe{ce}, MilliCe{ce * 2}, MilliCe{ce}, MilliCe{ce / 2 + 1}};
  return facts;
}

struct World {
  std::vector<NodeFigures> nodes;
  std::vector<Device> devices;

  std::uint64_t add_node(std::int64_t cpu, std::int64_t memory, std::string region = "",
                         std::vector<std::string> labels = {}) {
    NodeFigures node;
    node.id = NodeId{nodes.size() + 1};
    node.region = std::move(region);
    node.labels = std::move(labels);
    node.cpu = MilliCpu{cpu};
    node.memory = Mebibytes{memory};
    nodes.push_back(node);
    return node.id.value;
  }
  std::uint64_t add_device(std::uint64_t node, const std::shared_ptr<DeviceFacts>& facts,
                           std::int64_t used_milli = 0, std::int64_t used_mib = 0) {
    Device device;
    device.id = DeviceId{devices.size() + 1};
    device.node = NodeId{node};
    device.facts = facts;
    device.used = MilliDevice{used_milli};
    device.memory_used = Mebibytes{used_mib};
    devices.push_back(device);
    return device.id.value;
  }
  Pool pool(PoolOptions options = {}) const {
    Pool pool(options);
    for (const NodeFigures& node : nodes) pool.refresh(node);
    for (const Device& device : devices) pool.refresh(device);
    return pool;
  }
};

inline Demand share(std::int64_t milli, std::int64_t devices = 1, std::int64_t cpu = 0) {
  Demand demand;
  demand.share = MilliDevice{milli};
  demand.memory = Mebibytes{0};
  demand.devices = devices;
  demand.cpu = MilliCpu{cpu};
  return demand;
}

inline Demand ce(std::int64_t milli_ce) {
  Demand demand;
  demand.ce = MilliCe{milli_ce};
  return demand;
}

// Few sizes, so that states repeat and ties happen.
inline World random_world(Random& random, std::int64_t nodes_max = 6) {
  World world;
  const std::vector<std::shared_ptr<DeviceFacts>> kinds = {
      kind("a", 100'000, 0), kind("b", 100'000, 0), kind("c", 40'000, 0)};
  for (std::int64_t n = random.between(1, nodes_max); n > 0; --n) {
    const auto node = world.add_node(
        random.between(1, 4) * 8'000, random.between(1, 4) * 65'536,
        random.chance(500) ? "east" : "west",
        random.chance(500) ? std::vector<std::string>{"fast"} : std::vector<std::string>{});
    const auto& facts = kinds[random.below(kinds.size())];
    const auto& other = random.chance(200) ? kinds[random.below(kinds.size())] : facts;
    for (std::int64_t d = random.between(0, 4); d > 0; --d) {
      const auto id = world.add_device(node, random.chance(500) ? facts : other,
                                       random.chance(400) ? 0 : random.between(0, 10) * 100);
      if (random.chance(60)) world.devices[id - 1].draining = true;
      if (random.chance(60)) world.devices[id - 1].health = DeviceHealth::lost;
    }
  }
  return world;
}

inline Demand random_demand(Random& random) {
  Demand demand;
  const auto pick = random.below(10);
  if (pick == 0) {
    demand.devices = 0;
  } else if (pick < 3) {
    demand = ce(random.between(1, 10) * 10'000);
    demand.memory = Mebibytes{0};
  } else if (pick < 5) {
    demand = share(1000, random.between(1, 3));
  } else {
    demand = share(random.between(1, 10) * 100);
  }
  demand.cpu = MilliCpu{random.between(0, 4) * 2'000};
  demand.host_memory = Mebibytes{random.between(0, 4) * 16'384};
  if (random.chance(150)) demand.device_types = {"a", "c"};
  if (random.chance(100)) demand.region = "east";
  if (random.chance(100)) demand.labels = {"fast"};
  if (random.chance(80)) demand.exclusive = true;
  demand.work_class = static_cast<WorkClass>(random.below(4));
  return demand;
}

}  // namespace loam::schedule::testing
