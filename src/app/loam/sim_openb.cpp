// loam sim: placement traces in the openb format.
#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"

namespace loam::cli {

Result<int> sim_openb(Session&, const Arguments&) {
  return Error{ErrorKind::unavailable,
               "this version does not simulate placement traces in the openb format",
               "use SEED runs: loam sim 1..20"};
}

OptionGroup sim_openb_options() {
  return {"Placement traces (openb)", {}};
}

}  // namespace loam::cli
