// Projections from the journal: catching up and writing anew. Not pure: a database.
#pragma once

#include <cstdint>

#include "store/sqlite.hpp"

namespace loam::store {

// Applies the records of `source` above `after` to the projections of `target` (which may be the
// same database). In the transaction of the caller. Returns the last sequence applied.
Result<std::uint64_t> project(Database& source, Database& target, std::uint64_t after);

// Drops every projection of `database`, makes them anew and fills them. In a transaction of its
// own; on an error the old ones stay.
Result<void> rebuild_projections(Database& database);

}  // namespace loam::store
