// `loam logs`: a task's output, as it is or as it grows.
#pragma once

#include "app/loam/session.hpp"

namespace loam::cli {

Result<int> run_logs(Session& session, const Arguments& arguments);

}  // namespace loam::cli
