// Sees to it that a keeper runs: adopts the one that is there, else starts the program detached, so
// that it outlives its starter. Not pure: processes, files.
#pragma once

#include <sys/types.h>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace loam::node {

// The pid of the keeper that serves ROOT; 0 where none does.
Result<pid_t> keeper_running(const std::string& root);

// Requires the path of the loam-keeper program. Returns the keeper's pid, started or adopted, once
// it serves. Its messages go to ROOT/keeper.log. `options` are those of the program besides --root,
// for one that is started. unavailable if it does not serve within 5 s.
Result<pid_t> ensure_keeper(const std::string& root, const std::string& program,
                            const std::vector<std::string>& options = {});

}  // namespace loam::node
