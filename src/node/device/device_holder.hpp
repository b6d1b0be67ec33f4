// Which loamd sells a device of this machine: two that sold the same one would each promise all of
// it. A small file for each device names the data folder and the process; it counts as long as that
// process lives, or a keeper of that folder, which goes on for running tasks. Shell.
#pragma once

#include <string>

#include "base/result.hpp"

namespace loam::node {

// Makes the loamd of this process, with the data folder `data`, the holder of the device in
// `folder`, such as /run/lock. ErrorKind::conflict where another one's is alive, with its data
// folder and process; another kind where the file cannot be opened or written. A file of other
// content names nobody.
Result<void> hold_device(const std::string& folder, const std::string& uuid,
                         const std::string& data);

}  // namespace loam::node
