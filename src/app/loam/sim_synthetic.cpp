// loam sim: a made-up pool in steady churn.
#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"

namespace loam::cli {

Result<int> sim_synthetic(Session&, const Arguments&) {
  return Error{ErrorKind::unavailable,
               "this version does not simulate a made-up pool in steady churn",
               "use SEED runs: loam sim 1..20"};
}

OptionGroup sim_synthetic_options() {
  return {"Made-up pool", {}};
}

}  // namespace loam::cli
