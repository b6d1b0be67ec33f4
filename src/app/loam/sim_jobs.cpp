// loam sim: job traces under a queue discipline.
#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"

namespace loam::cli {

Result<int> sim_jobs(Session&, const Arguments&) {
  return Error{ErrorKind::unavailable,
               "this version does not simulate job traces under a queue discipline",
               "use SEED runs: loam sim 1..20"};
}

OptionGroup sim_jobs_options() {
  return {"Job traces", {}};
}

}  // namespace loam::cli
