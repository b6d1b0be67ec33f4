// Which devices of a scenario's node are near. Pure.
#include "sim/scenario.hpp"
#include "sim/scenario_words.hpp"

namespace loam::sim {

Result<void> read_links(Words& words, AddNode& node) {
  const Word* links = words.attribute("links");
  if (links == nullptr) return {};
  LOAM_TRY(size, words.placed(*links, parse_count(links->text)));
  const auto devices = static_cast<std::int64_t>(node.device_types.size());
  if (size < 2 || devices < size || devices % size != 0) {
    return words.fault(*links,
                       "'links=" + links->text + "' does not part " + std::to_string(devices) +
                           " devices into groups of two or more",
                       "say how many devices a fast link joins: devices=a100*8 links=4");
  }
  node.links = size;
  return {};
}

}  // namespace loam::sim
