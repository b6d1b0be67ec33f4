// loam sim: one task on spot capacity under a deadline.
#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"

namespace loam::cli {

Result<int> sim_spot(Session&, const Arguments&) {
  return Error{ErrorKind::unavailable,
               "this version does not simulate one task on spot capacity under a deadline",
               "use SEED runs: loam sim 1..20"};
}

OptionGroup sim_spot_options() {
  return {"Spot", {}};
}

}  // namespace loam::cli
