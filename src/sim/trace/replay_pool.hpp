// The pool of a replay (history.hpp): the journal's own nodes or those of a list, whole, in part or
// several times. Pure.
#pragma once

#include <vector>

#include "domain/command.hpp"
#include "sim/trace/history.hpp"

namespace loam::sim {

struct ReplayNode {
  AttachNode node;
  std::vector<DeviceFacts> devices;
};

// The nodes of `setting`: its list, else the history's own, with `devices_percent` of the devices
// of each. What is more than all of them is on copies of the node, which have CPU and memory in
// proportion. Requires devices_percent > 0. Error: a device type of the list of which neither the
// list nor the journal says what it is worth.
Result<std::vector<ReplayNode>> replay_pool(const History& history, const ReplaySetting& setting);

}  // namespace loam::sim
