#include "sim/trace/replay_pool.hpp"

#include <algorithm>
#include <set>

namespace loam::sim {
namespace {

std::vector<ReplayNode> own_nodes(const History& history) {
  std::vector<ReplayNode> pool;
  for (const NodeAttached& node : history.nodes) {
    pool.push_back(
        {{node.name, node.region, node.cpu, node.memory, node.labels, node.sandboxed}, {}});
  }
  for (const DeviceAttached& device : history.devices)
    pool.at(device.node.value - 1).devices.push_back(device.facts);
  return pool;
}

Error at_line(const ReplaySetting& setting, const TraceNode& node, const std::string& what,
              std::string next_step) {
  return invalid(setting.nodes_file + ":" + std::to_string(node.line) + ": " + what,
                 std::move(next_step));
}

// A device of the type that the list names: as the journal knows it, over which the list goes.
Result<DeviceFacts> facts_of(const TraceNode& node, const History& history,
                             const ReplaySetting& setting) {
  DeviceFacts facts;
  std::set<std::string> known;
  for (const DeviceAttached& device : history.devices) {
    if (device.facts.type == node.device_type && known.count(node.device_type) == 0)
      facts = device.facts;
    known.insert(device.facts.type);
  }
  facts.type = node.device_type;
  if (node.ce) {
    facts.factors = {*node.ce, *node.ce, *node.ce, *node.ce};
    facts.factors_source = setting.nodes_file;
  }
  if (node.device_memory) facts.memory = *node.device_memory;
  if (facts.factors.general.value > 0 && facts.memory.value > 0) return facts;
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
  return at_line(setting, node,
                 "the journal knows no device of the type '" + node.device_type + "'",
                 "give the columns ce and device_memory_mib, or one of its own types: " + names);
}

Result<std::vector<ReplayNode>> listed_nodes(const History& history, const ReplaySetting& setting) {
  std::vector<ReplayNode> pool;
  // A journal is of one region.
  const std::string region = history.nodes.empty() ? "" : history.nodes.front().region;
  for (const TraceNode& listed : setting.nodes) {
    if (!is_name(listed.name)) {
      return at_line(setting, listed, "'" + listed.name + "' is not a node name",
                     "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
    }
    ReplayNode node;
    node.node = {listed.name, listed.region.empty() ? region : listed.region,
                 MilliCpu{listed.cpu_milli}, Mebibytes{listed.memory_mib}};
    if (listed.devices > 0) {
      LOAM_TRY(facts, facts_of(listed, history, setting));
      for (std::int64_t i = 0; i < listed.devices; ++i) {
        facts.uuid = listed.name + "/" + std::to_string(i);
        node.devices.push_back(facts);
      }
    }
    pool.push_back(std::move(node));
  }
  return pool;
}

// `part` of `whole` of it, rounded up.
std::int64_t part_of(std::int64_t amount, std::int64_t part, std::int64_t whole) {
  return (amount * part + whole - 1) / whole;
}

class Copies {
 public:
  explicit Copies(const std::vector<ReplayNode>& pool) {
    for (const ReplayNode& node : pool) taken_.insert(node.node.name);
  }

  // A copy with `devices` of the node's devices, one at least.
  ReplayNode of(const ReplayNode& node, std::int64_t devices) {
    const auto all = static_cast<std::int64_t>(node.devices.size());
    ReplayNode copy = node;
    do {
      copy.node.name = "copy" + std::to_string(++number_);
    } while (!taken_.insert(copy.node.name).second);
    copy.node.cpu = MilliCpu{part_of(node.node.cpu.value, devices, all)};
    copy.node.memory = Mebibytes{part_of(node.node.memory.value, devices, all)};
    copy.devices.resize(static_cast<std::size_t>(devices));
    for (DeviceFacts& facts : copy.devices) facts.uuid += "/" + copy.node.name;
    return copy;
  }

 private:
  std::set<std::string> taken_;
  std::int64_t number_ = 0;
};

std::vector<ReplayNode> scaled(const std::vector<ReplayNode>& pool, std::int64_t percent) {
  std::vector<ReplayNode> out;
  Copies copies(pool);
  for (const ReplayNode& node : pool) {
    const auto all = static_cast<std::int64_t>(node.devices.size());
    std::int64_t left = part_of(all, percent, 100);
    out.push_back(node);
    out.back().devices.resize(static_cast<std::size_t>(std::min(left, all)));
    for (left -= all; left > 0; left -= all) out.push_back(copies.of(node, std::min(left, all)));
  }
  return out;
}

}  // namespace

Result<std::vector<ReplayNode>> replay_pool(const History& history, const ReplaySetting& setting) {
  LOAM_ASSERT(setting.devices_percent > 0);
  if (setting.nodes.empty()) return scaled(own_nodes(history), setting.devices_percent);
  LOAM_TRY(pool, listed_nodes(history, setting));
  return scaled(pool, setting.devices_percent);
}

}  // namespace loam::sim
