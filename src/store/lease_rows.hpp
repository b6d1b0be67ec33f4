// Leases as the projections have them, read for several queries. Internal to this folder.
#pragma once

#include <string>
#include <vector>

#include "store/queries.hpp"

namespace loam::store {

// Oldest first, with their slices, and what was measured of their whole time.
Result<std::vector<LeaseRow>> leases_of(Database& database, TaskId task);
// The last one of each task of a JSON list of ids, likewise.
Result<std::vector<LeaseRow>> last_leases_of(Database& database, const std::string& ids);

}  // namespace loam::store
